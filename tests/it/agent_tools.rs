//! Agents as tools of other agents.

use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, MicroUsd, ModelInfo, ModelTier, ToolCall};
use rockbot_core::context::Trust;
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{Budget, BudgetLimit, TurnProgress, TurnRequest, TurnStatus};
use rockbot_host::turn::TraceEvent;
use rockbot_host::{AgentHost, AgentTool};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Anything, Notes, collect, ending, host_of, noting_tool, results, settle, transcript};

fn helper(host: &AgentHost) -> AgentTool {
    host.agent().as_tool("helper", "Helps.")
}

/// A model that gives `tasks` to the helper, one in each answer, and then says "done".
fn delegating(tasks: &[&str]) -> ScriptedModel {
    let model = ScriptedModel::new();
    let model = tasks
        .iter()
        .fold(model, |model, task| model.calls("helper", json!({ "task": task })));
    model.says("done")
}

/// A tool that notes the context of its calls.
fn context_tool() -> (Tool, Notes) {
    let notes = Notes::default();
    let taken = notes.clone();
    let noting = tool("note", move |_: Anything, cx: CallContext| {
        let depth = cx.depth();
        let trust = cx.content_trust();
        let parent = cx.parent().map_or("none", |parent| parent.as_str()).to_owned();
        taken.add(format!("{} {trust:?} depth {depth} parent {parent}", cx.principal()));
        async move { "noted" }
    });
    (noting.description("Notes.").pure(), notes)
}

#[tokio::test]
async fn a_call_is_a_turn_of_the_other_agent() {
    let below = ScriptedModel::new().calls("note", json!({})).says("shelf 7");
    let (note, notes) = context_tool();
    let sub = host_of(&below).instructions("Find books.").tool(note).build().unwrap();
    let model = delegating(&["Where is Emma?"]);
    let host = host_of(&model).tool(helper(&sub)).build().unwrap();

    let outcome = host.agent().for_principal("ann").ask("s", "Emma?").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "done"));
    let asked = model.requests();
    assert_eq!(results(&asked[1]), ["call_1: shelf 7"]);
    assert_eq!(
        transcript(&below.requests()[0]),
        ["system: Find books.", "user: Where is Emma?"]
    );
    assert_eq!(notes.all(), [format!("ann User depth 1 parent {}", outcome.turn)]);
    assert_eq!(
        sub.agent().for_principal("ann").sessions().await.unwrap(),
        [""; 0],
        "cleared after the call"
    );
    below.assert_complete();
}

/// A text to translate.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Translate {
    /// The text.
    text: String,
    language: String,
}

