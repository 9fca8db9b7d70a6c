//! Behaviour of the RabbitMQ bus, against a real broker.

mod broker;
mod connection;
mod fanout;
mod faults;
mod frames;
mod meters;
mod moved;
mod node;
mod original;
mod partitions;
mod proxy;
mod restart;
mod rights;
mod settings;
mod stalled;
mod tls;
mod topology;

use rockbot_core::testing::conformance;

use broker::with_broker;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    with_broker(async |broker| conformance::bus(async || broker.bus().await).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_queues_conform() {
    with_broker(async |broker| {
        broker.change(|settings| settings.quorum_queues = true);
        conformance::bus(async || broker.bus().await).await;
    })
    .await;
}
