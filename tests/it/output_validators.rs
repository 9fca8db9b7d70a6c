//! Output validators of a program: what they check, where their complaints go, and what the
//! journal keeps of them.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use rockbot::BoxError;
use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, OutputSchema};
use rockbot::layer::turn_fn;
use rockbot::testing::ScriptedModel;
use rockbot::turn::{
    Budget, BudgetLimit, FinalAnswer, LoopDecision, OutputValidator, OutputVerdict, TurnFailure, TurnOutcome,
    TurnPolicies, TurnProgress, TurnRequest, TurnStatus, policy_fn, validator_fn,
};
use rockbot::turn::{HookLimits, TurnView};
use serde_json::json;

use crate::crash::{journal_of, prefixes, read_journal};
use crate::support::{Notes, calls, ending, host_of, noting_tool, settle, transcript};

/// A validator that wants a word in each answer, and notes each one that it checks.
#[derive(Debug)]
struct Wants(&'static str, Notes);

#[async_trait]
impl OutputValidator for Wants {
    async fn validate(&self, answer: &FinalAnswer, _: &TurnView) -> Result<OutputVerdict, BoxError> {
        self.1.add(&*answer.text);
        Ok(if answer.text.contains(self.0) {
            OutputVerdict::Accept
        } else {
            OutputVerdict::complain(format!("Say {}.", self.0))
        })
    }
}

fn wants(word: &'static str) -> Wants {
    Wants(word, Notes::default())
}

fn failed(complaint: &str) -> TurnStatus {
    let complaint = complaint.to_owned();
    TurnStatus::Failed(TurnFailure::Rejected { complaint })
}

async fn run(host: AgentHostBuilder) -> TurnOutcome {
    run_request(host, TurnRequest::new("s", "m", "hi")).await
}

async fn run_request(host: AgentHostBuilder, request: TurnRequest) -> TurnOutcome {
    host.build().unwrap().agent().run(request).await.unwrap()
}

#[tokio::test]
async fn a_complaint_goes_back_to_the_model_which_may_call_tools() {
    let model = ScriptedModel::new()
        .says("one")
        .calls("look", json!({}))
        .says("two, please");
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .output_validator(wants("please"));
    let outcome = run(host).await;
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "two, please"));
    assert_eq!(
        transcript(&model.requests()[1])[1..],
        [
            "user: hi",
            "assistant: one",
            "user: Your answer was not accepted: Say please. Give the complete answer again, corrected. The user has not \
             seen the last one."
        ]
    );
}

#[tokio::test]
async fn a_turn_fails_with_the_complaint_when_the_model_does_not_obey() {
    let check = async |limits: HookLimits, calls| {
        let model = (0..4).fold(ScriptedModel::new(), |model, _| model.says("no"));
        let host = host_of(&model).policies(TurnPolicies::new().with_hook_limits(limits));
        let outcome = run(host.output_validator(wants("please"))).await;
        let text = "The model gave no answer that could be accepted: Say please.";
        assert_eq!(
            (ending(&outcome), outcome.model_calls),
            ((&failed("Say please."), text), calls)
        );
    };
    check(HookLimits::default(), 3).await;
    check(HookLimits::default().with_max_corrections(0), 1).await;
}

#[tokio::test]
async fn the_first_validator_that_complains_is_heard_and_a_failed_turn_is_not_remembered() {
    let second = Notes::default();
    let model = ScriptedModel::new().says("no").says("please, now");
    let host = host_of(&model)
        .output_validator(wants("please"))
        .output_validator(Wants("now", second.clone()));
    assert_eq!(run(host).await.text, "please, now");
    assert_eq!(second.all(), ["please, now"]);
}

