//! The spans and metrics of a host, and their agreement with the tables in `telemetry.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebuggingRecorder, Snapshotter};
use rockbot::chat::{Fallback, Meter, ModelGateway, PermitLimits, PriceTable, Retry};
use rockbot::testing::{HashedEmbeddings, ScriptedModel};
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatResponse, Ledger, ModelInfo, ModelSettings,
    ModelTier, Provenance, ReasoningEffort, Usage,
};
use rockbot_core::context::Origin;
use rockbot_core::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};
use rockbot_core::messaging::{Bus, Message, MessageContext, MessageEnvelope, MessagePublisher, headers};
use rockbot_core::store::{InMemoryLongTermMemory, LongTermMemory, MemoryEntry, MemoryQuery};
use rockbot_core::tool::{InMemoryToolRegistry, Owner, Tool, ToolError, ToolErrorCode, ToolRegistry, tool};
use rockbot_core::turn::{
    Budget, LoopDecision, LoopPoint, OutputVerdict, TierDecision, TierSelector, TurnRequest, policy_fn, validator_fn,
};
use rockbot_core::user::{UserMessage, UserProxy};
use rockbot_core::{CallContext, Principal, Timestamp};
use rockbot_host::bus::InProcessBus;
use rockbot_host::telemetry::describe_metrics;
use rockbot_host::tool::{ToolDispatcher, ToolLimits};
use rockbot_host::turn::Evaluation;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnPolicies};
use rockbot_memory::{Dreaming, Dreams, Memory, SemanticMemory, SemanticMemoryOptions};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::recall::Broken;
use crate::support::metrics::measured;
use crate::support::spans::Spans;
use crate::support::{Anything, collect, host_of, noting_tool, request, settle, unanswered};

const TABLES: &str = include_str!("../../rockbot-host/src/telemetry/telemetry.md");

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Looks something up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    what: String,
}

fn look() -> Tool {
    tool("look", |Look { what }: Look| async move {
        format!("{what} is on the shelf")
    })
    .pure()
}

/// A model that looks for the book, and knows where it is then.
fn librarian() -> ScriptedModel {
    let usage = Usage::new(200, 30).with_cached(150).with_reasoning(20);
    let answer = ChatResponse::text("The book is on the shelf.")
        .with_model("big-1-2026")
        .with_provider("library")
        .with_id("answer-2");
    ScriptedModel::new()
        .with_id("big-1")
        .calls("look", json!({ "what": "book" }))
        .answers(answer)
        .with_usage(usage)
}

