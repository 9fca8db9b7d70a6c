//! The calling side: requests to one pair of queues, and the replies that belong to them.
//!
//! A [`ServiceClient`] is made for a pair of queues when a tool of that pair is first called
//! (`lazily`), and subscribes to the replies before it sends its first request. All clients of a
//! reply queue see all replies; replies with a foreign `id` are dropped. `pending` collects the
//! parts of a result.
//!
//! A reply without `end_of_stream` is final, only an explicit `false` means more: TrustGraph's
//! agent reads one message, ours all.
//!
//! Parts of a reply are collected where they arrive, not in the waiting call: a call that is not
//! polled delays no other reply, and buffers no more than its result.

mod pending;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::IdSource;
use rockbot_core::context::ProgressReporter;
use rockbot_core::messaging::{Bus, BusError, MessageEnvelope, Reach, SubscribeOptions, Subscription, TopicPattern};
use tokio::sync::OnceCell;

pub(super) use pending::CallError;
use pending::{PendingCalls, Replies};

use super::queue_id::QueueId;
use super::wire::{ID, REQUEST_TYPE, RequestBody};

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallLimits {
    /// Maximum time until the first message of a reply, and between two of them.
    pub(super) message_time: Duration,
    /// Maximum time of the whole call.
    pub(super) total_time: Duration,
    /// Maximum size of the whole result, in bytes.
    pub(super) max_bytes: usize,
}

/// A client of one pair of queues. It serves any number of concurrent calls.
#[derive(Debug)]
pub(super) struct ServiceClient {
    bus: Arc<dyn Bus>,
    request: QueueId,
    response: QueueId,
    ids: Arc<dyn IdSource>,
    pending: Arc<PendingCalls>,
    subscription: OnceCell<Subscription>,
}

impl ServiceClient {
    pub(super) fn new(bus: Arc<dyn Bus>, request: QueueId, response: QueueId, ids: Arc<dyn IdSource>) -> Self {
        Self {
            bus,
            request,
            response,
            ids,
            pending: Arc::default(),
            subscription: OnceCell::new(),
        }
    }

    /// Returns the queue of the requests.
    pub(super) fn request_queue(&self) -> &QueueId {
        &self.request
    }

    /// Sends a request and collects its result. Each part but the last is reported as progress.
    ///
    /// Cancel safety: dropping the future abandons the call; the service is not notified.
    pub(super) async fn call(
        &self,
        body: &RequestBody<'_>,
        progress: &ProgressReporter,
        limits: CallLimits,
    ) -> Result<String, CallError> {
        let body = serde_json::to_vec(body).map_err(|error| CallError::Unreadable(error.to_string()))?;
        // Subscribed before the request is sent, so that no reply can be missed.
        self.subscription.get_or_try_init(|| self.listen()).await?;
        let id = self.ids.next_id();
        let call = PendingCalls::enter(&self.pending, &id, progress.clone(), limits);
        let envelope = MessageEnvelope::new(REQUEST_TYPE, body).with_header(ID, id);
        if self.bus.publish(&self.request.topic(), Arc::new(envelope)).await? == Reach::NoSubscribers {
            return Err(CallError::NoService);
        }
        call.result().await
    }

    async fn listen(&self) -> Result<Subscription, BusError> {
        let topic = self.response.topic();
        let name = format!("{topic}.{}", self.ids.next_id());
        let replies = Replies(Arc::clone(&self.pending));
        let options = SubscribeOptions::new().ephemeral();
        let pattern = TopicPattern::new(&topic)?;
        self.bus.subscribe(pattern, &name, options, Arc::new(replies)).await
    }
}

/// The clients of all pairs of queues that tools use.
#[derive(Debug)]
pub(super) struct ServiceClients {
    bus: Arc<dyn Bus>,
    ids: Arc<dyn IdSource>,
    by_queues: Mutex<BTreeMap<(QueueId, QueueId), Arc<ServiceClient>>>,
}

impl ServiceClients {
    pub(super) fn new(bus: Arc<dyn Bus>, ids: Arc<dyn IdSource>) -> Self {
        Self {
            bus,
            ids,
            by_queues: Mutex::default(),
        }
    }

    /// Returns the client of a pair of queues. It opens nothing before its first call.
    pub(super) fn of(&self, request: &QueueId, response: &QueueId) -> Arc<ServiceClient> {
        let mut clients = self.by_queues.lock().unwrap_or_else(PoisonError::into_inner);
        let client = clients.entry((request.clone(), response.clone())).or_insert_with(|| {
            let bus = Arc::clone(&self.bus);
            let ids = Arc::clone(&self.ids);
            Arc::new(ServiceClient::new(bus, request.clone(), response.clone(), ids))
        });
        Arc::clone(client)
    }

    /// Forgets the clients that no tool holds any more.
    pub(super) fn prune(&self) {
        let mut clients = self.by_queues.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, client| Arc::strong_count(client) > 1);
    }
}
