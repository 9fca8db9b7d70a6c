//! Limits that mean "no limit": the largest value of each works everywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatError, ChatErrorKind, Overflow, Provenance};
use rockbot_core::messaging::{
    BusError, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriber, RetryPolicy,
    SubscribeOptions, TopicPattern,
};
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{LongTermMemory, MemoryEntry};
use rockbot_core::testing::{HashedEmbeddings, ManualClock, ScriptedModel, mock_tool};
use rockbot_core::turn::Budget;
use rockbot_core::{Clock, Principal};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::tool::ToolLimits;
use rockbot_host::turn::{ContextEconomy, HookLimits};
use rockbot_host::{AgentHost, BacklogLimits, ContextBudget, HostState, TurnPolicies};
use rockbot_llm::{
    CircuitBreaker, Fallback, ModelGateway, PermitLimits, Permits, Retry, RetryPolicy as LlmRetryPolicy, TimeLimit,
};
use rockbot_memory::{EvaluationOptions, Memory, Retention, SemanticMemoryOptions, SessionEvaluation};
use serde_json::json;

use crate::support::{host_of, settle, transcript};

const NO_LIMIT: Duration = Duration::MAX;

/// A source that knows that the user drinks tea.
#[derive(Debug)]
struct Tea;

#[async_trait]
impl ContextSource for Tea {
    fn name(&self) -> &str {
        "tea"
    }

    async fn gather(&self, _: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        Ok(vec![ContextItem::new(
            "Memories",
            "- tea",
            "it fits",
            Provenance::MODEL,
        )])
    }
}

/// A host without any limit.
fn unlimited(model: &ScriptedModel) -> rockbot_host::AgentHostBuilder {
    let mut tools = ToolLimits::default()
        .with_time_limit(NO_LIMIT)
        .with_max_concurrency(usize::MAX);
    (tools.max_result_bytes, tools.max_blocking) = (usize::MAX, NO_LIMIT);
    let mut recall = ContextBudget::default().with_max_tokens(usize::MAX);
    recall.time_limit = NO_LIMIT;
    let mut economy = ContextEconomy::default()
        .with_watermark(u64::MAX)
        .with_max_result_len(usize::MAX);
    economy.ttl = NO_LIMIT;
    let hooks = HookLimits::default().with_time_limit(NO_LIMIT);
    let backlog = BacklogLimits::new()
        .with_max_messages(usize::MAX)
        .with_max_bytes(usize::MAX)
        .with_max_principal_messages(usize::MAX)
        .with_max_principal_bytes(usize::MAX)
        .with_max_session_messages(usize::MAX)
        .with_max_session_bytes(usize::MAX);
    let policies = TurnPolicies::new()
        .with_tool_limits(tools)
        .with_context_budget(recall)
        .with_context_economy(economy)
        .with_hook_limits(hooks)
        .with_approval_expiry(NO_LIMIT)
        .with_backlog(backlog);
    let budget = Budget::default()
        .with_max_model_calls(u32::MAX)
        .with_max_tool_calls(u32::MAX)
        .with_max_wall_clock(NO_LIMIT)
        .with_max_tokens(u64::MAX);
    host_of(model).policies(policies).budget(budget).context_source(Tea)
}

