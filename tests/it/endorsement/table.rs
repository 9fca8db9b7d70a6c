//! The table of the security page: each row is a call that is asked about, or not.

use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Effect, Tool, ToolRegistration, tool};
use rockbot_core::turn::TurnStatus;
use serde_json::{Value, json};

use super::guarding;
use crate::support::Anything;

/// Runs the call of a row in a turn whose model has read the outside text.
async fn is_asked(user: &str, outside: &str, name: &str, arguments: Value) -> bool {
    let outside = outside.to_owned();
    let page = tool("get_webpage", move |_: Anything| {
        let outside = outside.clone();
        async move { outside }
    });
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": true});
    let registration = ToolRegistration::new(name, "Acts.", schema).with_effect(Effect::Mutating);
    let act = tool(name, |_: Anything| async { "done" });
    let act = Tool::new(registration, act.executor);
    let model = ScriptedModel::new()
        .calls("get_webpage", json!({}))
        .calls(name, arguments)
        .says("done");
    let host = guarding(&model)
        .tool(page.description("Reads.").pure())
        .tool(act)
        .build()
        .unwrap();
    let agent = host.agent();
    let outcome = agent.run(agent.request("s", user)).await.unwrap();
    matches!(outcome.status, TurnStatus::Parked(_))
}

#[tokio::test]
async fn each_row_of_the_security_page_is_true() {
    let page = include_str!("../../../docs/security.md");
    let rows = page
        .lines()
        .filter(|line| line.ends_with("| yes |") || line.ends_with("| no |"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[user, outside, call, asked] = cells.as_slice() else {
            panic!("{row}");
        };
        let (name, arguments) = call.trim_matches('`').split_once(' ').unwrap();
        let arguments = serde_json::from_str(arguments).unwrap();
        assert_eq!(is_asked(user, outside, name, arguments).await, asked == "yes", "{row}");
        count += 1;
    }
    assert!(count > 10, "{count} rows");
}