/// Asks for the book over a bus.
async fn ask_for_the_book(host: AgentHostBuilder) {
    let bus = InProcessBus::new();
    let host = host.tool(look()).bus(bus.clone()).serve_users().build().unwrap();
    host.start().await.unwrap();
    let envelope = MessageEnvelope::of(&UserMessage::new("desk 7", "Where is the book?"))
        .unwrap()
        .with_id("m-1")
        .with_source("door")
        .with_header(headers::TRACEPARENT, TRACE);
    bus.publish("user.message", Arc::new(envelope)).await.unwrap();
    settle().await;
    host.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn the_spans_of_a_turn() {
    let (spans, _guard) = Spans::listen();
    ask_for_the_book(AgentHost::builder("clerk").chat(librarian())).await;
    insta::assert_snapshot!(spans.tree());
}

#[tokio::test(start_paused = true)]
async fn the_metrics_of_a_turn() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    ask_for_the_book(AgentHost::builder("clerk").chat(librarian())).await;
    let lines = measured(&snapshotter).into_iter();
    let lines: Vec<_> = lines.map(|(series, count)| format!("{count} x {series}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_stands_on_no_span() {
    let (spans, _guard) = Spans::listen();
    ask_for_the_book(
        AgentHost::builder("clerk")
            .instructions("You keep the book.")
            .chat(librarian()),
    )
    .await;
    assert_eq!(spans.values("gen_ai.tool.name"), ["look"]);
    let tree = spans.tree();
    assert!(!tree.contains("book") && !tree.contains("shelf"), "{tree}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_stands_on_spans_where_that_is_wanted() {
    let (spans, _guard) = Spans::listen();
    let host = AgentHost::builder("clerk")
        .instructions("You keep books.")
        .chat(librarian());
    ask_for_the_book(host.capture_content(true)).await;
    let fields = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ];
    let said: Vec<_> = fields
        .into_iter()
        .flat_map(|field| {
            spans
                .values(field)
                .into_iter()
                .map(move |value| format!("{field} = {value}"))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// A model of a provider that writes word by word, a second for each.
struct Slow(&'static str);

#[async_trait]
impl ChatClient for Slow {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        for word in ["one ", "two"] {
            sleep(Duration::from_secs(1)).await;
            if let Some(deltas) = &call.deltas {
                deltas.send(ChatDelta::Text(word));
            }
        }
        Ok(ChatResponse::text("one two").with_provider(self.0).with_model(self.0))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new(self.0).with_provider(self.0)
    }
}

/// A model of the provider `first` that fails after its first word.
struct Breaks;

#[async_trait]
impl ChatClient for Breaks {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        if let Some(deltas) = &call.deltas {
            deltas.send(ChatDelta::Text("one "));
        }
        Err(ChatError::new(ChatErrorKind::Overloaded, "broken"))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new("first-1").with_provider("first")
    }
}

/// A model with settings that refuses every request by its name.
struct Refuses;

#[async_trait]
impl ChatClient for Refuses {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        Err(ChatError::new(ChatErrorKind::Auth, "no").with_request_id("req_1"))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        let settings = ModelSettings::new()
            .with_temperature(0.9)
            .with_top_p(0.7)
            .with_max_output_tokens(100)
            .with_seed(-7)
            .with_stop_sequences(["END", "\n"])
            .with_reasoning_effort(ReasoningEffort::Low);
        ModelInfo::new("refuses").with_settings(settings.shared())
    }
}

/// A turn with a setting of its own that asks [`Refuses`].
async fn refused() {
    let host = AgentHost::in_memory().chat(Refuses).build().unwrap();
    let request = TurnRequest::new("s", "1", "Hi").with_model_settings(ModelSettings::new().with_temperature(0.2));
    // Its end is of no interest here.
    let _ = host.agent().run(request).await;
}

#[tokio::test(start_paused = true)]
async fn the_settings_of_a_request_and_its_name_stand_on_its_span() {
    let (spans, _guard) = Spans::listen();
    refused().await;
    let fields = [
        ("gen_ai.request.temperature", "0.2"),
        ("gen_ai.request.top_p", "0.7"),
        ("gen_ai.request.max_tokens", "100"),
        ("gen_ai.request.seed", "-7"),
        ("gen_ai.request.stop_sequences", r#"["END","\n"]"#),
        ("gen_ai.request.reasoning.level", "low"),
        ("rockbot.provider.request_id", "req_1"),
    ];
    for (field, expected) in fields {
        assert_eq!(spans.values(field), [expected], "{field}");
    }
}

/// The span of the only model call of a streamed turn.
async fn chat_span(model: impl ChatClient) -> String {
    let (spans, _guard) = Spans::listen();
    let host = AgentHost::in_memory().chat(model).build().unwrap();
    collect(host.agent().stream("s", "Count!")).await;
    let tree = spans.tree();
    let (_, chat) = tree
        .split_once("    chat\n")
        .unwrap_or_else(|| panic!("no span of a model call in:\n{tree}"));
    chat.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_tried_again_is_one_span_of_the_model_that_answered() {
    let gateway = ModelGateway::builder(Breaks)
        .fallback(Fallback::to("second", Slow("second")))
        .layer(Retry::default())
        .build();
    let chat = chat_span(gateway).await;
    // Both attempts of the first one, and the pause between them, are part of the time to the first
    // piece that stayed.
    let fields: Vec<_> = chat
        .lines()
        .map(|line| match line.split_once("to_first_chunk = ") {
            Some((field, seconds)) => {
                assert!(seconds.parse::<f64>().unwrap() > 1.0);
                format!("{field}to_first_chunk = more than 1 s")
            }
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(fields.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn the_time_to_the_first_piece_is_that_of_streamed_answers() {
    let chat = chat_span(Slow("slow")).await;
    assert!(chat.contains("gen_ai.response.time_to_first_chunk = 1.0\n"), "{chat}");
}

/// Lists the problems of the spans of a turn whose caller waits ten seconds, in the order of the
/// spans.
async fn errors(model: ScriptedModel, tools: impl IntoIterator<Item = Tool>) -> Vec<String> {
    let (spans, _guard) = Spans::listen();
    let host = tools.into_iter().fold(host_of(&model), AgentHostBuilder::tool);
    let host = host.build().unwrap();
    // How it ends is the spans' business here.
    let _ = timeout(Duration::from_secs(10), host.agent().ask("s", "Go!")).await;
    settle().await;
    let errors = spans.values("error.type");
    assert_eq!(spans.values("otel.status_code"), vec!["ERROR"; errors.len()]);
    errors
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_is_named() {
    let fails = || {
        tool("fails", |_: Anything| async {
            Err::<String, _>(ToolError::new(ToolErrorCode::Denied, "no"))
        })
    };
    let hangs = || tool("hangs", |_: Anything| std::future::pending::<String>()).pure();
    let calls = |tool: &str| ScriptedModel::new().calls(tool, json!({}));
    let says_nothing = ScriptedModel::new().says("").says("").says("").says("");
    let none: [Tool; 0] = [];
    // The model call and its turn.
    let overloaded = ScriptedModel::new().fails(ChatErrorKind::Overloaded);
    assert_eq!(errors(overloaded, []).await, ["overloaded", "overloaded"]);
    assert_eq!(errors(says_nothing, none).await, ["no_answer"]);
    // A tool call, and a turn that makes do.
    assert_eq!(errors(calls("fails").says("Well."), [fails()]).await, ["Denied"]);
    assert_eq!(
        errors(calls("nothing").says("Well."), [fails()]).await,
        ["ToolNotFound"]
    );
    // Calls that are dropped because their turn was cancelled. That is no failure of the turn.
    assert_eq!(errors(ScriptedModel::new().hangs(), []).await, ["cancelled"]);
    assert_eq!(errors(calls("hangs"), [hangs()]).await, ["cancelled"]);
}

/// Returns the number of series of each metric.
fn series(snapshotter: &Snapshotter) -> BTreeMap<String, usize> {
    let mut series = BTreeMap::new();
    for key in measured(snapshotter).into_keys() {
        let name = key.split(' ').next().unwrap_or_default().to_owned();
        *series.entry(name).or_default() += 1;
    }
    series
}

#[tokio::test]
async fn names_from_outside_make_a_bounded_number_of_series() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let registry = Arc::new(InMemoryToolRegistry::new());
    let tools = ToolDispatcher::new(registry.clone(), ToolLimits::default());
    let named = |n: usize| tool(&format!("tool_{n}"), |_: Anything| async { "done" });
    registry
        .replace_source(&Owner::new("server"), (0..600).map(named).collect())
        .unwrap();
    for n in 0..600 {
        tools
            .call(request("1", &format!("tool_{n}"), "{}"), &CallContext::new("s"))
            .await;
    }
    let answer = |n: usize| {
        ChatResponse::text("Hello.")
            .with_model(format!("model-{n}"))
            .with_usage(Usage::default())
    };
    let model = (0..100).fold(ScriptedModel::new(), |model, n| model.answers(answer(n)));
    let host = host_of(&model).build().unwrap();
    for _ in 0..100 {
        host.agent().ask("s", "Hello!").await.unwrap();
    }
    let bus = InProcessBus::new();
    for n in 0..600 {
        bus.publish(&format!("topic.{n}"), Arc::new(MessageEnvelope::new("t", "{}")))
            .await
            .unwrap();
    }

    let series = series(&snapshotter);
    let of = |name: &str| series.get(name).copied();
    assert_eq!(of("rockbot.tool.invocations"), Some(512 + 1));
    assert_eq!(of("gen_ai.client.operation.duration"), Some(64 + 1));
    assert_eq!(of("gen_ai.client.token.usage"), Some(2 * (64 + 1)));
    // None of them has a subscriber.
    assert_eq!(of("rockbot.messaging.publish.messages"), Some(1));
}

/// Says nothing.
#[derive(serde::Serialize, serde::Deserialize)]
struct Ping {}

impl Message for Ping {
    const TYPE: &'static str = "it.Ping";
}

/// A host whose model is judged, does more, is cut off, and is treated to everything else that is
/// measured.
async fn everything() {
    let verdict = |complete: bool| json!({ "complete": complete, "reason": "Nothing was sent." }).to_string();
    let more = |has: bool| json!({ "hasFollowUps": has, "prompt": "Tell Bob, too." }).to_string();
    let model = ScriptedModel::new()
        // Judged incomplete, then complete; and more is to be done.
        .says("I'll send it right away.")
        .says(verdict(false))
        .calls("send", json!({}))
        .says("Sent.")
        .says(verdict(true))
        .says(more(true))
        .says("Told him.")
        // Nothing more is to be done.
        .calls("send", json!({}))
        .says("Sent.")
        .says(verdict(true))
        .says(more(false))
        // No room for a look.
        .fails(ChatErrorKind::Overloaded)
        .calls("send", json!({}))
        .says("As far as I got.");
    let gateway = ModelGateway::builder(model.clone())
        .default_layers(
            PermitLimits::default(),
            Meter::new().ledger(Ledger::new(PriceTable::default())),
        )
        .build();
    let bus = InProcessBus::new();
    let host = AgentHost::builder("clerk")
        .chat(gateway)
        .tool(tool("send", |_: Anything| async {
            // The polls behind the first one are timed by the system's clock, which is not paused.
            tokio::task::yield_now().await;
            "sent"
        }))
        .policies(
            TurnPolicies::new()
                .with_tool_limits(
                    ToolLimits::default()
                        .with_max_blocking(Duration::ZERO)
                        .with_guards_effects(false),
                )
                .with_evaluation(
                    Evaluation::default()
                        .with_max_completion_reprompts(2)
                        .with_max_follow_up_passes(1),
                ),
        )
        .bus(bus.clone())
        .serve_users()
        .handle(|_: Ping, _: MessageContext| async {})
        .tier_selector(Simple)
        .build()
        .unwrap();
    host.start().await.unwrap();
    let proxy = UserProxy::new(Arc::new(bus.clone()) as Arc<dyn Bus>, "terminal");
    proxy.send("s", "Send the report to Ada.").await.unwrap();
    host.add_tool(look()).unwrap();
    host.agent().ask("s", "Send the report to Ada.").await.unwrap();
    let short = host
        .agent()
        .request("s", "Send the report to Ada.")
        .with_budget(Budget::default().with_max_model_calls(1))
        .with_origin(Origin::Scheduled);
    host.agent().run(short).await.unwrap();
    model.assert_complete();
    // The same message again.
    let twice = Arc::new(MessageEnvelope::of(&Ping {}).unwrap());
    for _ in 0..2 {
        bus.publish("user.message", twice.clone()).await.unwrap();
    }
    settle().await;
    host.shutdown(Duration::from_secs(1)).await;
}

/// A turn whose context becomes too long, and one whose model cannot be asked.
async fn failures() {
    let story = "All work and no play. ".repeat(400);
    let too_long = ScriptedModel::new()
        .says(story)
        .says("Yes.")
        .fails(ChatErrorKind::ContextOverflow)
        .says("Three.");
    let host = host_of(&too_long).context_source(Broken).build().unwrap();
    for text in ["Tell me something.", "Really?", "How many were that?"] {
        host.agent().ask("s", text).await.unwrap();
    }
    let closed = ScriptedModel::new().fails(ChatErrorKind::Auth);
    let _ = unanswered(host_of(&closed).build().unwrap().agent().ask("s", "Hi").await);
}

/// A search by meaning, with a model that has no vector for what is searched for.
async fn searches_by_meaning() {
    let client = HashedEmbeddings::new();
    let store = Arc::new(InMemoryLongTermMemory::new());
    let (memory, embedder) = SemanticMemory::open(store, Failing(client), SemanticMemoryOptions::default()).unwrap();
    let me = Principal::default();
    let stop = CallContext::new("s").cancellation().clone();
    let embedding = tokio::spawn(embedder.run(stop.clone()));
    let entry = MemoryEntry::new("m", "A book", Timestamp::default(), Provenance::USER);
    memory.save(&me, entry).await.unwrap();
    while memory.pending(&me).await.unwrap() > 0 {
        settle().await;
    }
    memory.search(&me, &MemoryQuery::new("fails")).await.unwrap();
    stop.cancel();
    embedding.await.unwrap();
}

/// A dream that folds two memories with the same words.
async fn dreams() {
    let host = AgentHost::in_memory()
        .chat(librarian())
        .add(Memory::none().with_long_term())
        .add(Dreaming::new())
        .build()
        .unwrap();
    let memory: Arc<dyn LongTermMemory> = host.parts().require().unwrap();
    for id in ["a", "b"] {
        let entry = MemoryEntry::new(id, "A book", Timestamp::default(), Provenance::USER);
        memory.save(&Principal::default(), entry).await.unwrap();
    }
    host.start().await.unwrap();
    let dreams: Arc<Dreams> = host.parts().require().unwrap();
    dreams.dream().await.unwrap();
    host.shutdown(Duration::from_secs(1)).await;
}

/// Fails when it is asked to.
#[derive(Debug)]
struct Failing(HashedEmbeddings);

#[async_trait]
impl EmbeddingClient for Failing {
    fn model(&self) -> &str {
        self.0.model()
    }

    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError> {
        if call.texts.iter().any(|text| text == "fails") {
            Err(ChatError::new(ChatErrorKind::Overloaded, "it fails").into())
        } else {
            self.0.embed(call).await
        }
    }
}

/// Takes everything for simple.
struct Simple;

#[async_trait]
impl TierSelector for Simple {
    async fn select(&self, _: &TurnRequest) -> TierDecision {
        TierDecision::new(ModelTier::Low, 0.0)
    }
}

/// The cells of the rows of the table that begins with `head`.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let (_, rows) = TABLES.split_once(head).unwrap();
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The names in a cell.
fn names(cell: &str) -> BTreeSet<String> {
    let names = cell.split(',').map(|name| name.trim().trim_matches('`').to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Runs turns whose answers hooks of the program send back, end, and refuse.
async fn hooked() {
    let after_answers = |decision: LoopDecision| {
        policy_fn(move |point, _| {
            let decision = decision.clone();
            async move {
                Ok(match point {
                    LoopPoint::AfterAnswer(_) => decision,
                    _ => LoopDecision::Continue,
                })
            }
        })
    };
    let once = |says: &'static str| ScriptedModel::new().says(says).says(says).says(says).says(says);
    let hosts = [
        host_of(&once("a")).loop_policy(after_answers(LoopDecision::ask_again("again"))),
        host_of(&once("b")).loop_policy(after_answers(LoopDecision::answer("enough"))),
        host_of(&once("c")).output_validator(validator_fn(|_, _| async { Ok(OutputVerdict::complain("no")) })),
    ];
    for host in hosts {
        let _ = host.build().unwrap().agent().ask("s", "hi").await;
    }
}

/// Asks a model that writes its call into its text.
async fn calls_in_text() {
    let model = ScriptedModel::new()
        .fails(ChatErrorKind::InvalidResponse)
        .says(r#"{"name": "note", "arguments": {}}"#)
        .says(r#"{"name": "note", "arguments": {}}"#)
        .says("Noted.");
    let host = host_of(&model).tool(noting_tool("note").0).build().unwrap();
    host.agent().ask("s", "Note it.").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_table_of_metrics_is_what_a_run_measures() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    describe_metrics();
    everything().await;
    failures().await;
    searches_by_meaning().await;
    dreams().await;
    hooked().await;
    calls_in_text().await;
    ask_for_the_book(AgentHost::builder("clerk").chat(librarian())).await;

    let mut seen: BTreeMap<String, (String, String, BTreeSet<String>, String)> = BTreeMap::new();
    for (key, unit, what, _) in snapshotter.snapshot().into_vec() {
        let (kind, key) = key.into_parts();
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let unit = unit.map_or("US dollars", |unit| unit.as_str());
        let what = what.expect("a description").to_string();
        let new = || (kind.to_owned(), unit.to_owned(), BTreeSet::new(), what);
        let metric = seen.entry(key.name().to_owned()).or_insert_with(new);
        metric.2.extend(key.labels().map(|label| label.key().to_owned()));
    }
    let documented: BTreeMap<_, _> = table("| metric |")
        .into_iter()
        .map(|row| {
            let name = row[0].trim_matches('`').to_owned();
            (
                name,
                (row[1].to_owned(), row[2].to_owned(), names(row[3]), row[4].to_owned()),
            )
        })
        .collect();
    assert_eq!(seen, documented);
}

#[tokio::test(start_paused = true)]
async fn the_table_of_spans_is_what_a_run_shows() {
    let (spans, _guard) = Spans::listen();
    ask_for_the_book(AgentHost::builder("clerk").chat(librarian()).capture_content(true)).await;
    let host = AgentHost::in_memory().chat(Slow("slow")).build().unwrap();
    collect(host.agent().stream("s", "Count!")).await;
    errors_of_every_span().await;
    refused().await;
    let seen: BTreeSet<_> = spans.fields().into_iter().collect();
    let documented: BTreeSet<_> = table("| span |")
        .into_iter()
        .flat_map(|row| {
            let span = row[0].trim_matches('`');
            names(row[3]).into_iter().map(move |field| format!("{span} {field}"))
        })
        .collect();
    assert_eq!(seen, documented);
}

/// A tool call and a model call that fail, and the turn with them.
async fn errors_of_every_span() {
    let model = ScriptedModel::new()
        .calls("nothing", json!({}))
        .fails(ChatErrorKind::Auth);
    let host = host_of(&model).tool(look()).build().unwrap();
    let _ = unanswered(host.agent().ask("s", "Hi").await);
}
