//! What the tests do with a broker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::messaging::Bus as _;

use super::lite::PulsarLite;
use crate::pulsar::{PulsarBus, PulsarSettings};
pub(super) use crate::test_support::{inbox, read, text, until};

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
