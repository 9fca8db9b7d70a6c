//! Calls whose confirm is lost, so that the broker gets two copies of them and two workers take
//! one each.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::messaging::RequestClient;
use rockbot_core::tool::{Effect, RemoteToolExecutor, Tool, ToolErrorCode, ToolExecutor as _, tool};
use rockbot_host::AgentHost;

use crate::rabbitmq_proxy::Proxy;
use crate::support::networks::PATIENCE;
use crate::support::networks::broker::Exchange;
use crate::support::{Anything, request};

/// A tool that counts its runs in a file of its name in `folder`.
fn counting(folder: &Path, name: &str) -> Tool {
    let file = folder.join(name);
    let counting = tool(name, move |_: Anything| {
        let mut runs = std::fs::OpenOptions::new();
        let mut runs = runs.create(true).append(true).open(&file).unwrap();
        runs.write_all(b"done\n").unwrap();
        async { "done" }
    });
    counting.description("Counts its runs.")
}

fn runs(folder: &Path, name: &str) -> usize {
    let lines = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    lines.lines().count()
}

/// Starts a worker with a ledger of its own.
async fn worker(exchange: &Exchange, folder: &Path, data: &str) -> AgentHost {
    let host = AgentHost::builder("till")
        .shared_bus(exchange.connect().await)
        .data_dir(folder.join(data))
        .tool(counting(folder, "pay"))
        .tool(counting(folder, "look").pure())
        .announce_tools()
        .build()
        .unwrap();
    host.start().await.unwrap();
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_workers_with_a_copy_of_a_mutating_call_one_at_most_runs_it() {
    let Some(exchange) = Exchange::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let workers = [
        worker(&exchange, folder.path(), "first").await,
        worker(&exchange, folder.path(), "second").await,
    ];
    let mut settings = exchange.settings.clone();
    let proxy = Proxy::start(&settings.host_name, settings.port).await;
    (settings.host_name, settings.port) = ("127.0.0.1".to_owned(), proxy.port);
    // The answers wait while the caller's connection is down.
    settings.reply_queue_expiry = Some(Duration::from_secs(60));
    let client = Arc::new(RequestClient::new(exchange.connect_with(settings).await, "agent"));
    for (name, effect) in [("pay", Effect::Mutating), ("look", Effect::Pure)] {
        let executor = RemoteToolExecutor::new(client.clone())
            .with_topic("tool.invoke.till")
            .with_effect(effect);
        proxy.cut_at_confirm();
        let cx = CallContext::new("s").with_turn("turn-1".into());
        let ended = executor.execute(request("1", name, "{}"), &cx).await;
        assert!(!proxy.waits_for_confirm(), "the connection was cut");
        match (ended, effect) {
            (Ok(response), _) => assert_eq!(response.content, "done"),
            // The worker with the second copy may answer first.
            (Err(error), Effect::Mutating) => assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown, "{error}"),
            (Err(error), _) => panic!("{error}"),
        }
    }
    // A worker handles what waits in the queue before it ends.
    for worker in workers {
        worker.shutdown(PATIENCE).await;
    }
    let counted = ["pay", "look"].map(|name| runs(folder.path(), name));
    exchange.delete(&[]).await;
    assert_eq!(counted, [1, 2], "each worker had a copy of each call");
}
