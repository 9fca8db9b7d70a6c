//! Layers for services of any kind: turns, model calls, tool calls and messages.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};

/// The version of tower whose `Layer` and `Service` the builders of this crate take.
pub use tower;

use crate::BoxError;
pub use crate::rate_limit_exceeded::RateLimitExceeded;
use crate::turn::TurnCall;

/// A tower layer that limits the rate of calls with a token bucket.
///
/// The bucket holds one token for each call that may begin at once, and is refilled evenly. A
/// call that finds it empty waits for its turn, in order of arrival. A call that would have to
/// wait longer than the maximum is refused at once with a [`RateLimitExceeded`], so the queue is
/// bounded.
///
/// All clones of a layer share one bucket, and so do the services that it is given to. Tower's
/// layer of the same name is not `Clone`, so it does not fit a service that is called from
/// several tasks.
///
/// # Turns
///
/// Around turns, the layer counts the turns that begin with a message of a user or of a bus. A
/// turn that another turn or a schedule began takes no token, and neither does a turn that
/// continues after a decision or a restart: its user has waited for a token before, and would
/// wait again in the middle of the work. [`counting_all_turns`](Self::counting_all_turns) counts
/// these turns, too. Every model call, every tool call and every message takes a token.
///
/// # Cancellation safety
///
/// A call that is dropped while it waits takes no token.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::layer::{RateLimitExceeded, RateLimitLayer};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let echo = service_fn(async |text: &'static str| Ok::<_, rockbot_core::BoxError>(text));
/// let limited = RateLimitLayer::new(2, Duration::from_secs(60)).with_max_wait(Duration::ZERO).layer(echo);
///
/// assert_eq!(limited.clone().oneshot("first").await.unwrap(), "first");
/// assert_eq!(limited.clone().oneshot("second").await.unwrap(), "second");
/// let refused = limited.oneshot("third").await.unwrap_err();
/// assert!(refused.downcast_ref::<RateLimitExceeded>().unwrap().retry_after() <= Duration::from_secs(30));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimitLayer {
    /// Interval between two tokens.
    interval: Duration,
    /// Time until an empty bucket holds all its tokens but one.
    tolerance: Duration,
    max_wait: Duration,
    counts_all_turns: bool,
    bucket: Arc<Bucket>,
}

/// The default of [`RateLimitLayer::with_max_wait`].
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Maximum period, so that no instant overflows. A longer period does not end in the life of a
/// process.
const MAX_PERIOD: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl RateLimitLayer {
    /// Creates a layer that lets `calls` begin in each `per`; 0 calls count as 1.
    ///
    /// That many may begin at once after a pause: within one `per` after it, up to twice as many begin.
    /// [`with_burst`](Self::with_burst) smooths that.
    pub fn new(calls: u32, per: Duration) -> Self {
        let calls = calls.max(1);
        let limit = Self {
            interval: per.min(MAX_PERIOD) / calls,
            tolerance: Duration::ZERO,
            max_wait: MAX_WAIT,
            counts_all_turns: false,
            bucket: Arc::new(Bucket::new()),
        };
        limit.with_burst(calls)
    }

    /// Sets the number of calls that may begin at once; 0 counts as 1. Default: the calls of one
    /// period.
    #[must_use]
    pub fn with_burst(mut self, calls: u32) -> Self {
        self.tolerance = self.interval.saturating_mul(calls.saturating_sub(1));
        self
    }

    /// Sets the maximum time that a call waits. Zero refuses every call that cannot begin at once.
    /// Default 1 minute.
    #[must_use]
    pub fn with_max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Counts every turn, including the turns that other turns and schedules begin, and the turns
    /// that continue. By default, only turns that begin with a message take a token.
    ///
    /// A limit of one turn a minute then makes an agent wait a minute for each agent that it calls as
    /// a tool.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rockbot_core::BoxError;
    /// use rockbot_core::context::Origin;
    /// use rockbot_core::layer::RateLimitLayer;
    /// use rockbot_core::turn::{ProgressSink, TurnCall, TurnRequest};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let one = RateLimitLayer::new(1, Duration::from_secs(60)).with_max_wait(Duration::ZERO);
    /// let turns = service_fn(async |turn: TurnCall| Ok::<_, BoxError>(turn.request.content));
    /// let scheduled = || {
    ///     let request = TurnRequest::new("patrol", "09:00", "Look around.").with_origin(Origin::Scheduled);
    ///     TurnCall::new(request, ProgressSink::none())
    /// };
    ///
    /// let of_messages = one.clone().layer(turns);
    /// assert!(of_messages.clone().oneshot(scheduled()).await.is_ok());
    /// assert!(of_messages.oneshot(scheduled()).await.is_ok());
    ///
    /// let of_all = one.counting_all_turns().layer(turns);
    /// assert!(of_all.clone().oneshot(scheduled()).await.is_ok());
    /// assert!(of_all.oneshot(scheduled()).await.is_err());
    /// # }
    /// ```
    #[must_use]
    pub fn counting_all_turns(mut self) -> Self {
        self.counts_all_turns = true;
        self
    }

    /// Returns `true` if `request` takes a token. The service is generic over requests, so it knows a
    /// turn by its type.
    fn counts<Request: 'static>(&self, request: &Request) -> bool {
        let turn = (request as &dyn Any).downcast_ref::<TurnCall>();
        self.counts_all_turns || turn.is_none_or(|turn| turn.request.is_user_message() && !turn.is_continued)
    }

    /// Waits for a token and takes it.
    async fn acquire(&self) -> Result<(), RateLimitExceeded> {
        let Some(_place) = self.take_or_queue()? else {
            return Ok(());
        };
        // First come, first served: tokio's mutex is fair. The first of the queue alone waits for the
        // token.
        let _first = self.bucket.first.lock().await;
        while let Some(wait) = self.try_take() {
            // Cancel point: no token is taken before the wait is over, so it is left to the next call.
            sleep(wait).await;
        }
        Ok(())
    }

    /// Takes a token for the first call of the queue, or returns how long it has to wait for one.
    fn try_take(&self) -> Option<Duration> {
        let mut queue = self.bucket.queue();
        let wait = self.wait_behind(&queue, 0);
        if wait.is_zero() {
            self.take(&mut queue);
            return None;
        }
        Some(wait)
    }

    /// Takes a token if there is one and no call waits for it, or enters the queue.
    fn take_or_queue(&self) -> Result<Option<QueuePlace<'_>>, RateLimitExceeded> {
        let mut queue = self.bucket.queue();
        let wait = self.wait_behind(&queue, queue.waiting);
        if wait.is_zero() && queue.waiting == 0 {
            self.take(&mut queue);
            return Ok(None);
        }
        if wait > self.max_wait {
            return Err(RateLimitExceeded { retry_after: wait });
        }
        queue.waiting += 1;
        Ok(Some(QueuePlace(&self.bucket)))
    }

    /// Returns the time until a call with `ahead` others before it may begin.
    fn wait_behind(&self, queue: &Queue, ahead: u32) -> Duration {
        let until_full = queue.full_at.saturating_duration_since(Instant::now());
        let until_turn = until_full.saturating_add(self.interval.saturating_mul(ahead));
        until_turn.saturating_sub(self.tolerance)
    }

    fn take(&self, queue: &mut Queue) {
        queue.full_at = queue.full_at.max(Instant::now()) + self.interval;
    }
}

