//! The subscriptions of one bus: the state that its consumers agree on, and their end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{BusError, SubscriptionControl};
use tokio::time;

use super::SubscriptionSpec;
use super::worker::Worker;

/// Delay between two looks at subscriptions that are to become idle.
const LOOK: Duration = Duration::from_millis(10);
/// Time that cancelled handlers have to end.
const GRACE: Duration = Duration::from_secs(1);

/// All subscriptions of a bus by name.
pub(crate) struct Subscriptions<P>(Mutex<BTreeMap<String, Named<P>>>);

struct Named<P> {
    /// The pattern and options of the first consumer.
    spec: SubscriptionSpec,
    workers: Vec<Arc<Worker<P>>>,
}

impl<P> Default for Subscriptions<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P> Subscriptions<P> {
    /// Checks that a consumer with `spec` may join its subscription.
    pub(crate) fn check(&self, spec: &SubscriptionSpec) -> Result<(), BusError> {
        match self.lock().get(&spec.name) {
            Some(named) if named.is_active() && !named.can_share(spec) => Err(BusError::Conflict(spec.name.clone())),
            _ => Ok(()),
        }
    }

    /// Adds a consumer. The name stays known after its end, so that its dead letters are found.
    pub(crate) fn add(&self, worker: &Arc<Worker<P>>) {
        let mut subscriptions = self.lock();
        // An ephemeral subscription has a name of its own, mostly used once, and shares its dead letters.
        subscriptions.retain(|_, named| named.is_active() || !named.spec.options.ephemeral);
        let spec = &worker.spec;
        let named = subscriptions.entry(spec.name.clone()).or_insert_with(|| Named {
            spec: spec.clone(),
            workers: Vec::new(),
        });
        if !named.is_active() {
            named.spec = spec.clone();
        }
        named.workers.retain(|worker| !worker.tasks.is_empty());
        named.workers.push(Arc::clone(worker));
    }

    /// Returns all kept subscriptions.
    pub(crate) fn kept(&self) -> Vec<SubscriptionSpec> {
        let subscriptions = self.lock();
        let kept = subscriptions.values().filter(|named| !named.spec.options.ephemeral);
        kept.map(|named| named.spec.clone()).collect()
    }

    /// Waits until no subscription has a message.
    pub(crate) async fn until_idle(&self) {
        loop {
            let workers = self.workers();
            let before = self.taken();
            let mut is_idle = true;
            for worker in workers {
                is_idle &= worker.is_idle().await;
            }
            // A handler may have published to a subscription that was idle already.
            if is_idle && self.taken() == before {
                return;
            }
            time::sleep(LOOK).await;
        }
    }

    /// Stops all consumers, and waits for their running handlers for at most `within`. Returns the
    /// number of messages that were not handled.
    pub(crate) async fn end(&self, within: Duration) -> usize {
        let workers = self.workers();
        let unfinished = || {
            workers
                .iter()
                .map(|worker| worker.unfinished.load(Ordering::Acquire))
                .sum::<usize>()
        };
        let before = unfinished();
        for worker in &workers {
            worker.stop.cancel();
            worker.tasks.close();
        }
        let ended = async {
            for worker in &workers {
                worker.tasks.wait().await;
            }
        };
        tokio::pin!(ended);
        if time::timeout(within, &mut ended).await.is_err() {
            workers.iter().for_each(|worker| worker.abort.cancel());
            let _ = time::timeout(GRACE, ended).await;
        }
        unfinished().saturating_sub(before)
    }

    fn taken(&self) -> usize {
        self.workers()
            .iter()
            .map(|worker| worker.taken.load(Ordering::Acquire))
            .sum()
    }

    fn workers(&self) -> Vec<Arc<Worker<P>>> {
        self.lock().values().flat_map(|named| named.workers.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Named<P>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Named<P> {
    fn is_active(&self) -> bool {
        self.workers.iter().any(|worker| !worker.stop.is_cancelled())
    }

    fn can_share(&self, other: &SubscriptionSpec) -> bool {
        self.spec.pattern == other.pattern && self.spec.options.can_share(&other.options)
    }
}

/// The handle that ends one consumer.
pub(crate) struct ConsumerControl<P>(pub(crate) Arc<Worker<P>>);

#[async_trait]
impl<P: Send + Sync + 'static> SubscriptionControl for ConsumerControl<P> {
    fn stop(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
    }

    async fn stopped(&self) {
        self.0.tasks.wait().await;
    }

    fn is_active(&self) -> bool {
        !self.0.stop.is_cancelled()
    }
}
