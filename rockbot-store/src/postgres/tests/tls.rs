//! Encrypted connections, over a proxy that speaks TLS in front of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};
use rockbot_core::store::{StoreError, StoreErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::config::Host;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{TestServer, with_server};
use crate::postgres::{Postgres, PostgresOptions};

/// A message that asks for encryption: its length, and the code of the request.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Serves TLS with this certificate on a free port, and passes on what it carries.
async fn serve_tls(certificate: &CertifiedKey<KeyPair>, server: (String, u16)) -> u16 {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, acceptor.clone(), server.clone()));
        }
    });
    port
}

async fn pass(mut client: TcpStream, acceptor: TlsAcceptor, server: (String, u16)) {
    let mut request = [0; 8];
    client.read_exact(&mut request).await.unwrap();
    assert_eq!(request, SSL_REQUEST, "nothing is said before the encryption");
    client.write_all(b"S").await.unwrap();
    // A client that does not trust the certificate ends the handshake.
    if let Ok(mut client) = acceptor.accept(client).await {
        let mut server = TcpStream::connect(server).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Connects to the proxy at `port` instead of the server.
async fn connect(server: &TestServer, port: u16, mode: &str, ca_file: Option<&Path>) -> Result<Postgres, StoreError> {
    let url: tokio_postgres::Config = server.url.parse().unwrap();
    let user = url.get_user().unwrap();
    let password = url.get_password().map(String::from_utf8_lossy).unwrap_or_default();
    let database = url.get_dbname().unwrap();
    let url = format!("postgres://{user}:{password}@localhost:{port}/{database}{mode}");
    let options = PostgresOptions::default()
        .with_schema(server.new_schema())
        .with_max_connections(2);
    let options = match ca_file {
        Some(file) => options.with_ca_file(file),
        None => options,
    };
    Postgres::connect_with(&url, options).await
}

fn address(server: &TestServer) -> (String, u16) {
    let url: tokio_postgres::Config = server.url.parse().unwrap();
    let Host::Tcp(host) = &url.get_hosts()[0] else {
        panic!("the proxy needs a server with an address")
    };
    (host.clone(), url.get_ports().first().copied().unwrap_or(5432))
}

fn written(folder: &tempfile::TempDir, certificate: &CertifiedKey<KeyPair>) -> PathBuf {
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, certificate.cert.pem()).unwrap();
    file
}

#[tokio::test]
async fn a_server_proves_who_it_is_to_the_authority_that_is_named() {
    with_server(async |server| {
        let folder = tempfile::tempdir().unwrap();
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let authority = written(&folder, &certificate);
        let port = serve_tls(&certificate, address(server)).await;
        connect(server, port, "", Some(&authority)).await.unwrap();
        connect(server, port, "?sslmode=require", Some(&authority))
            .await
            .unwrap();

        let unknown = connect(server, port, "?sslmode=require", None).await.unwrap_err();
        assert!(unknown.to_string().contains("cannot be opened"), "{unknown}");
        let elsewhere = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).unwrap();
        let port = serve_tls(&elsewhere, address(server)).await;
        let authority = written(&folder, &elsewhere);
        connect(server, port, "", Some(&authority)).await.unwrap_err();
    })
    .await;
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for file in [folder.path().join("none.pem"), empty] {
        let options = PostgresOptions::default().with_ca_file(&file);
        let refused = Postgres::connect_with("postgres://127.0.0.1:1/test", options)
            .await
            .unwrap_err();
        let why = refused.cause().unwrap().to_string();
        assert!(
            why.starts_with("the authorities that sign the server's certificate cannot be read: "),
            "{why}"
        );
        assert_eq!(refused.kind(), StoreErrorKind::Invalid);
    }
}
