//! Metrics for Prometheus and probes for a supervisor, over the little HTTP that they need.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use rockbot::host::HostState;
use rockbot::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};

/// How many connections are served at once; further ones wait.
const CONNECTIONS: usize = 16;

/// How long a connection may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 8 * 1024;

/// A port of this machine, open.
pub(crate) struct Endpoint(TcpListener);

impl Endpoint {
    /// Opens `port`, or any free one for 0. Only programs of this machine reach it.
    pub(crate) async fn open(port: u16) -> Result<Self, BoxError> {
        let opened = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        Ok(Self(opened.map_err(|error| {
            format!("cannot open port {port} of 127.0.0.1: {error}; choose another one with --port")
        })?))
    }

    pub(crate) fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.0.local_addr()?)
    }

    /// Answers until the task is aborted.
    pub(crate) async fn serve(self, host: Arc<AgentHost>, metrics: PrometheusHandle) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut upkeep = interval(Duration::from_secs(5));
        while let Ok(permit) = permits.clone().acquire_owned().await {
            let accepted = tokio::select! {
                accepted = self.0.accept() => accepted,
                // Durations pile up until somebody sorts them in, and perhaps nobody scrapes.
                _ = upkeep.tick() => { metrics.run_upkeep(); continue }
            };
            let Ok((stream, _)) = accepted else {
                // The process has no file left to open, for example.
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            let (host, metrics) = (host.clone(), metrics.clone());
            tokio::spawn(async move {
                if let Ok(Err(error)) = timeout(TIME_LIMIT, exchange(stream, &host, &metrics)).await {
                    tracing::debug!(%error, "a request was not answered");
                }
                drop(permit);
            });
        }
    }
}

/// Reads one request and answers it.
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
        // Alive: nobody needs to start it anew. Ready: it can do its work.
        "/livez" if host.state() == HostState::Stopped => ("503 Service Unavailable", "stopped\n".to_owned()),
        "/livez" => ("200 OK", "alive\n".to_owned()),
        "/readyz" => match host.readiness() {
            Ok(()) => ("200 OK", "ready\n".to_owned()),
            Err(not_ready) => ("503 Service Unavailable", format!("{not_ready}\n")),
        },
        _ => ("404 Not Found", "try /metrics, /livez or /readyz\n".to_owned()),
    }
}
