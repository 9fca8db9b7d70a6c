//! The permit layer: bounds concurrent calls for each tier, users first.
//!
//! [`queue`](super::queue) decides the order; here are the lock, the wake-ups and the guards. A
//! permit is held for one attempt only, so a call that waits for a retry further out blocks no
//! other call.
//!
//! A permit is held for one attempt: a call in back-off does not block others.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use metrics::{Histogram, histogram};
use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier};
use rockbot_core::context::{Priority, ProgressReporter, WaitReason};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::layer::{GatewayLayer, layer_of};
use super::queue::{PermitQueue, QueueFull, Ticket};
use crate::limits::PermitLimits;
use crate::retry::MIN_REPORTED_WAIT;

/// A layer that bounds concurrent calls by [`PermitLimits`]: a semaphore for each tier, with
/// priorities. Copies share the permits.
///
/// A call that is refused, or waited too long, fails with [`ChatErrorKind::Saturated`]. A call
/// that is dropped gives its permit or its place back, wherever it is. How long calls wait is
/// measured in milliseconds as `rockbot.llm.permit.wait`, by `tier`.
#[derive(Clone)]
pub struct Permits(Arc<Shared>);

struct Shared {
    limits: PermitLimits,
    queue: Mutex<PermitQueue<oneshot::Sender<Permit>>>,
    waits: [OnceLock<Histogram>; 3],
}

impl Permits {
    /// Creates permits within `limits`.
    pub fn new(limits: PermitLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            queue: Mutex::new(PermitQueue::new(limits)),
            waits: Default::default(),
        }))
    }

    /// Returns the number of calls that hold a permit.
    pub fn running(&self) -> usize {
        self.0.lock().running()
    }

    /// Returns the number of calls that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting()
    }

    async fn permit(&self, tier: ModelTier, cx: &CallContext) -> Result<Permit, ChatError> {
        let began = Instant::now();
        let permit = match self.0.admit(tier, cx.priority(), began) {
            Ok(Admission::Granted(permit)) => Ok(permit),
            Ok(Admission::Queued(call)) => call.permit(cx.progress()).await,
            Err(QueueFull) => Err(self.0.queue_full()),
        };
        self.0.waits(tier).record(began.elapsed().as_secs_f64() * 1000.0);
        permit
    }
}

impl Default for Permits {
    fn default() -> Self {
        Self::new(PermitLimits::default())
    }
}

#[async_trait]
impl GatewayLayer for Permits {
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let _permit = self.permit(call.request.tier.unwrap_or_default(), &call.cx).await?;
        next.chat(call).await
    }
}

layer_of!(Permits);

/// The outcome of asking for a permit.
enum Admission {
    /// A permit was free.
    Granted(Permit),
    /// The call waits for one.
    Queued(QueuedCall),
}

impl Shared {
    fn admit(self: &Arc<Self>, tier: ModelTier, priority: Priority, now: Instant) -> Result<Admission, QueueFull> {
        let mut queue = self.lock();
        if queue.try_acquire(tier) {
            return Ok(Admission::Granted(self.permit(tier)));
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = queue.enqueue(tier, priority, now, sender)?;
        Ok(Admission::Queued(QueuedCall {
            shared: self.clone(),
            tier,
            ticket,
            receiver,
        }))
    }

    /// Hands free permits to waiting calls. A permit whose call was dropped meanwhile is dropped with
    /// the failed send, and so comes back here.
    fn grant_free(self: &Arc<Self>) {
        loop {
            // Not in a `while let`, which would hold the lock while permits are dropped: dropping one takes
            // the lock again.
            let next = self.lock().next_admitted();
            let Some((tier, waiter)) = next else { return };
            let _ = waiter.send(self.permit(tier));
        }
    }

    fn permit(self: &Arc<Self>, tier: ModelTier) -> Permit {
        Permit {
            shared: self.clone(),
            tier,
        }
    }

    fn waits(&self, tier: ModelTier) -> &Histogram {
        self.waits[tier as usize].get_or_init(|| histogram!("rockbot.llm.permit.wait", "tier" => tier.name()))
    }

    fn lock(&self) -> MutexGuard<'_, PermitQueue<oneshot::Sender<Permit>>> {
        // No code that can panic runs under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue_full(&self) -> ChatError {
        let max = self.limits.max_waiting;
        saturated(&format!(
            "more than {max} calls wait for a model and this one comes last"
        ))
    }

