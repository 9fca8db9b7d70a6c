//! The commands of `rockbot` that look into the agent: `mcp` and `schedule`.

use std::path::Path;

use crate::example_programs::{OFFLINE, example, text};

/// Runs the program with these words. Returns exit code, standard output and standard error.
async fn rockbot(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = example("chat", words, folder)
        .env(OFFLINE.0, OFFLINE.1)
        .output()
        .await
        .unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn a_tool_is_called_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let call = async |words: &[&str]| rockbot(folder.path(), &[&["mcp", "call"], words].concat()).await;
    let (code, out, err) = call(&["calculate", r#"{"expression": "6 * 7"}"#]).await;
    assert_eq!((code, out.as_str()), (Some(0), "42\n"), "{err}");
    let (code, _, err) = call(&["calculate", r#"{"expresion": "6 * 7"}"#]).await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("error: the arguments do not fit `calculate`:\n- `expression` is required"),
        "{err}"
    );
    let (code, _, err) = call(&["calculator"]).await;
    assert_eq!(
        (code, err.as_str()),
        (
            Some(1),
            "error: there is no tool `calculator`; `rockbot tools` lists them\n"
        )
    );
    let (code, _, err) = rockbot(folder.path(), &["mcp", "bridge"]).await;
    let without = "error: a bridge needs a broker: set the section `RabbitMq` or `Pulsar`, or --mcp-bus URL\n";
    assert_eq!((code, err.as_str()), (Some(1), without));
    let (code, out, _) = rockbot(folder.path(), &["mcp", "list"]).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "there is no MCP server; --mcp names a file of some\n")
    );
}

/// An editor starts the program, and has the agent's tools.
#[cfg(feature = "mcp-server")]
#[tokio::test]
async fn the_tools_are_served_to_the_program_that_starts_this_one() {
    use rockbot::mcp::{McpServer, McpServers, McpTools};
    use rockbot::prelude::AgentHost;
    use rockbot::testing::ScriptedModel;
    use serde_json::json;

    let folder = tempfile::tempdir().unwrap();
    let started = example("chat", &[], folder.path());
    let program = started.as_std().get_program().to_str().unwrap();
    let data = folder.path().to_str().unwrap();
    let server = McpServer::process("butler", program)
        .args(["mcp", "serve", "--data", data])
        .variable(OFFLINE.0, OFFLINE.1);
    let model = ScriptedModel::new()
        .calls("butler__calculate", json!({"expression": "6 * 7"}))
        .says("Done.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .add(McpTools::default().server(server))
        .build()
        .unwrap();
    host.start().await.unwrap();
    host.parts().get::<McpServers>().unwrap().settled().await;
    host.agent().ask("s", "What is 6 times 7?").await.unwrap();
    assert_eq!(model.requests()[1].messages.last().unwrap().text(), "42");
}

#[cfg(feature = "scheduling")]
#[tokio::test]
async fn the_tasks_of_the_schedule_are_listed_run_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let schedule =
        async |words: &[&str]| rockbot(folder, &[&["--schedule", "--data", "data", "schedule"], words].concat()).await;
    let (code, out, err) = schedule(&[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "there is no task yet\n"), "{err}");
    let tasks = r#"[{"name": "sum", "cronExpression": "0 7 1 1 *", "description": "What is 6 * 7?"}]"#;
    std::fs::write(folder.join("data/scheduled-tasks.json"), tasks).unwrap();
    let (_, out, _) = schedule(&[]).await;
    assert!(
        out.starts_with("sum  0 7 1 1 *  next in ") && out.ends_with("  What is 6 * 7?\n"),
        "{out}"
    );
    let (code, out, err) = schedule(&["run", "sum"]).await;
    assert!(code == Some(0) && out.contains("42"), "{out} {err}");
    let (_, out, _) = schedule(&[]).await;
    assert!(out.contains(", last done "), "{out}");
    let (_, out, _) = schedule(&["cancel", "sum"]).await;
    assert_eq!(out, "cancelled sum\n");
    let (code, _, err) = schedule(&["cancel", "sum"]).await;
    assert_eq!((code, err.as_str()), (Some(1), "error: there is no task `sum`\n"));
    let (_, _, err) = schedule(&["pause", "sum"]).await;
    assert!(
        err.starts_with("error: use it like this: schedule, schedule cancel NAME"),
        "{err}"
    );
}
