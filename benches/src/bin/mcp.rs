//! Measures what MCP costs beside the bare protocol, for a harness that compares clients and by
//! instructions.
//!
//! - `mcp stdio INFLIGHT SECONDS COMMAND [ARGUMENT]...` and `mcp http INFLIGHT SECONDS URL` call the tool `echo` of a server,
//!   through registry and guard, and print one JSON line (W7).
//! - `mcp calls stdio|http LENGTH` makes LENGTH calls of a server of this program, 16 at a time, and `mcp floor-calls` the same by
//!   bare `rmcp`, the client library below.
//! - `mcp view LENGTH` makes the tool view of a request LENGTH times, with 2 000 tools of two
//!   servers, 40 of which the model has activated; `mcp floor-view LENGTH` clones a view that is
//!   kept.
//! - `mcp find LENGTH` calls `mcp_find_tools` LENGTH times over the same tools; `mcp floor-find
//!   LENGTH` is the bare search.
//! - `mcp serve TOOLS` and `mcp serve-http` are such servers.
//!
//! All but the first are for `valgrind --tool=callgrind`: the difference of two lengths is the
//! cost of one.

use std::hint::black_box;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rockbot_benches::mcp::{Connected, connect, definition, serve, serve_http};
use rockbot_benches::process_usage;
use rockbot_core::search::Bm25Index;
use rockbot_core::tool::{ToolInvokeRequest, ToolView};
use rockbot_core::{BoxError, CallContext, ToolName};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};
use rockbot_mcp::{McpServer, McpTools};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Number of calls at a time.
const IN_FLIGHT: usize = 16;

/// Number of tools of each of the two servers.
const TOOLS: usize = 1_000;

/// Number of tools that a model has activated.
const ACTIVE: usize = 40;

/// The search of a model.
const QUERY: &str = "create a calendar event";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> Result<usize, BoxError> {
        let text = arguments
            .get(index)
            .ok_or("an argument is missing: see the source of this program")?;
        Ok(text.parse()?)
    };
    match arguments.first().map(String::as_str) {
        Some("stdio") => {
            let (command, rest) = arguments.get(3..).and_then(<[_]>::split_first).ok_or("no command")?;
            let server = McpServer::process("w7", command).args(rest.to_vec());
            calls("stdio", server, number(1)?, number(2)?).await
        }
        Some("http") => {
            let server = McpServer::http("w7", arguments.get(3).ok_or("no URL")?)?;
            calls("http", server, number(1)?, number(2)?).await
        }
        Some("calls") => counted_calls(arguments.get(1).is_some_and(|kind| kind == "http"), number(2)?).await,
        Some("floor-calls") => floor_calls(arguments.get(1).is_some_and(|kind| kind == "http"), number(2)?).await,
        Some("view") => view(number(1)?, true).await,
        Some("floor-view") => view(number(1)?, false).await,
        Some("find") => find(number(1)?).await,
        Some("floor-find") => {
            floor_find(number(1)?);
            Ok(())
        }
        Some("serve") => serve(number(1)?).await,
        Some("serve-http") => serve_http().await,
        _ => Err("the first argument is none: see the source of this program".into()),
    }
}

/// Calls the tool `echo` for some seconds, with some calls in flight.
async fn calls(transport: &str, server: McpServer, in_flight: usize, seconds: usize) -> Result<(), BoxError> {
    let connected = connect(McpTools::default().server(server)).await?;
    let dispatcher = Arc::new(ToolDispatcher::new(connected.registry.clone(), ToolLimits::default()));
    let arguments = json!({"text": "x".repeat(128)}).to_string();
    let request = ToolInvokeRequest::new("call_1", "w7__echo", arguments).with_session_id("s1");
    let cx = CallContext::new("s1");
    for _ in 0..20 {
        assert!(!dispatcher.call(request.clone(), &cx).await.is_error);
    }
    let cpu = process_usage().0;
    let began = Instant::now();
    let end = began + Duration::from_secs(seconds as u64);
    let workers: Vec<_> = (0..in_flight)
        .map(|_| {
            let dispatcher = dispatcher.clone();
            let request = request.clone();
            let cx = cx.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let began = Instant::now();
                    assert!(!dispatcher.call(request.clone(), &cx).await.is_error);
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await?);
    }
    let wall = began.elapsed().as_secs_f64();
    let cpu = process_usage().0 - cpu;
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].round();
    let count = times.len() as f64;
    println!(
        "{}",
        json!({"client": format!("rockbot {transport}"), "in_flight": in_flight, "calls_per_s": (count / wall).round(),
            "client_cpu_us_per_call": (cpu / count * 1e7).round() / 10.0, "p50_us": at(0.5), "p99_us": at(0.99)})
    );
    connected.running.stop().await;
    Ok(())
}

