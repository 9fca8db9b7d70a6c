//! Announcements: how services publish their descriptors on the bus, and agents ask for them.
//!
//! They are messages on the queue `notify:tg:tool-descriptors`, JSON objects of three forms:
//!
//! | message | meaning |
//! |---|---|
//! | `{"instance": "…", "lease-ms": 30000, "tool-service": {"ID": {…}}, "tool": {"NAME": {…}}}` | the descriptors of a running process, valid for the lease |
//! | `{"instance": "…", "lease-ms": 0}` | the process ends |
//! | `{"wanted": true}` | an agent has started: all processes announce again, since a broadcast reaches only those who listen |

use std::time::Duration;

use rockbot_core::messaging::MessageEnvelope;
use serde_json::{Map, Value, json};

use super::descriptor::{Descriptor, DescriptorProblem, Fields, Kind};
use super::queue_id::{QueueId, QueueIdError};

/// Validity of an announcement.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// Interval between two announcements of a process: two may be lost.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// Maximum lease that an agent accepts.
const MAX_LEASE: Duration = Duration::from_secs(3600);

/// Maximum number of descriptors of each kind in one announcement; further descriptors are
/// dropped.
const MAX_DESCRIPTORS: usize = 64;

/// Maximum length of an instance's name, in bytes.
const MAX_INSTANCE: usize = 128;

/// Maximum size of an announcement, in bytes. Larger ones are dropped.
const MAX_BYTES: usize = 256 * 1024;

/// The message type of announcements on buses that carry one.
const MESSAGE_TYPE: &str = "ToolDescriptors";

/// Returns the queue of announcements.
pub(super) fn queue() -> Result<QueueId, QueueIdError> {
    QueueId::notify("tool-descriptors")
}

/// The descriptors that a process announces.
#[derive(Debug, Clone)]
pub(super) struct Announced {
    services: Map<String, Value>,
    tools: Map<String, Value>,
}

impl Announced {
    /// Creates the announcement of a service without tools.
    pub(super) fn service(id: &str, descriptor: Value) -> Self {
        Self {
            services: Map::from_iter([(id.to_owned(), descriptor)]),
            tools: Map::new(),
        }
    }

    pub(super) fn add_tool(&mut self, name: String, descriptor: Value) {
        self.tools.insert(name, descriptor);
    }

    /// Sets the queues in the descriptors of all services to the queues that the process listens to.
    pub(super) fn set_queues(&mut self, request: &QueueId, response: &QueueId) {
        for service in self.services.values_mut() {
            service["request-queue"] = json!(request.to_string());
            service["response-queue"] = json!(response.to_string());
        }
    }

    /// Returns the message that announces the descriptors.
    pub(super) fn message(&self, instance: &str) -> MessageEnvelope {
        let service = Kind::Service.prefix();
        let tool = Kind::Tool.prefix();
        let lease = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        message(&json!({"instance": instance, "lease-ms": lease, service: self.services, tool: self.tools}))
    }

    /// Returns the message that withdraws them.
    pub(super) fn withdrawal(instance: &str) -> MessageEnvelope {
        message(&json!({"instance": instance, "lease-ms": 0}))
    }
}

/// Returns the message of an agent that asks for announcements.
pub(super) fn wanted() -> MessageEnvelope {
    message(&json!({"wanted": true}))
}

fn message(body: &Value) -> MessageEnvelope {
    MessageEnvelope::new(MESSAGE_TYPE, body.to_string())
}

/// A message on the queue of announcements.
#[derive(Debug)]
pub(super) enum Announcement {
    /// An agent asks for announcements.
    Wanted,
    /// The descriptors of a process, by kind and key.
    Offer {
        instance: String,
        lease: Duration,
        descriptors: Vec<(String, Result<Descriptor, DescriptorProblem>)>,
    },
    /// A process ends.
    Withdrawn { instance: String },
}

impl Announcement {
    /// Parses a message. Returns `None` if it is of no known form.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        if body.len() > MAX_BYTES {
            return None;
        }
        let body: Map<String, Value> = serde_json::from_slice(body).ok()?;
        if body.get("wanted") == Some(&Value::Bool(true)) {
            return Some(Self::Wanted);
        }
        let instance = body.get("instance")?.as_str()?.to_owned();
        if instance.is_empty() || instance.len() > MAX_INSTANCE {
            return None;
        }
        let lease = Duration::from_millis(body.get("lease-ms")?.as_u64()?).min(MAX_LEASE);
        if lease.is_zero() {
            return Some(Self::Withdrawn { instance });
        }
        let kinds = [Kind::Service, Kind::Tool].into_iter();
        let descriptors = kinds.flat_map(|kind| descriptors(&body, kind, &instance)).collect();
        Some(Self::Offer {
            instance,
            lease,
            descriptors,
        })
    }
}

fn descriptors(
    body: &Map<String, Value>,
    kind: Kind,
    instance: &str,
) -> Vec<(String, Result<Descriptor, DescriptorProblem>)> {
    let members = body.get(kind.prefix()).and_then(Value::as_object);
    let members = members.into_iter().flatten().take(MAX_DESCRIPTORS);
    let read = |(key, value): (&String, &Value)| {
        let place = format!("{}/{key} of {instance}", kind.prefix());
        let descriptor = Fields::of(&place, value.clone()).and_then(|fields| Descriptor::read(&fields, kind));
        (key.clone(), descriptor)
    };
    members.map(read).collect()
}
