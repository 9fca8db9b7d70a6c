//! Behaviour of the Pulsar bus, against a broker of its own.

mod broker;
mod faults;
mod lite;
mod mapping;
mod secured;
mod settings;

use rockbot_core::messaging::{BusError, MessageSubscriberExt as _, TopicError};
use rockbot_core::testing::conformance;

use broker::{inbox, with_broker};

/// All but wildcards, which Pulsar has not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    with_broker(async |broker| conformance::bus_of_exact_topics(async || broker.bus().await).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcard_is_refused() {
    with_broker(async |broker| {
        let (seen, _inbox) = inbox();
        let refused = broker.bus().await.on("a.*", "s", seen).await;
        assert!(
            matches!(refused, Err(BusError::Topic(TopicError::Wildcard(_)))),
            "{refused:?}"
        );
    })
    .await;
}
