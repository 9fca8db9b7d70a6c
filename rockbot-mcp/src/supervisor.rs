//! The task that keeps a server connected: it connects, lists the tools, waits for a change or a
//! loss, and connects again after a back-off.
//!
//! MCP servers. Each has a task of its own (`supervisor.rs`), so no server delays the start or
//! another server. A server's tools are replaced in the registry as a whole, by an owner of their
//! own, when the list changes; they stay while the server is connected again, and a call waits
//! for it up to 20 seconds. Data of a server is bounded: 8 MiB a message, 64 pages and 1 000
//! tools a list, 64 KiB a schema, 2 000 bytes a description, 50 notifications a second; announced
//! changes are one signal. A tool, a page of the list or a part of an answer that cannot be used
//! is left out by name (`McpServerStatus::left_out`), and the rest stays; a failed page is asked
//! for again. An answer over 8 MiB ends its call at once. A process that was idle for a minute,
//! or did not answer a call, is pinged, and started again if it is silent. A process has an
//! environment of its own and a process group, which is killed as a whole, also when the host is
//! dropped; of its standard error the last 16 KiB are kept for error texts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, DiscoverRequest, DiscoverRequestParams, ListToolsRequest, PingRequest, SubscriptionFilter,
};
use rmcp::service::ServiceError;
use tokio::time::{Instant, sleep, timeout};

use crate::bridge::Bridge;
use crate::connection::{ConnectError, Connection, LeftOut, MAX_TOOLS, ToolList, ask, list_tools};
use crate::entrance;
use crate::service::{Link, Live, Service};

/// Shortest back-off.
const MIN_BACKOFF: Duration = Duration::from_secs(1);

/// Longest back-off.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Duration of a connection after which its loss counts as the first.
const STABLE: Duration = Duration::from_secs(60);

/// Shortest interval between two lists, whatever a server announces.
const MIN_REFRESH: Duration = Duration::from_millis(500);

/// Time limit for a server of the present protocol to accept a subscription.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(10);

/// Time without a call after which a server is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(60);

/// Keeps the server connected until it is removed or the host ends.
pub(crate) async fn supervise(bridge: Arc<Bridge>, service: Arc<Service>) {
    let mut backoff = MIN_BACKOFF;
    loop {
        let began = Instant::now();
        let Some(reason) = service.stop.run_until_cancelled(connect(&bridge, &service)).await else {
            break;
        };
        let reason = match reason {
            Ok((connection, listed)) => serve(&bridge, &service, connection, listed).await,
            Err(error) => error.to_string(),
        };
        if service.stop.is_cancelled() {
            break;
        }
        if began.elapsed() > STABLE {
            backoff = MIN_BACKOFF;
        }
        let server = service.server.name();
        tracing::warn!(
            server,
            reason,
            ?backoff,
            "MCP server not connected; connecting again after a back-off"
        );
        let down = Link::Down(reason.into());
        service.state.send_modify(|state| state.link = down);
        bridge.publish();
        wait(&service, backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
        service.state.send_modify(|state| state.link = Link::Connecting);
    }
    let removed = Link::Down("it was removed".into());
    service.state.send_modify(|state| state.link = removed);
    bridge.retire(&service);
}

/// Attends to a connection to its end, and returns the reason.
async fn serve(bridge: &Bridge, service: &Service, connection: Connection, listed: Listed) -> String {
    attend(bridge, service, &connection, listed).await;
    let mut reason = None;
    if !service.stop.is_cancelled() {
        reason = connection.end().reason().await;
    }
    // The host waits for the end of the process: nothing of it is left behind.
    connection.close().await;
    match reason {
        Some(reason) => format!("the connection was lost: {reason}"),
        None => "the connection was lost".to_owned(),
    }
}

/// Waits for the end of the back-off; a call that needs the server shortens it to a second.
async fn wait(service: &Service, backoff: Duration) {
    let woken = async {
        sleep(MIN_BACKOFF.min(backoff)).await;
        service.wake.notified().await;
    };
    tokio::select! {
        () = sleep(backoff) => {}
        () = woken => {}
        () = service.stop.cancelled() => {}
    }
}

/// Connects and lists the tools, and only then shows the server as connected.
async fn connect(bridge: &Bridge, service: &Service) -> Result<(Connection, Listed), ConnectError> {
    let limit = bridge.options.connect_limit;
    let connection = Connection::open(&service.server, &bridge.options.answers, limit).await?;
    match refresh(bridge, service, &connection).await {
        Ok(listed) => Ok((connection, listed)),
        Err(error) => {
            connection.close().await;
            Err(error)
        }
    }
}

/// The extent of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Whole,
    /// A page failed: the list is asked for again.
    Partial,
}

