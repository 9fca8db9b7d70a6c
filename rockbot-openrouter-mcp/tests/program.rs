//! The program as an MCP client runs it, against a server that stands in for OpenRouter.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A stand-in for the interface: it answers each request with its path, and one with an error.
struct Interface {
    url: String,
    /// The line and the key of each request.
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

impl Interface {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/v1/", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 8192];
                let read = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let line = request.lines().next().unwrap().to_owned();
                let key = request.lines().find_map(|line| line.strip_prefix("authorization: "));
                kept.lock()
                    .unwrap()
                    .push((line.clone(), key.unwrap_or_default().to_owned()));
                let (status, body) = if line.contains("generation") {
                    (
                        "404 Not Found",
                        json!({"error": {"code": 404, "message": "no such generation"}}),
                    )
                } else {
                    ("200 OK", json!({"data": line.split(' ').nth(1)}))
                };
                let body = body.to_string();
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, seen }
    }
}

/// A client that speaks the protocol by hand.
struct Client {
    _program: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Client {
    async fn start(url: &str) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_rockbot-openrouter-mcp"))
            .env_clear()
            .env("ROCKBOT_OPENROUTER__BASEURL", url)
            .env("ROCKBOT_OPENROUTER__APIKEY", "plain")
            .env("ROCKBOT_OPENROUTER__MANAGEMENTKEY", "managing")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = program.stdin.take().unwrap();
        let output = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut client = Self {
            _program: program,
            input,
            output,
            id: 0,
        };
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client.ask("initialize", hello).await;
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}))
            .await;
        loop {
            let line = self.output.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.id {
                return message;
            }
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let result = &answer["result"];
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        (result["isError"] == true, text.to_owned())
    }
}

#[tokio::test]
async fn six_tools_read_what_they_are_named_for() {
    let interface = Interface::start().await;
    let mut client = Client::start(&interface.url).await;
    let list = client.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = [
        "get_api_key",
        "get_api_key_info",
        "get_credits",
        "get_generation",
        "list_api_keys",
        "list_models",
    ];
    assert_eq!(names, all);
    assert!(
        tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true),
        "{list}"
    );

    for (tool, arguments) in [
        ("get_credits", json!({})),
        ("get_api_key_info", json!({})),
        ("list_models", json!({})),
        ("list_api_keys", json!({})),
        ("get_api_key", json!({"keyHash": "a/b"})),
    ] {
        let (failed, text) = client.call(tool, arguments).await;
        assert!(!failed && text.contains("/api/v1/"), "{tool}: {text}");
    }
    let (failed, text) = client.call("get_generation", json!({"generationId": "gen 1"})).await;
    assert!(failed && text.contains("no such generation"), "{text}");
    let (failed, text) = client.call("get_api_key", json!({})).await;
    assert!(failed && text.contains("keyHash"), "{text}");

    let plain = "Bearer plain".to_owned();
    let managing = "Bearer managing".to_owned();
    let line = |path: &str| format!("GET /api/v1/{path} HTTP/1.1");
    assert_eq!(
        *interface.seen.lock().unwrap(),
        [
            (line("credits"), managing.clone()),
            (line("key"), plain.clone()),
            (line("models"), plain.clone()),
            (line("keys"), managing.clone()),
            (line("keys/a%2Fb"), managing),
            (line("generation?id=gen%201"), plain),
        ]
    );
}

#[tokio::test]
async fn without_a_key_the_program_says_which_setting_is_missing() {
    let program = Command::new(env!("CARGO_BIN_EXE_rockbot-openrouter-mcp"))
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(program.status.code(), Some(1));
    let error = String::from_utf8(program.stderr).unwrap();
    assert_eq!(
        error,
        "error: OpenRouter.ApiKey: expected the key of an OpenRouter account (ROCKBOT_OPENROUTER__APIKEY), found nothing\n"
    );
}
