//! TLS, through a proxy that ends it in front of the broker.

use std::sync::Arc;

use rockbot_core::messaging::{BusError, MessagePublisher as _, Reach};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::broker::{text, with_broker};
use crate::rabbitmq::RabbitMqBus;

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

/// Serves TLS with this certificate on a free port, and passes what it carries on to `broker`.
async fn serve_tls(authority: &rcgen::CertifiedKey<rcgen::KeyPair>, broker: (String, u16)) -> u16 {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(authority.signing_key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config
        .with_single_cert(vec![authority.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, broker) = (acceptor.clone(), broker.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate ends the handshake.
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let mut broker = TcpStream::connect(broker).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut broker).await;
            });
        }
    });
    port
}