#[tokio::test]
async fn a_call_has_arguments_an_answer_a_tier_and_instructions_of_the_programs_own() {
    let below = ScriptedModel::new().says(r#"{"value": ["Hallo", "Guten Tag"]}"#);
    let sub = host_of(&below).instructions("Translate.").build().unwrap();
    let translate = helper(&sub)
        .with_tier(ModelTier::High)
        .with_instructions("Keep names.")
        .with_input(|Translate { text, language }| format!("Into {language}: {text}"))
        .with_output::<Vec<String>>();
    let model = ScriptedModel::new()
        .calls("helper", json!({"text": "Hello"}))
        .calls("helper", json!({"text": "Hello", "language": "German"}))
        .says("done");
    let host = host_of(&model).tool(translate).build().unwrap();
    host.agent().ask("s", "Hello in German?").await.unwrap();

    let asked = model.requests();
    let definition: Value = serde_json::from_slice(asked[0].tools.json()).unwrap();
    let helper = &definition[0]["function"];
    assert_eq!(
        (&helper["name"], &helper["description"]),
        (&json!("helper"), &json!("Helps."))
    );
    assert_eq!(helper["parameters"]["required"], json!(["text", "language"]));
    assert!(results(&asked[1])[0].contains("language"), "{:?}", results(&asked[1]));
    assert_eq!(results(&asked[2])[1], r#"call_2: ["Hallo", "Guten Tag"]"#);

    let requests = below.requests();
    let [request] = &*requests else { panic!("{requests:?}") };
    assert_eq!(request.tier, Some(ModelTier::High));
    assert!(request.output.is_some());
    let told = transcript(request);
    assert_eq!(told[..2], ["system: Translate.", "system: Keep names."]);
    assert_eq!(told.last().unwrap(), "user: Into German: Hello");
}

#[tokio::test]
async fn the_other_agent_is_trusted_no_more_than_what_the_caller_has_read() {
    let below = ScriptedModel::new().calls("note", json!({})).says("ok");
    let (note, notes) = context_tool();
    let sub = host_of(&below).tool(note).build().unwrap();
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .calls("helper", json!({"task": "do it"}))
        .says("done");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).tool(helper(&sub)).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let noted = notes.all();
    assert!(
        noted[0].starts_with(&format!("local {:?} depth 1", Trust::Untrusted)),
        "{noted:?}"
    );
}

#[tokio::test]
async fn what_a_call_spends_is_a_part_of_the_callers_budget() {
    let below = ["found", "half of it"]
        .iter()
        .fold(ScriptedModel::new(), |model, said| {
            let model = model.calls("look", json!({})).with_cost(MicroUsd(5));
            model.says(*said).with_cost(MicroUsd(5))
        });
    let (look, _) = noting_tool("look");
    let sub = host_of(&below).tool(look).build().unwrap();
    let model = delegating(&["one", "two"]);
    let host = host_of(&model).tool(helper(&sub)).build().unwrap();
    // Two of the caller, two of the first call: the second call has one, and the caller none.
    let budget = Budget::default().with_max_model_calls(5);
    let outcome = host.agent().ask("s", "go").budget(budget).await.unwrap();
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::ModelCalls), "done")
    );
    assert_eq!(
        results(&model.requests()[2]),
        [
            "call_1: found",
            "call_2: [stopped early: the number of model calls for this task was used up]\nhalf of it"
        ]
    );
    assert_eq!((outcome.model_calls, outcome.spent().cost), (7, MicroUsd(20)));
    assert_eq!(outcome.tiers[&ModelTier::Balanced].calls, 7);
    below.assert_complete();
}

#[tokio::test]
async fn a_budget_of_its_own_is_a_further_limit() {
    let below = ScriptedModel::new().calls("look", json!({})).says("half of it");
    let (look, _) = noting_tool("look");
    let sub = host_of(&below).tool(look).build().unwrap();
    let model = delegating(&["one"]);
    let small = helper(&sub).with_budget(Budget::default().with_max_model_calls(1));
    let host = host_of(&model).tool(small).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!((outcome.status, outcome.model_calls), (TurnStatus::Answered, 4));
}

#[tokio::test]
async fn an_agent_that_calls_itself_stops_at_its_depth() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "one deeper"}))
        .calls("helper", json!({"task": "two deeper"}))
        .says("I can't")
        .says("done");
    let host = host_of(&model).build().unwrap();
    host.add_tool(helper(&host).with_max_depth(1)).unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "done"));
    let asked = model.requests();
    assert_eq!(
        results(&asked[2]),
        [
            "call_2: not run: agents may call each other 1 deep, and this one is there. \
          Do the task yourself, with other tools."
        ]
    );
    assert_eq!(results(&asked[3]), ["call_1: I can't"]);
}

#[tokio::test]
async fn an_approval_below_is_an_error_that_names_the_tool() {
    let below = ScriptedModel::new().calls("pay", json!({}));
    let (pay, paid) = noting_tool("pay");
    let sub = host_of(&below).tool(pay.needs_approval()).build().unwrap();
    let model = delegating(&["pay"]);
    let host = host_of(&model).tool(helper(&sub)).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    assert_eq!(
        results(&model.requests()[1]),
        [
            "call_1: stopped: a person must approve `pay`, which is not possible within this call. \
          Ask for less, or do that step with a tool of your own."
        ]
    );
    settle().await;
    assert_eq!((sub.agent().approvals().len(), paid.all().len()), (0, 0));
}

