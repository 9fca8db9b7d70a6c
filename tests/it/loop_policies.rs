//! Loop policies of a program: what they see, what their decisions do, and what the journal keeps
//! of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::BoxError;
use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::chat::ContextReason;
use rockbot::chat::{ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier};
use rockbot::testing::ScriptedModel;
use rockbot::tool::Effect;
use rockbot::turn::{HookLimits, TurnView};
use rockbot::turn::{
    LoopDecision, LoopPoint, LoopPolicy, TurnFailure, TurnOutcome, TurnPolicies, TurnRequest, TurnStatus, policy_fn,
};
use serde_json::json;

use crate::crash::{journal_of, prefixes, read_journal};
use crate::support::{Notes, calls, ending, host_of, noting_tool, settle, transcript};

/// A policy that decides the same each time after an answer in words.
fn always(decision: LoopDecision) -> impl LoopPolicy {
    policy_fn(move |point, _| {
        let decision = decision.clone();
        async move {
            Ok(match point {
                LoopPoint::AfterAnswer(answer) if answer.tool_calls.is_empty() => decision,
                _ => LoopDecision::Continue,
            })
        }
    })
}

async fn run(host: AgentHostBuilder) -> TurnOutcome {
    let host = host.build().unwrap();
    host.agent().run(TurnRequest::new("s", "m", "hi")).await.unwrap()
}

fn last_messages(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    requests
        .iter()
        .map(|request| transcript(request)[1..].to_vec())
        .collect()
}

#[tokio::test]
async fn policies_are_asked_in_order_and_the_first_that_objects_decides() {
    let model = ScriptedModel::new().says("one").says("two");
    let say = |text: &'static str, models_calls| {
        policy_fn(move |point, turn: TurnView| async move {
            Ok(match point {
                LoopPoint::BeforeRequest if turn.model_calls == models_calls => LoopDecision::add_message(text),
                _ => LoopDecision::Continue,
            })
        })
    };
    let once = |text: &'static str| {
        policy_fn(move |point, turn: TurnView| async move {
            Ok(match point {
                LoopPoint::AfterAnswer(_) if turn.model_calls == 1 => LoopDecision::ask_again(text),
                _ => LoopDecision::Continue,
            })
        })
    };
    let host = host_of(&model)
        .loop_policy(say("first", 0))
        .loop_policy(say("second", 0))
        .loop_policy(say("third", 1))
        .loop_policy(once("again"))
        .loop_policy(once("never"));
    assert_eq!(ending(&run(host).await), (&TurnStatus::Answered, "two"));
    let first = ["user: hi", "user: first", "user: second"];
    assert_eq!(
        last_messages(&model),
        [
            first.map(String::from).to_vec(),
            [&first[..], &["assistant: one", "user: third", "user: again"]]
                .concat()
                .into_iter()
                .map(String::from)
                .collect::<Vec<_>>(),
        ]
    );
    let request = &model.requests()[1];
    let added: Vec<_> = request
        .messages
        .iter()
        .filter(|message| message.why() == ContextReason::Policy)
        .collect();
    assert_eq!(added.len(), 4);
    assert!(
        added
            .iter()
            .all(|message| message.content.parts()[0].provenance().source == "host")
    );
}

#[tokio::test]
async fn a_policy_stops_calls_and_the_model_reads_why() {
    let (mail, sent) = noting_tool("mail");
    let model = ScriptedModel::new().calls("mail", json!({})).says("Drafted.");
    let no_mail = policy_fn(|point, _| async move {
        Ok(match point {
            LoopPoint::AfterAnswer(answer) if !answer.tool_calls.is_empty() => LoopDecision::ask_again("No mail."),
            _ => LoopDecision::Continue,
        })
    });
    let outcome = run(host_of(&model).tool(mail.effect(Effect::Mutating)).loop_policy(no_mail)).await;
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Drafted."));
    assert!(sent.all().is_empty());
    assert_eq!(
        last_messages(&model)[1][1..],
        [
            "assistant: ",
            "tool: not run: the host asks for another answer first.",
            "user: No mail."
        ]
    );
}

