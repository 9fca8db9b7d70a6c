//! `rockbot serve`: the agent as a service, from its settings alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rockbot::prelude::*;

use crate::agent::Setup;
use crate::host::endpoint::Endpoint;
use crate::host::stop_signals::StopSignals;
use crate::host::{serve_a2a, serve_mcp, serve_web, telemetry};

/// Time for the shutdown: running turns end, and the next process resumes the others.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves the agent until the process is told to stop.
pub(crate) async fn run(setup: &Setup<'_>, address: SocketAddr) -> Result<(), BoxError> {
    // Installed before any slow start-up work: meanwhile the host reports that it is not ready, and
    // can be stopped.
    let stop = StopSignals::install()?;
    serve(setup.open_service().await?, address, stop).await
}

/// Serves a host until the process is told to stop, and then until running turns have ended or it
/// is told so again.
pub(super) async fn serve(host: AgentHost, address: SocketAddr, mut stop: StopSignals) -> Result<(), BoxError> {
    let host = Arc::new(host);
    let endpoint = Endpoint::open(address).await?;
    tracing::info!(address = %endpoint.address()?, "metrics and probes are served");
    let serving = tokio::spawn(endpoint.serve(host.clone(), telemetry::metrics()?));
    let resumed = host.start().await?;
    let doors = [
        (serve_mcp::url(&host), "tools are served to MCP clients"),
        (serve_a2a::url(&host), "the agent is served to other agents"),
        (
            serve_web::url(&host),
            "the agent is served to people and their programs",
        ),
    ];
    for (url, what) in &doors {
        if let Some(url) = url {
            tracing::info!(%url, "{what}");
        }
    }
    tracing::info!(interrupted_turns = resumed.running.len(), "ready");
    stop.next().await;
    tracing::info!("told to stop; running turns end first");
    tokio::select! {
        () = host.shutdown(DRAIN) => tracing::info!("stopped"),
        () = stop.next() => tracing::warn!("stopped at once; interrupted turns go on at the next start"),
    }
    serving.abort();
    Ok(())
}
