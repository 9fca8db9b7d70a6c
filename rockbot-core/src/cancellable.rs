//! Running something until something rare happens.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Runs `future` until it ends, or until `stop` does; then `future` is dropped where it is.
///
/// `stop` is polled at first and whenever it asks to be, not each time that `future` is: a cancellation or a
/// deadline that hardly ever comes costs a busy future next to nothing. When both end at once, `stop` counts.
///
/// A large `future` is better given as `pin!(future)`: one that is moved in takes its room twice.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use rockbot_core::run_until_stopped;
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
/// Fails with the output of `stop` when that ends first.
pub async fn run_until_stopped<T, S>(future: impl Future<Output = T>, stop: impl Future<Output = S>) -> Result<T, S> {
    let (mut future, mut stop) = (pin!(future), pin!(stop));
    let waker_of_stop = Arc::new(StopWaker::default());
    let waker = Waker::from(waker_of_stop.clone());
    poll_fn(move |cx| {
        waker_of_stop.listen(cx.waker());
        if waker_of_stop.was_rung()
            && let Poll::Ready(stop) = stop.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Poll::Ready(Err(stop));
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// What the stop rings when it wants to be polled.
#[derive(Debug)]
struct StopWaker {
    rung: AtomicBool,
    /// The task that listens.
    task: Mutex<Option<Waker>>,
}

impl Default for StopWaker {
    /// A waker_of_stop that was rung: the first poll is always wanted.
    fn default() -> Self {
        Self {
            rung: AtomicBool::new(true),
            task: Mutex::default(),
        }
    }
}

impl StopWaker {
    /// Wakes the task of `waker` from now on. To be called before [`StopWaker::was_rung`]: a ring in between would
    /// wake nobody.
    fn listen(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    fn was_rung(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for StopWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
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