#[tokio::test]
async fn answers_are_sent_back_as_often_as_the_limit_allows() {
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let host = host_of(&model)
        .policies(TurnPolicies::new().with_hook_limits(HookLimits::default().with_max_policy_questions(2)))
        .loop_policy(always(LoopDecision::ask_again("again")));
    assert_eq!(ending(&run(host).await), (&TurnStatus::Answered, "three"));
    model.assert_complete();
}

#[tokio::test]
async fn a_policy_ends_the_turn_with_an_answer_or_a_failure() {
    let check = async |decision, status, text| {
        let model = ScriptedModel::new().says("Nonsense.");
        let outcome = run(host_of(&model).loop_policy(always(decision))).await;
        assert_eq!((outcome.status, &*outcome.text, outcome.model_calls), (status, text, 1));
    };
    let failed = TurnStatus::Failed(TurnFailure::Policy);
    check(LoopDecision::answer("Enough."), TurnStatus::Answered, "Enough.").await;
    check(LoopDecision::fail("No."), failed.clone(), "No.").await;
    let ended = "This request was ended by a policy of the agent.";
    check(LoopDecision::fail(" "), failed, ended).await;
}

#[tokio::test]
async fn a_policy_may_end_the_turn_before_any_model_is_asked() {
    let model = ScriptedModel::new();
    let closed = policy_fn(|_, _| async { Ok(LoopDecision::answer("We are closed.")) });
    let outcome = run(host_of(&model).loop_policy(closed)).await;
    assert_eq!((&*outcome.text, outcome.model_calls), ("We are closed.", 0));
}

/// A policy that notes what it sees.
#[derive(Debug)]
struct Observer(Notes);

#[async_trait]
impl LoopPolicy for Observer {
    async fn decide(&self, point: &LoopPoint, turn: &TurnView) -> Result<LoopDecision, BoxError> {
        let at = match point {
            LoopPoint::BeforeRequest => "before".to_owned(),
            LoopPoint::AfterAnswer(answer) => format!("after {}{}", answer.text, answer.tool_calls.len()),
            LoopPoint::AfterResults(results) => {
                let results: Vec<_> = results.iter().map(|result| result.content.text()).collect();
                format!("results {results:?}")
            }
            _ => "elsewhere".to_owned(),
        };
        self.0.add(format!(
            "{at}: {} messages, {} calls, {} and {} left, {}",
            turn.messages.len(),
            turn.calls.len(),
            turn.model_calls_left(),
            turn.tool_calls_left(),
            turn.cx.session(),
        ));
        Ok(LoopDecision::Continue)
    }
}

