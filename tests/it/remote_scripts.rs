//! Scripts that a scripts manager runs, seen from the agent: managers that answer, that are away,
//! and that behave as no manager should.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot::prelude::FromConfig as _;
use rockbot::tools::scripts::wire::{ScriptCancelled, ScriptInvokeRequest, ScriptInvokeResponse};
use rockbot::tools::scripts::{Guarantees, Script, ScriptError, ScriptOutput, ScriptRunner, Scripts};
use rockbot_core::CallContext;
use rockbot_core::config::Config;
use rockbot_core::messaging::{
    Bus, Delivery, Disposition, Message as _, MessageEnvelope, MessageSubscriberExt as _, Subscription,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnPolicies};
use rockbot_scripts_manager::{RunningScriptsManager, ScriptsManager};
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::networks::{PATIENCE, on_each_bus, until};
use crate::support::results;

/// A runner that tells what it was given.
#[derive(Debug)]
struct Echo(Guarantees);

#[async_trait]
impl ScriptRunner for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn guarantees(&self) -> Guarantees {
        self.0
    }

    async fn run(&self, script: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        if script.source.contains("declared") {
            // The trial of the manager.
            return Ok(ScriptOutput::new(0, "{}", ""));
        }
        let Script {
            source,
            input,
            timeout,
            packages,
            ..
        } = script;
        if source == "sleep" {
            return Ok(ScriptOutput::timed_out("half", "oh"));
        }
        Ok(ScriptOutput::new(
            0,
            format!("{source} {input} {timeout:?} {packages:?}"),
            "",
        ))
    }
}

async fn manager(bus: Arc<dyn Bus>, guarantees: Guarantees) -> RunningScriptsManager {
    ScriptsManager::new(Echo(guarantees)).serve(bus).await.unwrap()
}

/// A model that makes these calls of the tool, then says "done".
fn model(scripts: impl IntoIterator<Item = Value>) -> ScriptedModel {
    let model = ScriptedModel::new().calls("activate_tools", json!({"group": "scripts"}));
    let calls = scripts.into_iter();
    let model = calls.fold(model, |model, arguments| {
        model.calls("execute_python_script", arguments)
    });
    model.says("done")
}

fn agent(bus: Arc<dyn Bus>, model: &ScriptedModel) -> AgentHostBuilder {
    AgentHost::builder("clerk")
        .chat(model.clone())
        .shared_bus(bus)
        .add(Scripts::remote())
        .policies(TurnPolicies::new().with_has_approver(false))
}

/// Asks a host until its turn has ended. Returns the results of the calls of scripts.
async fn ask(host: &AgentHost, model: &ScriptedModel) -> Vec<String> {
    assert_eq!(host.agent().ask("main", "Calculate.").await.unwrap().text, "done");
    results(model.requests().last().unwrap()).split_off(1)
}

/// Runs a host that makes these calls, until its turn has ended.
async fn ran(bus: Arc<dyn Bus>, scripts: impl IntoIterator<Item = Value>) -> Vec<String> {
    let model = model(scripts);
    let host = agent(bus, &model).build().unwrap();
    host.start().await.unwrap();
    let told = ask(&host, &model).await;
    host.shutdown(PATIENCE).await;
    told
}

const WALLS: &str = "[scripts manager: no network, no files of the host, no credentials of the host, limited resources, no \
    process left behind]";

#[tokio::test]
async fn a_model_has_the_output_and_the_guarantees_of_the_manager() {
    on_each_bus(async |network| {
        let manager = manager(network.bus().await, Guarantees::ALL).await;
        let full = json!({"script": "add", "input_data": "1 2", "timeout_seconds": 7, "pip_packages": ["numpy"]});
        let told = ran(
            network.bus().await,
            [full, json!({"script": "sleep", "timeout_seconds": 7})],
        )
        .await;
        let package = r#"[Package { name: "numpy", version: None }]"#;
        assert!(told[0].contains(&format!("add 1 2 7s {package}\n{WALLS}")), "{told:?}");
        let expected = format!("Script timed out after 7 s:\noh\nstandard output:\nhalf\n{WALLS}");
        assert!(told[1].contains(&expected), "{told:?}");
        manager.shutdown(PATIENCE).await;
    })
    .await;
}

