//! The trust in a caller, at both doors: each level and each kind of tool.

use rockbot::tools::a2a::{A2aReceiver, CallerTrust};
use rockbot_core::messaging::{Bus, MessageEnvelope};
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{Approval, ApprovalRequest};
use rockbot_host::TurnPolicies;
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
        declined if declined.contains("declined") => "declined",
        other => panic!("{other}"),
    };
    results.iter().map(of).collect::<Vec<_>>().join(" ")
}

/// The decision of the operator about each question of a host; `None` on a host without an operator.
type Operator = Option<fn(ApprovalRequest) -> Approval>;

fn host_with(operator: Operator, model: &ScriptedModel) -> AgentHostBuilder {
    let policies = TurnPolicies::default().with_has_approver(operator.is_some());
    let host = AgentHost::builder("far").chat(model.clone()).policies(policies);
    tools().into_iter().fold(host, AgentHostBuilder::tool)
}

/// Answers a question to the operator. Returns the agents for which the host asks.
async fn answer(host: &AgentHost, operator: Operator) -> Vec<String> {
    let Some(decide) = operator else { return Vec::new() };
    let agent = host.agent();
    let mut announcements = agent.announcements();
    let asked = timeout(PATIENCE, announcements.next()).await.unwrap().unwrap();
    let request = asked.approval.unwrap();
    assert_eq!((request.tool.as_str(), &*request.arguments), ("pay", r#"{"n":1}"#));
    // Only the operator decides, and the decision is about this call.
    let stranger = agent.for_principal("stranger");
    assert!(stranger.decide(request.approve()).await.is_err());
    agent.decide(decide(request.clone())).await.unwrap();
    assert!(agent.decide(request.approve()).await.is_err());
    request.asked_by.iter().map(ToString::to_string).collect()
}

async fn over_http(level: CallerTrust, operator: Operator) -> (String, Vec<String>) {
    let model = working();
    let server = A2aServer::new()
        .listen("127.0.0.1:0")
        .caller(Caller::new("main", "sesame".to_owned()).tools(TOOLS).trust(level));
    let server = started(host_with(operator, &model).add(server)).await;
    let address = server.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    let first = asking([(
        "invoke_agent",
        json!({"agent_name": "far", "skill": "work", "message": "Work."}),
    )]);
    let telling = ScriptedModel::new().says("Told.");
    let caller = A2aCaller::new().agent_at(far(&format!("http://{address}")).key("sesame".to_owned()));
    let main = started(main_host(&first, &telling).add(caller)).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    let chain = answer(&server, operator).await;
    until_told(&main, "Told.").await;
    server.shutdown(Duration::ZERO).await;
    (came_of(&model), chain)
}

async fn over_the_bus(level: CallerTrust, operator: Operator) -> (String, Vec<String>) {
    let model = working();
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let receiver = A2aReceiver::new().allow("main").tools(TOOLS).trust("Main", level);
    let far = started(host_with(operator, &model).shared_bus(bus.clone()).add(receiver)).await;
    let task = json!({
        "taskId": "t", "skill": "work", "message": {"role": "user", "parts": [{"kind": "text", "text": "Work."}]},
    });
    let envelope = MessageEnvelope::new("RockBot.A2A.AgentTaskRequest", task.to_string())
        .with_source("main")
        .with_header("rb-agent-chain", "ann,main");
    bus.publish("agent.task.far", Arc::new(envelope)).await.unwrap();
    let chain = answer(&far, operator).await;
    until(|| model.requests().len() == 2).await;
    (came_of(&model), chain)
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
        let expected = (expected.to_owned(), Vec::new());
        assert_eq!(over_http(level, None).await, expected, "{level:?} over HTTP");
        assert_eq!(over_the_bus(level, None).await, expected, "{level:?} over the bus");
    }
}

#[tokio::test]
async fn the_operator_decides_about_each_change_of_a_caller_that_proposes() {
    let approve: fn(ApprovalRequest) -> Approval = |request| request.approve();
    let decline: fn(ApprovalRequest) -> Approval = |request| request.deny("not declined lightly");
    let level = CallerTrust::Propose;
    for (decide, expected) in [(approve, "done done done"), (decline, "done done declined")] {
        let (came, chain) = over_http(level, Some(decide)).await;
        assert_eq!((&*came, chain), (expected, vec!["a2a:main".to_owned()]));
        let (came, chain) = over_the_bus(level, Some(decide)).await;
        assert_eq!((&*came, chain), (expected, vec!["ann".to_owned(), "main".to_owned()]));
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
