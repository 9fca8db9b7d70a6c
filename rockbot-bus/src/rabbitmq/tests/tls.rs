//! TLS, through a proxy that ends it in front of the broker.

use rockbot_core::messaging::{BusError, MessagePublisher as _, Reach};

use super::broker::{text, with_broker};
use crate::rabbitmq::RabbitMqBus;
use crate::test_support::serve_tls;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_with_tls_is_trusted_by_its_certificate_alone() {
    with_broker(async |broker| {
        let mut settings = broker.settings();
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, authority.cert.pem()).unwrap();
        let port = serve_tls(&authority, (settings.host_name.clone(), settings.port)).await;
        (settings.host_name, settings.port, settings.tls) = ("localhost".to_owned(), port, true);

        let refused = RabbitMqBus::connect(settings.clone()).await;
        assert!(matches!(refused, Err(BusError::Provider { .. })), "{refused:?}");
        settings.ca_file = Some(file);
        let bus = broker.bus_with(settings).await;
        let sent = bus.publish("nowhere", text("x").into()).await.unwrap();
        assert_eq!(sent, Reach::NoSubscribers);
    })
    .await;
}
