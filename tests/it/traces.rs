//! Traces across programs, as a collector of OpenTelemetry gets them from `full_agent`'s exporter.

#[expect(dead_code, reason = "the example's terminal uses the rest")]
#[path = "../../examples/full_agent/otlp.rs"]
mod otlp;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::message::{Bus, MessageEnvelope, RequestClient, UserMessage, headers};
use rockbot::testing::ScriptedModel;
use rockbot::tool::{RemoteToolExecutor, ToolRegistration, remote_tool, tool};
use rockbot_core::TraceContext;
use rockbot_core::user::UserProxy;
use rockbot_host::bus::InProcessBus;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt as _;

use self::otlp::Otlp;
use crate::example_programs::{run, text};
use crate::support::Anything;
use crate::support::callsites::keep_undecided;

/// A collector on a port of this machine.
struct Collector {
    url: String,
    spans: Arc<Mutex<Vec<Exported>>>,
}

/// A span as a program exported it.
#[derive(Debug, Clone)]
struct Exported {
    service: String,
    name: String,
    trace: String,
    id: String,
    parent: String,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::new(Mutex::new(Vec::new()));
        let seen = spans.clone();
        // Ends with the process: it waits for connections until then.
        thread::spawn(move || {
            for stream in listener.incoming() {
                seen.lock().unwrap().extend(export(stream.unwrap()));
            }
        });
        Self { url, spans }
    }

    /// Returns the exported spans by service and name, the last one of each.
    fn by_name(&self) -> HashMap<String, Exported> {
        let spans = self.spans.lock().unwrap();
        let named = spans
            .iter()
            .map(|span| (format!("{}: {}", span.service, span.name), span.clone()));
        named.collect()
    }
}

/// Reads one export and acknowledges it.
fn export(stream: TcpStream) -> Vec<Exported> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    reader.into_inner().write_all(answer.as_bytes()).unwrap();
    spans_of(&serde_json::from_slice(&body).unwrap())
}

fn spans_of(export: &Value) -> Vec<Exported> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let field = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut spans = Vec::new();
    for resource in list(&export["resourceSpans"]) {
        let attributes = list(&resource["resource"]["attributes"]);
        let service = attributes.iter().find(|attribute| attribute["key"] == "service.name");
        let service = field(&service.expect("a service")["value"], "stringValue");
        for span in list(&resource["scopeSpans"])
            .iter()
            .flat_map(|scope| list(&scope["spans"]))
        {
            spans.push(Exported {
                service: service.clone(),
                name: field(&span, "name"),
                trace: field(&span, "traceId"),
                id: field(&span, "spanId"),
                parent: field(&span, "parentSpanId"),
            });
        }
    }
    spans
}

/// A host on a thread of its own, with a subscriber and an exporter of its own, as another
/// program has them.
struct Program {
    stop: oneshot::Sender<()>,
    ended: thread::JoinHandle<()>,
}

impl Program {
    /// Starts the program `name`, and returns once its host serves.
    fn start(
        collector: &Collector,
        name: &'static str,
        host: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder + Send + 'static,
    ) -> Self {
        keep_undecided();
        let url = collector.url.clone();
        let (stop, stopped) = oneshot::channel();
        let (started, is_started) = mpsc::channel();
        let ended = thread::spawn(move || {
            let otlp = Otlp::open(&url, name).unwrap();
            let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(otlp.layer()));
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let host = otlp.bridged(host(AgentHost::builder(name))).build().unwrap();
                host.start().await.unwrap();
                started.send(()).unwrap();
                let _ = stopped.await;
                host.shutdown(Duration::from_secs(5)).await;
            });
            drop(runtime);
            otlp.close();
        });
        is_started.recv().unwrap();
        Self { stop, ended }
    }

    /// Stops the program, which exports its last spans.
    fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.join().unwrap();
    }
}

/// Sends a user's message with `traceparent` to an agent, whose tool is in another host, and
/// returns the spans of both.
async fn ordered(traceparent: &str) -> HashMap<String, Exported> {
    let collector = Collector::start();
    let bus = Arc::new(InProcessBus::new());
    let served = bus.clone();
    let warehouse = Program::start(&collector, "warehouse", move |host| {
        let order = tool("order", |_: Anything| async { "ordered" });
        host.chat(ScriptedModel::new())
            .shared_bus(served)
            .tool(order)
            .serve_tools()
    });
    let shared = bus.clone();
    let shop = Program::start(&collector, "shop", move |host| {
        let client = RequestClient::new(shared.clone(), "shop");
        let order = remote_tool(
            ToolRegistration::of::<Anything>("order"),
            RemoteToolExecutor::new(Arc::new(client)),
        );
        let model = ScriptedModel::new()
            .with_id("big")
            .calls("order", json!({}))
            .says("It is ordered.");
        host.chat(model).shared_bus(shared).tool(order).serve_users()
    });
    let message = MessageEnvelope::of(&UserMessage::new("s", "A chair, please.")).unwrap();
    let message = message.with_header(headers::TRACEPARENT, traceparent);
    let proxy = UserProxy::new(bus as Arc<dyn Bus>, "terminal");
    let reply = proxy.send_envelope(message, |_| {}).await.unwrap();
    assert_eq!(reply.content.words(), "It is ordered.");
    tokio::task::spawn_blocking(|| [shop, warehouse].map(Program::stop))
        .await
        .unwrap();
    collector.by_name()
}

/// The spans that are below each other, and the model calls beside the tool call.
const CHAIN: [&str; 5] = [
    "shop: dispatch",
    "shop: invoke_agent shop",
    "shop: execute_tool order",
    "warehouse: dispatch",
    "warehouse: execute_tool order",
];

#[tokio::test]
async fn a_message_its_turn_and_its_remote_tool_are_one_trace() {
    let user = TraceContext::begin();
    let spans = ordered(&user.traceparent()).await;
    let mut parent = format!("{:016x}", user.span_id());
    for name in CHAIN {
        let span = &spans[name];
        assert_eq!(span.trace, format!("{:032x}", user.trace_id()), "{name}");
        assert_eq!(span.parent, parent, "{name}");
        parent.clone_from(&span.id);
    }
    let chat = &spans["shop: chat big"];
    let turn = &spans["shop: invoke_agent shop"];
    assert_eq!((&chat.trace, &chat.parent), (&turn.trace, &turn.id));
}

#[tokio::test]
async fn a_hostile_parent_begins_a_trace() {
    let hostile = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nrb-principal: boss";
    let spans = ordered(hostile).await;
    let first = &spans[CHAIN[0]];
    assert_eq!(first.parent, "");
    assert_ne!(first.trace, "0af7651916cd43dd8448eb211c80319c");
    assert!(
        TraceContext::parse(&format!("00-{}-{}-01", first.trace, first.id)).is_some(),
        "{first:?}"
    );
    assert!(spans.values().all(|span| span.trace == first.trace), "{spans:#?}");
}

#[tokio::test]
async fn the_full_agent_sends_its_spans_to_a_collector() {
    let collector = Collector::start();
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--otlp", &collector.url, "--ask", r#"Take a note: "buy milk""#];
    let output = run("full_agent", &arguments, folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let spans = collector.spans.lock().unwrap();
    let found = |name: &str| {
        spans
            .iter()
            .find(|span| span.name == name)
            .unwrap_or_else(|| panic!("{spans:#?}"))
    };
    let turn = found("invoke_agent full-agent");
    let call = found("execute_tool take_note");
    assert_eq!((&*turn.service, &*turn.parent), ("full_agent", ""));
    assert_eq!((&call.trace, &call.parent), (&turn.trace, &turn.id));
}
