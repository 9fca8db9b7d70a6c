//! Tools that come and go with their descriptors.

use std::sync::Arc;

use rockbot::tool_services::{DescriptorFolder, ToolServiceServer, ToolServices};
use rockbot_core::messaging::Bus;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::bus::InProcessBus;
use tokio::time::sleep;

use super::{SECOND, SERVICE, Slowly, agent, call, idle_agent, jokes, names, started, tool_of};
use crate::support::{host_of, noting_tool, settle};

#[tokio::test(start_paused = true)]
async fn tools_come_and_go_with_their_files() {
    let bus = InProcessBus::new();
    let folder = jokes("pure");
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(names(&host), ["tell-joke"]);
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors.put("tool/tell-pun", &tool_of("tell-pun", "pure")).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke", "tell-pun"]);
    // Another file that cannot be read, beside a good one that changes.
    std::fs::write(folder.path().join("tool/broken.json"), "{").unwrap();
    std::fs::write(folder.path().join("tool-service/joke-service.json"), "{").unwrap();
    std::fs::remove_file(folder.path().join("tool/tell-joke.json")).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(names(&host), ["tell-pun"]);
    let problems: Vec<_> = descriptors.problems().iter().map(|problem| problem.is_fatal).collect();
    assert_eq!(problems, [true, true, true]);
    std::fs::remove_dir_all(folder.path()).unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(
        names(&host),
        ["tell-pun"],
        "a folder that cannot be read takes nothing down"
    );
    host.shutdown(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_or_wrong_keeps_only_that_tool_out() {
    let bus = InProcessBus::new();
    let folder = jokes("pure");
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors
        .put("tool/bad-name", &tool_of("tell a joke", "pure"))
        .unwrap();
    descriptors.put("tool/taken", &tool_of("tell-time", "pure")).unwrap();
    let (own, _) = noting_tool("tell-time");
    let host = started(agent(&ScriptedModel::new(), &bus, folder.path()).tool(own)).await;
    assert_eq!(names(&host), ["tell-time", "tell-joke"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_announces_its_tools_as_long_as_it_runs() {
    let bus = InProcessBus::new();
    let shared = Arc::new(InProcessBus::new());
    let announced = || async {
        let server = ToolServiceServer::described(SERVICE, Slowly).unwrap();
        let server = server.announces(&tool_of("tell-joke", "pure")).unwrap();
        server.serve(Arc::new(bus.clone())).await.unwrap()
    };
    let first = announced().await;
    let tools = ToolServices::new().bus(Arc::new(bus.clone())).announced();
    let host = started(host_of(&ScriptedModel::new()).shared_bus(shared).add(tools)).await;
    settle().await;
    assert_eq!(names(&host), ["tell-joke"], "the agent asks services that run already");
    assert!(
        host.tools()
            .snapshot()
            .find("tell-joke")
            .unwrap()
            .registration()
            .hints
            .outside_text
    );
    assert_eq!(call(&host, "{}").await, Ok("Why did the llama cross?".to_owned()));
    let second = announced().await;
    settle().await;
    first.shutdown().await;
    settle().await;
    assert_eq!(names(&host), ["tell-joke"], "another process of the service runs");
    sleep(115 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke"], "it announces again and again");
    // A process that dies says no goodbye.
    drop(second);
    sleep(20 * SECOND).await;
    assert_eq!(names(&host), ["tell-joke"]);
    sleep(20 * SECOND).await;
    assert_eq!(names(&host), Vec::<String>::new());
}

#[test]
fn a_host_without_a_bus_or_with_a_wrong_folder_is_not_built() {
    let build = |tools: ToolServices| {
        let error = host_of(&ScriptedModel::new()).add(tools).build().unwrap_err();
        error.to_string()
    };
    let error = build(ToolServices::new());
    assert!(error.contains("`ToolServices::bus`"), "{error}");
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let error = build(ToolServices::new().bus(bus).folder("/nowhere/at/all"));
    assert!(error.contains("`/nowhere/at/all` cannot be used"), "{error}");
}

#[test]
fn a_key_or_a_descriptor_that_is_wrong_is_not_put() {
    let folder = tempfile::tempdir().unwrap();
    let descriptors = DescriptorFolder::new(folder.path());
    for key in ["joke", "mcp/joke", "tool/", "tool/../x", "tool/.x", "tool/a/b"] {
        let problem = descriptors.put(key, SERVICE).unwrap_err().to_string();
        assert_eq!(
            problem,
            format!("`{key}`: it is no key: write `tool-service/ID` or `tool/NAME`")
        );
    }
    let problem = descriptors.put("tool/joke", SERVICE).unwrap_err().to_string();
    assert_eq!(problem, "`tool/joke`: field `type` is missing: set it to a text");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
