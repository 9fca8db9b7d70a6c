//! The tools of the examples' agents: their exact definitions, and the folders that they must not
//! leave.

use std::path::Path;
use std::sync::Arc;

use rockbot_cli::host;
use rockbot_core::CallContext;
use rockbot_core::tool::{InMemoryToolRegistry, Owner, Tool, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};

use crate::quickstart;

fn registry(tools: impl IntoIterator<Item = Tool>) -> Arc<InMemoryToolRegistry> {
    let registry = InMemoryToolRegistry::new();
    let owner = Owner::new("example");
    tools
        .into_iter()
        .for_each(|tool| registry.register(&owner, tool).unwrap());
    Arc::new(registry)
}

/// A tool that appears, disappears or changes what it tells the model shows in the diff of a
/// snapshot.
fn listing(tools: impl IntoIterator<Item = Tool>) -> String {
    let snapshot = registry(tools).snapshot();
    let lines = snapshot.entries().iter().map(|entry| {
        let tool = entry.registration();
        format!("{:?} {:?}\n{}\n", tool.effect, tool.hints, entry.definition())
    });
    lines.collect()
}

#[test]
fn the_tools_of_the_chat() {
    insta::assert_snapshot!(listing(host::tools("/".into())));
}

#[test]
fn the_tools_of_the_quickstart() {
    insta::assert_snapshot!(listing([quickstart::notebook()]));
}

/// Calls a tool of the chat, without the approval that `read_file` needs in a host.
async fn call(root: &Path, tool: &str, arguments: serde_json::Value) -> ToolInvokeResponse {
    let arguments = arguments.to_string();
    let dispatcher = ToolDispatcher::new(registry(host::tools(root.to_owned())), ToolLimits::default());
    let request = ToolInvokeRequest::new("1", tool, arguments.as_str()).with_session_id("s");
    let grant = rockbot_core::context::Grant::new("1", rockbot_core::context::Grant::args_hash(tool, &arguments));
    dispatcher
        .call(request, &CallContext::new("s").with_grants([grant]))
        .await
}

#[tokio::test]
async fn the_calculator_calculates() {
    for (expression, result) in [
        ("(2 + 3) * 4", "20"),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ^ 2", "-4"),
        ("10 / 4 - 1", "1.5"),
        ("1 / 0", "the result is not a number"),
    ] {
        let response = call(
            Path::new("/"),
            "calculate",
            serde_json::json!({ "expression": expression }),
        )
        .await;
        assert_eq!(response.content, result, "{expression}");
    }
    for wrong in ["", "2 +", "2 2", "(1", "x", &"(".repeat(100_000)] {
        let response = call(Path::new("/"), "calculate", serde_json::json!({ "expression": wrong })).await;
        assert!(
            response
                .content
                .text()
                .starts_with("the expression cannot be calculated"),
            "{}",
            response.content
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_read_below_the_folder_only() {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("root");
    std::fs::create_dir_all(root.join("inner")).unwrap();
    std::fs::write(root.join("inner/note.txt"), "milk").unwrap();
    std::fs::write(outside.path().join("secret"), "key").unwrap();
    std::fs::create_dir(outside.path().join("root-evil")).unwrap();
    std::fs::write(outside.path().join("root-evil/secret"), "key").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), root.join("link")).unwrap();
    let read = async |path: &str| {
        call(&root, "read_file", serde_json::json!({ "path": path }))
            .await
            .content
    };

    assert_eq!(read("inner/note.txt").await, "milk");
    assert_eq!(read("inner/../inner/note.txt").await, "milk");
    let secret = outside.path().join("secret").display().to_string();
    for path in ["../secret", "link", "../root-evil/secret", &secret] {
        assert_eq!(
            read(path).await,
            format!("`{path}` cannot be read: it is not below the current folder")
        );
    }
    assert_eq!(read("inner").await, "`inner` cannot be read: it is not a file");
}
