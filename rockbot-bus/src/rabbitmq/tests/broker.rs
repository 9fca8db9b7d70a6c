//! The broker of the tests: found or skipped, with names of their own, cleaned up afterwards.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use lapin::Channel;
use lapin::options::{ExchangeDeleteOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use rockbot_core::messaging::{Bus as _, Delivery, DeliveryHandler, Disposition, MessagePublisherExt as _};
use rockbot_core::{IdSource as _, RandomIds};
use tokio::time;

use crate::rabbitmq::{RabbitMqBus, RabbitMqSettings, topology};
pub(super) use crate::test_support::{Inbox, PATIENCE, inbox, read, text, until};

/// A broker with exchanges of this test's own.
pub(super) struct TestBroker {
    settings: Mutex<RabbitMqSettings>,
    buses: Mutex<Vec<Arc<RabbitMqBus>>>,
    admin: RabbitMqBus,
    prefix: String,
}

/// Runs a test on the broker, and deletes what it made. Without a broker the test is skipped.
pub(super) async fn with_broker(test: impl AsyncFnOnce(&TestBroker)) {
    let url = std::env::var("ROCKBOT_TEST_RABBITMQ_URL").unwrap_or_else(|_| "amqp://127.0.0.1:5672".to_owned());
    with_broker_at(&url, test).await;
}

/// Runs a test on the broker at `url`.
pub(super) async fn with_broker_at(url: &str, test: impl AsyncFnOnce(&TestBroker)) {
    let mut settings = RabbitMqSettings::from_url(url).unwrap();
    let prefix = format!("test-{}", RandomIds.next_id());
    settings.exchange_name = prefix.clone();
    settings.dead_letter_exchange_name = format!("{prefix}.dlx");
    let admin = match RabbitMqBus::connect(settings.clone()).await {
        Ok(admin) => admin,
        Err(error) if std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all") => panic!("{error}"),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            return;
        }
    };
    let broker = TestBroker {
        settings: Mutex::new(settings),
        buses: Mutex::default(),
        admin,
        prefix,
    };
    let ended = AssertUnwindSafe(test(&broker)).catch_unwind().await;
    broker.clean_up().await;
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

impl TestBroker {
    /// Returns the settings that reach this broker.
    pub(super) fn settings(&self) -> RabbitMqSettings {
        self.settings.lock().unwrap().clone()
    }

    /// Changes the settings of the buses that are made from now on.
    pub(super) fn change(&self, change: impl FnOnce(&mut RabbitMqSettings)) {
        change(&mut self.settings.lock().unwrap());
    }

    /// Connects a bus, as another process would.
    pub(super) async fn bus(&self) -> Arc<RabbitMqBus> {
        self.bus_with(self.settings()).await
    }

    pub(super) async fn bus_with(&self, settings: RabbitMqSettings) -> Arc<RabbitMqBus> {
        let bus = Arc::new(RabbitMqBus::connect(settings).await.unwrap());
        self.buses.lock().unwrap().push(Arc::clone(&bus));
        bus
    }

    /// Returns a name that no other test uses.
    pub(super) fn name(&self, rest: &str) -> String {
        format!("{}-{rest}", self.prefix)
    }

    /// Returns the name of the queue of a subscription.
    pub(super) fn queue(&self, name: &str) -> String {
        topology::queue(name, &self.settings())
    }

    /// Opens a channel that sees the broker without the bus.
    pub(super) async fn channel(&self) -> Channel {
        let session = self
            .admin
            .link()
            .session(time::Instant::now() + PATIENCE)
            .await
            .unwrap();
        session.channel().await.unwrap()
    }

    /// Returns the numbers of messages and consumers of a queue.
    pub(super) async fn counts(&self, queue: &str) -> (u32, u32) {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let channel = self.channel().await;
        let declared = channel.queue_declare(queue.into(), options, FieldTable::default());
        let declared = declared.await.unwrap();
        (declared.message_count(), declared.consumer_count())
    }

    async fn clean_up(&self) {
        let buses = std::mem::take(&mut *self.buses.lock().unwrap());
        let mut queues = Vec::new();
        for bus in &buses {
            let _ = bus.close(Duration::ZERO).await;
            for spec in bus.shared.subscriptions.kept() {
                let queue = self.queue(&spec.name);
                queues.extend((0..bus.link().settings.partitions).map(|index| format!("{queue}.p{index}")));
                queues.extend([format!("{queue}.dlq"), queue]);
            }
        }
        let settings = self.settings();
        let retry = topology::retry_exchange(&settings);
        queues.extend(topology::RETRY_LEVELS.map(|step| format!("{retry}.{}", 1_u64 << step)));
        queues.push(topology::ephemeral_dead_letters(&settings));
        self.admin.delete_queues(queues.into_iter()).await.unwrap();
        let channel = self.channel().await;
        for exchange in [settings.exchange_name, settings.dead_letter_exchange_name, retry] {
            let deleted = channel.exchange_delete(exchange.into(), ExchangeDeleteOptions::default());
            deleted.await.unwrap();
        }
        let _ = self.admin.close(Duration::ZERO).await;
    }
}

/// Returns a handler that answers each message over `bus`.
pub(super) fn replies(bus: &Arc<RabbitMqBus>) -> impl DeliveryHandler {
    let replier = Arc::clone(bus);
    move |delivery: Delivery| {
        let bus = Arc::clone(&replier);
        async move {
            let answer = text(&format!("re: {}", read(&delivery)));
            match bus.reply(&delivery.envelope, answer).await {
                Ok(_) => Disposition::Ack,
                Err(error) => Disposition::retry(error),
            }
        }
    }
}

/// Returns a text as the broker's clients send it in headers and arguments.
pub(super) fn long(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// Returns headers or arguments.
pub(super) fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(name.into(), value);
    }
    table
}
