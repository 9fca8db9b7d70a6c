//! Messages: the bus, typed handlers, request and reply, and the messages of users.
//!
//! A [`Message`] has a type on the wire and a topic; a [`MessageHandler`] (or an async closure)
//! handles it; a [`Bus`] carries it at least once. [`InProcessBus`] is the bus of one process;
//! with the feature `rabbitmq` `rabbitmq::RabbitMqBus`, or with `pulsar` `pulsar::PulsarBus`, is
//! the bus of several. [`RequestClient`] asks a question and waits for the correlated answer, and
//! [`UserProxy`] is the client of a user interface: it sends a user's message and receives
//! exactly one final reply. A message that cannot be handled becomes a [`DeadLetter`] with the
//! reason.
//!
//! ```
//! use rockbot::message::{InProcessBus, Message, MessagePublisherExt};
//! use rockbot::prelude::*;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Invoice { number: u32 }
//!
//! impl Message for Invoice {
//!     const TYPE: &'static str = "invoice";
//!     const TOPIC: Option<&'static str> = Some("billing.invoice");
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let bus = InProcessBus::new();
//! bus.send("shop", &Invoice { number: 7 }).await?;
//! # Ok(())
//! # }
//! ```

/// A bus over Apache Pulsar, for programs in several processes.
#[cfg(feature = "pulsar")]
#[cfg_attr(docsrs, doc(cfg(feature = "pulsar")))]
pub mod pulsar {
    #[doc(inline)]
    pub use rockbot_bus::pulsar::{PulsarBus, PulsarSettings, TopicLayout};
}

/// A bus over RabbitMQ, for programs in several processes.
#[cfg(feature = "rabbitmq")]
#[cfg_attr(docsrs, doc(cfg(feature = "rabbitmq")))]
pub mod rabbitmq {
    #[doc(inline)]
    pub use rockbot_bus::rabbitmq::{ExchangeLayout, RabbitMqBus, RabbitMqSettings};
}

#[doc(inline)]
pub use rockbot_core::messaging::{
    Bus, BusError, DeadLetter, DeadLetterReason, DeadLetters, Disposition, ErrorReply, HandlerError, Message,
    MessageContext, MessageEnvelope, MessageHandler, MessagePublisher, MessagePublisherExt, MessageSubscriber,
    MessageSubscriberExt, PartitionBy, RequestClient, RequestError, RetryPolicy, SubscribeOptions, Subscription,
    TopicPattern, headers,
};
#[doc(inline)]
pub use rockbot_core::user::{AgentReply, UserFeedback, UserMessage, UserProxy};
#[doc(inline)]
pub use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