/// A host whose agent gives tasks to itself, down to a payment that needs an approval.
fn paying(model: &ScriptedModel) -> (AgentHost, Notes) {
    let (pay, paid) = noting_tool("pay");
    let host = host_of(model).tool(pay.needs_approval()).build().unwrap();
    host.add_tool(helper(&host)).unwrap();
    (host, paid)
}

#[tokio::test(start_paused = true)]
async fn an_approval_below_a_call_is_asked_of_the_user_at_the_top() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Have it paid."}))
        .calls("helper", json!({"task": "Pay."}))
        .calls_all([("pay", json!({"n": 1})), ("pay", json!({"n": 2}))])
        .says("paid")
        .says("it is paid")
        .says("done");
    let (host, paid) = paying(&model);
    let agent = host.agent();
    let mut stream = agent.stream("s", "go");
    let mut asked = Vec::new();
    let ended = loop {
        match stream.next().await.unwrap().unwrap() {
            TurnProgress::ApprovalNeeded(request) => {
                asked.push(format!("{:?} {} {}", request.asked_by, request.tool, request.arguments));
                // A list tells the same as the question.
                assert!(agent.approvals().contains(&request), "{:?}", agent.approvals());
                agent.decide(request.approve()).await.unwrap();
            }
            TurnProgress::Final(outcome) => break outcome,
            _ => {}
        }
    };
    let helpers = r#"["helper", "helper"]"#;
    assert_eq!(
        asked,
        [
            format!("{helpers} pay {{\"n\":1}}"),
            format!("{helpers} pay {{\"n\":2}}")
        ]
    );
    assert_eq!(ending(&ended), (&TurnStatus::Answered, "done"));
    assert_eq!(paid.all(), ["pay 1", "pay 2"]);
    assert!(agent.is_idle() && agent.approvals().is_empty());
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn an_approval_below_a_turn_that_no_caller_waits_for_is_announced() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Pay."}))
        .calls("pay", json!({"n": 1}))
        .says("not paid")
        .says("done");
    let (host, paid) = paying(&model);
    let agent = host.agent();
    let turn = agent.ask("s", "go").start().await.unwrap();
    let asked = agent.announcements().next().await.unwrap();
    assert_eq!(asked.session.as_str(), "s");
    assert_eq!(asked.content, "May I call pay for `helper` with {\"n\":1}?");
    agent.decide(asked.approval.unwrap().deny("too much")).await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().text, "done");
    assert!(paid.all().is_empty());
    model.assert_complete();
}

#[tokio::test]
async fn the_trace_of_the_caller_leads_to_the_turn_below() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Pay."}))
        .says("no")
        .says("done");
    let folder = tempfile::tempdir().unwrap();
    let host = host_of(&model).data_dir(folder.path()).build().unwrap();
    host.add_tool(helper(&host)).unwrap();
    let above = host.agent().ask("s", "go").await.unwrap().turn;
    let trace = host.trace(&above).await.unwrap().unwrap();
    let below = trace.entries().iter().find_map(|entry| match &entry.event {
        TraceEvent::Delegated { turn } => turn.clone(),
        _ => None,
    });
    let below = host.agent().outcome(&below.unwrap()).await.unwrap();
    assert_eq!(ending(&below), (&TurnStatus::Answered, "no"));
}

