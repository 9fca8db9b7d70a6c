//! Input guardrails of a program: what they let pass, what users and models read, and what is
//! kept of it.

use std::time::Duration;

use async_trait::async_trait;
use rockbot::BoxError;
use rockbot::agent::AgentHostBuilder;
use rockbot::layer::turn_fn;
use rockbot::testing::{ScriptedModel, mock_tool};
use rockbot::turn::HookLimits;
use rockbot::turn::{
    BusyPolicy, InputGuardrail, InputVerdict, TurnCall, TurnFailure, TurnOutcome, TurnPolicies, TurnRequest,
    TurnStatus, UserInput, guardrail_fn,
};
use serde_json::json;

use crate::crash::{journal_of, prefixes, read_journal};
use crate::support::{Notes, ending, host_of, settle, transcript};

/// A guardrail that refuses `bad`, replaces `1234` by `****`, and notes each message that it
/// checks.
#[derive(Debug, Clone, Default)]
struct Strict(Notes);

#[async_trait]
impl InputGuardrail for Strict {
    async fn check(&self, input: &UserInput) -> Result<InputVerdict, BoxError> {
        let text = input.text();
        self.0.add(&*text);
        Ok(match (text.contains("bad"), text.contains("1234")) {
            (true, _) => InputVerdict::refuse("No."),
            (false, true) => InputVerdict::replace(text.replace("1234", "****")),
            (false, false) => InputVerdict::Pass,
        })
    }
}

fn request(message: &str, text: &str) -> TurnRequest {
    TurnRequest::new("s", message, text)
}

async fn run(host: AgentHostBuilder, text: &str) -> TurnOutcome {
    host.build().unwrap().agent().run(request("m", text)).await.unwrap()
}

#[tokio::test]
async fn a_refused_message_reaches_no_model_and_is_not_remembered() {
    let model = ScriptedModel::new().says("one");
    let host = host_of(&model).input_guardrail(Strict::default()).build().unwrap();
    let refused = host.agent().ask("s", "something bad").await.unwrap();
    assert_eq!(
        (ending(&refused), refused.model_calls),
        ((&TurnStatus::Refused, "No."), 0)
    );
    host.agent().ask("s", "something good").await.unwrap();
    assert_eq!(transcript(&model.requests()[0])[1..], ["user: something good"]);
}

