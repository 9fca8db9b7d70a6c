//! Prometheus metrics and health probes over a minimal HTTP server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use rockbot::agent::HostState;
use rockbot::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};

/// Maximum number of connections served concurrently; further ones wait in the listen queue.
const CONNECTIONS: usize = 16;

/// Maximum duration of a connection.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Maximum size of a request, in bytes.
const MAX_REQUEST: u64 = 8 * 1024;

/// A listening port of this machine.
#[derive(Debug)]
pub struct Endpoint(TcpListener);

impl Endpoint {
    /// Opens an address of this machine, with a free port for port 0.
    ///
    /// # Errors
    ///
    /// Returns an error if the port is in use, or may not be opened.
    pub async fn open(address: SocketAddr) -> Result<Self, BoxError> {
        let opened = TcpListener::bind(address).await;
        Ok(Self(opened.map_err(|error| {
            let (ip, port) = (address.ip(), address.port());
            format!("cannot open port {port} of {ip}: {error}; choose another one with --port")
        })?))
    }

    /// Returns the address that was opened.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.0.local_addr()?)
    }

    /// Serves requests until the task is aborted.
    pub async fn serve(self, host: Arc<AgentHost>, metrics: PrometheusHandle) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut upkeep = interval(Duration::from_secs(5));
        while let Ok(permit) = permits.clone().acquire_owned().await {
            let accepted = tokio::select! {
                accepted = self.0.accept() => accepted,
                // The recorder buffers durations until upkeep sorts them in, and scrapes may never
                // come.
                _ = upkeep.tick() => { metrics.run_upkeep(); continue }
            };
            let Ok((stream, _)) = accepted else {
                // Accepting fails, for example, when the process has no file descriptor left;
                // retrying at once would spin.
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            let host = host.clone();
            let metrics = metrics.clone();
            tokio::spawn(async move {
                if let Ok(Err(error)) = timeout(TIME_LIMIT, exchange(stream, &host, &metrics)).await {
                    tracing::debug!(%error, "a request was not answered");
                }
                drop(permit);
            });
        }
    }
}

/// Reads one request and responds to it.
async fn exchange(mut stream: TcpStream, host: &AgentHost, metrics: &PrometheusHandle) -> std::io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(MAX_REQUEST)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = match first.split(' ').collect::<Vec<_>>()[..] {
        ["GET", path, _] => answer(path, host, metrics),
        _ => ("400 Bad Request", "only GET is understood\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    writer.write_all(head.as_bytes()).await?;
    writer.write_all(body.as_bytes()).await?;
    writer.shutdown().await
}

fn answer(path: &str, host: &AgentHost, metrics: &PrometheusHandle) -> (&'static str, String) {
    match path {
        "/metrics" => ("200 OK", metrics.render()),
        // Liveness: the process need not be restarted. Readiness: it can do its work.
        "/livez" if host.state() == HostState::Stopped => ("503 Service Unavailable", "stopped\n".to_owned()),
        "/livez" => ("200 OK", "alive\n".to_owned()),
        "/readyz" => match host.readiness() {
            Ok(()) => ("200 OK", "ready\n".to_owned()),
            Err(not_ready) => ("503 Service Unavailable", format!("{not_ready}\n")),
        },
        _ => ("404 Not Found", "try /metrics, /livez or /readyz\n".to_owned()),
    }
}