#[tokio::test]
async fn an_approval_below_is_decided_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |model: &ScriptedModel| {
        let (pay, paid) = noting_tool("pay");
        let host = host_of(model).tool(pay.needs_approval()).data_dir(folder.path());
        let host = host.build().unwrap();
        host.add_tool(helper(&host)).unwrap();
        host.start().await.unwrap();
        (host, paid)
    };
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Pay."}))
        .calls("pay", json!({"n": 1}));
    let (host, _) = open(&model).await;
    let turn = host.agent().ask("s", "go").start().await.unwrap().id().clone();
    while host.agent().approvals().is_empty() {
        tokio::task::yield_now().await;
    }
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    let model = ScriptedModel::new().says("paid").says("done");
    let (host, paid) = open(&model).await;
    let approval = &host.agent().approvals()[0];
    host.agent().decide(approval.approve()).await.unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "done");
    assert_eq!(paid.all(), ["pay 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_ends_takes_the_approval_below_with_it() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Pay."}))
        .calls("pay", json!({}));
    let (host, paid) = paying(&model);
    let agent = host.agent();
    let turn = agent.ask("s", "go").start().await.unwrap();
    let approval = agent.announcements().next().await.unwrap().approval.unwrap();
    turn.cancel().await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().status, TurnStatus::Cancelled);
    settle().await;
    assert!(agent.is_idle() && agent.approvals().is_empty());
    assert!(agent.decide(approval.approve()).await.is_err());
    assert!(paid.all().is_empty());
}

#[tokio::test]
async fn cancelling_the_caller_cancels_the_turn_below() {
    for is_pure in [false, true] {
        let below = ScriptedModel::new().hangs();
        let sub = host_of(&below).build().unwrap();
        let model = delegating(&["wait"]);
        let tool = helper(&sub).into_tool();
        let tool = if is_pure { tool.pure() } else { tool };
        let host = host_of(&model).tool(tool).build().unwrap();
        let stream = host.agent().stream("s", "go").cancel_on_drop();
        settle().await;
        assert_eq!((below.requests().len(), sub.agent().is_idle()), (1, false));
        drop(stream);
        settle().await;
        assert!(sub.agent().is_idle() && host.agent().is_idle());
    }
}

