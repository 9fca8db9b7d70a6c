//! Wisps: fixed lists of steps that the turn engine runs, journals and resumes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::prelude::FromConfig as _;
use rockbot::tools::wisps::Wisps;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::config::Config;
use rockbot_core::content::Provenance;
use rockbot_core::context::Origin;
use rockbot_core::store::{
    FeedbackSignal, InMemoryFeedbackStore, InMemorySkillStore, InMemorySkillUsageStore, Skill, SkillStore as _,
    StorePath, TimelineStore as _, WorkingMemory,
};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{Tool, ToolError, tool};
use rockbot_core::turn::{Budget, TurnProgress, TurnQuery, TurnRequest, TurnRunner};
use rockbot_core::{Principal, Timestamp};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use rockbot_memory::Memory;
use serde_json::{Value, json};

use crate::support::{Anything, Notes, noting_tool, results, settle, unguarded};

/// Models by the tier that is asked: that of the caller, and the low one of the steps.
#[derive(Debug, Clone)]
struct Models {
    above: ScriptedModel,
    steps: ScriptedModel,
}

#[async_trait]
impl ChatClient for Models {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let is_step = call.request.tier == Some(ModelTier::Low);
        if is_step { &self.steps } else { &self.above }.chat(call).await
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn host(above: &ScriptedModel, steps: &ScriptedModel) -> AgentHostBuilder {
    let above = above.clone();
    let steps = steps.clone();
    AgentHost::in_memory()
        .policies(unguarded())
        .chat(Models { above, steps })
        .add(Wisps::new())
}

/// A model that spawns these wisps and ends with "done".
fn spawner(definitions: Value) -> ScriptedModel {
    let model = ScriptedModel::new().calls("activate_tools", json!({"group": "wisps"}));
    let mut arguments = json!({});
    arguments["definitions"] = definitions;
    model.calls("spawn_wisps", arguments).says("done")
}

fn wisp(description: &str, steps: Value) -> Value {
    let mut wisp = json!({"description": description});
    wisp["steps"] = steps;
    wisp
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// The answer to `spawn_wisps` that the model of the caller read.
fn told(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let last = results(requests.last().unwrap()).pop().unwrap();
    last.strip_prefix("call_2: ").unwrap().to_owned()
}

/// A tool that fails with these words.
fn failing_tool(name: &'static str, words: &'static str) -> Tool {
    tool(name, move |_: Anything| async move {
        Err::<String, _>(ToolError::execution_failed(words))
    })
}

/// A mutating tool that notes its calls.
fn paying_tool() -> (Tool, Notes) {
    let notes = Notes::default();
    let noting = notes.clone();
    let pay = tool("pay", move |Anything { n }: Anything| {
        noting.add(format!("paid {n}"));
        async move { format!("paid {n}") }
    });
    (pay, notes)
}

#[tokio::test(start_paused = true)]
async fn a_batch_runs_its_steps_and_tells_partial_failure_first() {
    let pay = json!([
        {"id": "look", "mode": "Direct", "tool": "look", "params": {"n": 3}},
        {"id": "pick", "mode": "Llm", "prompt": "Which?", "input_from": "look"},
        {"id": "pay", "mode": "Direct", "tool": "pay", "params": {"n": "{{steps.pick.result.n}}"}},
    ]);
    let fail = json!([{"id": "a", "tool": "look"}, {"id": "b", "tool": "bad"}, {"id": "c", "tool": "pay"}]);
    let above = spawner(json!([wisp("Pay.", pay), wisp("Fail.", fail).to_string()]));
    let steps = ScriptedModel::new().says(r#"{"n": 7}"#);
    let (pay, paid) = paying_tool();
    let tools = [noting_tool("look").0, pay, failing_tool("bad", "the bank timed out")];
    let host = tools.into_iter().fold(host(&above, &steps), AgentHostBuilder::tool);
    let host = started(host.add(Memory::default())).await;
    assert_eq!(host.agent().ask("main", "Begin.").await.unwrap().text, "done");
    assert_eq!(paid.all(), ["paid 7"]);
    let text = told(&above);
    let begin = "PARTIAL FAILURE: 1 of 2 wisps failed; do not run the others again.\n\n## ";
    assert!(text.starts_with(begin), "{text}");
    let failed = " [failed: External] Fail. (1 of 3 steps)\nStep `b` failed (External): the bank timed out\n\
         Steps completed before: `a`\n\n## ";
    let (before, after) = text.split_once(failed).expect(&text);
    assert!(after.contains(" [ok] Pay. (3 of 3 steps)\npaid 7\n"), "{text}");

    let id = before.rsplit("## ").next().unwrap();
    let memory = host.parts().get::<dyn WorkingMemory>().unwrap();
    let entries = memory.list(&Principal::default(), None).await.unwrap();
    let value = |end: &str| {
        let entry = entries
            .iter()
            .find(|entry| entry.key.as_str().ends_with(end))
            .expect(end);
        entry.value.clone()
    };
    assert_eq!(value("/pay/output"), "paid 7");
    assert_eq!(value("/pick/output"), r#"{"n": 7}"#);
    assert!(
        entries
            .iter()
            .any(|entry| entry.key.as_str() == format!("wisp/{id}/a/output"))
    );
    let summary: Value = serde_json::from_str(&value("/summary")).unwrap();
    assert_eq!((&summary["total"], &summary["failed"]), (&json!(2), &json!(1)));
    assert_eq!(summary["wisps"][1]["error"]["category"], "External");
    for model in [above, steps] {
        model.assert_complete();
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_of_a_step_calls_the_tools_that_the_wisp_names() {
    let mut definition = wisp("Look.", json!([{"id": "a", "mode": "Llm", "prompt": "Look twice."}]));
    definition["tools"] = json!(["look"]);
    let above = spawner(definition);
    let steps = ScriptedModel::new()
        .calls_all([("look", json!({"n": 1})), ("look", json!({"n": 2}))])
        .calls(
            "keep_wisp_step",
            json!({"kept": {"output": {"step": 0, "text": "a lie"}}}),
        )
        .says("seen both");
    let (look, looked) = noting_tool("look");
    let host = started(host(&above, &steps).tool(look).tool(noting_tool("read").0)).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    assert_eq!(looked.all().len(), 2);
    let shown: Vec<_> = steps.requests()[0].tools.names().map(ToString::to_string).collect();
    assert_eq!(shown, ["look"]);
    let text = told(&above);
    assert!(text.contains("[failed: Judgment] Look. (0 of 1 steps)"), "{text}");
    assert!(text.contains("the model gave no answer"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn arguments_are_repaired_before_anything_runs() {
    let steps =
        json!([{"id": "a", "tool": "pay", "params": {"n": 1}}, {"id": "b", "tool": "pay", "params": {"n": "two"}}]);
    for (answer, expected) in [(r#"{"n": 2}"#, vec!["paid 1", "paid 2"]), ("NO_CORRECTION", vec![])] {
        let above = spawner(wisp("Pay.", steps.clone()));
        let (pay, paid) = paying_tool();
        let host = started(host(&above, &ScriptedModel::new().says(answer)).tool(pay)).await;
        host.agent().ask("main", "Begin.").await.unwrap();
        assert_eq!(paid.all(), expected, "{}", told(&above));
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_known_late_are_repaired_by_the_answer_of_the_tool() {
    let steps = json!([
        {"id": "a", "tool": "look"},
        {"id": "b", "tool": "pay", "params": {"n": "{{steps.a.result}}"}},
    ]);
    let above = spawner(wisp("Pay.", steps));
    let (pay, paid) = paying_tool();
    let asked = ScriptedModel::new().says(r#"{"n": 5}"#);
    let host = started(host(&above, &asked).tool(noting_tool("look").0).tool(pay)).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    assert_eq!(paid.all(), ["paid 5"], "{}", told(&above));
    asked.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_wrong_definition_is_refused_before_anything_runs() {
    let look = json!({"id": "a", "tool": "look"});
    let many = |count: usize| {
        let steps = (0..count).map(|at| json!({"id": format!("s{at}"), "tool": "look"}));
        Value::from(steps.collect::<Vec<_>>())
    };
    for (definitions, expected) in [
        (
            json!([
                wisp("d", json!([look])),
                wisp("d", json!([{"id": "a", "tool": "lock"}]))
            ]),
            "definition 2: step `a`: there is no tool `lock`: did you mean `look`?",
        ),
        (
            json!(wisp("d", json!([{"id": "a", "tool": "spawn_wisps"}]))),
            "there is no tool `spawn_wisps`",
        ),
        (
            json!(wisp(
                "d",
                json!([{"id": "a", "tool": "look", "on_failure": {"skip_to": "z"}}])
            )),
            "`on_failure.skip_to` names no later step: `z`",
        ),
        (json!("x".repeat(300_000)), "are allowed"),
        (json!(wisp(&"x".repeat(10 << 20), json!([look]))), "are allowed"),
        (json!(wisp("d", many(10_000))), "are allowed"),
        (json!(wisp("d", many(60))), "60 steps are too many"),
        (
            json!(vec![wisp("d", json!([look])); 200]),
            "200 definitions are too many",
        ),
        (
            json!(wisp(
                "d",
                json!([{"id": "a", "tool": "look", "params": {"n": "{{steps.a.result}}"}}])
            )),
            "step `a`: ",
        ),
        (
            json!(wisp(
                "d",
                json!([
                    {"id": "a", "tool": "look", "params": {"n": "{{steps.b.result}}"}},
                    {"id": "b", "tool": "look", "params": {"n": "{{steps.a.result}}"}},
                ])
            )),
            "step `a`: ",
        ),
    ] {
        let above = spawner(definitions);
        let (look, looked) = noting_tool("look");
        let host = started(host(&above, &ScriptedModel::new()).tool(look)).await;
        host.agent().ask("main", "Begin.").await.unwrap();
        let told = told(&above);
        assert!(told.contains(expected) && told.len() < 4_000, "{expected}: {told}");
        assert!(looked.all().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_result_reaches_the_next_step_whole() {
    let steps = json!([
        {"id": "a", "tool": "long"},
        {"id": "b", "tool": "pay", "params": {"n": "{{steps.a.result.items[1].n}}"}},
    ]);
    let above = spawner(wisp("Pay.", steps));
    let long = tool("long", |_: Anything| async move {
        json!({"text": "x".repeat(150_000), "items": [{"n": 1}, {"n": 2}]}).to_string()
    });
    let (pay, paid) = paying_tool();
    let host = host(&above, &ScriptedModel::new()).tool(long.pure()).tool(pay);
    started(host.add(Memory::default()))
        .await
        .agent()
        .ask("main", "Begin.")
        .await
        .unwrap();
    assert_eq!(paid.all(), ["paid 2"], "{}", told(&above));
}

#[tokio::test(start_paused = true)]
async fn so_many_run_at_once_and_all_end_with_their_caller() {
    let steps = json!([{"id": "a", "tool": "wait"}]);
    let above = spawner(json!([
        wisp("1", steps.clone()),
        wisp("2", steps.clone()),
        wisp("3", steps)
    ]));
    let (wait, mut waiting) = mock_tool("wait");
    let models = Models {
        above,
        steps: ScriptedModel::new(),
    };
    let host = AgentHost::in_memory().chat(models).tool(wait.pure());
    let host = started(host.add(Wisps::new().with_max_concurrent(2))).await;
    let turns = host.parts().get::<dyn TurnRunner>().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("main", "Begin.").await });
    settle().await;
    let below = || {
        turns
            .live(&TurnQuery::default())
            .into_iter()
            .filter(|live| live.request.parent.is_some())
            .count()
    };
    assert_eq!(below(), 2);
    waiting.next_call().await.respond("done");
    settle().await;
    assert_eq!(below(), 2, "the third has begun");
    let live = turns.live(&TurnQuery::default());
    let caller = live.iter().find(|live| live.request.parent.is_none()).unwrap();
    turns.cancel(&caller.turn).await.unwrap();
    assert!(asking.await.unwrap().is_err());
    settle().await;
    assert!(turns.is_idle());
}

#[tokio::test]
async fn a_batch_goes_on_after_a_restart_and_no_step_that_ended_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let (pay, paid) = paying_tool();
    let steps = json!([
        {"id": "a", "tool": "pay", "params": {"n": 1}},
        {"id": "b", "mode": "Llm", "prompt": "Wait."},
        {"id": "c", "tool": "pay", "params": {"n": 2}},
    ]);
    let open = async |above: &ScriptedModel, steps: &ScriptedModel| {
        let pay = Tool::new(pay.registration.clone(), pay.executor.clone());
        started(host(above, steps).tool(pay).data_dir(folder.path())).await
    };
    let above = spawner(json!([wisp("Pay.", steps)]));
    let hanging = ScriptedModel::new().hangs();
    let host = open(&above, &hanging).await;
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("main", "Begin.").await });
    while hanging.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);
    let _ = asking.await.unwrap().unwrap_err();
    assert_eq!(paid.all(), ["paid 1"]);

    let above = ScriptedModel::new().says("done");
    let steps = ScriptedModel::new().says("waited");
    let host = open(&above, &steps).await;
    while !host.parts().get::<dyn TurnRunner>().unwrap().is_idle() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    steps.assert_complete();
    assert_eq!(paid.all(), ["paid 1", "paid 2"]);
    let text = told(&above);
    assert!(text.starts_with("1 wisp(s) completed, all succeeded.\n"), "{text}");
    assert!(text.contains("[ok] Pay. (3 of 3 steps)\npaid 2\n"), "{text}");
}

#[tokio::test]
async fn a_call_that_was_interrupted_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Notes::default();
    let open = async |above: &ScriptedModel| {
        let noting = begun.clone();
        let pay = tool("pay", move |Anything { n }: Anything| {
            noting.add(format!("begins {n}"));
            std::future::pending::<String>()
        });
        started(host(above, &ScriptedModel::new()).tool(pay).data_dir(folder.path())).await
    };
    let steps = json!([{"id": "a", "tool": "pay", "params": {"n": 1}}, {"id": "b", "tool": "pay"}]);
    let host = open(&spawner(wisp("Pay.", steps))).await;
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("main", "Begin.").await });
    while begun.all().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown(Duration::from_millis(100)).await;
    drop(host);
    let _ = asking.await.unwrap().unwrap_err();

    let above = ScriptedModel::new().says("done");
    let host = open(&above).await;
    while !host.parts().get::<dyn TurnRunner>().unwrap().is_idle() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(begun.all(), ["begins 1"]);
    let text = told(&above);
    assert!(
        text.contains("[failed: External] Pay. (0 of 2 steps)\nStep `a` failed"),
        "{text}"
    );
    assert!(text.contains("may or may not have taken effect"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_caller_pays_for_the_calls_of_its_wisps() {
    let steps: Vec<_> = (0..6)
        .map(|n| json!({"id": format!("s{n}"), "tool": "pay", "params": {"n": n}}))
        .collect();
    let above = spawner(wisp("Pay.", json!(steps)));
    let (pay, paid) = paying_tool();
    let host = started(host(&above, &ScriptedModel::new()).tool(pay)).await;
    let budget = Budget::default().with_max_tool_calls(5);
    host.agent().ask("main", "Begin.").budget(budget).await.unwrap();
    assert_eq!(paid.all().len(), 3, "of five calls the caller made two itself");
    let text = told(&above);
    assert!(text.contains("[failed: External] Pay. (3 of 6 steps)"), "{text}");
    assert!(
        text.contains("It was stopped: its time or its number of calls was used up."),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_definition_is_refused_when_it_runs_again_and_again() {
    let definition = wisp("Pay.", json!([{"id": "a", "tool": "pay", "params": {"n": 1}}]));
    let above = spawner(json!(vec![definition; 32]));
    let (pay, paid) = paying_tool();
    let host = started(host(&above, &ScriptedModel::new()).tool(pay)).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    assert_eq!(paid.all().len(), 30);
    let text = told(&above);
    assert!(text.starts_with("PARTIAL FAILURE: 2 of 32 wisps failed"), "{text}");
    assert!(
        text.contains("blocked: this definition has been run many times"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_that_a_person_must_approve_waits_for_the_user_of_the_turn_at_the_top() {
    let above = spawner(wisp("Pay.", json!([{"id": "a", "tool": "pay", "params": {"n": 1}}])));
    let (pay, paid) = paying_tool();
    let host = started(host(&above, &ScriptedModel::new()).tool(pay.needs_approval())).await;
    let mut asking = host.agent().stream("main", "Begin.");
    let request = loop {
        match asking.next().await.unwrap().unwrap() {
            TurnProgress::ApprovalNeeded(request) => break request,
            TurnProgress::Final(outcome) => panic!("it was not asked: {outcome:?}"),
            _ => {}
        }
    };
    assert_eq!((request.tool.as_str(), request.asked_by.len()), ("pay", 1));
    assert!(paid.all().is_empty());
    host.agent().decide(request.approve()).await.unwrap();
    while asking.next().await.is_some() {}
    assert_eq!(paid.all().len(), 1);
    assert!(
        told(&above).contains("1 wisp(s) completed, all succeeded."),
        "{}",
        told(&above)
    );
}

#[test]
fn settings_are_read_and_wrong_ones_are_refused() {
    let build = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap();
        let host = host.chat(ScriptedModel::new()).build();
        host.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(build("[Wisps]\nMaxConcurrentWisps = 5"), Ok(()));
    let none = build("[Wisps]\nMaxConcurrentWisps = 0").unwrap_err();
    assert!(none.contains("`Wisps.MaxConcurrentWisps` is at least 1"), "{none}");
}

#[tokio::test(start_paused = true)]
async fn what_ran_is_listed_and_a_corrected_definition_is_feedback() {
    let folder = tempfile::tempdir().unwrap();
    let feedback = Arc::new(InMemoryFeedbackStore::new());
    let misfit = json!([{"id": "a", "tool": "pay", "params": {"n": "two"}}]);
    let right = json!([{"id": "a", "tool": "pay", "params": {"n": 2}}]);
    let spawn = |steps: Value| ("spawn_wisps", json!({"definitions": [wisp("Pay.", steps)]}));
    let above = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "wisps"}))
        .calls_all([spawn(misfit)])
        .calls_all([spawn(right)])
        .calls("list_wisp_runs", json!({}))
        .calls("list_wisp_runs", json!({"failed_only": true}))
        .says("done");
    let open = |above: &ScriptedModel| {
        let stores = Stores::new().with_feedback(feedback.clone());
        let host = host(above, &ScriptedModel::new().says("NO_CORRECTION")).stores(stores);
        started(host.tool(paying_tool().0).data_dir(folder.path()))
    };
    let host = open(&above).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    let listed = results(above.requests().last().unwrap());
    let rows: Vec<_> = listed[3].lines().skip(2).collect();
    assert_eq!(rows.len(), 2, "{listed:?}");
    assert!(rows[0].contains("| Pay. | ok | 1 of 1 |") && rows[1].contains("| Pay. | Structural | 0 of 1 |"));
    assert_eq!(listed[4].lines().skip(2).collect::<Vec<_>>(), [rows[1]]);

    let told = feedback
        .query_recent(&Principal::default(), Timestamp::from_millis(0), 10)
        .await
        .unwrap();
    let [entry] = &*told else { panic!("{told:?}") };
    assert_eq!(
        (entry.signal_type, entry.summary.as_str()),
        (
            FeedbackSignal::WispCorrection,
            "A wisp with a wrong definition was corrected, and succeeded with 1 steps."
        )
    );
    host.shutdown(Duration::ZERO).await;
    drop(host);

    let id = |row: &str| row.split(' ').nth(1).unwrap().to_owned();
    let failed = id(rows[1]);
    let succeeded = id(rows[0]);
    let above = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "wisps"}))
        .calls("list_wisp_runs", json!({"wisp_id": succeeded}))
        .calls("list_wisp_runs", json!({"wisp_id": format!("{failed}x")}))
        .says("done");
    open(&above).await.agent().ask("other", "Begin.").await.unwrap();
    let shown = results(above.requests().last().unwrap());
    let json: Value = serde_json::from_str(shown[1].split_once(": ").unwrap().1).unwrap();
    assert_eq!(
        (&json["retryOf"], &json["definitionBody"]["steps"][0]["id"]),
        (&json!(failed), &json!("a"))
    );
    assert!(
        shown[2].ends_with(&format!("there is no wisp `{failed}x`: did you mean `{failed}`?")),
        "{shown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wisp_that_has_proven_itself_on_a_schedule_is_kept_in_a_skill_once_the_user_approves() {
    let steps = json!([{"id": "a", "tool": "pay", "params": {"n": 2}}]);
    let spawn = || json!({"definitions": [wisp("Pay the rent.", steps.clone())]});
    let skills = Arc::new(InMemorySkillStore::new());
    let me = Principal::default();
    let name = StorePath::new("rent").unwrap();
    let bare = Skill::new(
        name.clone(),
        "# Rent\n\nPay it.",
        Timestamp::from_millis(0),
        Provenance::USER,
    );
    skills.save(&me, bare.clone()).await.unwrap();
    let above = ScriptedModel::new();
    let builder = host(&above, &ScriptedModel::new())
        .stores(Stores::new().with_skills(skills.clone(), InMemorySkillUsageStore::new()));
    let host = started(builder.tool(paying_tool().0)).await;
    let turn = async |origin: Origin, id: &str, tool: &str, arguments: Value| {
        let _ = above
            .clone()
            .calls("activate_tools", json!({"group": "wisps"}))
            .calls(tool, arguments)
            .says("done");
        let request = TurnRequest::new(id, id, "Pay the rent.").with_origin(origin);
        let handle = host.agent().spawn(request).await.unwrap();
        settle().await;
        for asked in host.agent().approvals() {
            assert_eq!(asked.tool.as_str(), "save_wisp_in_skill");
            host.agent().decide(asked.approve()).await.unwrap();
        }
        handle.outcome().await.unwrap();
        let last = results(above.requests().last().unwrap()).pop().unwrap();
        last.split_once(": ").unwrap().1.to_owned()
    };
    let ran = |told: &str| told.split("## ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let save = |id: &str| json!({"wisp_id": id, "skill": "rent"});

    // A run that the user asked for, and the first one of a schedule: too few.
    turn(Origin::User, "u", "spawn_wisps", spawn()).await;
    let first = turn(Origin::Scheduled, "s1", "spawn_wisps", spawn()).await;
    assert!(!first.contains("save_wisp_in_skill"), "{first}");
    let refused = turn(Origin::User, "k1", "save_wisp_in_skill", save(&ran(&first))).await;
    assert!(
        refused.contains("has succeeded 1 times in scheduled tasks"),
        "{refused}"
    );

    let second = turn(Origin::Scheduled, "s2", "spawn_wisps", spawn()).await;
    let id = ran(&second);
    let expected = format!("The wisp `{id}` has succeeded 2 times in scheduled tasks: save_wisp_in_skill keeps it");
    assert!(second.contains(&expected), "{second}");
    let third = turn(Origin::Scheduled, "s3", "spawn_wisps", spawn()).await;
    assert!(!third.contains("save_wisp_in_skill"), "{third}");
    let saved = turn(Origin::User, "k2", "save_wisp_in_skill", save(&id)).await;
    assert!(saved.contains("is a section of the skill `rent` now"), "{saved}");

    let kept = skills.get(&me, &name).await.unwrap().unwrap();
    assert!(
        kept.content
            .starts_with("# Rent\n\nPay it.\n\n## Wisp: Pay the rent.\n"),
        "{}",
        kept.content
    );
    assert_eq!(kept.versions[0].content, bare.content);
    // The definition in the skill is one that runs.
    let json = kept
        .content
        .split("```json\n")
        .nth(1)
        .unwrap()
        .split("\n```")
        .next()
        .unwrap();
    let again = turn(Origin::User, "again", "spawn_wisps", json!({"definitions": [json]})).await;
    assert!(again.contains("1 wisp(s) completed, all succeeded."), "{again}");
    let unknown = turn(
        Origin::User,
        "k3",
        "save_wisp_in_skill",
        json!({"wisp_id": id, "skill": "none"}),
    )
    .await;
    assert!(unknown.contains("there is no skill `none`"), "{unknown}");
}