/// The server over HTTP of this program, in another process, and its address.
async fn http_server() -> Result<(Child, String), BoxError> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("serve-http")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let out = child.stdout.take().ok_or("its output is piped")?;
    let url = BufReader::new(out)
        .lines()
        .next_line()
        .await?
        .ok_or("it prints its address")?;
    Ok((child, url))
}

/// Makes `length` calls by `call`, 16 at a time.
async fn repeat<F>(length: usize, call: impl Fn() -> F) -> Result<(), BoxError>
where
    F: Future<Output = ()> + Send + 'static,
{
    for _ in 0..length / IN_FLIGHT {
        let calls: Vec<_> = (0..IN_FLIGHT).map(|_| tokio::spawn(call())).collect();
        for call in calls {
            call.await?;
        }
    }
    Ok(())
}

async fn counted_calls(is_http: bool, length: usize) -> Result<(), BoxError> {
    let (server, _child) = if is_http {
        let (child, url) = http_server().await?;
        (McpServer::http("one", &url)?, Some(child))
    } else {
        let program = std::env::current_exe()?.display().to_string();
        (McpServer::process("one", program).args(["serve", "1"]), None)
    };
    let connected = connect(McpTools::default().server(server)).await?;
    let dispatcher = Arc::new(ToolDispatcher::new(connected.registry.clone(), ToolLimits::default()));
    let arguments = json!({"id": "x".repeat(128)}).to_string();
    let request = ToolInvokeRequest::new("call_1", "one__create_invoice_0", arguments).with_session_id("s1");
    repeat(length, || {
        let dispatcher = dispatcher.clone();
        let request = request.clone();
        async move { assert!(!dispatcher.call(request, &CallContext::new("s1")).await.is_error) }
    })
    .await?;
    connected.running.stop().await;
    Ok(())
}

async fn floor_calls(is_http: bool, length: usize) -> Result<(), BoxError> {
    let (client, _child) = if is_http {
        let (child, url) = http_server().await?;
        (().serve(StreamableHttpClientTransport::from_uri(url)).await?, child)
    } else {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pipes = child
            .stdout
            .take()
            .zip(child.stdin.take())
            .ok_or("its pipes are there")?;
        (().serve(pipes).await?, child)
    };
    let peer = client.peer().clone();
    repeat(length, || {
        let peer = peer.clone();
        async move {
            let arguments = json!({"id": "x".repeat(128)}).as_object().cloned().unwrap_or_default();
            let call = CallToolRequestParams::new("create_invoice_0").with_arguments(arguments);
            let called = peer.call_tool(call).await;
            assert!(called.is_ok_and(|result| !result.content.is_empty()));
        }
    })
    .await?;
    client.cancel().await?;
    Ok(())
}

/// Connects two servers of this program.
async fn two_servers() -> Result<Connected, BoxError> {
    let program = std::env::current_exe()?.display().to_string();
    let server = |name: &str| McpServer::process(name, &program).args(["serve".to_owned(), TOOLS.to_string()]);
    connect(McpTools::default().server(server("one")).server(server("two"))).await
}

async fn view(length: usize, is_ours: bool) -> Result<(), BoxError> {
    let connected = two_servers().await?;
    let snapshot = connected.registry.snapshot();
    let names = snapshot.entries().iter().map(|entry| entry.registration().name.clone());
    let active: Vec<ToolName> = names.step_by(2 * TOOLS / ACTIVE).collect();
    let first = ToolView::default().extended_by(snapshot.generation(), snapshot.exposed(&active));
    assert_eq!(first.entries().len(), ACTIVE, "the model sees what it has activated");
    for _ in 0..length {
        let snapshot = connected.registry.snapshot();
        black_box(if is_ours {
            first.extended_by(snapshot.generation(), snapshot.exposed(&active))
        } else {
            first.clone()
        });
    }
    connected.running.stop().await;
    Ok(())
}

async fn find(length: usize) -> Result<(), BoxError> {
    let connected = two_servers().await?;
    let find = connected
        .managing
        .iter()
        .find(|tool| tool.registration.name == "mcp_find_tools");
    let find = find.ok_or("no search")?.executor.clone();
    let cx = CallContext::new("s1");
    // The first search builds the index.
    for _ in 0..=length {
        let request = ToolInvokeRequest::new("call_1", "mcp_find_tools", json!({"query": QUERY}).to_string());
        let found = find.execute(request, &cx).await?;
        assert_eq!(found.activates.len(), 10);
    }
    connected.running.stop().await;
    Ok(())
}

fn floor_find(length: usize) {
    let mut index = Bm25Index::default();
    for tool in 0..2 * TOOLS {
        let tool_text = definition(tool % TOOLS);
        index.insert(tool, &format!("{} {}", tool_text["name"], tool_text["description"]));
    }
    for _ in 0..=length {
        assert_eq!(black_box(index.search(QUERY, 10)).len(), 10);
    }
}