#[tokio::test]
async fn without_a_manager_the_model_learns_so_at_once() {
    on_each_bus(async |network| {
        let told = ran(network.bus().await, [json!({"script": "x"})]).await;
        let expected = "scripts cannot run here: no scripts manager listens to `script.invoke`: start \
            `rockbot-scripts-manager` on the bus of this host";
        assert!(told[0].contains(expected), "{told:?}");
    })
    .await;
}

#[tokio::test]
async fn a_configuration_alone_gives_scripts_to_a_manager() {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let _manager = manager(bus.clone(), Guarantees::ALL).await;
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new()
        .with_text("agent.toml", "[Scripts]\nRunner = \"remote\"")
        .unwrap();
    let model = model([json!({"script": "add"})]);
    let host = AgentHost::configured(&config, folder.path()).unwrap();
    let host = host.chat(model.clone()).shared_bus(bus).build().unwrap();
    host.start().await.unwrap();
    let told = ask(&host, &model).await;
    assert!(told[0].contains(WALLS), "{told:?}");
    host.shutdown(PATIENCE).await;
    // What the local runner alone reads has no effect then, and is refused.
    let both = "[Scripts]\nRunner = \"remote\"\nMemoryMegabytes = 128";
    let config = Config::new().with_text("agent.toml", both).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let built = AgentHost::configured(&config, folder.path()).unwrap();
    let error = built.bus(InProcessBus::new()).build().unwrap_err();
    assert!(error.to_string().contains("MemoryMegabytes"), "{error}");
}

/// The second script of a turn that has read the first one's output, which is text of others.
async fn second_script(declared: Option<Guarantees>) -> String {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let _manager = match declared {
        Some(guarantees) => Some(manager(bus.clone(), guarantees).await),
        None => None,
    };
    let told = ran(bus, ["one", "two"].map(|source| json!({ "script": source }))).await;
    told[1].clone()
}

#[tokio::test]
async fn scripts_need_an_endorsement_unless_the_manager_declares_walls() {
    let walled = second_script(Some(Guarantees::ALL)).await;
    assert!(walled.contains("two"), "{walled}");
    let mut open = Guarantees::ALL;
    open.no_network = false;
    for declared in [Some(open), Some(Guarantees::NONE)] {
        let refused = second_script(declared).await;
        assert!(refused.contains("only the user can approve it"), "{refused}");
    }
}

/// A manager by hand, which answers as it is told to.
async fn by_hand<F, Answering>(bus: &Arc<dyn Bus>, answer: F) -> Subscription
where
    F: Fn(Arc<dyn Bus>, ScriptInvokeRequest, Arc<MessageEnvelope>) -> Answering + Send + Sync + 'static,
    Answering: Future<Output = ()> + Send + 'static,
{
    let (own, answer) = (bus.clone(), Arc::new(answer));
    let handler = move |delivery: Delivery| {
        let (own, answer) = (own.clone(), answer.clone());
        async move {
            let request = delivery.envelope.payload().unwrap();
            answer(own, request, delivery.envelope).await;
            Disposition::Ack
        }
    };
    bus.on("script.invoke", "scripts-manager", handler).await.unwrap()
}

