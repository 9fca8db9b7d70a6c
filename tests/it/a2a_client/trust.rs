//! The trust in a caller, at both doors: each level and each kind of tool.

use rockbot::tools::a2a::{A2aReceiver, CallerTrust};
use rockbot_core::messaging::{Bus, MessageEnvelope};
use rockbot_core::tool::{Tool, tool};
use rockbot_host::bus::InProcessBus;

use super::*;
use crate::support::{Anything, noting_tool, results};

const TOOLS: [&str; 3] = ["look", "remember", "pay"];

/// Tools that read, that remember for the agent itself, and that change something outside.
fn tools() -> [Tool; 3] {
    let doing = |name: &'static str| tool(name, move |_: Anything| async move { format!("{name} is done") });
    let remember = doing("remember").idempotent().internal().source("memory");
    [noting_tool("look").0, remember, doing("pay")]
}

fn working() -> ScriptedModel {
    let calls = TOOLS.map(|name| (name, json!({"n": 1})));
    ScriptedModel::new().calls_all(calls).says("Worked.")
}

/// Returns what came of each call.
fn came_of(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let results = results(requests.last().unwrap());
    let of = |result: &String| match result {
        done if done.ends_with("is done") => "done",
        refused if refused.contains("Not run: `pay` would change something") => "proposed",
        unknown if unknown.contains("no tool") || unknown.contains("unknown tool") => "unknown",
        other => panic!("{other}"),
    };
    results.iter().map(of).collect::<Vec<_>>().join(" ")
}

async fn over_http(level: CallerTrust) -> String {
    let model = working();
    let server = A2aServer::new()
        .listen("127.0.0.1:0")
        .caller(Caller::new("main", "sesame".to_owned()).tools(TOOLS).trust(level));
    let host = tools()
        .into_iter()
        .fold(AgentHost::builder("far").chat(model.clone()), AgentHostBuilder::tool);
    let server = started(host.add(server)).await;
    let address = server.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    let first = asking([(
        "invoke_agent",
        json!({"agent_name": "far", "skill": "work", "message": "Work."}),
    )]);
    let telling = ScriptedModel::new().says("Told.");
    let caller = A2aCaller::new().agent_at(far(&format!("http://{address}")).key("sesame".to_owned()));
    let main = started(main_host(&first, &telling).add(caller)).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    until_told(&main, "Told.").await;
    server.shutdown(Duration::ZERO).await;
    came_of(&model)
}

async fn over_the_bus(level: CallerTrust) -> String {
    let model = working();
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let receiver = A2aReceiver::new().allow("main").tools(TOOLS).trust("Main", level);
    let host = AgentHost::builder("far").chat(model.clone()).shared_bus(bus.clone());
    let host = tools().into_iter().fold(host, AgentHostBuilder::tool);
    let _far = started(host.add(receiver)).await;
    let task = json!({
        "taskId": "t", "skill": "work", "message": {"role": "user", "parts": [{"kind": "text", "text": "Work."}]},
    });
    let envelope = MessageEnvelope::new("RockBot.A2A.AgentTaskRequest", task.to_string()).with_source("main");
    bus.publish("agent.task.far", Arc::new(envelope)).await.unwrap();
    until(|| model.requests().len() == 2).await;
    came_of(&model)
}

#[tokio::test]
async fn a_caller_does_what_its_trust_allows_at_both_doors() {
    let table = [
        (CallerTrust::Observe, "done unknown unknown"),
        (CallerTrust::Learn, "done done unknown"),
        (CallerTrust::Propose, "done done proposed"),
        (CallerTrust::Act, "done done done"),
    ];
    for (level, expected) in table {
        assert_eq!(over_http(level).await, expected, "{level:?} over HTTP");
        assert_eq!(over_the_bus(level).await, expected, "{level:?} over the bus");
    }
}

#[tokio::test]
async fn a_caller_has_no_tools_unless_they_are_named() {
    let model = ScriptedModel::new().says("Worked.");
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let host = AgentHost::builder("far").chat(model.clone()).shared_bus(bus.clone());
    let host = tools().into_iter().fold(host, AgentHostBuilder::tool);
    let _far = started(host.add(A2aReceiver::new().allow("*"))).await;
    let task = json!({
        "taskId": "t", "skill": "work", "message": {"role": "user", "parts": [{"kind": "text", "text": "Work."}]},
    });
    let envelope = MessageEnvelope::new("RockBot.A2A.AgentTaskRequest", task.to_string()).with_source("main");
    bus.publish("agent.task.far", Arc::new(envelope)).await.unwrap();
    until(|| model.requests().len() == 1).await;
    assert_eq!(model.requests()[0].tools.names().count(), 0);
}