#[tokio::test]
async fn a_replaced_message_is_what_models_read_now_and_later() {
    let model = ScriptedModel::new().says("one").says("two");
    let shout = guardrail_fn(|input: UserInput| async move { Ok(InputVerdict::replace(input.text().to_uppercase())) });
    let host = host_of(&model)
        .input_guardrail(Strict::default())
        .input_guardrail(shout)
        .build()
        .unwrap();
    host.agent().ask("s", "my pin is 1234").await.unwrap();
    host.agent().ask("s", "what is it?").await.unwrap();
    assert_eq!(transcript(&model.requests()[0])[1..], ["user: MY PIN IS ****"]);
    let second = ["user: MY PIN IS ****", "assistant: one", "user: WHAT IS IT?"];
    assert_eq!(transcript(&model.requests()[1])[1..], second);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_checked_is_not_answered() {
    let limits = HookLimits::default().with_time_limit(Duration::from_secs(5));
    let check = async |guardrail: Box<dyn Fn(AgentHostBuilder) -> AgentHostBuilder>, error: &str| {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new();
        let host = host_of(&model)
            .data_dir(folder.path())
            .policies(TurnPolicies::new().with_hook_limits(limits));
        let outcome = run(guardrail(host), "hi").await;
        let text = "This message was not answered because it could not be checked. Please try again later.";
        assert_eq!(ending(&outcome), (&TurnStatus::Failed(TurnFailure::Unchecked), text));
        assert!(read_journal(folder.path()).contains(error), "{error}");
    };
    let failing = |host: AgentHostBuilder| host.input_guardrail(guardrail_fn(|_| async { Err("no database".into()) }));
    check(Box::new(failing), "no database").await;
    let panicking = |host: AgentHostBuilder| host.input_guardrail(guardrail_fn(|_| async { panic!("a bug") }));
    check(Box::new(panicking), "it panicked: a bug").await;
    let hanging = |host: AgentHostBuilder| host.input_guardrail(guardrail_fn(|_| std::future::pending()));
    check(Box::new(hanging), "it did not decide within 5s").await;
}

#[tokio::test]
async fn messages_are_checked_before_they_join_a_running_turn() {
    let (work, mut handle) = mock_tool("work");
    let model = ScriptedModel::new().calls("work", json!({})).says("Both done.");
    let guardrail = Strict::default();
    let host = host_of(&model)
        .tool(work)
        .input_guardrail(guardrail.clone())
        .build()
        .unwrap();
    let steer = |message: &str, text: &str| {
        let mut request = request(message, text);
        request.busy = BusyPolicy::Steer;
        request
    };
    let requests = [request("1", "go"), steer("2", "and 1234"), steer("3", "and bad")];
    let running = requests.map(|request| {
        let agent = host.agent().clone();
        tokio::spawn(async move { agent.run(request).await.unwrap() })
    });
    settle().await;
    handle.next_call().await.respond("ok");
    let [one, two, three] = running;
    let one = one.await.unwrap();
    let two = two.await.unwrap();
    let three = three.await.unwrap();
    assert_eq!(ending(&one), (&TurnStatus::Answered, "Both done."));
    assert_eq!(ending(&two), (&TurnStatus::Joined(one.turn), "Both done."));
    assert_eq!(ending(&three), (&TurnStatus::Refused, "No."));
    assert_eq!(
        transcript(&model.requests()[1])[1..],
        ["user: go", "assistant: ", "tool: ok", "user: and ****"]
    );
    assert_eq!(guardrail.0.all(), ["go", "and 1234", "and bad"]);
}

#[tokio::test]
async fn a_refused_message_replaces_no_running_turn() {
    let (work, mut handle) = mock_tool("work");
    let model = ScriptedModel::new().calls("work", json!({})).says("Done.");
    let host = host_of(&model)
        .tool(work)
        .input_guardrail(Strict::default())
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let running = tokio::spawn(async move { agent.run(request("1", "go")).await.unwrap() });
    settle().await;
    let mut newer = request("2", "bad");
    newer.busy = BusyPolicy::Supersede;
    assert_eq!(host.agent().run(newer).await.unwrap().status, TurnStatus::Refused);
    handle.next_call().await.respond("ok");
    assert_eq!(running.await.unwrap().text, "Done.");
}

#[tokio::test]
async fn a_turn_is_cancelled_while_a_guardrail_decides() {
    let host = host_of(&ScriptedModel::new()).input_guardrail(guardrail_fn(|_| std::future::pending()));
    let host = host.build().unwrap();
    let agent = host.agent().clone();
    let request = request("m", "hi");
    let id = request.turn_id();
    let running = tokio::spawn(async move { agent.run(request).await.unwrap() });
    settle().await;
    host.agent().cancel(&id).await.unwrap();
    assert_eq!(running.await.unwrap().status, TurnStatus::Cancelled);
}

#[tokio::test]
async fn after_a_crash_at_any_record_no_message_is_checked_twice() {
    for (text, event, checks) in [("my 1234", "started", "one"), ("bad", "input_refused", "No.")] {
        let host = |guardrail: &Strict| host_of(&ScriptedModel::new().says("one")).input_guardrail(guardrail.clone());
        let whole = run(host(&Strict::default()), text).await;
        assert_eq!(whole.text, checks);
        let journal = journal_of(host(&Strict::default()), &request("m", text)).await;
        for (prefix, folder) in prefixes(&journal) {
            let guardrail = Strict::default();
            let outcome = run(host(&guardrail).data_dir(folder.path()), text).await;
            assert_eq!(ending(&outcome), ending(&whole), "after\n{prefix}");
            let is_decided = prefix.contains(&format!(r#""event":{{"{event}""#));
            assert_eq!(guardrail.0.all().is_empty(), is_decided, "after\n{prefix}");
        }
    }
}

/// Adds a turn layer that notes each message which it gets, and appends `suffix` to it.
fn appending(host: AgentHostBuilder, seen: &Notes, suffix: &'static str) -> AgentHostBuilder {
    let seen = seen.clone();
    host.turn_layer(turn_fn(move |mut call: TurnCall, next| {
        seen.add(call.request.content.to_string());
        call.request.content.push_str(suffix);
        next.call(call)
    }))
}

#[tokio::test]
async fn a_turn_layer_gets_what_guardrails_made_of_the_message_and_is_not_checked_itself() {
    let model = ScriptedModel::new().says("one").says("two");
    let guardrail = Strict::default();
    let seen = Notes::default();
    let host = appending(host_of(&model), &seen, ", bad or not").input_guardrail(guardrail.clone());
    let host = host.build().unwrap();
    let outcome = host.agent().ask("s", "my 1234").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "one"));
    host.agent().ask("s", "again").await.unwrap();
    assert_eq!(guardrail.0.all(), ["my 1234", "again"]);
    assert_eq!(seen.all(), ["my ****", "again"]);
    let remembered = ["user: my ****, bad or not", "assistant: one", "user: again, bad or not"];
    assert_eq!(transcript(&model.requests()[1])[1..], remembered);
}

#[tokio::test]
async fn a_refused_message_passes_no_turn_layer() {
    let model = ScriptedModel::new();
    let seen = Notes::default();
    let host = appending(host_of(&model), &seen, "").input_guardrail(Strict::default());
    assert_eq!(run(host, "bad").await.status, TurnStatus::Refused);
    assert_eq!(seen.all(), Vec::<String>::new());
}

/// Before its start is recorded a turn begins anew, with guardrails and layers; after it, it has
/// the recorded message.
#[tokio::test]
async fn after_a_crash_a_message_is_neither_checked_nor_changed_twice() {
    let host = |model: &ScriptedModel, guardrail: &Strict| {
        let host = host_of(model).input_guardrail(guardrail.clone());
        appending(host, &Notes::default(), " please")
    };
    let says = || ScriptedModel::new().says("one");
    let journal = journal_of(host(&says(), &Strict::default()), &request("m", "my 1234")).await;
    for (prefix, folder) in prefixes(&journal) {
        let model = says();
        let guardrail = Strict::default();
        let outcome = run(host(&model, &guardrail).data_dir(folder.path()), "my 1234").await;
        assert_eq!(ending(&outcome), (&TurnStatus::Answered, "one"), "after\n{prefix}");
        for request in model.requests() {
            assert_eq!(transcript(&request)[1..], ["user: my **** please"], "after\n{prefix}");
        }
        let has_begun = prefix.contains(r#""event":{"started""#);
        assert_eq!(guardrail.0.all().is_empty(), has_begun, "after\n{prefix}");
    }
}