/// Lists the tools and registers them.
async fn refresh(bridge: &Bridge, service: &Service, connection: &Connection) -> Result<Listed, ConnectError> {
    let info = connection.info();
    let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
    let mut list = ToolList::default();
    if has_tools {
        list = list_tools(connection.peer(), &service.server, bridge.options.connect_limit).await?;
    }
    let listed = if list.is_partial {
        Listed::Partial
    } else {
        Listed::Whole
    };
    list.tools = entrance::tools(service.server.name(), list.tools);
    if list.is_partial {
        keep_known(&mut list, service);
    }
    report(service, &list.left_out);
    let compared = bridge.pins.compare(&service.server, list.tools).await;
    let live = Arc::new(Live {
        peer: connection.peer().clone(),
        running: connection.running().clone(),
        answers: bridge.options.answers.clone(),
        tools_changed: connection.signals.tools_changed.clone(),
        closed: connection.signals.closed.clone(),
        end: connection.end().clone(),
        is_suspect: connection.signals.is_suspect.clone(),
    });
    service.state.send_modify(|state| {
        state.tools = compared.admitted.into();
        state.held = compared.held.into();
        state.left_out = list.left_out.into();
        state.instructions = info.and_then(|info| info.instructions.as_deref().map(entrance::instructions));
        state.link = Link::Up(live);
    });
    bridge.publish();
    Ok(listed)
}

/// Adds the tools that were known before to a list with a failed page: nothing says that the
/// tools are gone.
fn keep_known(list: &mut ToolList, service: &Service) {
    let names: HashSet<_> = list.tools.iter().map(|tool| tool.name.clone()).collect();
    let state = service.state.borrow();
    let known = state.tools.iter().chain(state.held.iter());
    let missing = known.filter(|tool| !names.contains(&tool.name)).cloned();
    list.tools.extend(missing.take(MAX_TOOLS - names.len()));
}

/// Logs the tools and pages that are left out, unless they were before.
fn report(service: &Service, left_out: &[LeftOut]) {
    let known = service.state.borrow().left_out.clone();
    for LeftOut { what, .. } in left_out.iter().filter(|left_out| !known.contains(left_out)) {
        let server = service.server.name();
        tracing::warn!(server, what, "a part of the list of an MCP server is left out");
    }
}

/// Keeps the state of the server up to date until the connection is over or the server is
/// removed, whatever it waits for.
async fn attend(bridge: &Bridge, service: &Service, connection: &Connection, listed: Listed) {
    tokio::select! {
        () = connection.signals.closed.cancelled() => {}
        () = service.stop.cancelled() => {}
        () = subscribe(connection) => {}
        () = ping(bridge, service, connection) => {}
        () = follow(bridge, service, connection, listed) => {}
    }
}