#[tokio::test]
async fn a_policy_sees_the_turn_at_each_point() {
    let notes = Notes::default();
    let model = ScriptedModel::new().calls("look", json!({})).says("Seen.");
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .loop_policy(Arc::new(Observer(notes.clone())));
    assert_eq!(run(host).await.text, "Seen.");
    insta::assert_snapshot!(notes.all().join("\n"), @r#"
    before: 2 messages, 0 calls, 50 and 200 left, s
    after 1: 3 messages, 0 calls, 49 and 200 left, s
    results ["look is done"]: 3 messages, 1 calls, 49 and 199 left, s
    before: 4 messages, 1 calls, 49 and 199 left, s
    after Seen.0: 5 messages, 1 calls, 48 and 199 left, s
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_fails_is_noted_and_the_turn_continues() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("Fine.");
    let host = host_of(&model)
        .data_dir(folder.path())
        .policies(TurnPolicies::new().with_hook_limits(HookLimits::default().with_time_limit(Duration::from_secs(5))))
        .loop_policy(policy_fn(|_, _| async { Err("no database".into()) }))
        .loop_policy(policy_fn(|_, _| async { panic!("a bug") }))
        .loop_policy(policy_fn(|_, _| std::future::pending()));
    assert_eq!(ending(&run(host).await), (&TurnStatus::Answered, "Fine."));
    let journal = read_journal(folder.path());
    for error in ["no database", "it panicked: a bug", "it did not decide within 5s"] {
        assert_eq!(
            journal.matches(error).count(),
            2,
            "before the request and after the answer: {journal}"
        );
    }
}

#[tokio::test]
async fn a_turn_is_cancelled_while_a_policy_decides() {
    let model = ScriptedModel::new();
    let host = host_of(&model)
        .loop_policy(policy_fn(|_, _| std::future::pending()))
        .build()
        .unwrap();
    let request = TurnRequest::new("s", "m", "hi");
    let agent = host.agent().clone();
    let id = request.turn_id();
    let running = tokio::spawn(async move { agent.run(request).await.unwrap() });
    settle().await;
    host.agent().cancel(&id).await.unwrap();
    assert_eq!(running.await.unwrap().status, TurnStatus::Cancelled);
}

/// A model that decides by the conversation alone, and whose answer is the request that it read.
struct Mirror;

#[async_trait]
impl ChatClient for Mirror {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let rounds = call
            .request
            .messages
            .iter()
            .filter(|message| !message.tool_calls.is_empty());
        Ok(match rounds.count() {
            0 => calls([("1", "send", "{}")]),
            1 => calls([("2", "look", "{}"), ("3", "look", "{}")]),
            _ => ChatResponse::text(read(&call.request)),
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn read(request: &ChatRequest) -> String {
    transcript(request).join(" | ")
}

/// A policy that decides by the conversation alone, too, and notes each time that it is asked.
#[derive(Debug)]
struct Strict(Notes);

#[async_trait]
impl LoopPolicy for Strict {
    async fn decide(&self, point: &LoopPoint, turn: &TurnView) -> Result<LoopDecision, BoxError> {
        let has = |text: &str| turn.messages.iter().any(|message| message.text().contains(text));
        let decision = match point {
            LoopPoint::BeforeRequest if !has("brief") => LoopDecision::add_message("Be brief."),
            LoopPoint::AfterAnswer(answer) if answer.tool_calls.len() == 1 => LoopDecision::ask_again("Do not send."),
            LoopPoint::AfterAnswer(answer) if answer.tool_calls.is_empty() && !has("again") => {
                LoopDecision::ask_again("Say it again.")
            }
            LoopPoint::AfterResults(results) => LoopDecision::add_message(format!("{} results.", results.len())),
            _ => LoopDecision::Continue,
        };
        self.0.add(format!("{decision:?}"));
        Ok(decision)
    }
}

fn strict(notes: &Notes) -> AgentHostBuilder {
    let tools = ["send", "look"].map(|name| noting_tool(name).0);
    let host = AgentHost::in_memory().chat(Mirror).loop_policy(Strict(notes.clone()));
    let host = host.instructions("You are agent.");
    tools.into_iter().fold(host, AgentHostBuilder::tool)
}

#[tokio::test]
async fn after_a_crash_at_any_record_no_policy_decides_twice_and_the_requests_are_the_same() {
    let request = TurnRequest::new("s", "m", "go");
    let all = Notes::default();
    let whole = strict(&all)
        .build()
        .unwrap()
        .agent()
        .run(request.clone())
        .await
        .unwrap();
    assert!(whole.text.contains("Be brief") && whole.text.contains("2 results.") && whole.text.contains("again"));
    let journal = journal_of(strict(&Notes::default()), &request).await;
    let mut decided = 0;
    for (prefix, folder) in prefixes(&journal) {
        decided = prefix.matches(r#""event":{"consulted""#).count();
        let notes = Notes::default();
        let host = strict(&notes).data_dir(folder.path()).build().unwrap();
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(ending(&outcome), ending(&whole), "after\n{prefix}");
        assert_eq!(notes.all(), all.all()[decided..], "after\n{prefix}");
    }
    assert_eq!(decided, all.all().len());
}

#[tokio::test]
async fn a_turn_that_began_with_policies_ends_on_a_host_without_them() {
    let request = TurnRequest::new("s", "m", "go");
    let journal = journal_of(strict(&Notes::default()), &request).await;
    for (prefix, folder) in prefixes(&journal) {
        let tools = ["send", "look"].map(|name| noting_tool(name).0);
        let host = AgentHost::in_memory().chat(Mirror).data_dir(folder.path());
        let host = tools.into_iter().fold(host, AgentHostBuilder::tool).build().unwrap();
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(outcome.status, TurnStatus::Answered, "after\n{prefix}");
    }
}