/// A token bucket and the calls that wait for it.
#[derive(Debug)]
struct Bucket {
    queue: Mutex<Queue>,
    /// Held by the call that is next.
    first: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Queue {
    /// Instant when the bucket is full again. It says how many tokens there are, so nothing has to
    /// refill them.
    full_at: Instant,
    /// Number of calls that wait.
    waiting: u32,
}

impl Bucket {
    fn new() -> Self {
        Self {
            queue: Mutex::new(Queue {
                full_at: Instant::now(),
                waiting: 0,
            }),
            first: tokio::sync::Mutex::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue of a bucket. Dropping it gives it up.
struct QueuePlace<'a>(&'a Bucket);

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.queue().waiting -= 1;
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit {
            limit: self.clone(),
            inner,
        }
    }
}

/// The service of a [`RateLimitLayer`].
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    limit: RateLimitLayer,
    inner: S,
}

impl<S, Request> Service<Request> for RateLimit<S>
where
    S: Service<Request, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    S::Response: 'static,
    Request: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    /// Always ready: a token that readiness took would be lost with a clone that is never called, so
    /// a call takes it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let limit = self.limit.counts(&request).then(|| self.limit.clone());
        let inner = self.inner.clone();
        Box::pin(async move {
            if let Some(limit) = limit {
                limit.acquire().await?;
            }
            inner.oneshot(request).await.map_err(Into::into)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limit() -> RateLimitLayer {
        RateLimitLayer::new(2, 2 * SECOND).with_max_wait(3 * SECOND)
    }

    /// The seconds after which each of `calls` concurrent calls began; `None` if it was refused.
    async fn begun(limit: &RateLimitLayer, calls: usize) -> Vec<Option<u64>> {
        let start = Instant::now();
        let call = async || limit.acquire().await.ok().map(|()| start.elapsed().as_secs());
        futures_util::future::join_all((0..calls).map(|_| call())).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_begins_at_once_and_the_rest_evenly_until_the_wait_is_too_long() {
        let limit = limit();
        let expected = [Some(0), Some(0), Some(1), Some(2), Some(3), None, None];
        assert_eq!(begun(&limit, 7).await, expected);
        sleep(60 * SECOND).await;
        assert_eq!(begun(&limit.with_burst(1), 3).await, [Some(0), Some(1), Some(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_call_says_when_to_try_again() {
        let limit = RateLimitLayer::new(0, 90 * SECOND).with_max_wait(Duration::ZERO);
        limit.acquire().await.unwrap();
        sleep(SECOND / 2).await;
        let refused = limit.acquire().await.unwrap_err();
        assert_eq!(refused.to_string(), "the rate limit is exceeded: try again in 90 s");
        assert_eq!(refused.retry_after(), 89 * SECOND + SECOND / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_while_it_waits_leaves_its_token_to_the_next() {
        let limit = limit();
        begun(&limit, 2).await;
        timeout(SECOND / 2, limit.acquire()).await.unwrap_err();
        let (first, others) = tokio::join!(timeout(SECOND / 4, limit.acquire()), begun(&limit, 2));
        first.unwrap_err();
        assert_eq!(others, [Some(0), Some(1)]);
    }
}