/// Refreshes the tools when they change, and again while a page of them fails, and records calls.
/// It does not end.
async fn follow(bridge: &Bridge, service: &Service, connection: &Connection, mut listed: Listed) {
    let mut backoff = MIN_BACKOFF;
    loop {
        tokio::select! {
            () = service.called.notified() => {
                bridge.record_call(service);
                continue;
            }
            () = connection.signals.tools_changed.notified() => backoff = MIN_BACKOFF,
            () = sleep(backoff), if listed == Listed::Partial => backoff = (backoff * 2).min(MAX_BACKOFF),
        }
        match refresh(bridge, service, connection).await {
            Ok(refreshed) => listed = refreshed,
            Err(error) => {
                let server = service.server.name();
                tracing::warn!(server, %error, "the tools of an MCP server cannot be listed; they stay as they were");
            }
        }
        // A server that announces changes all the time is asked twice a second at most.
        sleep(MIN_REFRESH).await;
    }
}

/// Asks a server behind pipes whether it still answers: when it was idle for a while, and after a
/// call that it did not answer in time. It ends when the server hangs, so that it is started
/// again. While calls run it is not asked for being idle: a server that does one thing at a time
/// answers none meanwhile.
async fn ping(bridge: &Bridge, service: &Service, connection: &Connection) {
    if !connection.is_through_pipes() {
        std::future::pending::<()>().await;
    }
    let limit = bridge.options.ping_limit;
    // Some servers ignore pings, and are asked for their list of tools when they are suspect.
    let answers_pings = !is_silent(connection, Probe::of(connection), limit).await;
    loop {
        let is_suspect = tokio::select! {
            () = connection.signals.is_suspect.notified() => true,
            () = sleep(PING_INTERVAL), if answers_pings => false,
        };
        if !is_suspect && !connection.running().is_idle() {
            continue;
        }
        let probe = if answers_pings {
            Probe::of(connection)
        } else {
            Probe::List
        };
        if is_silent(connection, probe, limit).await {
            let server = service.server.name();
            tracing::warn!(server, ?limit, "an MCP server hangs; it is started again");
            connection
                .end()
                .give(format!("it did not answer a ping within {limit:?}"));
            return;
        }
    }
}

/// The request that shows whether a server still answers.
#[derive(Debug, Clone, Copy)]
enum Probe {
    Ping,
    /// The present protocol has no ping.
    Discover,
    List,
}

impl Probe {
    fn of(connection: &Connection) -> Self {
        let info = connection.info();
        if info.is_some_and(|info| info.protocol_version.has_initialize()) {
            Self::Ping
        } else {
            Self::Discover
        }
    }

    fn request(self) -> ClientRequest {
        match self {
            Self::Ping => ClientRequest::PingRequest(PingRequest::default()),
            Self::Discover => ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {})),
            Self::List => ClientRequest::ListToolsRequest(ListToolsRequest::default()),
        }
    }
}

/// Returns `true` if nothing comes from the server within `limit`, neither an answer to the probe
/// nor another message.
async fn is_silent(connection: &Connection, probe: Probe, limit: Duration) -> bool {
    let heard = connection.signals.heard();
    let asked = ask(connection.peer(), probe.request(), limit).await;
    matches!(asked, Err(ServiceError::Timeout { .. })) && connection.signals.heard() == heard
}

/// Subscribes to changes of the tools, which servers of the present protocol announce to
/// subscribers alone, and again after a back-off when the subscription is cut. It does not end;
/// the changes themselves are signals.
async fn subscribe(connection: &Connection) {
    if !announces_to_subscribers(connection) {
        std::future::pending::<()>().await;
    }
    let mut backoff = MIN_BACKOFF;
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let subscribed = timeout(SUBSCRIBE_LIMIT, connection.peer().listen(filter)).await;
        if let Ok(Ok(mut subscription)) = subscribed {
            // A change since the last list was announced to nothing.
            connection.signals.tools_changed.notify_one();
            let began = Instant::now();
            while let Ok(Some(_)) = subscription.next().await {}
            if began.elapsed() > STABLE {
                backoff = MIN_BACKOFF;
            }
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

fn announces_to_subscribers(connection: &Connection) -> bool {
    connection.info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        !info.protocol_version.has_initialize() && tools.is_some_and(|tools| tools.list_changed == Some(true))
    })
}
