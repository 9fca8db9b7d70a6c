//! Message buses over brokers, each behind a feature of its own.
//!
//! * `rabbitmq`: [`rabbitmq::RabbitMqBus`], a bus over RabbitMQ.
//! * `pulsar`: [`pulsar::PulsarBus`], a bus over Apache Pulsar. Its build needs `protoc`.
//!
//! Every bus here keeps the contract of `rockbot_core::messaging::Bus`, so a program changes from
//! the in-process bus to a broker in the line that creates the bus.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
mod consumer;
#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
mod copies;
#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
mod meters;
#[cfg(feature = "pulsar")]
pub mod pulsar;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(test)]
#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
mod test_support;
