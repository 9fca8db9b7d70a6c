//! The task that keeps a server connected: it connects, lists the tools, waits for a change or a loss, and connects again
//! after a back-off.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use tokio::time::{Instant, sleep, timeout};

use crate::bridge::Bridge;
use crate::connection::{ConnectError, Connection, list_tools};
use crate::service::{Link, Live, Service};

/// Shortest back-off.
const MIN_BACKOFF: Duration = Duration::from_secs(1);

/// Longest back-off.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Duration of a connection after which its loss counts as the first.
const STABLE: Duration = Duration::from_secs(60);

/// Shortest interval between two lists, whatever a server announces.
const MIN_REFRESH: Duration = Duration::from_millis(500);

/// Time in which a server of the present protocol accepts a subscription.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(10);

/// Keeps the server connected until it is removed or the host ends.
pub(crate) async fn supervise(bridge: Arc<Bridge>, service: Arc<Service>) {
    let mut backoff = MIN_BACKOFF;
    loop {
        let began = Instant::now();
        let Some(reason) = service.stop.run_until_cancelled(connect(&bridge, &service)).await else {
            break;
        };
        let reason = match reason {
            Ok(connection) => serve(&bridge, &service, connection).await,
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
async fn serve(bridge: &Bridge, service: &Service, connection: Connection) -> String {
    attend(bridge, service, &connection).await;
    let last = connection.last_errors();
    // The host waits for the end of the process: nothing of it is left behind.
    connection.close().await;
    match last.is_empty() {
        true => "the connection was lost".to_owned(),
        false => format!("the connection was lost; it wrote: {last}"),
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
async fn connect(bridge: &Bridge, service: &Service) -> Result<Connection, ConnectError> {
    let limit = bridge.options.connect_limit;
    let connection = Connection::open(&service.server, &bridge.options.answers, limit).await?;
    match refresh(bridge, service, &connection, limit).await {
        Ok(()) => Ok(connection),
        Err(error) => {
            connection.close().await;
            Err(error)
        }
    }
}

/// Lists the tools and registers them.
async fn refresh(
    bridge: &Bridge,
    service: &Service,
    connection: &Connection,
    limit: Duration,
) -> Result<(), ConnectError> {
    let info = connection.info();
    let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
    let tools = match has_tools {
        true => list_tools(connection.peer(), &service.server, limit).await?,
        false => Vec::new(),
    };
    let compared = bridge.pins.compare(&service.server, tools).await;
    let live = Arc::new(Live {
        peer: connection.peer().clone(),
        running: connection.running().clone(),
        answers: bridge.options.answers.clone(),
        tools_changed: connection.signals.tools_changed.clone(),
        closed: connection.signals.closed.clone(),
    });
    service.state.send_modify(|state| {
        state.tools = compared.admitted.into();
        state.held = compared.held.into();
        state.instructions = info.and_then(|info| Some(info.instructions.as_deref()?.into()));
        state.link = Link::Up(live);
    });
    bridge.publish();
    Ok(())
}

/// Keeps what is known of the server up to date until the connection is over or the server is removed, whatever it waits for.
async fn attend(bridge: &Bridge, service: &Service, connection: &Connection) {
    tokio::select! {
        () = connection.signals.closed.cancelled() => {}
        () = service.stop.cancelled() => {}
        () = subscribe(connection) => {}
        () = follow(bridge, service, connection) => {}
    }
}

/// Refreshes the tools when they change, and records calls. It does not end.
async fn follow(bridge: &Bridge, service: &Service, connection: &Connection) {
    loop {
        tokio::select! {
            () = service.called.notified() => bridge.record_call(service),
            () = connection.signals.tools_changed.notified() => {
                if let Err(error) = refresh(bridge, service, connection, bridge.options.connect_limit).await {
                    let server = service.server.name();
                    tracing::warn!(server, %error, "MCP server announced a change; its tools stay as they were");
                }
                // A server that announces changes all the time is asked twice a second at most.
                sleep(MIN_REFRESH).await;
            }
        }
    }
}

/// Subscribes to changes of the tools, which servers of the present protocol announce to subscribers alone, and again after a
/// back-off when the subscription is cut. It does not end; the changes themselves are signals.
async fn subscribe(connection: &Connection) {
    if !announces_to_subscribers(connection) {
        std::future::pending::<()>().await;
    }
    let (mut backoff, mut was_cut) = (MIN_BACKOFF, false);
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let subscribed = timeout(SUBSCRIBE_LIMIT, connection.peer().listen(filter)).await;
        if let Ok(Ok(mut subscription)) = subscribed {
            if was_cut {
                // A change in between was announced to nothing.
                connection.signals.tools_changed.notify_one();
            }
            let began = Instant::now();
            while let Ok(Some(_)) = subscription.next().await {}
            if began.elapsed() > STABLE {
                backoff = MIN_BACKOFF;
            }
            was_cut = true;
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
