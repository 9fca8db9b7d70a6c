//! Hostile clients: whatever comes, each route answers with words and without a fault, and the server
//! goes on.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;
use rockbot::config::Config;
use rockbot::prelude::{AgentHost, FromConfig as _, OfflineModel};
use serde_json::{Value, json};

use super::Serving;

const SETTINGS: &str = r#"
    [WebServer]
    Address = "127.0.0.1:0"
    MaxBodyBytes = 1100000
    MessagesPerMinute = 1000000
    Users = [{ Name = "ann", Token = "sesame" }, { Name = "bob", Token = "mustard" }]
    [Scheduling]
    Enabled = true
    [Wisps]
    Enabled = true
    [Dream]
    Enabled = true
"#;

/// The routes, and the methods that each of them has.
const ROUTES: [(&str, &str); 36] = [
    ("GET POST", "/api/sessions"),
    ("DELETE", "/api/sessions/{session}"),
    ("GET", "/api/sessions/{session}/history"),
    ("POST", "/api/sessions/{session}/messages"),
    ("GET", "/api/turns/{turn}"),
    ("GET", "/api/turns/{turn}/events"),
    ("POST", "/api/turns/{turn}/cancel"),
    ("GET POST", "/api/approvals"),
    ("GET", "/api/media/{digest}"),
    ("GET", "/api/announcements"),
    ("GET", "/api/announcements/events"),
    ("DELETE", "/api/announcements/{id}"),
    ("GET", "/api/me"),
    ("GET", "/api/search"),
    ("GET", "/api/runs"),
    ("GET", "/api/costs"),
    ("GET", "/api/memories"),
    ("GET", "/api/skills"),
    ("GET", "/api/skills/{*name}"),
    ("GET", "/api/rules"),
    ("GET", "/api/working-memory"),
    ("GET", "/api/working-memory/{*key}"),
    ("GET", "/api/schedules"),
    ("GET", "/api/wisps"),
    ("GET", "/api/wisps/{id}"),
    ("GET", "/api/dreams"),
    ("POST", "/api/dreams/{plan}/apply"),
    ("POST", "/api/dreams/{plan}/undo"),
    ("POST", "/agui"),
    ("POST", "/agui/{agent}"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/responses/{response}"),
    ("GET", "/"),
];

/// Values that programs of others have stumbled over.
const SEGMENTS: [&str; 12] = [
    "s",
    "..",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "%00",
    "%ff%fe",
    "%0d%0aX-Injected:%20yes",
    "' OR 1=1 --",
    "\u{202e}txt",
    "%F0%9F%90%B1",
    "0",
    "18446744073709551616",
    "{{7*7}}",
];

const QUERIES: [&str; 6] = [
    "",
    "?limit=-1",
    "?limit=18446744073709551616&before=%00",
    "?query=%ff",
    "?query=a&query=b&archived=maybe",
    "?unknown=1",
];

const HEADERS: [&str; 9] = [
    "",
    "Last-Event-ID: 18446744073709551616",
    "Last-Event-ID: \u{e9}",
    "Idempotency-Key: ",
    "X-Session-Id: ../../b",
    "Content-Encoding: gzip",
    "Transfer-Encoding: identity",
    "Accept: text/event-stream;q=\u{0}",
    "Range: bytes=0-18446744073709551615",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!("x".repeat(100_000))),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        let key = prop_oneof![
            proptest::sample::select(vec![
                "content",
                "messages",
                "role",
                "input",
                "model",
                "stream",
                "tools",
                "type",
                "mediaType",
                "data",
                "turn",
                "call",
                "argsHash",
                "approved",
                "threadId",
                "runId",
                "resume",
                "state",
                "context",
                "previous_response_id",
                "metadata",
            ])
            .prop_map(str::to_owned),
            ".{0,10}",
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => value().prop_map(|value| value.to_string().into_bytes()),
        2 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => Just("[".repeat(100_000).into_bytes()),
        1 => Just(br#"{"content": "\ud800"}"#.to_vec()),
        1 => Just(vec![b' '; 1_200_000]),
    ]
}

/// A request as the bytes of a client.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let choice = proptest::sample::select::<&str>;
    let parts = (
        proptest::sample::select(ROUTES.to_vec()),
        prop_oneof![4 => Just(None), 1 => choice(vec!["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "G\u{e9}T"]).prop_map(Some)],
        proptest::collection::vec(choice(SEGMENTS.to_vec()), 1..4),
        choice(QUERIES.to_vec()),
        choice(HEADERS.to_vec()),
        choice(vec![
            "application/json",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
        ]),
        prop_oneof![8 => Just("Bearer sesame"), 1 => Just("Basic YW5uOnNlc2FtZQ=="), 1 => Just("Bearer \u{0}")],
        body(),
    );
    parts.prop_map(|((methods, route), other, segments, query, header, kind, token, body)| {
        let method = other.unwrap_or(methods.split(' ').next_back().unwrap_or_default());
        let mut path = String::new();
        let mut segments = segments.iter().cycle();
        for part in route.split('/').skip(1) {
            let part = if part.starts_with('{') { segments.next().copied().unwrap_or_default() } else { part };
            path.push('/');
            path.push_str(part);
        }
        let head = format!(
            "{method} {path}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\nConnection: close\r\n{header}{}\r\n",
            body.len(),
            if header.is_empty() { "" } else { "\r\n" },
        );
        [head.into_bytes(), body].concat()
    })
}

/// Returns the head of the answer, and its body as far as it has a length.
fn answered(address: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // A server that refuses a body does not read it.
    let _ = stream.write_all(request);
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return (head.to_owned(), body.to_owned());
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return (String::from_utf8_lossy(&read).into_owned(), String::new()),
            Ok(length) => read.extend_from_slice(&chunk[..length]),
        }
    }
}

/// The server of these tests, which outlives them, on a runtime of its own.
static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
    let (sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let config = Config::new().with_text("agent.toml", SETTINGS).unwrap();
            let host = AgentHost::configured(&config, folder.path()).unwrap();
            let serving = Serving::start(host.chat(OfflineModel::new())).await;
            sender.send(serving.address).unwrap();
            std::future::pending::<()>().await;
        });
    });
    address.recv().unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn each_route_answers_hostile_requests_with_words(request in request()) {
        let (head, body) = answered(*ADDRESS, &request);
        let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        prop_assert!((200..500).contains(&status), "{head}\n{body}");
        prop_assert!(!head.to_lowercase().contains("x-injected") && !body.contains("sesame"), "{head}\n{body}");
        // What is no HTTP has no body; a method that a route lacks is answered by its name.
        if status >= 400 && !body.is_empty() {
            let error: Value = serde_json::from_str(&body).unwrap_or_default();
            prop_assert!(error["error"]["message"].as_str().is_some_and(|words| words.len() > 5), "{head}\n{body}");
        }
    }

    #[test]
    fn bytes_that_are_no_http_end_their_connection_alone(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut stream = TcpStream::connect(*ADDRESS).unwrap();
        let _ = stream.write_all(&bytes);
        drop(stream);
        let me = b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sesame\r\nConnection: close\r\n\r\n";
        let (head, body) = answered(*ADDRESS, me);
        prop_assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("\"ann\""), "{head}\n{body}");
    }
}

/// A route that is added to the server is added to the requests above.
#[test]
fn the_routes_are_those_of_the_server() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rockbot-web/src");
    let files = ["api/mod.rs", "ag_ui/mod.rs", "openai/mod.rs"];
    for file in files {
        let text = std::fs::read_to_string(source.join(file)).unwrap();
        for route in text.split(".route(\"").skip(1) {
            let route = route.split('"').next().unwrap();
            let is_tried = ROUTES.iter().any(|(_, tried)| tried.ends_with(route));
            assert!(is_tried, "{route} of {file}");
        }
    }
}
