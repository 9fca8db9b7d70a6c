//! What servers leave behind: no process, no task, no open file, however they end.
//!
//! Counts are those of a process, so [`alone`] runs in one of its own. Its servers are this test
//! program, too, as [`program`]. The lines that a test program writes for itself are nonsense to
//! the client.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rockbot_core::tool::ToolErrorCode;
use serde_json::{Value, json};
use tokio::process::Command;

use super::Host;
use crate::{McpServer, McpServerState, McpTools};

/// Time between two looks at what is left.
const POLL: Duration = Duration::from_millis(20);

/// Returns the arguments that make this program run one of its ignored tests.
fn only(test: &str) -> [String; 4] {
    ["--ignored", "--nocapture", "--exact", &format!("tests::leaks::{test}")].map(str::to_owned)
}

#[tokio::test]
async fn servers_leave_nothing_behind() {
    let mut run = Command::new(std::env::current_exe().unwrap());
    let run = run
        .args(only("alone"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = [run.stdout, run.stderr].concat();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// The files, tasks and children of a process at one moment.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    files: usize,
    tasks: usize,
    children: BTreeSet<u32>,
}

impl Counts {
    fn now() -> Self {
        let id = std::process::id();
        let processes = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        Self {
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            children: processes.filter(|process| parent_of(*process) == Some(id)).collect(),
        }
    }

    /// Waits until nothing more is there than `before`.
    async fn until(before: &Self) {
        // The runtime takes note of ended processes and tasks a little later.
        for _ in 0..500 {
            if Self::now() == *before {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        assert_eq!(Self::now(), *before);
    }
}

/// Returns the parent of a process, also of one that has ended and is not waited for.
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[tokio::test]
#[ignore = "`servers_leave_nothing_behind` runs it in a process of its own"]
async fn alone() {
    // The first servers make the runtime open what it keeps.
    use_servers(true).await;
    // Until the runtime has taken note of its end, a killed program is a child.
    let mut before = Counts::now();
    for _ in 0..500 {
        if before.children.is_empty() {
            break;
        }
        tokio::time::sleep(POLL).await;
        before = Counts::now();
    }
    for stops in [true, false] {
        let started = use_servers(stops).await;
        Counts::until(&before).await;
        for process in started {
            until_ended(process).await;
        }
    }
}

/// Returns `true` if the process runs. One that was killed may wait for its parent to take note
/// of it.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the process has ended: the kernel ends a killed one a little later.
async fn until_ended(process: u32) {
    for _ in 0..500 {
        if !runs(process) {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
    panic!("process {process}, which a server started, still runs");
}

/// Uses servers that start programs, die, flood and hang, and ends them by a stop or by a drop.
/// Returns the processes that they started.
async fn use_servers(stops: bool) -> Vec<u32> {
    let server = |name: &str| {
        McpServer::process(name, std::env::current_exe().unwrap().display().to_string()).args(only("program"))
    };
    let hanging = McpServer::process("hanging", "sleep").args(["300"]);
    let tools = McpTools::default()
        .server(server("one"))
        .server(server("two"))
        .server(hanging);
    let host = Host::begin(tools).await;
    host.until_tools(&[
        "one__start",
        "one__die",
        "one__flood",
        "two__start",
        "two__die",
        "two__flood",
    ])
    .await;
    let mut started = Vec::new();
    for name in ["one", "two"] {
        started.push(
            host.call(&format!("{name}__start"), json!({}))
                .await
                .unwrap()
                .content
                .into_words()
                .parse()
                .unwrap(),
        );
    }
    host.call("one__flood", json!({})).await.unwrap();
    let error = host.call("two__die", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
    // It is connected again, as another process.
    let again = host.call("two__start", json!({})).await.unwrap().content.into_words();
    started.push(again.parse().unwrap());
    assert!(
        matches!(host.servers.list()[0].state, McpServerState::Connecting),
        "{:?}",
        host.servers
    );
    if stops {
        host.running.stop().await;
        assert!(host.tools().is_empty());
    }
    started
}

/// A server: its tools start a program, end the server, and write a megabyte to standard error.
#[test]
#[ignore = "servers of `alone` are this program"]
fn program() {
    let tools = ["start", "die", "flood"].map(super::peer::described);
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "program", "version": "1"}}),
            "tools/list" => json!({"tools": tools}),
            "tools/call" => match called(&message["params"]) {
                Some(text) => json!({"content": [{"type": "text", "text": text}]}),
                None => return,
            },
            "server/discover" => Value::Null,
            _ => continue,
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        if result.is_null() {
            answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}});
        }
        writeln!(std::io::stdout(), "{answer}").unwrap();
    }
}

/// Returns the text of a call's result, or `None` if the server is to end.
#[expect(
    clippy::zombie_processes,
    reason = "what the client does about such a process is tested"
)]
fn called(params: &Value) -> Option<String> {
    match params["name"].as_str() {
        Some("start") => {
            let child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
            Some(child.id().to_string())
        }
        Some("flood") => {
            let line = [b'x'; 1024];
            (0..1024).for_each(|_| std::io::stderr().write_all(&line).unwrap());
            Some("flooded".to_owned())
        }
        _ => None,
    }
}
