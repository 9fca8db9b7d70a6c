//! Messages that only inform: nothing outside is changed on their account, at any depth of
//! delegation.

use rockbot::tools::subagents::Subagents;
use rockbot::tools::wisps::Wisps;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::TurnRequest;
use rockbot_host::AgentHostBuilder;
use rockbot_memory::Memory;
use serde_json::json;

use crate::support::{Anything, Notes, host_of, noting_tool, results, settle};

/// The answer to a call that would change something.
const REFUSED: &str = "Not run: `pay` would change something, and the message only informs. Propose the change to the user; do not \
                       try it again or in another way";

/// A tool that changes something, and the notes of what it did.
fn paying() -> (Tool, Notes) {
    let notes = Notes::default();
    let noting = notes.clone();
    let pay = tool("pay", move |Anything { n }: Anything| {
        noting.add(format!("paid {n}"));
        async move { "paid" }
    });
    (pay, notes)
}

/// Sends a message that informs to a started host, and returns the results that `model` read last.
async fn inform(host: AgentHostBuilder, model: &ScriptedModel) -> Vec<String> {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    let notice = TurnRequest::new("inbox", "mail-7", "The bill is 7 euros.").with_informing(true);
    host.agent().run(notice).await.unwrap();
    settle().await;
    results(model.requests().last().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_message_that_informs_is_read_and_remembered_and_changes_nothing_outside() {
    let note = json!({"key": "bill", "data": "7 euros"});
    let calls = [
        ("look", json!({})),
        ("pay", json!({"n": 7})),
        ("save_to_working_memory", note),
    ];
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "working-memory"}))
        .calls_all(calls.clone())
        .says("You may pay it.");
    let (pay, paid) = paying();
    let host = host_of(&model)
        .tool(noting_tool("look").0)
        .tool(pay)
        .add(Memory::default());
    let told = inform(host, &model).await;
    assert_eq!(
        told[1..3],
        ["call_2: look is done".to_owned(), format!("call_3: {REFUSED}")]
    );
    assert!(!told[3].contains("Not run"), "{told:?}");
    assert_eq!(paid.all(), [""; 0]);

    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
    let (pay, paid) = paying();
    let host = host_of(&model).tool(pay).build().unwrap();
    host.agent().ask("main", "Pay 7 euros.").await.unwrap();
    assert_eq!(paid.all(), ["paid 7"]);
}

#[tokio::test(start_paused = true)]
async fn delegated_work_is_held_to_the_message_that_it_is_for() {
    let steps = json!([{"id": "a", "tool": "pay", "params": {"n": 7}}]);
    let wisps = json!({"definitions": [{"description": "Pay.", "steps": steps}]});
    let model = ScriptedModel::new()
        .calls("spawn_wisps", wisps)
        .calls("spawn_subagent", json!({"description": "Pay 7 euros."}))
        .says("begun")
        // The subagent, and the turn that reads its result.
        .calls("pay", json!({"n": 7}))
        .says("It may be paid.")
        .calls("pay", json!({"n": 7}))
        .says("You may pay it.");
    let (pay, paid) = paying();
    let host = host_of(&model).tool(pay).add(Wisps::new()).add(Subagents::new());
    let told = inform(host, &model).await;
    assert_eq!(paid.all(), [""; 0]);
    assert_eq!(told.len(), 1, "that of the turn that reads the result: {told:?}");
    assert!(told[0].ends_with(REFUSED), "{told:?}");
    let of_wisps = &results(&model.requests()[1])[0];
    assert!(
        of_wisps.contains("[failed: Judgment] Pay. (0 of 1 steps)"),
        "{of_wisps}"
    );
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_person_may_approve_a_change_that_nothing_asked_for() {
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
    let (pay, paid) = paying();
    let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
    let notice = TurnRequest::new("inbox", "mail-7", "The bill is 7 euros.").with_informing(true);
    let turn = host.agent().spawn(notice).await.unwrap();
    settle().await;
    let asked = host.agent().approvals().remove(0);
    host.agent().decide(asked.approve()).await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().text, "Paid.");
    assert_eq!(paid.all(), ["paid 7"]);
}
