//! The buses of tests that hold on each of them: one inside the process, and a broker's where
//! there is one.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::Bus;
use rockbot_host::bus::InProcessBus;
use tokio::time::{sleep, timeout};

/// Maximum duration of anything that such a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The connection between the programs of a test.
pub(crate) enum Network {
    /// One bus that all programs share.
    InProcess(InProcessBus),
    /// A broker, with exchanges and queues of this test's own.
    #[cfg(feature = "rabbitmq")]
    Broker(Box<broker::Exchange>),
}

impl Network {
    /// Returns the bus of a further program.
    pub(crate) async fn bus(&self) -> Arc<dyn Bus> {
        match self {
            Self::InProcess(bus) => Arc::new(bus.clone()),
            #[cfg(feature = "rabbitmq")]
            Self::Broker(exchange) => exchange.connect().await,
        }
    }
}

/// Runs a test on a bus inside this process, and again over the broker.
pub(crate) async fn on_each_bus(test: impl AsyncFn(&Network)) {
    test(&Network::InProcess(InProcessBus::new())).await;
    #[cfg(feature = "rabbitmq")]
    if let Some(exchange) = broker::Exchange::open().await {
        let network = Network::Broker(Box::new(exchange));
        test(&network).await;
        if let Network::Broker(exchange) = &network {
            exchange.delete(&[]).await;
        }
    }
}

/// Waits until `check` holds.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let waiting = async {
        while !check().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// The broker of the tests.
#[cfg(feature = "rabbitmq")]
pub(crate) mod broker {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
    use rockbot::{IdSource as _, RandomIds};
    use rockbot_core::messaging::Bus;

    /// Exchanges of a test's own, and the buses on them.
    pub(crate) struct Exchange {
        pub(crate) url: String,
        pub(crate) settings: RabbitMqSettings,
        buses: Mutex<Vec<Arc<RabbitMqBus>>>,
    }

    /// Returns the settings of the broker at `url`, on the exchange `name`.
    pub(crate) fn settings(url: &str, name: &str) -> RabbitMqSettings {
        let mut settings = RabbitMqSettings::from_url(url).unwrap();
        settings.exchange_name = name.to_owned();
        settings.dead_letter_exchange_name = format!("{name}.dlx");
        settings.queue_prefix = name.to_owned();
        settings
    }

    impl Exchange {
        /// Connects to the broker. Without one the test is skipped.
        pub(crate) async fn open() -> Option<Self> {
            let url = std::env::var("ROCKBOT_TEST_RABBITMQ_URL").unwrap_or_else(|_| "amqp://127.0.0.1:5672".to_owned());
            let settings = settings(&url, &format!("test-{}", RandomIds.next_id()));
            match RabbitMqBus::connect(settings.clone()).await {
                Ok(bus) => Some(Self {
                    url,
                    settings,
                    buses: Mutex::new(vec![Arc::new(bus)]),
                }),
                Err(error) if std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all") => {
                    panic!("{error}")
                }
                Err(error) => {
                    println!("SKIPPED: {error}");
                    None
                }
            }
        }

        /// Connects a bus, as a further process does.
        pub(crate) async fn connect(&self) -> Arc<dyn Bus> {
            self.connect_with(self.settings.clone()).await
        }

        /// Connects a bus with other settings.
        pub(crate) async fn connect_with(&self, settings: RabbitMqSettings) -> Arc<dyn Bus> {
            let bus = Arc::new(RabbitMqBus::connect(settings).await.unwrap());
            self.buses.lock().unwrap().push(bus.clone());
            bus
        }

        /// Deletes what the buses have declared, and the queues of `further` subscriptions, of processes
        /// that were killed.
        pub(crate) async fn delete(&self, further: &[&str]) {
            let buses = std::mem::take(&mut *self.buses.lock().unwrap());
            for name in further {
                buses[0].delete_subscription(name).await.unwrap();
            }
            for bus in &buses {
                bus.delete_topology().await.unwrap();
            }
            for bus in buses {
                let _ = bus.close(Duration::ZERO).await;
            }
        }
    }
}
