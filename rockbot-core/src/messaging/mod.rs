//! Messages, and the bus that carries them.
//!
//! A [`MessageEnvelope`] is published under a topic. Every subscription whose [`TopicPattern`]
//! matches gets a copy, and the consumers of one subscription compete for its messages. A handler
//! ends each [`Delivery`] with a [`Disposition`]; a message that cannot be handled becomes a
//! [`DeadLetter`] with the reason. Inside a host, a [`MessageHandler`] handles the messages of
//! one [`Message`] type. [`RequestClient`] sends a request over any [`Bus`] and waits for the
//! reply.
//!
//! Delivery is at least once, so handlers must expect redelivered messages; the message id
//! identifies them. This module holds the contracts: the in-process bus is in `rockbot-host`,
//! brokers are crates of their own, and `testing::conformance::bus` is the suite that all of them
//! pass.

mod base64;
mod bus;
mod context;
mod dead_letter;
mod delivery;
mod envelope;
mod error;
mod error_reply;
mod handler;
mod handler_error;
pub mod headers;
mod json_error;
pub mod lease;
mod options;
mod outgoing;
mod request;
mod subscription;
mod topic;

pub use bus::{Bus, CloseReport, MessagePublisher, MessageSubscriber, MessageSubscriberExt, Reach};
pub use context::{MessageContext, MessageContexts};
pub use dead_letter::{DeadLetter, DeadLetterReason, DeadLetters};
pub use delivery::{Delivery, DeliveryHandler, Disposition};
pub use envelope::{Message, MessageEnvelope, PayloadError};
pub use error::BusError;
pub use error_reply::ErrorReply;
pub use handler::{IntoHandled, MessageHandler, MessageRoute};
pub use handler_error::HandlerError;
pub use headers::Headers;
pub use options::{PartitionBy, RetryPolicy, SubscribeOptions, WhenFull};
pub use outgoing::{MessagePublisherExt, OutgoingMessage};
pub use request::{RequestClient, RequestError};
pub use subscription::{Subscription, SubscriptionControl};
pub use topic::{TopicError, TopicPattern, check_topic, without_domain};
