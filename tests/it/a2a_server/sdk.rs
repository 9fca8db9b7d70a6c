//! A client of another maker: the Python SDK of the protocol, over each binding and version of our
//! card.

use std::process::Stdio;

use rockbot_core::testing::{ScriptedModel, outside_part};
use serde_json::json;
use tokio::process::Command;

use super::Serving;

/// Returns the lines that the client prints for a binding and its version, with what it says about
/// a list of tasks.
fn expected(name: &str, listed: &str) -> String {
    let lines = [
        "asked: TASK_STATE_INPUT_REQUIRED Which year? ['task']",
        "answered: TASK_STATE_COMPLETED Seven books. ['task']",
        "found: TASK_STATE_COMPLETED Seven books. ['This year.']",
        listed,
        "cancelled: TaskNotCancelableError",
        "streamed: TASK_STATE_COMPLETED Eight books. task status_update",
    ];
    lines.map(|line| format!("{name} {line}\n")).concat()
}

#[tokio::test]
async fn the_client_of_another_maker_is_served_in_all_that_the_card_offers() {
    let Some(folder) = outside_part(
        "ROCKBOT_TEST_A2A_SDK",
        "`.ci/a2a-sdk` installs the SDK and names its folder",
    ) else {
        return;
    };
    let mut model = ScriptedModel::new();
    for _ in 0..3 {
        model = model
            .calls("ask_caller", json!({}))
            .says("Which year?")
            .says("Seven books.")
            .says("Eight books.");
    }
    let serving = Serving::of(&model).await;
    let output = Command::new("python3")
        .args(["-c", include_str!("sdk.py"), &format!("http://{}", serving.address)])
        .env("PYTHONPATH", folder.join("python"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    let listed = "listed: ['TASK_STATE_COMPLETED Seven books.'] 1";
    let expected = [
        expected("JSONRPC 1.0", listed),
        expected("HTTP+JSON 1.0", listed),
        expected("JSONRPC 0.3", "listed: ListTasks is not supported in A2A v0.3 JSONRPC."),
    ];
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, expected.concat(), "{}", String::from_utf8_lossy(&output.stderr));
    serving.stop().await;
}