    fn waited_too_long(&self, limit: Duration) -> ChatError {
        saturated(&format!("no model was free for this call within {limit:?}"))
    }
}

fn saturated(why: &str) -> ChatError {
    let message = format!("{why}: try again later, or raise the gateway's permits");
    ChatError::new(ChatErrorKind::Saturated, message)
}

/// A permit for one attempt, released when it is dropped.
struct Permit {
    shared: Arc<Shared>,
    tier: ModelTier,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.lock().release(self.tier);
        self.shared.grant_free();
    }
}

/// A call in the queue, withdrawn when it is dropped.
struct QueuedCall {
    shared: Arc<Shared>,
    tier: ModelTier,
    ticket: Ticket,
    receiver: oneshot::Receiver<Permit>,
}

impl QueuedCall {
    async fn permit(mut self, progress: &ProgressReporter) -> Result<Permit, ChatError> {
        let limit = self.shared.limits.max_wait;
        let unreported = limit.min(MIN_REPORTED_WAIT);
        // Cancel point: dropping this future withdraws the ticket, see `Drop`.
        let mut granted = timeout(unreported, &mut self.receiver).await;
        let left = limit - unreported;
        if granted.is_err() && !left.is_zero() {
            progress.waiting(Some(left), WaitReason::Permit);
            granted = timeout(left, &mut self.receiver).await;
        }
        match granted {
            Ok(Ok(permit)) => Ok(permit),
            // The queue dropped the sender: this call was the last in order when the queue overflowed.
            Ok(Err(_)) => Err(self.shared.queue_full()),
            Err(_) => Err(self.shared.waited_too_long(limit)),
        }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        // Harmless after the permit was granted: then the ticket is in the queue no more. A permit that
        // was sent but not received is dropped with the receiver, and released.
        self.shared.lock().withdraw(self.tier, self.ticket);
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits")
            .field("limits", &self.0.limits)
            .field("running", &self.running())
            .field("waiting", &self.waiting())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Waker};

    use rockbot_core::chat::ModelInfo;
    use rockbot_core::context::Priority::*;
    use tokio::task::JoinSet;

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::testing::{Slow, call_of};

    /// The context of a user's call.
    fn cx() -> CallContext {
        CallContext::new("session")
    }

    fn gateway(limits: PermitLimits) -> (ModelGateway, Permits, Slow) {
        let permits = Permits::new(limits);
        let model = Slow::default();
        let gateway = ModelGateway::builder(model.clone()).layer(permits.clone()).build();
        (gateway, permits, model)
    }

    /// Asks all at once and returns how each call ended, in the order of the calls.
    async fn ask_all(gateway: &ModelGateway, calls: impl IntoIterator<Item = ChatCall>) -> Vec<Option<ChatErrorKind>> {
        let mut tasks = Vec::new();
        for call in calls {
            let gateway = gateway.clone();
            tasks.push(tokio::spawn(async move {
                gateway.chat(call).await.err().map(|error| error.kind())
            }));
            tokio::task::yield_now().await;
        }
        let mut ends = Vec::new();
        for task in tasks {
            ends.push(task.await.unwrap());
        }
        ends
    }

