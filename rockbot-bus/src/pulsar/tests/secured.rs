//! TLS, through a proxy that ends it in front of the broker, and the token.

use rockbot_core::messaging::BusError;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::lite::PulsarLite;
use crate::pulsar::{PulsarBus, PulsarSettings};
use crate::test_support::serve_tls;

/// The broker of the tests has no TLS of its own, so its look-ups of topics name none: connecting
/// is all that is tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_with_tls_is_trusted_by_its_certificate_alone() {
    let Some(lite) = PulsarLite::start().await else { return };
    let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, authority.cert.pem()).unwrap();
    let port = serve_tls(&authority, ("127.0.0.1".to_owned(), lite.port)).await;
    let mut settings = PulsarSettings::from_url(&format!("pulsar+ssl://localhost:{port}")).unwrap();
    let refused = PulsarBus::connect(settings.clone()).await;
    assert!(matches!(refused, Err(BusError::Provider { .. })), "{refused:?}");
    settings.ca_file = Some(file);
    PulsarBus::connect(settings).await.unwrap();
}

#[tokio::test]
async fn the_broker_gets_the_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut settings = PulsarSettings::from_url(&format!("pulsar://127.0.0.1:{port}")).unwrap();
    settings.token = Some("t0k3n".into());
    let broker = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut frame = vec![0; client.read_u32().await.unwrap() as usize];
        client.read_exact(&mut frame).await.unwrap();
        frame
    };
    let (refused, frame) = tokio::join!(PulsarBus::connect(settings), broker);
    assert!(refused.is_err(), "the broker has hung up");
    let has = |text: &[u8]| frame.windows(text.len()).any(|bytes| bytes == text);
    assert!(has(b"token") && has(b"t0k3n"), "{frame:?}");
}