#[tokio::test]
async fn an_answer_in_a_schema_is_checked_as_json() {
    let model = ScriptedModel::new()
        .says(r#"{"celsius": 400}"#)
        .says("Sorry: {\"celsius\": 4}");
    let plausible = validator_fn(|answer: FinalAnswer, _| async move {
        let json = answer.json.ok_or("the answer is JSON")?;
        Ok(match json["celsius"].as_i64() {
            Some(-80..80) => OutputVerdict::Accept,
            _ => OutputVerdict::complain("That is not a temperature of air."),
        })
    });
    let schema = json!({"type": "object", "properties": {"celsius": {"type": "integer"}}, "required": ["celsius"]});
    let mut request = TurnRequest::new("s", "m", "How cold is it?");
    request.output = Some(OutputSchema::new("air", schema));
    let outcome = run_request(host_of(&model).output_validator(plausible), request).await;
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, r#"{"celsius": 4}"#));
}

#[tokio::test]
async fn a_last_answer_under_a_limit_is_checked_and_words_of_the_host_are_not() {
    let budget = Budget::default().with_max_model_calls(1);
    let check = async |model: ScriptedModel, status, text| {
        let host = host_of(&model).tool(noting_tool("look").0).budget(budget);
        assert_eq!(
            ending(&run(host.output_validator(wants("please"))).await),
            (&status, text)
        );
    };
    let looks = || ScriptedModel::new().calls("look", json!({}));
    let limit = TurnStatus::Partial(BudgetLimit::ModelCalls);
    check(
        looks().says("as far as I got, please"),
        limit.clone(),
        "as far as I got, please",
    )
    .await;
    let rejected = "The model gave no answer that could be accepted: Say please. Done before that: look.";
    check(looks().says("as far as I got"), failed("Say please."), rejected).await;
    let text = "I had to stop because the number of model calls for this request was used up. Done before that: look.";
    check(looks().says(""), limit, text).await;
    let closed = policy_fn(|_, _| async { Ok(LoopDecision::answer("We are closed.")) });
    let host = host_of(&ScriptedModel::new())
        .loop_policy(closed)
        .output_validator(wants("please"));
    assert_eq!(run(host).await.text, "We are closed.");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_checked_is_withheld() {
    let limits = HookLimits::default().with_time_limit(Duration::from_secs(5));
    let check = async |validator: fn() -> Result<OutputVerdict, BoxError>, error: &'static str| {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new().says("secret");
        let host = host_of(&model).data_dir(folder.path());
        let host = host
            .policies(TurnPolicies::new().with_hook_limits(limits))
            .output_validator(validator_fn(move |_, _| async move {
                if error.contains("decide") {
                    std::future::pending::<()>().await;
                }
                validator()
            }));
        let outcome = run(host).await;
        let text = "The answer is withheld because it could not be checked. Please try again later.";
        assert_eq!(ending(&outcome), (&TurnStatus::Failed(TurnFailure::Unchecked), text));
        assert!(read_journal(folder.path()).contains(error), "{error}");
    };
    check(|| Err("no database".into()), "no database").await;
    check(|| panic!("a bug"), "it panicked: a bug").await;
    check(|| Ok(OutputVerdict::Accept), "it did not decide within 5s").await;
}

#[tokio::test]
async fn the_reader_of_a_stream_is_told_to_forget_an_answer_that_was_not_accepted() {
    let model = ScriptedModel::new().says("one").says("please");
    let host = host_of(&model).output_validator(wants("please")).build().unwrap();
    let seen = host.agent().stream("s", "hi").map(|report| match report.unwrap() {
        TurnProgress::Delta(text) => text,
        TurnProgress::Retract => "<retract>".to_owned(),
        TurnProgress::Final(outcome) => format!("<{}>", outcome.text),
        other => format!("{other:?}"),
    });
    assert_eq!(seen.collect::<String>().await, "one<retract>please<please>");
}

#[tokio::test]
async fn one_message_can_have_a_validator_of_its_own() {
    let model = ScriptedModel::new().says("one").says("one, please").says("two");
    let own = turn_fn(|call, next| async move {
        match &*call.request.content.text() {
            "politely" => next.call(call.with_output_validator(wants("please"))).await,
            _ => next.call(call).await,
        }
    });
    let host = host_of(&model).turn_layer(own).build().unwrap();
    assert_eq!(host.agent().ask("s", "politely").await.unwrap().text, "one, please");
    assert_eq!(host.agent().ask("s", "anyhow").await.unwrap().text, "two");
}

/// A model that decides by the conversation alone: a call, then an answer that lacks a word until
/// it is asked for it.
struct Obedient;

#[async_trait]
impl ChatClient for Obedient {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let read = transcript(&call.request).join(" | ");
        Ok(match (read.contains("tool:"), read.contains("Say please.")) {
            (false, _) => calls([("1", "look", "{}")]),
            (true, false) => ChatResponse::text("one"),
            (true, true) => ChatResponse::text(format!("please: {read}")),
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn obedient(notes: &Notes) -> AgentHostBuilder {
    let host = AgentHost::in_memory().chat(Obedient).tool(noting_tool("look").0);
    host.output_validator(Wants("please", notes.clone()))
}

#[tokio::test]
async fn after_a_crash_at_any_record_no_answer_is_checked_twice_and_the_requests_are_the_same() {
    let request = TurnRequest::new("s", "m", "go");
    let all = Notes::default();
    let whole = run_request(obedient(&all), request.clone()).await;
    assert_eq!((&whole.status, all.all().len()), (&TurnStatus::Answered, 2));
    let journal = journal_of(obedient(&Notes::default()), &request).await;
    for (prefix, folder) in prefixes(&journal) {
        let decided = prefix.matches(r#""event":{"validated""#).count();
        let notes = Notes::default();
        let outcome = run_request(obedient(&notes).data_dir(folder.path()), request.clone()).await;
        assert_eq!(ending(&outcome), ending(&whole), "after\n{prefix}");
        assert_eq!(notes.all(), all.all()[decided..], "after\n{prefix}");
    }
}

/// Starts a turn with a validator of its request, and ends its host before the model answers.
async fn interrupted(folder: &std::path::Path) {
    let model = ScriptedModel::new().hangs();
    let host = host_of(&model).data_dir(folder).build().unwrap();
    let request = host.agent().ask("s", "hi").message_id("m").validate(wants("please"));
    let stream = request.stream();
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, stream));
}

#[tokio::test]
async fn a_resumed_turn_claims_no_check_that_its_process_took_with_it() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path()).await;
    let host = host_of(&ScriptedModel::new().says("one")).data_dir(folder.path());
    let host = host.build().unwrap();
    host.start().await.unwrap();
    let turn = TurnRequest::new("s", "m", "hi").turn_id();
    let outcome = host.agent().outcome(&turn).await.unwrap();
    let text = "The answer is withheld because it could not be checked. Please try again later.";
    assert_eq!(ending(&outcome), (&TurnStatus::Failed(TurnFailure::Unchecked), text));
    let journal = read_journal(folder.path());
    assert!(journal.contains("output validators of the request lost"), "{journal}");
}

#[tokio::test]
async fn a_message_that_comes_again_after_a_restart_brings_its_validators() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path()).await;
    let model = ScriptedModel::new().says("one").says("one, please");
    let host = host_of(&model).data_dir(folder.path()).build().unwrap();
    let request = host.agent().ask("s", "hi").message_id("m").validate(wants("please"));
    assert_eq!(request.await.unwrap().text, "one, please");
}

#[tokio::test]
async fn a_turn_whose_host_has_no_validators_any_more_is_recorded_as_unchecked() {
    let request = TurnRequest::new("s", "m", "hi");
    let checked = host_of(&ScriptedModel::new().says("please")).output_validator(wants("please"));
    let journal = journal_of(checked, &request).await;
    let (_, folder) = prefixes(&journal).nth(1).unwrap();
    let host = host_of(&ScriptedModel::new().says("one")).data_dir(folder.path());
    assert_eq!(run_request(host, request).await.text, "one");
    let journal = read_journal(folder.path());
    assert!(journal.contains(r#""verdict":"unasked""#), "{journal}");
}
