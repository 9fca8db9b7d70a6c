//! MCP servers of one host for agents on its bus: in this process and over RabbitMQ. What a call
//! does is counted in a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rockbot::CallContext;
use rockbot::agent::{AgentHost, FromConfig as _};
use rockbot::config::Config;
use rockbot::mcp::{
    McpBridge, McpEndpoint, McpServer, McpServerState, McpServerStatus, McpServers, McpToolProxy, McpToolServer,
    McpTools,
};
use rockbot::testing::ScriptedModel;
use rockbot::tool::tool;
use rockbot::turn::{TurnRequest, TurnStatus};
use rockbot_core::Digest;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, DeadLetters, Delivery, Disposition, MessageEnvelope, MessagePublisher as _, MessagePublisherExt as _,
    MessageSubscriberExt as _, RequestClient, Subscription, headers,
};
use rockbot_core::tool::{Effect, OutsideTools, RemoteToolExecutor, ToolErrorCode, ToolExecutor as _};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::support::networks::{Network, PATIENCE, on_each_bus, until};
use crate::support::{Anything, request, unguarded};

/// An MCP server with the tools `pay`, which changes something, and `look`, which does not. A
/// payment of 0 ends once it is released, a look at 0 only when it is cancelled.
struct Till {
    host: AgentHost,
    url: String,
    folder: tempfile::TempDir,
    /// A payment has taken effect.
    paid: Arc<Notify>,
    /// Ends a payment of 0.
    released: Arc<Notify>,
    /// A look at 0 has begun.
    looking: Arc<Notify>,
    /// A look at 0 has been cancelled.
    cancelled: Arc<Notify>,
}

/// Notifies when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Till {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("effects.txt");
        let paid = Arc::new(Notify::new());
        let (released, looking, cancelled) = <(Arc<Notify>, Arc<Notify>, Arc<Notify>)>::default();
        let noted = paid.clone();
        let release = released.clone();
        let begin = looking.clone();
        let end = cancelled.clone();
        let pay = tool("pay", move |Anything { n }: Anything| {
            note(&file, n);
            noted.notify_one();
            let release = release.clone();
            async move {
                if n == 0 {
                    release.notified().await;
                }
                format!("paid {n}")
            }
        });
        let look = tool("look", move |Anything { n }: Anything| {
            let look = begin.clone();
            let end = end.clone();
            async move {
                if n == 0 {
                    let _end = OnDrop(end);
                    look.notify_one();
                    std::future::pending::<()>().await;
                }
                format!("saw {n}")
            }
        });
        let server = McpToolServer::new()
            .listen("127.0.0.1:0".parse().unwrap())
            .tools(["pay", "look", "look_*"]);
        let host = AgentHost::builder("till")
            .tool(pay.description("Pays."))
            .tool(look.description("Looks.").pure())
            .add(server)
            .build()
            .unwrap();
        host.start().await.unwrap();
        let address = host.parts().get::<McpEndpoint>().unwrap().address().unwrap();
        let url = format!("http://{address}/mcp");
        Self {
            host,
            url,
            folder,
            paid,
            released,
            looking,
            cancelled,
        }
    }

    /// Returns the amounts that were paid, sorted.
    fn payments(&self) -> Vec<i64> {
        let text = std::fs::read_to_string(self.folder.path().join("effects.txt")).unwrap_or_default();
        let mut paid: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
        paid.sort_unstable();
        paid
    }
}

fn note(file: &Path, amount: i64) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    file.unwrap().write_all(format!("{amount}\n").as_bytes()).unwrap();
}

/// A bridge to the server at `url`, connected.
async fn bridge(name: &str, bus: Arc<dyn Bus>, url: &str) -> AgentHost {
    let server = McpServer::http("till", url).unwrap().trusted(true);
    let host = AgentHost::builder(name)
        .shared_bus(bus)
        .add(McpTools::default().server(server))
        .add(McpBridge::new())
        .build()
        .unwrap();
    host.start().await.unwrap();
    let servers = host.parts().get::<McpServers>().unwrap();
    servers.settled().await;
    assert_eq!(servers.list()[0].state, McpServerState::Connected, "{servers:?}");
    host
}

/// An agent that has the servers of bridges.
async fn agent(bus: Arc<dyn Bus>, model: &ScriptedModel, proxy: McpToolProxy) -> AgentHost {
    let host = AgentHost::builder("agent")
        .chat(model.clone())
        .shared_bus(bus)
        .add(proxy)
        .policies(unguarded())
        .build()
        .unwrap();
    host.start().await.unwrap();
    host
}

/// Waits until the agent has exactly these servers.
async fn until_servers(host: &AgentHost, wanted: &[&str]) {
    let servers = host.parts().get::<McpServers>().unwrap();
    let mut changes = servers.watch().unwrap();
    let reached = async {
        loop {
            changes.borrow_and_update();
            let names: Vec<_> = servers.list().into_iter().map(|server| server.name).collect();
            if names == wanted {
                return;
            }
            changes.changed().await.unwrap();
        }
    };
    let reached = timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "{servers:?}");
}

