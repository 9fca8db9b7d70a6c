//! What the tests do with a broker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{Bus as _, Delivery, DeliveryHandler, Disposition, MessageEnvelope};
use tokio::sync::mpsc;
use tokio::time;

use super::lite::PulsarLite;
use crate::pulsar::{PulsarBus, PulsarSettings};

/// Maximum duration of anything that a test waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A broker of one test.
pub(super) struct TestBroker {
    pub(super) lite: PulsarLite,
    settings: Mutex<PulsarSettings>,
    buses: Mutex<Vec<Arc<PulsarBus>>>,
}

/// Runs a test on a broker of its own. Without the broker's program the test is skipped.
pub(super) async fn with_broker(test: impl AsyncFnOnce(&mut TestBroker)) {
    let Some(lite) = PulsarLite::start().await else { return };
    let settings = PulsarSettings::from_url(&format!("pulsar://127.0.0.1:{}", lite.port)).unwrap();
    let mut broker = TestBroker {
        lite,
        settings: Mutex::new(settings),
        buses: Mutex::default(),
    };
    test(&mut broker).await;
    let buses = std::mem::take(&mut *broker.buses.lock().unwrap());
    for bus in buses {
        let _ = bus.close(Duration::ZERO).await;
    }
}

impl TestBroker {
    /// Changes the settings of the buses that are made from now on.
    pub(super) fn change(&self, change: impl FnOnce(&mut PulsarSettings)) {
        change(&mut self.settings.lock().unwrap());
    }

    /// Connects a bus, as another process would.
    pub(super) async fn bus(&self) -> Arc<PulsarBus> {
        let settings = self.settings.lock().unwrap().clone();
        let bus = Arc::new(PulsarBus::connect(settings).await.unwrap());
        self.buses.lock().unwrap().push(Arc::clone(&bus));
        bus
    }
}

/// A handler that hands on what it gets, and acknowledges it.
#[derive(Clone)]
pub(super) struct Seen(mpsc::UnboundedSender<Delivery>);

pub(super) struct Inbox(mpsc::UnboundedReceiver<Delivery>);

pub(super) fn inbox() -> (Seen, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Seen(sender), Inbox(receiver))
}

#[async_trait]
impl DeliveryHandler for Seen {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let _ = self.0.send(delivery);
        Disposition::Ack
    }
}

impl Inbox {
    pub(super) async fn next(&mut self) -> Delivery {
        let next = time::timeout(PATIENCE, self.0.recv()).await;
        next.expect("a delivery comes in time").expect("the handler is alive")
    }

    /// Returns what has arrived so far and was not taken.
    pub(super) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok())
            .map(|delivery| read(&delivery))
            .collect()
    }
}

pub(super) fn text(body: &str) -> MessageEnvelope {
    MessageEnvelope::new("test.Text", body.to_owned())
}

pub(super) fn read(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.envelope.body).into_owned()
}

/// Waits until `check` holds.
pub(super) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let waiting = async {
        while !check().await {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}