#[tokio::test]
async fn steps_below_are_progress_of_the_call() {
    let below = ScriptedModel::new().calls("look", json!({})).says("ok");
    let (look, _) = noting_tool("look");
    let sub = host_of(&below).tool(look).build().unwrap();
    let host = host_of(&delegating(&["one"])).tool(helper(&sub)).build().unwrap();
    let reports = collect(host.agent().stream("s", "go")).await;
    let told = reports.iter().filter_map(|report| match report {
        TurnProgress::ToolProgress { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["look"]);
}

#[tokio::test]
async fn calls_of_a_pure_agent_run_side_by_side_and_share_the_budget() {
    let below = ScriptedModel::new().says("a").says("b");
    let sub = host_of(&below).build().unwrap();
    let model = ScriptedModel::new()
        .calls_all([("helper", json!({"task": "one"})), ("helper", json!({"task": "two"}))])
        .says("done");
    let host = host_of(&model).tool(helper(&sub).into_tool().pure()).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!(outcome.model_calls, 4);
    below.assert_complete();
}

/// An agent whose questions say how often it looks before it answers.
#[derive(Debug)]
struct LooksOften;

#[async_trait]
impl ChatClient for LooksOften {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call
            .request
            .messages
            .iter()
            .find_map(|message| message.text().parse().ok());
        let looks: usize = asked.expect("the task is a number");
        let done = results(&call.request).len();
        // Those that look often go on when the others have ended.
        sleep(Duration::from_secs(if looks > 1 { 10 } else { 1 })).await;
        Ok(if done < looks && !call.request.tools.is_empty() {
            ChatResponse::calls([ToolCall::new(format!("call_{done}"), "look", "{}")])
        } else {
            ChatResponse::text(format!("looked {done} times"))
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Of ten agents nine need one call; the tenth needs more than a tenth of the budget, and gets
/// what the others left.
#[tokio::test(start_paused = true)]
async fn what_one_call_leaves_of_the_budget_another_one_uses() {
    let sub = host_of(&ScriptedModel::new())
        .chat(LooksOften)
        .tool(noting_tool("look").0);
    let sub = sub.build().unwrap();
    let tasks = (0..10).map(|n| ("helper", json!({"task": if n == 3 { "12" } else { "0" }})));
    let model = ScriptedModel::new().calls_all(tasks).says("done");
    let host = host_of(&model).tool(helper(&sub).into_tool().pure()).build().unwrap();
    let budget = Budget::default().with_max_model_calls(31).with_max_tool_calls(60);
    let outcome = host.agent().ask("s", "go").budget(budget).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "done"));
    assert_eq!(results(&model.requests()[1])[3], "call_4: looked 12 times");
    assert_eq!(outcome.model_calls, 2 + 9 + 13);

    let model = ScriptedModel::new()
        .calls_all((0..10).map(|_| ("helper", json!({"task": "12"}))))
        .says("done");
    let host = host_of(&model).tool(helper(&sub).into_tool().pure()).build().unwrap();
    let outcome = host.agent().ask("s", "go").budget(budget).await.unwrap();
    // Each has three calls and its last answer, which may exceed the limit.
    assert_eq!(outcome.model_calls, 1 + 10 * 4 + 1);
}

/// The cost of a turn that ends early is known, and no other call that can be given up is waited
/// for.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_waits_for_the_turns_below_alone() {
    let below = ScriptedModel::new().calls("look", json!({})).hangs();
    let sub = host_of(&below).tool(noting_tool("look").0).build().unwrap();
    let (slow, mut calls) = mock_tool("slow");
    let model = ScriptedModel::new()
        .calls_all([("helper", json!({"task": "one"})), ("slow", json!({}))])
        .says("late");
    let host = host_of(&model).tool(helper(&sub).into_tool().pure()).tool(slow.pure());
    let host = host.build().unwrap();
    let turn = host.agent().ask("s", "go").start().await.unwrap();
    let never_answered = calls.next_call().await;
    settle().await;
    let began = Instant::now();
    host.agent().cancel(turn.id()).await.unwrap();
    let outcome = host.agent().outcome(turn.id()).await.unwrap();
    assert_eq!((outcome.status, outcome.model_calls), (TurnStatus::Cancelled, 3));
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(never_answered);
}

#[tokio::test]
async fn a_host_that_is_gone_is_an_error_of_the_call() {
    let sub = host_of(&ScriptedModel::new()).build().unwrap();
    let tool = helper(&sub);
    drop(sub);
    let model = delegating(&["one"]);
    let host = host_of(&model).tool(tool).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: the agent's host is gone: do the task without it"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_restart_interrupted_gets_its_result_from_the_resumed_turn() {
    let folder = tempfile::tempdir().unwrap();
    let start = async |model: &ScriptedModel| {
        let host = host_of(model).data_dir(folder.path()).build().unwrap();
        let (slow, handle) = mock_tool("slow");
        host.add_tool(slow.pure()).unwrap();
        host.add_tool(helper(&host)).unwrap();
        host.start().await.unwrap();
        (host, handle)
    };
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "below"}))
        .calls("slow", json!({}))
        .hangs();
    let (host, mut slow) = start(&model).await;
    let stream = host.agent().ask("s", "go").message_id("m1").stream();
    let call = slow.next_call().await;
    let stopping = host.shutdown(Duration::from_secs(5));
    let respond = async {
        settle().await;
        call.respond("late");
    };
    tokio::join!(stopping, respond);
    drop((host, stream));

    let model = ScriptedModel::new().says("from below").says("done");
    let (host, _slow) = start(&model).await;
    let turn = TurnRequest::new("s", "m1", "go").turn_id();
    let outcome = host.agent().outcome(&turn).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "done"));
    assert_eq!(results(&model.requests()[1]), ["call_1: from below"]);
}
