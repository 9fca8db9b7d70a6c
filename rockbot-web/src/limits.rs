//! The bounds of each principal: messages in a minute, and answers that are read at once.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::layer::tower::{Layer as _, Service as _, service_fn};
use rockbot_core::layer::{RateLimitExceeded, RateLimitLayer};
use rockbot_core::{BoxError, Principal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::WebError;

/// Maximum number of principals whose use is remembered. A proxy may know more users: users without
/// an open stream are forgotten first.
const MAX_PRINCIPALS: usize = 10_000;

const MINUTE: Duration = Duration::from_secs(60);

/// The bounds of all principals.
pub(crate) struct Limits {
    pub(crate) messages_per_minute: u32,
    pub(crate) max_streams: usize,
    principals: Mutex<HashMap<Principal, Arc<PrincipalLimits>>>,
}

/// The bounds of one principal.
pub(crate) struct PrincipalLimits {
    messages: RateLimitLayer,
    streams: Arc<Semaphore>,
}

impl Limits {
    pub(crate) fn new(messages_per_minute: u32, max_streams: usize) -> Self {
        Self {
            messages_per_minute,
            max_streams,
            principals: Mutex::default(),
        }
    }

    /// Returns the bounds of a principal.
    pub(crate) fn of(&self, principal: &Principal) -> Arc<PrincipalLimits> {
        // Each change is one step, so a poisoned map is consistent.
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limits) = principals.get(principal) {
            return limits.clone();
        }
        if principals.len() >= MAX_PRINCIPALS {
            principals.retain(|_, limits| limits.streams.available_permits() < self.max_streams);
        }
        let limits = Arc::new(PrincipalLimits {
            messages: RateLimitLayer::new(self.messages_per_minute, MINUTE).with_max_wait(Duration::ZERO),
            streams: Arc::new(Semaphore::new(self.max_streams)),
        });
        principals.insert(principal.clone(), limits.clone());
        limits
    }
}

impl PrincipalLimits {
    /// Counts a message.
    pub(crate) async fn message(&self) -> Result<(), WebError> {
        let nothing = service_fn(|()| ready(Ok::<_, BoxError>(())));
        // Always ready, and a boxed future.
        let counted = self.messages.layer(nothing).call(());
        counted.await.map_err(|error| {
            let after = error.downcast_ref().map(RateLimitExceeded::retry_after);
            WebError::busy(
                "you have sent too many messages: send this one again a little later",
                after.unwrap_or(MINUTE),
            )
        })
    }

    /// Takes a permit to read an answer.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, WebError> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            WebError::busy(
                "you read too many answers at once: close an open one",
                Duration::from_secs(5),
            )
        })
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("messages_per_minute", &self.messages_per_minute)
            .field("max_streams", &self.max_streams)
            .finish_non_exhaustive()
    }
}
