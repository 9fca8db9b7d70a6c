//! Racing a future against a rare stop signal, such as a cancellation or a deadline.
//!
//! A cancellation is polled only when it fires (`support::run_until_stopped`): polling a
//! cancellation and a deadline with each poll of a model call cost more than small deltas of a
//! streamed answer. The driver races a call with its end, and says so
//! (`ChatCall::is_supervised`), so that gateway and client need not do it once more; layers of
//! the program get the call without that promise, since they may detach it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Runs `future` to completion, or drops it at its current await point when `stop` completes first.
///
/// `tokio::select!` polls every branch each time the task wakes. Here `stop` is polled once at
/// the start and then only when its own waker fires, so that a cancellation token or a timer that
/// hardly ever completes adds next to nothing to a busy future. When both complete in the same
/// poll, `stop` wins.
///
/// The returned future is cancellation-safe exactly when `future` and `stop` are: dropping it
/// drops both. Pass a large future as `pin!(future)`, because a future that is moved in occupies
/// its size twice.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use rockbot_core::support::run_until_stopped;
/// use tokio::time::sleep;
///
/// let short = run_until_stopped(async { "done" }, sleep(Duration::from_secs(1))).await;
/// assert_eq!(short, Ok("done"));
/// let long = run_until_stopped(std::future::pending::<()>(), sleep(Duration::from_secs(1))).await;
/// assert_eq!(long, Err(()));
/// # }
/// ```
///
/// # Errors
///
/// Returns the output of `stop` as the error if `stop` completes first.
pub async fn run_until_stopped<T, S>(future: impl Future<Output = T>, stop: impl Future<Output = S>) -> Result<T, S> {
    let mut future = pin!(future);
    let mut stop = pin!(stop);
    let stop_waker = Arc::new(StopWaker::default());
    let waker = Waker::from(stop_waker.clone());
    poll_fn(move |cx| {
        // Order matters: a wake-up between the two calls must find the task's waker registered, or it is
        // lost.
        stop_waker.register(cx.waker());
        if stop_waker.take_woken()
            && let Poll::Ready(stop) = stop.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Poll::Ready(Err(stop));
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// The waker that `stop` is polled with: it remembers that it was woken, and wakes the task.
#[derive(Debug)]
struct StopWaker {
    woken: AtomicBool,
    /// Waker of the task that polls both futures.
    task: Mutex<Option<Waker>>,
}

impl Default for StopWaker {
    /// Creates a waker in the woken state, because `stop` must be polled once before it can register
    /// a waker.
    fn default() -> Self {
        Self {
            woken: AtomicBool::new(true),
            task: Mutex::default(),
        }
    }
}

impl StopWaker {
    /// Registers the waker of the task. Call it before [`StopWaker::take_woken`]: a wake-up in
    /// between would be lost.
    fn register(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Returns `true` if `stop` asked to be polled since the last call.
    fn take_woken(&self) -> bool {
        // Acquire pairs with the release in `wake_by_ref`: what `stop` wrote before it woke is visible
        // to its poll.
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for StopWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The flag is set before the task is woken: the poll that follows must see it.
        self.woken.store(true, Ordering::Release);
        // The waker is cloned so that the lock is not held while foreign code (`wake`) runs.
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_stop_is_polled_only_when_it_asks() {
        let polls = AtomicU32::new(0);
        let mut timer = pin!(sleep(Duration::from_secs(100)));
        let stop = poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            timer.as_mut().poll(cx)
        });
        let busy = async {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            sleep(Duration::from_secs(500)).await;
        };
        assert_eq!(run_until_stopped(busy, stop).await, Err(()));
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn both_at_once_is_a_stop() {
        assert_eq!(run_until_stopped(async { 1 }, async { 2 }).await, Err(2));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_from_another_thread_is_never_lost() {
        for _ in 0..2_000 {
            let (stop, stopped) = oneshot::channel::<()>();
            let waiting = tokio::spawn(run_until_stopped(std::future::pending::<()>(), stopped));
            stop.send(()).unwrap();
            waiting.await.unwrap().unwrap_err().unwrap();
        }
    }
}
