//! An agent of another maker: the server of the Python SDK, over each binding and version.

use std::path::Path;
use std::process::Stdio;

use rockbot_core::testing::outside_part;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::*;

/// The server. It ends when it is dropped.
struct Server {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Server {
    async fn start(folder: &Path, binding: &str, version: &str, streams: bool) -> Self {
        let mut process = Command::new("python3")
            .args(["-c", include_str!("sdk_server.py"), binding, version])
            .arg(if streams { "streams" } else { "polled" })
            .env("PYTHONPATH", folder.join("python"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .expect("the server prints its URL");
        Self {
            _process: process,
            lines,
            url,
        }
    }

    async fn next_line(&mut self) -> String {
        timeout(PATIENCE, self.lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    }
}

/// Hands a task over, and returns what the model is told of its end.
async fn end_of(url: &str, message: &str) -> String {
    let asking = asking([find(message)]);
    let telling = ScriptedModel::new().says("Told.");
    let main = started(main_host(&asking, &telling).add(A2aCaller::new().agent_at(far(url)))).await;
    until_begun(&main, "Told.").await;
    main.shutdown(Duration::ZERO).await;
    last_message(&telling)
}

/// Hands a task over that takes long, and cancels it once a status is told.
async fn cancelled(server: &mut Server) {
    let main = cancelling(far(&server.url), "long", "[far] Half of it.").await;
    assert_eq!(server.next_line().await, "cancelled");
    main.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn the_server_of_another_maker_is_called_in_each_binding_and_version() {
    let Some(folder) = outside_part(
        "ROCKBOT_TEST_A2A_SDK",
        "`.ci/a2a-sdk` installs the SDK and names its folder",
    ) else {
        return;
    };
    for (binding, version) in [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")] {
        for streams in [true, false] {
            let name = format!("{binding} {version}, streams: {streams}");
            // Shown when a step fails.
            println!("{name}");
            let mut server = Server::start(&folder, binding, version, streams).await;
            let words = end_of(&server.url, "message").await;
            assert!(words.contains("\nOnly words.\n"), "{name}: {words}");
            let words = end_of(&server.url, "file").await;
            let made = "[answer]\n\nHeard: file.\n\n[file by reference: https://files.example.com/a.pdf a.pdf]\n";
            assert!(words.contains(made), "{name}: {words}");
            let words = answered(far(&server.url), "question").await;
            assert!(words.contains("Heard: 2026."), "{name}: {words}");
            cancelled(&mut server).await;
        }
    }
}
