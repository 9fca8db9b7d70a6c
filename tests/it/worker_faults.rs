//! Tool workers whose messages, callers and processes fail: each call ends once, and its effect
//! happens at most once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::messaging::{
    Delivery, Disposition, Message, MessageEnvelope, MessageSubscriberExt as _, RequestClient,
};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, RemoteToolExecutor, Tool, ToolErrorCode, ToolExecutor as _, ToolInvokeRequest, ToolInvokeResponse, tool,
};
use rockbot_core::turn::{InMemoryTurnJournal, TurnRequest};
use rockbot_host::bus::InProcessBus;
use rockbot_host::workers::RemoteTools;
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use serde_json::json;

use crate::support::networks::{Network, PATIENCE, on_each_bus, until};
use crate::support::{Anything, request, results};

/// The topic of the workers' calls.
const CALLS: &str = "tool.invoke.shed";

async fn worker(network: &Network, tool: Tool) -> AgentHost {
    let host = AgentHost::builder("shed").shared_bus(network.bus().await);
    started(host.tool(tool.description("Works elsewhere.")).announce_tools()).await
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// An agent that keeps its turns in `journal`, and waits for its worker.
async fn agent(network: &Network, model: &ScriptedModel, journal: &Arc<InMemoryTurnJournal>) -> AgentHost {
    let host = AgentHost::builder("agent")
        .chat(model.clone())
        .shared_bus(network.bus().await)
        .stores(Stores::new().with_journal(journal.clone()))
        .add(RemoteTools::new().expect("shed"));
    let host = started(host).await;
    until("the worker is there", async || host.readiness().is_ok()).await;
    host
}

/// An agent is killed while a worker pays for it. The next process of the agent gets the
/// payment's result from the worker, whether that has ended before or ends after its question,
/// and the payment is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_restarts_gets_the_result_of_the_call_that_it_left() {
    for ends_first in [true, false] {
        on_each_bus(async |network: &Network| {
            let (pay, mut handle) = mock_tool("pay");
            let shed = worker(network, pay).await;
            let journal = Arc::new(InMemoryTurnJournal::default());
            let model = ScriptedModel::new().calls("pay", json!({}));
            let first = agent(network, &model, &journal).await;
            let asking = first.agent().clone();
            let message = TurnRequest::new("s", "m", "Pay!");
            let turn = message.turn_id();
            let asked = tokio::spawn(async move { asking.run(message).await });
            let call = handle.next_call().await;
            drop(first);
            assert!(asked.await.unwrap().is_err());

            let mut call = Some(call);
            if ends_first {
                call.take().unwrap().respond("paid 7");
            }
            let model = ScriptedModel::new().says("It is paid.");
            let second = agent(network, &model, &journal).await;
            if let Some(call) = call {
                call.respond("paid 7");
            }
            assert_eq!(second.agent().outcome(&turn).await.unwrap().text, "It is paid.");
            assert_eq!(results(&model.requests()[0]), ["call_1: paid 7"]);
            assert_eq!(handle.started(), 1);
            second.shutdown(PATIENCE).await;
            shed.shutdown(PATIENCE).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_worker_knows_has_an_unknown_outcome() {
    let network = Network::InProcess(InProcessBus::new());
    let (pay, mut handle) = mock_tool("pay");
    let shed = worker(&network, pay).await;
    let journal = Arc::new(InMemoryTurnJournal::default());
    let model = ScriptedModel::new().calls("pay", json!({}));
    let first = agent(&network, &model, &journal).await;
    let asking = first.agent().clone();
    let message = TurnRequest::new("s", "m", "Pay!");
    let turn = message.turn_id();
    let asked = tokio::spawn(async move { asking.run(message).await });
    let call = handle.next_call().await;
    drop((first, shed, call));
    let _ = asked.await;
    // A process without the record of the first one.
    let (pay, other) = mock_tool("pay");
    let _shed = worker(&network, pay).await;
    let model = ScriptedModel::new().says("I do not know.");
    let second = agent(&network, &model, &journal).await;
    assert_eq!(second.agent().outcome(&turn).await.unwrap().text, "I do not know.");
    let told = results(&model.requests()[0]);
    assert!(told[0].contains("may or may not have"), "{told:?}");
    assert_eq!((handle.started(), other.started()), (1, 0));
}

/// A worker that is stopped in the middle of a call tells its caller, at once and once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_tells_the_callers_that_it_cuts_off() {
    for (effect, code) in [
        (Effect::Mutating, ToolErrorCode::OutcomeUnknown),
        (Effect::Pure, ToolErrorCode::ExecutionFailed),
    ] {
        on_each_bus(async |network: &Network| {
            let (mut saw, mut handle) = mock_tool("saw");
            saw.registration.effect = effect;
            let shed = worker(network, saw).await;
            let client = Arc::new(RequestClient::new(network.bus().await, "agent"));
            let executor = RemoteToolExecutor::new(client.clone())
                .with_topic(CALLS)
                .with_effect(effect);
            let calling = tokio::spawn(async move {
                executor
                    .execute(request("1", "saw", "{}"), &CallContext::new("s"))
                    .await
            });
            let call = handle.next_call().await;
            shed.shutdown(Duration::from_millis(500)).await;
            let error = calling.await.unwrap().unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().starts_with("the worker stopped"), "{error}");
            drop(call);
            assert_eq!((handle.started(), client.stray_replies()), (1, 0));
        })
        .await;
    }
}

/// Calls that come one to three times, in any order, with poison between them: each runs once and
/// is answered once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_come_several_times_in_any_order_run_once_beside_poison() {
    const NUMBER: usize = 300;
    on_each_bus(async |network: &Network| {
        let effects = Arc::new(AtomicUsize::new(0));
        let counted = effects.clone();
        let pay = tool("pay", move |Anything { n }: Anything| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { format!("paid {n}") }
        });
        let shed = worker(network, pay).await;
        let bus = network.bus().await;
        let answers = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
        let taken = answers.clone();
        let listener = move |delivery: Delivery| {
            let response: ToolInvokeResponse = delivery.envelope.payload().unwrap();
            let id = delivery.envelope.correlation_id.as_deref().unwrap().to_owned();
            let text = response.content.to_string();
            taken.lock().unwrap().entry(id).or_default().push(text);
            async { Disposition::Ack }
        };
        let _listening = bus.on("answers", "answers", listener).await.unwrap();
        let copies = (0..NUMBER).flat_map(|n| std::iter::repeat_n(n, 1 + n % 3));
        let mut order: Vec<_> = copies.collect();
        // A step that has no divisor in common with the length visits each place once.
        let length = order.len();
        let step = 211;
        order = (0..length).map(|place| order[place * step % length]).collect();
        assert_eq!((length, length % step != 0), (600, true));
        for (place, n) in order.into_iter().enumerate() {
            let id = n.to_string();
            let call = request(&id, "pay", &json!({ "n": n }).to_string());
            let message = MessageEnvelope::of(&call).unwrap().with_id(id).with_source("agent");
            bus.publish(CALLS, Arc::new(message.with_reply_to("answers")))
                .await
                .unwrap();
            if place % 20 == 0 {
                let poison = MessageEnvelope::new(ToolInvokeRequest::TYPE, "{").with_source("agent");
                bus.publish(CALLS, Arc::new(poison)).await.unwrap();
            }
        }
        until("every call is answered", async || {
            answers.lock().unwrap().len() == NUMBER
        })
        .await;
        shed.shutdown(PATIENCE).await;
        assert_eq!(effects.load(Ordering::SeqCst), NUMBER);
        for (id, texts) in answers.lock().unwrap().iter() {
            assert_eq!(texts[..], [format!("paid {id}")], "{id}");
        }
    })
    .await;
}