    #[tokio::test(start_paused = true)]
    async fn each_tier_has_its_own_permits() {
        for (tier, most) in ModelTier::ALL.into_iter().zip([8, 4, 2]) {
            let (gateway, permits, model) = gateway(PermitLimits::default());
            let calls = (0..20).map(|_| call_of(tier, User));
            assert_eq!(ask_all(&gateway, calls).await, [None; 20]);
            assert_eq!(model.most.load(Ordering::SeqCst), most, "{tier:?}");
            assert_eq!((permits.running(), permits.waiting()), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn serialized_means_one_call_at_a_time_and_users_first() {
        let (gateway, _, model) = gateway(PermitLimits::serialized());
        let calls = [Dream, Dream, Subagent, Scheduled, User]
            .into_iter()
            .zip(ModelTier::ALL.into_iter().cycle());
        let began = Instant::now();
        ask_all(&gateway, calls.map(|(priority, tier)| call_of(tier, priority))).await;
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert_eq!(model.most.load(Ordering::SeqCst), 1);
        assert_eq!(*model.order.lock().unwrap(), [Dream, User, Scheduled, Subagent, Dream]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_in_number_and_time() {
        let limits = PermitLimits {
            max_waiting: 2,
            max_wait: Duration::from_millis(1500),
            ..PermitLimits::serialized()
        };
        let (gateway, permits, _) = gateway(limits);
        let calls = [User, Dream, User, User].map(|priority| call_of(ModelTier::Low, priority));
        let saturated = Some(ChatErrorKind::Saturated);
        // The dream loses its place to the third, and the last waits too long.
        assert_eq!(ask_all(&gateway, calls).await, [None, saturated, None, saturated]);
        assert_eq!((permits.running(), permits.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn an_error_says_what_to_do() {
        let limits = PermitLimits {
            max_waiting: 0,
            ..PermitLimits::serialized()
        };
        let permits = Permits::new(limits);
        let _first = permits.permit(ModelTier::Low, &cx()).await.unwrap();
        let error = permits.permit(ModelTier::High, &cx()).await.err().unwrap();
        let expected = "more than 0 calls wait for a model and this one comes last: \
                        try again later, or raise the gateway's permits";
        assert_eq!((error.kind(), error.message()), (ChatErrorKind::Saturated, expected));
        assert!(!error.retry_helps());
    }

    fn poll<F: Future>(future: &mut Pin<Box<F>>) -> bool {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Answers after some polls.
    struct Steps(usize);

    #[async_trait]
    impl ChatClient for Steps {
        async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
            for _ in 0..self.0 {
                let mut is_first = true;
                std::future::poll_fn(|_| {
                    if std::mem::take(&mut is_first) {
                        std::task::Poll::Pending
                    } else {
                        std::task::Poll::Ready(())
                    }
                })
                .await;
            }
            Ok(ChatResponse::text("done"))
        }

        fn describe(&self, _: ModelTier) -> ModelInfo {
            ModelInfo::unknown()
        }
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_anywhere_gives_back_what_it_has() {
        // The call is polled so often, then the one before it ends, then it is polled again; and then it
        // is dropped.
        for before in 0..4 {
            for after in 0..6 {
                let permits = Permits::new(PermitLimits::serialized());
                let gateway = ModelGateway::builder(Steps(3)).layer(permits.clone()).build();
                let first = permits.permit(ModelTier::High, &cx()).await.ok().unwrap();
                let mut call = Box::pin(gateway.chat(call_of(ModelTier::Low, User)));
                let mut has_ended = false;
                for _ in 0..before {
                    assert!(!poll(&mut call));
                }
                drop(first);
                for _ in 0..after {
                    has_ended = has_ended || poll(&mut call);
                }
                assert_eq!(has_ended, after >= 4, "{before} polls before, {after} after");
                drop(call);
                assert_eq!(
                    (permits.running(), permits.waiting()),
                    (0, 0),
                    "{before} polls before, {after} after"
                );
                assert!(gateway.is_idle());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn permits_survive_a_crowd_that_comes_and_goes() {
        let permits = Permits::new(PermitLimits {
            total: 3,
            ..PermitLimits::default()
        });
        let gateway = ModelGateway::builder(Steps(1)).layer(permits.clone()).build();
        let mut tasks = JoinSet::new();
        for number in 0..2000 {
            let gateway = gateway.clone();
            tasks.spawn(async move {
                let call = gateway.chat(call_of(ModelTier::ALL[number % 3], User));
                // `Steps` wakes no task, so a running call is stuck until it is dropped.
                let _ = timeout(Duration::from_micros(number as u64 % 7), call).await;
            });
        }
        while tasks.join_next().await.is_some() {}
        assert_eq!((permits.running(), permits.waiting()), (0, 0));
    }
}
