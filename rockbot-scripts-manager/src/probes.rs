//! The probes of the program over HTTP: `/livez`, and `/readyz`.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_scripts_manager::RunningScriptsManager;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Maximum number of connections at once; further ones wait.
const CONNECTIONS: usize = 8;

/// Maximum time of a connection.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Maximum length of a request, in bytes.
const MAX_REQUEST: u64 = 8 << 10;

/// The listener of the probes. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Probes {
    /// The address that was opened.
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Probes {
    /// Opens a port on all addresses of this machine, since a cluster asks from outside of the
    /// pod. 0 opens a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the port cannot be opened.
    pub(crate) async fn open(port: u16, manager: Arc<RunningScriptsManager>) -> Result<Self, BoxError> {
        let opened = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
        let listener = match opened {
            Ok(listener) => listener,
            // A machine without IPv6.
            Err(_) => TcpListener::bind(("0.0.0.0", port)).await.map_err(|error| {
                format!("port {port} of `ScriptsManager.ProbePort` cannot be opened: {error}; choose another one")
            })?,
        };
        let address = listener.local_addr()?;
        let task = tokio::spawn(serve(listener, manager));
        Ok(Self { address, task })
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, manager: Arc<RunningScriptsManager>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // No file descriptor is left, for example: trying again at once would spin.
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        let manager = manager.clone();
        tokio::spawn(async move {
            if let Ok(Err(error)) = timeout(TIME_LIMIT, exchange(stream, &manager)).await {
                tracing::debug!(%error, "a probe was not answered");
            }
            drop(permit);
        });
    }
}

/// Reads one request and answers it.
async fn exchange(mut stream: TcpStream, manager: &RunningScriptsManager) -> std::io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(MAX_REQUEST)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/livez")) => ("200 OK", "alive".to_owned()),
        (Some("GET"), Some("/readyz")) => match manager.readiness().await {
            Ok(()) => ("200 OK", "ready".to_owned()),
            Err(why) => ("503 Service Unavailable", why),
        },
        (Some("GET"), _) => ("404 Not Found", "try /livez or /readyz".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is understood".to_owned()),
    };
    let length = body.len() + 1;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    writer.write_all(format!("{head}{body}\n").as_bytes()).await?;
    writer.shutdown().await
}
