//! Ends that take no longer than they were given: of calls, hosts and buses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::Role;
use rockbot_core::messaging::{Bus, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt};
use rockbot_core::store::{ConversationMemory, ConversationTurn, StoreError};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{InMemoryToolRegistry, ToolInvocation, ToolInvokeResponse, ToolRegistry};
use rockbot_core::turn::{FinishedCall, TurnRequest, TurnStatus};
use rockbot_core::{BoxError, Principal, SessionId, Timestamp};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{HostState, Stack, Stores};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tower::{layer::layer_fn, service_fn};

use crate::support::{host_of, noting_tool, settle};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here may take.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_tool_layer_that_never_answers_does_not_keep_its_session() {
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Next.");
    let silent = layer_fn(|_: Stack<ToolInvocation, ToolInvokeResponse>| {
        service_fn(|_: ToolInvocation| std::future::pending::<Result<ToolInvokeResponse, BoxError>>())
    });
    let (pay, paid) = noting_tool("pay");
    let host = host_of(&model).tool(pay).tool_layer(silent).build().unwrap();
    let request = TurnRequest::new("s", "1", "Pay!");
    let agent = host.agent().clone();
    let asked = request.clone();
    let running = tokio::spawn(async move { agent.run(asked).await });
    settle().await;
    host.agent().cancel(&request.turn_id()).await.unwrap();
    let ended = timeout(LONG, running).await.expect("the call ends without its layer");
    let outcome = ended.unwrap().unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!(outcome.calls, [FinishedCall::new("call_1", "pay", true)]);
    assert!(paid.all().is_empty());
    assert_eq!(host.agent().ask("s", "And now?").await.unwrap().text, "Next.");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_was_cut_off_can_be_called_again() {
    let model = ScriptedModel::new().calls("work", json!({}));
    let (work, mut handle) = mock_tool("work");
    let host = host_of(&model).tool(work).build().unwrap();
    host.start().await.unwrap();
    let agent = host.agent().clone();
    tokio::spawn(async move { agent.ask("s", "Work!").await });
    let _call = handle.next_call().await;
    assert!(timeout(SECOND, host.shutdown(LONG)).await.is_err(), "the call runs on");
    assert_eq!(host.state(), HostState::Stopping);
    host.shutdown(SECOND).await;
    assert_eq!(host.state(), HostState::Stopped);
}

/// A conversation memory whose disk takes 10 ms for each session that changed.
#[derive(Debug, Default)]
struct SlowMemory(AtomicU32);

#[async_trait]
impl ConversationMemory for SlowMemory {
    async fn append(&self, _: &Principal, _: &SessionId, _: Vec<ConversationTurn>) -> Result<(), StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn recent(&self, _: &Principal, _: &SessionId, _: usize) -> Result<Vec<ConversationTurn>, StoreError> {
        Ok(Vec::new())
    }

    async fn clear(&self, _: &Principal, _: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn sessions(&self, _: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }

    async fn flush(&self) -> Result<(), StoreError> {
        sleep(Duration::from_millis(10) * self.0.load(Ordering::SeqCst)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_host_keeps_to_its_deadline_however_many_sessions_have_changed() {
    let memory = Arc::new(SlowMemory::default());
    let stores = Stores::new().with_conversation_memory(memory.clone());
    let host = host_of(&ScriptedModel::new()).stores(stores).build().unwrap();
    host.start().await.unwrap();
    for session in 0..10_000 {
        let turns = vec![ConversationTurn::new(Role::User, "Hello.", Timestamp::default(), "t")];
        let session = SessionId::from(session.to_string());
        memory.append(&Principal::default(), &session, turns).await.unwrap();
    }
    let began = Instant::now();
    host.shutdown(5 * SECOND).await;
    drop(host);
    assert!(began.elapsed() <= 6 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bus_does_not_wait_for_a_subscription_that_ended_meanwhile() {
    let bus = InProcessBus::new();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let waits = move |_: Delivery| {
        let gate = opened.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Disposition::Ack
        }
    };
    let subscription = bus.on("t", "t", waits).await.unwrap();
    for _ in 0..2 {
        bus.publish("t", Arc::new(MessageEnvelope::new("t", ""))).await.unwrap();
    }
    settle().await;
    let began = Instant::now();
    let closing = bus.clone();
    let closed = tokio::spawn(async move { closing.close(LONG).await });
    settle().await;
    drop(subscription);
    settle().await;
    gate.add_permits(1);
    assert_eq!(closed.await.unwrap().unfinished, 0);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn the_tools_of_a_host_leave_a_shared_registry_with_it() {
    let registry: Arc<dyn ToolRegistry> = Arc::new(InMemoryToolRegistry::new());
    let host = || {
        let host = host_of(&ScriptedModel::new()).tool(noting_tool("look").0);
        host.registry(registry.clone()).build().unwrap()
    };
    drop(host());
    assert!(registry.snapshot().entries().is_empty());
    let second = host();
    second.shutdown(SECOND).await;
    assert!(registry.snapshot().entries().is_empty());
}
