//! What the tests of all buses do with messages, and TLS in front of a broker.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{Delivery, DeliveryHandler, Disposition, MessageEnvelope};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Maximum duration of anything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A handler that hands on what it gets, and acknowledges it.
#[derive(Clone)]
pub(crate) struct Seen(mpsc::UnboundedSender<Delivery>);

pub(crate) struct Inbox(mpsc::UnboundedReceiver<Delivery>);

pub(crate) fn inbox() -> (Seen, Inbox) {
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
    pub(crate) async fn next(&mut self) -> Delivery {
        let next = time::timeout(PATIENCE, self.0.recv()).await;
        next.expect("a delivery comes in time").expect("the handler is alive")
    }

    #[cfg(feature = "rabbitmq")]
    pub(crate) async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(read(&self.next().await));
        }
        texts
    }

    /// Returns what has arrived so far and was not taken.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok())
            .map(|delivery| read(&delivery))
            .collect()
    }
}

pub(crate) fn text(body: &str) -> MessageEnvelope {
    MessageEnvelope::new("test.Text", body.to_owned())
}

pub(crate) fn read(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.envelope.body).into_owned()
}

/// Waits until `check` holds.
pub(crate) async fn until(what: &str, check: impl AsyncFn() -> bool) {
    let waiting = async {
        while !check().await {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

/// Serves TLS with this certificate on a free port, and passes what it carries on to `broker`.
pub(crate) async fn serve_tls(authority: &rcgen::CertifiedKey<rcgen::KeyPair>, broker: (String, u16)) -> u16 {
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
            let acceptor = acceptor.clone();
            let broker = broker.clone();
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
