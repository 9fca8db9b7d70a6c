//! Message buses over brokers, each behind a feature of its own.
//!
//! * `rabbitmq`: [`rabbitmq::RabbitMqBus`], a bus over RabbitMQ.
//!
//! Every bus here keeps the contract of `rockbot_core::messaging::Bus`, so a program changes from the in-process bus
//! to a broker in the line that creates the bus.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