/// Returns the result of each call of a model, in one turn.
async fn results(network: &Network, calls: &[(&str, Value)]) -> Vec<String> {
    let script = calls.iter().fold(ScriptedModel::new(), |model, (tool, arguments)| {
        model.calls(*tool, arguments.clone())
    });
    let model = script.says("Done.");
    let agent = agent(network.bus().await, &model, McpToolProxy::new()).await;
    until_servers(&agent, &["till"]).await;
    agent.agent().ask("s", "Do it.").await.unwrap();
    agent.shutdown(Duration::from_secs(10)).await;
    let requests = model.requests();
    let last = |at: usize| requests[at].messages.last().unwrap().text().into_owned();
    (1..=calls.len()).map(last).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_servers_uses_those_of_a_bridge_until_it_leaves() {
    on_each_bus(async |network| {
        let till = Till::open().await;
        let bridge = bridge("bridge", network.bus().await, &till.url).await;
        let pay = json!({"server_name": "TILL", "tool_name": "pay", "arguments": {"n": 8}});
        let results = results(
            network,
            &[
                ("till__pay", json!({"n": 7})),
                ("mcp_invoke_tool", pay),
                ("mcp_list_services", json!({})),
                (
                    "mcp_get_service_details",
                    json!({"server_name": "till", "tool_name": "look"}),
                ),
                ("mcp_find_tools", json!({"query": "look"})),
                ("mcp_list_resources", json!({"server_name": "till"})),
                ("till__pay", json!({"n": "x"})),
            ],
        )
        .await;
        assert_eq!(results[..2], ["paid 7", "paid 8"]);
        assert!(results[2].contains("connected by `bridge`"), "{}", results[2]);
        assert!(results[3].contains("till__look"), "{}", results[3]);
        assert!(results[4].contains("till__look"), "{}", results[4]);
        assert_eq!(results[5], r#"{"resources":[],"prompts":[]}"#);
        assert!(results[6].contains("`n`"), "{}", results[6]);
        assert_eq!(till.payments(), [7, 8]);

        let agent = agent(network.bus().await, &ScriptedModel::new(), McpToolProxy::new()).await;
        until_servers(&agent, &["till"]).await;
        bridge.shutdown(Duration::from_secs(10)).await;
        until_servers(&agent, &[]).await;
        agent.shutdown(Duration::from_secs(10)).await;
        till.host.shutdown(Duration::from_secs(10)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_turn_cancels_its_call_at_the_server() {
    on_each_bus(async |network| {
        let till = Till::open().await;
        let bridge = bridge("bridge", network.bus().await, &till.url).await;
        let model = ScriptedModel::new().calls("till__look", json!({"n": 0}));
        // A mutating call that has begun goes on to its end, so that its outcome is known.
        let proxy = McpToolProxy::new().vouch_for("bridge", "till");
        let agent = agent(network.bus().await, &model, proxy).await;
        until_servers(&agent, &["till"]).await;
        let request = TurnRequest::new("s", "m", "Pay.");
        let asked = agent.agent().clone();
        let turn = request.turn_id();
        let asking = tokio::spawn(async move { asked.run(request).await });
        timeout(PATIENCE, till.looking.notified()).await.unwrap();
        agent.agent().cancel(&turn).await.unwrap();
        let outcome = asking.await.unwrap().unwrap();
        assert_eq!(outcome.status, TurnStatus::Cancelled);
        timeout(PATIENCE, till.cancelled.notified()).await.unwrap();
        agent.shutdown(Duration::from_secs(10)).await;
        bridge.shutdown(Duration::from_secs(10)).await;
        till.host.shutdown(Duration::from_secs(10)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_turn_has_the_result_of_a_call_that_was_running() {
    on_each_bus(async |network| {
        let till = Till::open().await;
        let bridge = bridge("bridge", network.bus().await, &till.url).await;
        let data = tempfile::tempdir().unwrap();
        let on = async |model: &ScriptedModel| loop {
            let built = AgentHost::builder("agent")
                .chat(model.clone())
                .shared_bus(network.bus().await)
                .data_dir(data.path())
                .add(McpToolProxy::new())
                .build();
            match built {
                Ok(host) => break host,
                // A host that had no time to shut down frees its folder with its last task.
                Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
            }
            sleep(Duration::from_millis(10)).await;
        };
        let stopped = on(&ScriptedModel::new().calls("till__pay", json!({"n": 0}))).await;
        stopped.start().await.unwrap();
        until_servers(&stopped, &["till"]).await;
        let asked = stopped.agent().clone();
        let asking = tokio::spawn(async move { asked.ask("s", "Pay.").await });
        timeout(PATIENCE, till.paid.notified()).await.unwrap();
        stopped.shutdown(Duration::ZERO).await;
        drop(stopped);
        asking.await.unwrap().unwrap_err();

        let model = ScriptedModel::new().says("Done.");
        let host = timeout(PATIENCE, on(&model)).await.unwrap();
        let resumed = host.start().await.unwrap();
        till.released.notify_one();
        let outcome = timeout(PATIENCE, host.agent().outcome(&resumed.running[0])).await;
        assert_eq!(outcome.unwrap().unwrap().text, "Done.");
        assert_eq!(model.requests()[0].messages.last().unwrap().text(), "paid 0");
        assert_eq!(till.payments(), [0]);
        host.shutdown(Duration::from_secs(10)).await;
        bridge.shutdown(Duration::from_secs(10)).await;
        till.host.shutdown(Duration::from_secs(10)).await;
    })
    .await;
}

/// Calls `pay` over a topic with these numbers, all at once, as an agent of the original does.
async fn pay_over(bus: Arc<dyn Bus>, topic: &str, amounts: std::ops::Range<i64>) {
    let client = Arc::new(RequestClient::new(bus, "original"));
    let calls = amounts.map(|amount| {
        let executor = RemoteToolExecutor::new(client.clone())
            .with_topic(topic)
            .with_header(headers::TOOL_PROVIDER, "mcp")
            .with_header(headers::MCP_SERVER, "Till");
        async move {
            let call = request(&format!("call-{amount}"), "pay", &json!({"n": amount}).to_string());
            let cx = CallContext::new("s").with_turn("turn-1".into());
            let paid = executor.execute(call, &cx).await.unwrap();
            assert_eq!(
                (paid.tool_name.as_str(), paid.content.to_string()),
                ("pay", format!("paid {amount}"))
            );
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_bridges_on_one_bus_never_both_run_a_call() {
    on_each_bus(async |network| {
        for names in [["bridge", "bridge"], ["bridge", "other"]] {
            let till = Till::open().await;
            let mut bridges = Vec::new();
            for name in names {
                bridges.push(bridge(name, network.bus().await, &till.url).await);
            }
            pay_over(network.bus().await, "tool.invoke.mcp", 1..20).await;
            pay_over(network.bus().await, "tool.invoke.mcp.bridge", 20..40).await;
            let paid = results(network, &[("till__pay", json!({"n": 40}))]).await;
            assert_eq!(paid, ["paid 40"]);
            assert_eq!(till.payments(), Vec::from_iter(1..=40), "{names:?}");
            for bridge in bridges {
                bridge.shutdown(Duration::from_secs(10)).await;
            }
            till.host.shutdown(Duration::from_secs(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_bridge_serves_its_servers_and_no_other_tool_of_its_host() {
    let till = Till::open().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let server = McpServer::http("till", &till.url).unwrap();
    let host = AgentHost::builder("bridge")
        .shared_bus(bus.clone())
        .tool(tool("secret", |_: Anything| async { "sesame" }).description("Tells."))
        .add(McpTools::default().server(server))
        .add(McpBridge::new())
        .build()
        .unwrap();
    host.start().await.unwrap();
    host.parts().get::<McpServers>().unwrap().settled().await;
    let client = Arc::new(RequestClient::new(bus, "original"));
    for (topic, server, name, expected) in [
        (
            "tool.invoke.mcp.bridge",
            "",
            "secret",
            "this bridge has no tool `secret` of an MCP server. Its servers are: till",
        ),
        (
            "tool.invoke.mcp.bridge",
            "gone",
            "pay",
            "this bridge has no MCP server `gone`. Its servers are: till",
        ),
        (
            "mcp.manage.bridge",
            "",
            "secret",
            "this host serves no tool of this name",
        ),
        (
            "tool.invoke.mcp.bridge",
            "",
            "mcp_register_server",
            "this bridge has no tool `mcp_register_server` of an MCP server. Its servers are: till",
        ),
    ] {
        let executor = RemoteToolExecutor::new(client.clone())
            .with_topic(topic)
            .with_effect(Effect::Pure)
            .with_header(headers::MCP_SERVER, server);
        let error = executor
            .execute(request("1", name, "{}"), &CallContext::new("s"))
            .await
            .unwrap_err();
        assert_eq!((error.code(), error.message()), (ToolErrorCode::ToolNotFound, expected));
    }
    // Without a server it is that of the first one which has the tool.
    let executor = RemoteToolExecutor::new(client).with_topic("tool.invoke.mcp");
    let saw = executor
        .execute(request("2", "look", r#"{"n":3}"#), &CallContext::new("s"))
        .await
        .unwrap();
    assert_eq!(saw.content.to_string(), "saw 3");
    host.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_call_carries_these_headers_and_its_result_goes_to_the_agents_own_topic() {
    let till = Till::open().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let (sender, mut calls) = mpsc::unbounded_channel();
    let record = move |delivery: Delivery| {
        let _ = sender.send(delivery.envelope);
        async { Disposition::Ack }
    };
    let _recorder = bus.on("tool.invoke.mcp.*", "recorder", record).await.unwrap();
    let _bridge = bridge("bridge", bus.clone(), &till.url).await;
    let model = ScriptedModel::new().calls("till__pay", json!({"n": 1})).says("Done.");
    let agent = agent(bus, &model, McpToolProxy::new()).await;
    until_servers(&agent, &["till"]).await;
    agent.agent().ask("s", "Pay.").await.unwrap();
    let call = timeout(PATIENCE, calls.recv()).await.unwrap().unwrap();
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(
        (&body["toolName"], &body["arguments"]),
        (&json!("pay"), &json!(r#"{"n":1}"#))
    );
    assert_eq!(
        (&*call.message_type, &*call.source),
        ("RockBot.Tools.ToolInvokeRequest", "agent")
    );
    assert!(
        call.reply_to.as_deref().unwrap().starts_with("tool.result.agent."),
        "{call:?}"
    );
    let header = |name: &str| call.headers.get(name).map(String::as_str);
    assert_eq!(
        (header("rb-tool-provider"), header("rb-mcp-server")),
        (Some("mcp"), Some("till"))
    );
    assert_eq!(header("rb-content-trust"), Some("tool-request"));
    assert!(
        header("rb-timeout-ms").unwrap().parse::<u64>().unwrap() > 60_000,
        "longer than the bridge waits"
    );
}

#[tokio::test]
async fn nothing_is_taken_from_an_unauthenticated_channel() {
    let till = Till::open().await;
    let options = InProcessBusOptions::default().with_trust(Trust::Untrusted);
    let untrusted = InProcessBus::with_options(options);
    let bus: Arc<dyn Bus> = Arc::new(untrusted.clone());
    let _bridge = bridge("bridge", bus.clone(), &till.url).await;
    let executor = RemoteToolExecutor::new(Arc::new(RequestClient::new(bus.clone(), "agent")))
        .with_topic("tool.invoke.mcp.bridge")
        .with_header(headers::MCP_SERVER, "till");
    let refused = executor
        .execute(request("1", "pay", r#"{"n":1}"#), &CallContext::new("s"))
        .await;
    assert_eq!(refused.unwrap_err().code(), ToolErrorCode::Denied);
    let agent = agent(bus.clone(), &ScriptedModel::new(), McpToolProxy::new()).await;
    // The agent's own subscription has refused an announcement.
    let refused = "MCP servers are not taken from an unauthenticated channel";
    let is_refused = async || {
        let letters = DeadLetters::dead_letters(&untrusted, 100).await.unwrap();
        letters.iter().any(|letter| letter.last_error.contains(refused))
    };
    until("an announcement is refused", is_refused).await;
    until_servers(&agent, &[]).await;
    assert_eq!(till.payments(), [0; 0]);
}

/// Returns the effect of a tool of an agent, once it has the tool.
async fn effect_of(host: &AgentHost, tool: &str) -> Effect {
    let tools = host.parts().get::<dyn OutsideTools>().unwrap();
    let mut changes = tools.watch();
    let found = async {
        loop {
            changes.borrow_and_update();
            if let Some(tool) = tools.find(tool) {
                return tool.registration().effect;
            }
            changes.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, found).await.unwrap()
}

#[tokio::test]
async fn an_effect_counts_for_a_server_that_both_operators_vouch_for() {
    let till = Till::open().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let _bridge = bridge("bridge", bus.clone(), &till.url).await;
    for (proxy, expected) in [
        (McpToolProxy::new(), Effect::Mutating),
        (McpToolProxy::new().vouch_for("other", "till"), Effect::Mutating),
        (McpToolProxy::new().vouch_for("bridge", "other"), Effect::Mutating),
        (McpToolProxy::new().vouch_for("bridge", "Till"), Effect::Pure),
    ] {
        let agent = agent(bus.clone(), &ScriptedModel::new(), proxy).await;
        assert_eq!(effect_of(&agent, "till__look").await, expected);
        assert_eq!(effect_of(&agent, "till__pay").await, Effect::Mutating);
        agent.shutdown(Duration::from_secs(10)).await;
    }
}

/// Returns an agent from a configuration, on this bus.
fn configured(text: &str, bus: &Arc<dyn Bus>, data: &Path) -> Result<AgentHost, String> {
    let config = Config::new().with_text("agent.toml", text).unwrap();
    let builder = AgentHost::configured(&config, data).map_err(|error| error.to_string())?;
    let host = builder.shared_bus(bus.clone()).build();
    assert!(config.unknown().is_empty(), "{:?}", config.unknown());
    host.map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_settings_choose_vouch_for_and_expect_servers() {
    let till = Till::open().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let data = tempfile::tempdir().unwrap();
    let settings = r#"
        [McpProxy]
        Bridges = ["bridge"]
        Vouched = ["bridge/Till"]
        Expected = ["bridge/TILL"]
    "#;
    let agent = configured(settings, &bus, data.path()).unwrap();
    agent.start().await.unwrap();
    let missing = "`mcp-proxy`: the bridge `bridge` has not announced the MCP server `till`";
    assert!(agent.readiness().unwrap_err().to_string().contains(missing));
    // It has the server, too, and is not one of those that are wanted.
    let other = bridge("other", bus.clone(), &till.url).await;
    let wanted = bridge("bridge", bus.clone(), &till.url).await;
    until_servers(&agent, &["till"]).await;
    let status = agent.parts().get::<McpServers>().unwrap().list().remove(0);
    assert_eq!((status.bridge.as_deref(), agent.readiness()), (Some("bridge"), Ok(())));
    assert_eq!(effect_of(&agent, "till__look").await, Effect::Pure);
    wanted.shutdown(Duration::from_secs(10)).await;
    until_servers(&agent, &[]).await;
    assert!(agent.readiness().unwrap_err().to_string().contains(missing));
    other.shutdown(Duration::from_secs(10)).await;
    agent.shutdown(Duration::from_secs(10)).await;

    for (setting, told) in [
        (
            "Vouched",
            "`McpProxy.Vouched` holds `till`: write the bridge and its server as `bridge/server`",
        ),
        (
            "Expected",
            "`McpProxy.Expected` holds `till`: write the bridge and its server as `bridge/server`",
        ),
    ] {
        let text = format!("[McpProxy]\n{setting} = [\"till\"]");
        let refused = configured(&text, &bus, data.path()).unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
    let data = tempfile::tempdir().unwrap();
    let off = configured("[McpProxy]\nEnabled = false", &bus, data.path()).unwrap();
    assert!(off.parts().get::<McpServers>().is_none());
}

#[tokio::test]
async fn tools_that_are_new_or_more_than_one_answer_holds_are_asked_for() {
    let till = Till::open().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let _bridge = bridge("bridge", bus.clone(), &till.url).await;
    let agent = agent(bus, &ScriptedModel::new(), McpToolProxy::new()).await;
    until_servers(&agent, &["till"]).await;
    // Together longer than one answer of the bridge.
    for number in 0..40 {
        let text = "x".repeat(20_000);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "description": text}}});
        let mut tool = tool(&format!("look_{number}"), |_: Anything| async { "seen" }).description("Looks.");
        tool.registration.parameters_schema = schema;
        till.host.add_tool(tool).unwrap();
    }
    assert_eq!(effect_of(&agent, "till__look_39").await, Effect::Mutating);
    let tools = &agent.parts().get::<McpServers>().unwrap().list()[0].tools;
    assert_eq!(tools.len(), 42);
}

/// Kills of a bridge over the broker.
#[cfg(feature = "rabbitmq")]
mod kills {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use rockbot::message::rabbitmq::RabbitMqBus;

    use super::*;
    use crate::support::networks::broker::{Exchange, settings};

    /// Not a test: the process of a bridge, which is killed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a process that the tests below start"]
    async fn bridge_process() {
        let variable = |name: &str| std::env::var(name).unwrap();
        let bus = RabbitMqBus::connect(settings(&variable("URL"), &variable("EXCHANGE")))
            .await
            .unwrap();
        let tools = match variable("SERVER").as_str() {
            "" => McpTools::default(),
            url => McpTools::default().server(McpServer::http("till", url).unwrap()),
        };
        let host = AgentHost::builder("bridge")
            .shared_bus(Arc::new(bus) as Arc<dyn Bus>)
            .data_dir(variable("DATA"))
            .add(tools)
            .add(McpBridge::new())
            .build()
            .unwrap();
        host.start().await.unwrap();
        println!("\nready");
        std::future::pending::<()>().await;
    }

    /// Starts a bridge in a process of its own, and waits until it is ready.
    fn start(exchange: &Exchange, data: PathBuf, server: &str) -> Child {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "mcp_bridge::kills::bridge_process",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("DATA", data)
            .env("SERVER", server)
            .env("URL", &exchange.url)
            .env("EXCHANGE", &exchange.settings.exchange_name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = process.stdout.as_mut().unwrap();
        let is_ready = BufReader::new(output)
            .lines()
            .map(Result::unwrap)
            .any(|line| line == "ready");
        assert!(is_ready, "the bridge ended by itself");
        process
    }

    fn kill(mut process: Child) {
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Kills a bridge in the middle of a payment, and lets one with `data` and `server` take over.
    async fn check(data: &str, server: impl Fn(&Till) -> String) {
        let Some(exchange) = Exchange::open().await else { return };
        let till = Till::open().await;
        let first = start(&exchange, till.folder.path().join("first"), &till.url);
        let executor = RemoteToolExecutor::new(Arc::new(RequestClient::new(exchange.connect().await, "agent")))
            .with_topic("tool.invoke.mcp.bridge")
            .with_header(headers::TOOL_PROVIDER, "mcp")
            .with_header(headers::MCP_SERVER, "till")
            .with_time_limit(Duration::from_secs(20));
        let calling = tokio::spawn(async move {
            let cx = CallContext::new("s").with_turn("turn-1".into());
            executor.execute(request("1", "pay", r#"{"n":0}"#), &cx).await
        });
        timeout(PATIENCE, till.paid.notified()).await.unwrap();
        kill(first);
        let next = start(&exchange, till.folder.path().join(data), &server(&till));
        let ended = calling.await.unwrap();
        kill(next);
        exchange
            .delete(&[
                "bridge.tool-invoke-mcp-bridge",
                "bridge.mcp-manage-bridge",
                "mcp-bridge",
            ])
            .await;
        let error = ended.unwrap_err();
        assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown, "{error}");
        assert!(
            !error.message().contains("no answer"),
            "the next bridge answers: {error}"
        );
        assert_eq!(till.payments(), [0], "{data}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_whose_bridge_is_killed_is_unknown_and_paid_once() {
        check("first", |till| till.url.clone()).await;
        check("second", |till| till.url.clone()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_comes_again_before_its_server_is_connected_is_unknown() {
        // Nothing listens there, so the server is never connected.
        check("first", |_| "http://127.0.0.1:9/mcp".to_owned()).await;
        check("second", |_| String::new()).await;
    }
}

/// An agent counts five minutes at most.
#[tokio::test(start_paused = true)]
async fn a_bridge_with_a_long_lease_renews_it_before_agents_end_it() {
    for lease in [Duration::from_secs(3600), Duration::MAX] {
        let bus = InProcessBus::new();
        let (seen, mut signs) = mpsc::unbounded_channel();
        let watch = move |delivery: Delivery| {
            let _ = seen.send(delivery.envelope.message_type.clone());
            std::future::ready(Disposition::Ack)
        };
        let _watching = bus.on("tool.meta.mcp.#", "watch", watch).await.unwrap();
        let bridge = AgentHost::builder("bridge")
            .shared_bus(Arc::new(bus))
            .add(McpTools::default())
            .add(McpBridge::new().lease(lease))
            .build()
            .unwrap();
        bridge.start().await.unwrap();
        for _ in 0..10 {
            let sign = timeout(Duration::from_secs(4 * 60), signs.recv()).await;
            assert!(sign.is_ok_and(|kind| kind.is_some()));
        }
    }
}

/// Answers questions for the tools of the bridge `other`: for each the page that `page` returns
/// for its offset.
async fn other_bridge<F: Future<Output = Value> + Send>(
    bus: &InProcessBus,
    page: impl Fn(u64) -> F + Clone + Send + Sync + 'static,
) -> Subscription {
    let publisher = bus.clone();
    let answer = move |delivery: Delivery| {
        let bus = publisher.clone();
        let page = page.clone();
        async move {
            let asked: Value = serde_json::from_slice(&delivery.envelope.body).unwrap();
            let page = page(asked["offset"].as_u64().unwrap_or_default()).await;
            let page = MessageEnvelope::new("RockBot.Tools.Mcp.McpGetServiceDetailsResponse", page.to_string());
            bus.reply(&delivery.envelope, page).await.unwrap();
            Disposition::Ack
        }
    };
    bus.on("mcp.manage.other", "other", answer).await.unwrap()
}

/// Returns the topic of the announcements of a bridge.
fn topic_of(name: &str) -> String {
    let plain = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    if plain == name && name.len() <= 60 {
        format!("tool.meta.mcp.{name}")
    } else {
        format!("tool.meta.mcp.{plain}-{}", Digest::of([name]))
    }
}

/// Announces the server `s` as the bridge `name`.
async fn announce(bus: &InProcessBus, name: &str, revision: u64) {
    announce_under(bus, &topic_of(name), name, revision).await;
}

/// Announces the server `s` as the bridge `name` under any topic.
async fn announce_under(bus: &InProcessBus, topic: &str, name: &str, revision: u64) {
    announce_with(bus, topic, name, revision, Duration::from_secs(300)).await;
}

/// Announces the server `s` as the bridge `name`, with this lease.
async fn announce_for(bus: &InProcessBus, name: &str, revision: u64, lease: Duration) {
    announce_with(bus, &topic_of(name), name, revision, lease).await;
}

async fn announce_with(bus: &InProcessBus, topic: &str, name: &str, revision: u64, lease: Duration) {
    let lease = u64::try_from(lease.as_millis()).unwrap();
    let lease = json!({"name": name, "instance": "1", "revision": revision, "leaseMs": lease});
    let server = json!({"serverName": "s", "toolCount": 1, "fingerprint": format!("f{revision}")});
    let index = json!({"servers": [server], "bridge": lease}).to_string();
    let index = MessageEnvelope::new("RockBot.Tools.Mcp.McpServersIndexed", index).with_source(name);
    bus.publish(topic, index.into()).await.unwrap();
}

async fn proxy(bus: &InProcessBus) -> AgentHost {
    let proxy = AgentHost::builder("agent")
        .shared_bus(Arc::new(bus.clone()))
        .chat(ScriptedModel::new())
        .add(McpToolProxy::new())
        .build()
        .unwrap();
    proxy.start().await.unwrap();
    proxy
}

/// A bridge that takes a call, and neither answers it nor renews its lease.
#[tokio::test(start_paused = true)]
async fn a_call_ends_with_the_lease_of_its_bridge() {
    let bus = InProcessBus::new();
    let page = |_| async {
        let tool = json!({"name": "pay", "description": "", "parametersSchema": null});
        json!({"serverName": "s", "tools": [tool], "fingerprint": "f1", "timeoutMs": 60_000, "error": null})
    };
    let _answering = other_bridge(&bus, page).await;
    let take = |_: Delivery| async { Disposition::Ack };
    let _taking = bus.on("tool.invoke.mcp.other", "other-calls", take).await.unwrap();
    let (cancel, mut cancelled) = mpsc::unbounded_channel();
    let cancel = move |_: Delivery| {
        let _ = cancel.send(());
        async { Disposition::Ack }
    };
    let _cancelling = bus.on("tool.cancel", "other-cancels", cancel).await.unwrap();
    let agent = proxy(&bus).await;
    let began = tokio::time::Instant::now();
    announce_for(&bus, "other", 1, Duration::from_secs(15)).await;
    until_servers(&agent, &["s"]).await;
    let registry = agent.parts().get::<dyn rockbot_core::tool::ToolRegistry>().unwrap();
    let pay = registry.snapshot().find("s__pay").unwrap().executor().clone();
    let call = rockbot_core::tool::ToolInvokeRequest::new("1", "s__pay", "{}");
    let error = pay.execute(call, &CallContext::new("s")).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 15);
    assert_eq!(
        (error.code(), error.message()),
        (
            ToolErrorCode::OutcomeUnknown,
            "the bridge `other` no longer has the MCP server `s`: it left, or its lease ended; it may or may not have taken \
             effect, so check before you try it again"
        )
    );
    assert!(
        cancelled.recv().await.is_some(),
        "the bridge is told, should it still live"
    );
}

/// A bridge that answers each question just in time, with one tool and the word that there are
/// more.
#[tokio::test(start_paused = true)]
async fn a_bridge_with_endless_pages_is_given_up_and_asked_again() {
    let bus = InProcessBus::new();
    let (seen, mut offsets) = mpsc::unbounded_channel();
    let page = move |offset: u64| {
        let _ = seen.send(offset);
        async move {
            sleep(Duration::from_secs(29)).await;
            let tool = json!({"name": format!("t{offset}"), "description": "", "parametersSchema": null});
            json!({"serverName": "s", "tools": [tool], "nextOffset": offset + 1, "error": null})
        }
    };
    let _answering = other_bridge(&bus, page).await;
    let _proxy = proxy(&bus).await;
    announce(&bus, "other", 1).await;
    let asked = async {
        let mut asked = Vec::new();
        while asked.iter().filter(|offset| **offset == 0).count() < 2 {
            asked.extend(offsets.recv().await);
        }
        asked
    };
    let asked = timeout(Duration::from_secs(4 * 60), asked).await.unwrap();
    assert_eq!(asked, [0, 1, 2, 3, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_of_a_bridge_is_held_until_it_is_accepted() {
    let bus = InProcessBus::new();
    let version = Arc::new(AtomicU64::new(1));
    let told = version.clone();
    let page = move |_| {
        let version = told.load(Ordering::Relaxed);
        let tool = json!({"name": "t", "description": format!("Version {version}."), "parametersSchema": null});
        std::future::ready(json!({"serverName": "s", "tools": [tool], "fingerprint": format!("f{version}")}))
    };
    let _answering = other_bridge(&bus, page).await;
    let host = proxy(&bus).await;
    let servers = McpServers::clone(&*host.parts().get::<McpServers>().unwrap());
    let mut changes = servers.watch().unwrap();
    let mut tools = async |of: &dyn Fn(usize, usize) -> bool| {
        let is_so = |server: Option<&McpServerStatus>| server.is_some_and(|one| of(one.tools.len(), one.held.len()));
        while !is_so(servers.list().first()) {
            timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
        }
    };
    announce(&bus, "other", 1).await;
    tools(&|used, held| (used, held) == (1, 0)).await;
    version.store(2, Ordering::Relaxed);
    announce(&bus, "other", 2).await;
    tools(&|used, held| (used, held) == (0, 1)).await;
    let held = servers.held("s").unwrap();
    assert_eq!(held[0].description, "Version 2.");
    servers.accept("s", &held).unwrap();
    tools(&|used, held| (used, held) == (1, 0)).await;
    let shown = host.tools().snapshot();
    assert_eq!(shown.find("s__t").unwrap().registration().description, "[s] Version 2.");
}

#[tokio::test(start_paused = true)]
async fn a_bridge_whose_name_cannot_be_shown_is_not_taken() {
    let bus = InProcessBus::new();
    let host = proxy(&bus).await;
    let servers = host.parts().get::<McpServers>().unwrap();
    let (asked, mut questions) = mpsc::unbounded_channel();
    let count = move |delivery: Delivery| {
        let _ = asked.send(delivery.topic.to_string());
        std::future::ready(Disposition::Ack)
    };
    let _watching = bus.on("mcp.manage.#", "watch", count).await.unwrap();
    for name in ["two\nlines", "hid\u{200b}den", &*"x".repeat(129)] {
        announce(&bus, name, 1).await;
    }
    announce(&bus, "fine", 1).await;
    assert_eq!(
        timeout(PATIENCE, questions.recv()).await.unwrap().unwrap(),
        "mcp.manage.fine"
    );
    assert!(timeout(Duration::from_secs(1), questions.recv()).await.is_err());
    assert_eq!(servers.list().len(), 0);
}

/// A program that may publish under a topic of its own alone cannot speak for a bridge.
#[tokio::test(start_paused = true)]
async fn what_is_announced_under_the_topic_of_another_program_is_not_taken() {
    let bus = InProcessBus::new();
    let page = |_| {
        let tool = json!({"name": "t", "description": "Does t.", "parametersSchema": null});
        std::future::ready(json!({"serverName": "s", "tools": [tool], "fingerprint": "f1"}))
    };
    let _answering = other_bridge(&bus, page).await;
    let host = proxy(&bus).await;
    let servers = McpServers::clone(&*host.parts().get::<McpServers>().unwrap());
    announce_under(&bus, "tool.meta.mcp.forger", "other", u64::MAX).await;
    sleep(Duration::from_secs(5)).await;
    assert!(servers.list().is_empty(), "{servers:?}");
    announce(&bus, "other", 1).await;
    until_servers(&host, &["s"]).await;

    let leaving = json!({"name": "other", "instance": "1"}).to_string();
    let leaving = MessageEnvelope::new("rockbot.McpBridgeLeaving", leaving).with_source("other");
    bus.publish("tool.meta.mcp.forger", leaving.clone().into())
        .await
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(servers.list().len(), 1, "it is still there");
    bus.publish("tool.meta.mcp.other", leaving.into()).await.unwrap();
    until_servers(&host, &[]).await;
}

/// A program that knows the topic of answers, and not the id of the question, cannot answer in
/// place of the bridge.
#[tokio::test(start_paused = true)]
async fn a_forged_answer_is_not_taken_for_the_bridge_s() {
    let bus = InProcessBus::new();
    let publisher = bus.clone();
    let answer = move |delivery: Delivery| {
        let bus = publisher.clone();
        async move {
            let page = |tool: &str| {
                let tool = json!({"name": tool, "description": "Does it.", "parametersSchema": null});
                let page = json!({"serverName": "s", "tools": [tool], "fingerprint": "f1"}).to_string();
                MessageEnvelope::new("RockBot.Tools.Mcp.McpGetServiceDetailsResponse", page).with_source("other")
            };
            let topic = delivery.envelope.reply_to.clone().unwrap();
            for correlation in [None, Some("1"), Some("")] {
                let mut forged = page("forged");
                forged.correlation_id = correlation.map(Into::into);
                bus.publish(&topic, forged.into()).await.unwrap();
            }
            bus.reply(&delivery.envelope, page("t")).await.unwrap();
            Disposition::Ack
        }
    };
    let _answering = bus.on("mcp.manage.other", "other", answer).await.unwrap();
    let host = proxy(&bus).await;
    announce(&bus, "other", 1).await;
    until_servers(&host, &["s"]).await;
    assert_eq!(host.parts().get::<McpServers>().unwrap().list()[0].tools, ["t"]);
}

#[tokio::test]
async fn a_change_of_a_bridge_is_published_once() {
    let till = Till::open().await;
    let bus = InProcessBus::new();
    let (seen, mut events) = mpsc::unbounded_channel();
    let note = move |delivery: Delivery| {
        if &*delivery.envelope.message_type == "RockBot.Tools.Mcp.McpServersIndexed" {
            let _ = seen.send(serde_json::from_slice::<Value>(&delivery.envelope.body).unwrap());
        }
        std::future::ready(Disposition::Ack)
    };
    let _watching = bus.on("tool.meta.mcp.*", "watch", note).await.unwrap();
    let file = till.folder.path().join("mcp.json");
    let servers = json!({"mcpServers": {"till": {"url": till.url}}}).to_string();
    std::fs::write(&file, servers).unwrap();
    let bridge = AgentHost::builder("bridge")
        .shared_bus(Arc::new(bus))
        .add(McpTools::from_file(&file))
        .add(McpBridge::new())
        .build()
        .unwrap();
    bridge.start().await.unwrap();
    until_servers(&bridge, &["till"]).await;
    bridge.parts().get::<McpServers>().unwrap().settled().await;
    let look = tool("look_twice", |_: Anything| async { "saw" }).description("Looks twice.");
    till.host.add_tool(look).unwrap();
    let mut with_three = 0;
    let mut counts = Vec::new();
    let patience = |found| {
        if found == 0 {
            PATIENCE
        } else {
            Duration::from_millis(500)
        }
    };
    while let Ok(Some(event)) = timeout(patience(with_three), events.recv()).await {
        with_three += usize::from(event["servers"][0]["toolCount"] == 3);
        counts.push(event);
    }
    assert_eq!(with_three, 1, "{counts:?}");

    std::fs::write(&file, json!({"mcpServers": {}}).to_string()).unwrap();
    let gone = loop {
        let event = timeout(PATIENCE, events.recv()).await.unwrap().unwrap();
        if event["servers"] == json!([]) {
            break event;
        }
    };
    assert_eq!(
        gone["removedServers"],
        json!(["till"]),
        "agents of the original drop it by this"
    );
    bridge.shutdown(Duration::from_secs(5)).await;
}
