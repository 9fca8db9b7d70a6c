//! Guides to tools: what a model reads about them, and that they come and go.

use std::borrow::Cow;

use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{GuideError, GuideSnapshot, StaticGuide, ToolGuide, ToolGuides};
use serde_json::{Value, json};

use crate::support::{host_of, results};

fn guide(name: &'static str) -> StaticGuide {
    StaticGuide::new(name, "How to\n  use it. ", format!("# {name}\n\nWith care.\n"))
}

fn guides(names: &[&'static str]) -> ToolGuides {
    let guides = ToolGuides::new();
    for name in names {
        guides.add(guide(name)).unwrap();
    }
    guides
}

fn names(guides: &GuideSnapshot) -> Vec<&str> {
    guides.keys().map(|name| name.as_str()).collect()
}

/// Lets a model call a tool of `guides`. Returns what it is told, and whether the call failed.
async fn call(guides: &ToolGuides, tool: &str, arguments: Value) -> (String, bool) {
    let model = ScriptedModel::new().calls(tool, arguments).says("done");
    let host = guides
        .tools()
        .into_iter()
        .fold(host_of(&model), |host, tool| host.tool(tool));
    let outcome = host.build().unwrap().agent().ask("s", "go").await.unwrap();
    let told = results(&model.requests()[1]).concat();
    (
        told.strip_prefix("call_1: ").unwrap().to_owned(),
        outcome.calls[0].is_error,
    )
}

#[test]
fn what_a_model_knows_of_the_guides() {
    let definition = |tool: rockbot_core::tool::Tool| tool.registration.to_llm_tool_definition();
    insta::assert_snapshot!(ToolGuides::new().tools().map(definition).join("\n"));
}

#[tokio::test]
async fn guides_are_listed_by_name_one_line_each() {
    let told = call(&guides(&["web", "mcp", "time"]), "list_tool_guides", json!({})).await;
    let lines = "mcp: How to use it.\ntime: How to use it.\nweb: How to use it.";
    assert_eq!(told, (lines.to_owned(), false));
}

#[tokio::test]
async fn a_guide_is_read_whole() {
    let told = call(&guides(&["mcp", "web"]), "get_tool_guide", json!({"name": "web"})).await;
    assert_eq!(told, ("# web\n\nWith care.\n".to_owned(), false));
}

#[tokio::test]
async fn an_unknown_name_is_told_with_the_names_that_exist() {
    let told = call(&guides(&["web", "mcp"]), "get_tool_guide", json!({"name": "Web"})).await;
    assert_eq!(
        told,
        ("there is no guide `Web`. The guides are: mcp, web".to_owned(), true)
    );
}

#[tokio::test]
async fn without_guides_both_tools_say_so() {
    let told = call(&ToolGuides::new(), "list_tool_guides", json!({})).await;
    assert_eq!(told, ("There are no tool guides.".to_owned(), false));
    let told = call(&ToolGuides::new(), "get_tool_guide", json!({"name": "web"})).await;
    assert_eq!(
        told,
        ("there is no guide `web`: there are no tool guides".to_owned(), true)
    );
}

/// A guide that says what holds when it is read.
#[derive(Debug)]
struct Counted(ToolGuides);

impl ToolGuide for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn summary(&self) -> &str {
        "How many guides there are."
    }

    fn document(&self) -> Cow<'_, str> {
        format!("There are {}.", self.0.snapshot().len()).into()
    }
}

#[tokio::test]
async fn guides_come_and_go_while_the_host_runs() {
    let guides = guides(&["web"]);
    let model = ScriptedModel::new()
        .calls("list_tool_guides", json!({}))
        .says("one")
        .calls("get_tool_guide", json!({"name": "counted"}))
        .says("two")
        .calls("list_tool_guides", json!({}))
        .says("none");
    let host = guides
        .tools()
        .into_iter()
        .fold(host_of(&model), |host, tool| host.tool(tool));
    let host = host.build().unwrap();
    let before = guides.snapshot();
    host.agent().ask("s", "list").await.unwrap();
    guides.add(Counted(guides.clone())).unwrap();
    host.agent().ask("s", "read").await.unwrap();
    assert!(guides.remove("web") && guides.remove("counted"));
    assert!(!guides.remove("web"));
    host.agent().ask("s", "list").await.unwrap();

    let told = [1, 3, 5].map(|request| results(&model.requests()[request]).pop().unwrap());
    let told = told.each_ref().map(|told| told.split_once(": ").unwrap().1);
    assert_eq!(
        told,
        ["web: How to use it.", "There are 2.", "There are no tool guides."]
    );
    assert_eq!(names(&before), ["web"], "a snapshot stays as it was");
}

#[test]
fn a_name_is_given_once_and_is_one_that_a_model_can_write() {
    let guides = guides(&["web"]);
    assert_eq!(guides.add(guide("web")), Err(GuideError::Duplicate("web".into())));
    assert_eq!(
        guides.add(guide("two words")),
        Err(GuideError::InvalidName("two words".into()))
    );
    assert_eq!(guides.add(guide("")), Err(GuideError::InvalidName("".into())));
    assert_eq!(names(&guides.snapshot()), ["web"]);
}