#[tokio::test(start_paused = true)]
async fn a_host_without_limits_works_and_stops() {
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .says("Done.")
        .says("More.");
    let (work, mut handle) = mock_tool("work");
    let host = unlimited(&model).tool(work.pure()).build().unwrap();
    host.start().await.unwrap();
    let asked = tokio::spawn(host.agent().ask("s", "Tea?").into_future());
    handle.next_call().await.respond("ok");
    assert_eq!(asked.await.unwrap().unwrap().text, "Done.");
    assert_eq!(host.agent().ask("s", "And?").await.unwrap().text, "More.");
    assert!(
        transcript(&model.requests()[0])
            .iter()
            .any(|line| line.contains("- tea"))
    );
    host.shutdown(NO_LIMIT).await;
    assert_eq!(host.state(), HostState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_bus_without_limits_delivers_again_and_closes() {
    let mut options = InProcessBusOptions::default();
    (
        options.publish_wait,
        options.max_message_bytes,
        options.max_dead_letters,
    ) = (NO_LIMIT, usize::MAX, usize::MAX);
    let bus = InProcessBus::with_options(options);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let failing = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Disposition::retry("later") }
    };
    let retry = RetryPolicy::default()
        .with_max_attempts(u32::MAX)
        .with_first_delay(NO_LIMIT)
        .with_max_delay(NO_LIMIT);
    let subscribe = SubscribeOptions::new().with_capacity(usize::MAX).with_retry(retry);
    let pattern = TopicPattern::new("t").unwrap();
    let _listening = bus.subscribe(pattern, "t", subscribe, Arc::new(failing)).await.unwrap();
    bus.publish("t", Arc::new(MessageEnvelope::new("t", ""))).await.unwrap();
    settle().await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .serve_users();
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host.shutdown(Duration::from_secs(1)).await;
    let closed = bus.publish("t", Arc::new(MessageEnvelope::new("t", ""))).await;
    assert!(matches!(closed, Err(BusError::Closed)), "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_without_limits_answers_and_tries_again() {
    let permits = PermitLimits::default()
        .with_low(usize::MAX)
        .with_balanced(usize::MAX)
        .with_high(usize::MAX)
        .with_total(usize::MAX)
        .with_max_waiting(usize::MAX)
        .with_max_wait(NO_LIMIT)
        .with_head_start(NO_LIMIT);
    let time = TimeLimit::of(NO_LIMIT).with_first(NO_LIMIT).with_pause(NO_LIMIT);
    let retry = LlmRetryPolicy::default()
        .with_max_attempts(u32::MAX)
        .with_first_delay(NO_LIMIT)
        .with_max_delay(NO_LIMIT)
        .with_max_retry_after(NO_LIMIT);
    let busy = ChatError::new(ChatErrorKind::Overloaded, "busy");
    let longest = retry
        .with_random(|| 1.0)
        .delay_after(&busy, u32::MAX - 1, Some(NO_LIMIT));
    assert_eq!(longest, None, "no time would be left");
    assert_eq!(retry.with_random(|| 1.0).delay_after(&busy, 7, None), Some(NO_LIMIT));
    let breaker = CircuitBreaker::default()
        .with_failure_threshold(u32::MAX)
        .with_open_for(NO_LIMIT);
    let once = CircuitBreaker::default()
        .with_failure_threshold(1)
        .with_open_for(NO_LIMIT);
    for breaker in [breaker, once] {
        let model = ScriptedModel::new()
            .fails(ChatErrorKind::Overloaded)
            .fails(ChatErrorKind::Auth)
            .says("Well.");
        let other = ScriptedModel::new()
            .fails(ChatErrorKind::Auth)
            .says("Well.")
            .says("Well.");
        let gateway = ModelGateway::builder(model)
            .layer(Retry::new(retry.with_random(|| 0.0)))
            .layer(Permits::new(permits))
            .layer(time)
            .fallback(Fallback::to("other", other).circuit_breaker(breaker))
            .build();
        let host = AgentHost::builder("clerk").chat(gateway).build().unwrap();
        let _ = host.agent().ask("s", "Hi!").await;
        assert_eq!(host.agent().ask("s", "Again!").await.unwrap().text, "Well.");
    }
}

#[tokio::test(start_paused = true)]
async fn memory_and_evaluation_without_limits_find_and_purge_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let retention = Retention::default()
        .with_archived(NO_LIMIT)
        .with_feedback(NO_LIMIT)
        .with_skill_usage(NO_LIMIT)
        .with_max_lines(usize::MAX);
    let semantic = SemanticMemoryOptions::default()
        .with_query_time_limit(NO_LIMIT)
        .with_max_text(usize::MAX);
    let evaluation = EvaluationOptions::default()
        .with_idle_threshold(NO_LIMIT)
        .with_poll_interval(NO_LIMIT);
    let model = ScriptedModel::new().says("It is Anton.");
    let host = host_of(&model)
        .clock(clock.clone())
        .data_dir(folder.path())
        .add(
            Memory::default()
                .retention(retention)
                .embeddings_with(HashedEmbeddings::new(), semantic),
        )
        .add(SessionEvaluation::new(evaluation))
        .build()
        .unwrap();
    host.start().await.unwrap();
    let memory = host.parts().get::<dyn LongTermMemory>().unwrap();
    let me = Principal::default();
    let mut entry = MemoryEntry::new("zebra", "The zebra is called Anton.", clock.now(), Provenance::USER);
    memory.save(&me, entry.clone()).await.unwrap();
    (entry.id, entry.archived_at) = ("old".into(), Some(clock.now()));
    memory.save(&me, entry).await.unwrap();
    assert_eq!(
        host.agent().ask("s", "What is the zebra called?").await.unwrap().text,
        "It is Anton."
    );
    let shown = transcript(&model.requests()[0]);
    assert!(
        shown.iter().any(|line| line.contains("The zebra is called Anton.")),
        "{shown:?}"
    );
    clock.advance(Duration::from_secs(400 * 24 * 3600));
    tokio::time::sleep(Duration::from_secs(7 * 3600)).await;
    assert_eq!(memory.list(&me).await.unwrap().len(), 2);
    host.shutdown(NO_LIMIT).await;
}

/// Lets the model refuse a request because of this context window, and asks twice more.
async fn check_window(limit: u64) {
    let refused = ChatError::new(ChatErrorKind::ContextOverflow, "the request is too long");
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .fails_with(refused.with_overflow(Overflow::new(Some(limit), None)))
        .says("Shorter.")
        .says("Next.");
    let (work, mut handle) = mock_tool("work");
    let host = host_of(&model).tool(work.pure()).build().unwrap();
    let asked = tokio::spawn(host.agent().ask("s", "Look!").into_future());
    handle.next_call().await.respond("row after row\n".repeat(1_000));
    assert_eq!(asked.await.unwrap().unwrap().text, "Shorter.", "{limit}");
    let long = "a long question ".repeat(500);
    assert_eq!(host.agent().ask("t", &*long).await.unwrap().text, "Next.", "{limit}");
    let asked = transcript(&model.requests()[3]);
    assert!(
        asked.last().is_some_and(|line| line.contains(&*long)),
        "{limit}: {asked:?}"
    );
}

#[tokio::test]
async fn an_absurd_context_window_is_neither_used_nor_remembered() {
    for limit in [0, 1, u64::MAX / 90, u64::MAX - 1, u64::MAX] {
        check_window(limit).await;
    }
}
