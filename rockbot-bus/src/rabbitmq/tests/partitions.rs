//! Partitions over several processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::messaging::{
    Bus as _, Delivery, DeliveryHandler as _, Disposition, MessagePublisher as _, MessageSubscriberExt as _,
    PartitionBy, RetryPolicy, SubscribeOptions,
};
use tokio::time;

use super::broker::{TestBroker, inbox, read, text, until, with_broker};
use crate::rabbitmq::RabbitMqBus;

/// The messages that were handled: the process, the key and the number of each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(usize, String, usize)>>>);

impl Log {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Returns the numbers of each key in the order in which they were handled, repetitions left out.
    fn by_key(&self) -> BTreeMap<String, Vec<usize>> {
        let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (_, key, number) in &*self.0.lock().unwrap() {
            let numbers = by_key.entry(key.clone()).or_default();
            if !numbers.contains(number) {
                numbers.push(*number);
            }
        }
        by_key
    }

    fn processes(&self) -> BTreeSet<usize> {
        self.0.lock().unwrap().iter().map(|(process, ..)| *process).collect()
    }
}

fn options() -> SubscribeOptions {
    SubscribeOptions::new()
        .with_concurrency(4)
        .with_partition_by(PartitionBy::header("key"))
}

async fn join(bus: &RabbitMqBus, process: usize, name: &str, log: &Log) -> rockbot_core::messaging::Subscription {
    let log = log.clone();
    let handler = move |delivery: Delivery| {
        let log = log.clone();
        async move {
            time::sleep(Duration::from_millis(2)).await;
            let key = delivery.envelope.headers["key"].clone();
            let number = read(&delivery).parse().unwrap();
            log.0.lock().unwrap().push((process, key, number));
            Disposition::Ack
        }
    };
    bus.on_with("a", name, options(), handler).await.unwrap()
}

async fn publish(bus: &RabbitMqBus, numbers: std::ops::Range<usize>) {
    for number in numbers {
        for key in 0..10 {
            let envelope = text(&number.to_string()).with_header("key", format!("k{key}"));
            bus.publish("a", envelope.into()).await.unwrap();
        }
    }
}

async fn consumed(broker: &TestBroker, name: &str, by: u32) {
    let settings = broker.settings();
    until("the partitions are shared", async || {
        let mut counts = BTreeSet::new();
        for index in 0..settings.partitions {
            counts.insert(broker.counts(&format!("{}.p{index}", broker.queue(name))).await.1);
        }
        counts == BTreeSet::from([1]) && broker.counts(&broker.queue(name)).await.1 == by
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_partitions_and_keep_their_order() {
    with_broker(async |broker| {
        let first = broker.bus().await;
        let second = broker.bus().await;
        let name = broker.name("s");
        let log = Log::default();
        let _first = join(&first, 1, &name, &log).await;
        publish(&first, 0..10).await;
        let _second = join(&second, 2, &name, &log).await;
        // Messages flow while the second process takes its share.
        publish(&first, 10..30).await;
        until("all are handled", async || log.len() >= 300).await;
        time::sleep(Duration::from_secs(3)).await;
        consumed(broker, &name, 2).await;
        publish(&first, 30..40).await;
        until("all are handled", async || log.len() >= 400).await;
        assert_eq!(log.processes(), BTreeSet::from([1, 2]));
        let expected: Vec<_> = (0..40).collect();
        for (key, numbers) in log.by_key() {
            assert_eq!(numbers, expected, "{key}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_takes_over_the_partitions_of_one_that_ended() {
    with_broker(async |broker| {
        let first = broker.bus().await;
        let second = broker.bus().await;
        let name = broker.name("s");
        let log = Log::default();
        let _first = join(&first, 1, &name, &log).await;
        let _second = join(&second, 2, &name, &log).await;
        publish(&second, 0..10).await;
        // As if it were killed: its connection ends, whatever it held.
        first.link().close().await;
        publish(&second, 10..20).await;
        let expected: Vec<_> = (0..20).collect();
        until("all are handled", async || {
            log.by_key().values().map(Vec::len).sum::<usize>() == 200
        })
        .await;
        for (key, numbers) in log.by_key() {
            assert_eq!(numbers, expected, "{key}");
        }
        let _ = first.close(Duration::ZERO).await;
        consumed(broker, &name, 1).await;
    })
    .await;
}

/// With a concurrency of one, a message that waits an hour for its next attempt holds up its own
/// partition alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_partition_holds_up_no_other() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let handler = move |delivery: Delivery| {
            let seen = seen.clone();
            async move {
                match delivery.envelope.headers["key"].as_str() {
                    "bad" => Disposition::retry("not now"),
                    _ => seen.handle(delivery).await,
                }
            }
        };
        let hourly = RetryPolicy::default().with_first_delay(Duration::from_secs(3600));
        let options = options()
            .with_concurrency(1)
            .with_retry(hourly.with_max_delay(Duration::MAX));
        let _subscription = bus.on_with("a", &broker.name("s"), options, handler).await.unwrap();
        for number in 0..20 {
            for key in ["bad", "good", "better"] {
                let envelope = text(&number.to_string()).with_header("key", key);
                bus.publish("a", envelope.into()).await.unwrap();
            }
        }
        assert_eq!(inbox.texts(40).await.len(), 40);
    })
    .await;
}