/// Publishes an answer, as the original's manager does: it declares nothing.
async fn publish(bus: &Arc<dyn Bus>, id: &str, text: &str, correlation: Option<&str>) {
    let body = json!({"ToolCallId": id, "Output": text, "Stderr": null, "ExitCode": 0, "ElapsedMs": 12});
    let mut answer = MessageEnvelope::new(ScriptInvokeResponse::TYPE, body.to_string());
    answer.correlation_id = correlation.map(Into::into);
    bus.publish("script.result.clerk", Arc::new(answer)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn late_double_and_forged_answers_are_ignored_and_counted() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let _manager = by_hand(&bus, |bus, request, envelope| async move {
        let id = &*request.tool_call_id;
        let correlation = envelope.correlation_id.as_deref();
        assert_eq!(envelope.reply_to.as_deref(), Some("script.result.clerk"));
        assert_eq!(envelope.headers["rb-timeout-ms"], "60000");
        // Forged: the sender knows the id or the correlation, and not both.
        publish(&bus, id, "forged", None).await;
        publish(&bus, id, "forged", Some("guessed")).await;
        publish(&bus, "guessed", "forged", correlation).await;
        publish(&bus, id, "right", correlation).await;
        publish(&bus, id, "double", correlation).await;
    })
    .await;
    let model = model([json!({"script": "x"})]);
    let host = agent(bus.clone(), &model).build().unwrap();
    host.start().await.unwrap();
    let told = ask(&host, &model).await;
    let walls = "[scripts manager: NOT guaranteed: no network, no files of the host, no credentials of the host, limited \
        resources, no process left behind]";
    assert!(told[0].contains(&format!("right\n{walls}")), "{told:?}");
    until("the ignored answers are reported", async || {
        log.lines().iter().any(|line| line == "ignored=4")
    })
    .await;
    host.shutdown(PATIENCE).await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_does_not_answer_is_an_error_of_the_call_and_is_told() {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let ids = seen.clone();
    let _manager = by_hand(&bus, move |_, request, _| {
        ids.lock().unwrap().push(request.tool_call_id);
        async {}
    })
    .await;
    let cancelled = cancellations(&bus).await;
    let packages = json!({"script": "x", "timeout_seconds": 5, "pip_packages": ["numpy"]});
    for (script, seconds) in [(json!({"script": "x"}), 60), (packages, 155)] {
        let told = ran(bus.clone(), [script]).await;
        let expected = format!("timed out: no scripts manager answered within {seconds} s; it is away or busy");
        assert!(told[0].contains(&expected), "{told:?}");
    }
    until("both are cancelled", async || {
        *cancelled.0.lock().unwrap() == *seen.lock().unwrap()
    })
    .await;
}

/// The ids of cancelled requests, as a manager hears them.
async fn cancellations(bus: &Arc<dyn Bus>) -> (Arc<Mutex<Vec<String>>>, Subscription) {
    let ids = Arc::<Mutex<Vec<String>>>::default();
    let kept = ids.clone();
    let heard = move |delivery: Delivery| {
        let cancelled: ScriptCancelled = delivery.envelope.payload().unwrap();
        assert_eq!(&*delivery.envelope.source, "clerk");
        kept.lock().unwrap().push(cancelled.tool_call_id);
        async { Disposition::Ack }
    };
    (ids, bus.on("script.cancel", "manager", heard).await.unwrap())
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_script_at_the_manager() {
    on_each_bus(async |network| {
        let bus = network.bus().await;
        let began = Arc::<Mutex<Option<String>>>::default();
        let id = began.clone();
        let requests = by_hand(&bus, move |_, request, _| {
            *id.lock().unwrap() = Some(request.tool_call_id);
            async {}
        });
        let requests = requests.await;
        let (cancelled, cancellations) = cancellations(&bus).await;
        let model = model([json!({"script": "x"})]);
        let host = agent(network.bus().await, &model).build().unwrap();
        host.start().await.unwrap();
        let agent = host.agent();
        let turn = agent.ask("main", "Calculate.").start().await.unwrap();
        until("the script has begun", async || began.lock().unwrap().is_some()).await;
        turn.cancel().await.unwrap();
        until("it is cancelled", async || {
            cancelled.lock().unwrap().first() == began.lock().unwrap().as_ref()
        })
        .await;
        host.shutdown(PATIENCE).await;
        requests.close().await;
        cancellations.close().await;
    })
    .await;
}

#[tokio::test]
async fn two_processes_of_one_agent_each_have_their_answers() {
    on_each_bus(async |network| {
        let manager = manager(network.bus().await, Guarantees::ALL).await;
        let one = ran(
            network.bus().await,
            ["a", "b"].map(|source| json!({ "script": source })),
        );
        let other = ran(
            network.bus().await,
            ["c", "d"].map(|source| json!({ "script": source })),
        );
        let (one, other) = tokio::join!(one, other);
        for (told, source) in one.iter().chain(&other).zip(["a", "b", "c", "d"]) {
            assert!(told.contains(&format!("{source}  30s []\n{WALLS}")), "{told}");
        }
        manager.shutdown(Duration::from_secs(5)).await;
    })
    .await;
}
