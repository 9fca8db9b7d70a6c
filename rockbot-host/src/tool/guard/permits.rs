//! The permits of calls: how many run at once, of one tool and of all together.

use rockbot_core::CallContext;
use rockbot_core::tool::ToolError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep_until;

use super::result::{cancelled_first, no_time_left};

/// The semaphores of a call, in the order of taking their permits.
pub(super) type Semaphores<'a> = [Option<&'a Semaphore>; 2];

/// The permits of a call, and whether it waited for one.
pub(super) struct Permits<'a> {
    _held: [Option<SemaphorePermit<'a>>; 2],
    pub(super) has_waited: bool,
}

impl<'a> Permits<'a> {
    /// Returns a permit of each semaphore, if all have a free one.
    pub(super) fn free([first, second]: Semaphores<'a>) -> Option<Self> {
        let free = |semaphore: Option<&'a Semaphore>| semaphore.map(Semaphore::try_acquire).transpose().ok();
        Some(Self {
            _held: [free(first)?, free(second)?],
            has_waited: false,
        })
    }

    /// Acquires a permit of each semaphore, in order. Returns the error of the call if it was
    /// cancelled first, or its deadline passed.
    pub(super) async fn acquire([first, second]: Semaphores<'a>, cx: &CallContext) -> Result<Self, ToolError> {
        Ok(Self {
            _held: [acquire(first, cx).await?, acquire(second, cx).await?],
            has_waited: true,
        })
    }
}

async fn acquire<'a>(
    semaphore: Option<&'a Semaphore>,
    cx: &CallContext,
) -> Result<Option<SemaphorePermit<'a>>, ToolError> {
    let Some(semaphore) = semaphore else {
        return Ok(None);
    };
    if let Ok(permit) = semaphore.try_acquire() {
        return Ok(Some(permit));
    }
    let deadline = async {
        match cx.deadline() {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    // Cancel point: dropping the wait gives up the call's place in the queue, and takes no permit.
    tokio::select! {
        // In order: a permit that comes at the moment of a cancellation must not start the call.
        biased;
        () = cx.cancellation().cancelled() => Err(cancelled_first()),
        () = deadline => Err(no_time_left()),
        // These semaphores are never closed; if one were, a call without a permit would be the lesser
        // evil.
        permit = semaphore.acquire() => Ok(permit.ok()),
    }
}
