//! Tools that run in another program: whatever a bus and a service do, a call ends once and says
//! what is known.

use std::future::{Future, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use rockbot_core::messaging::{
    Bus, Delivery, Disposition, ErrorReply, Message, MessageEnvelope, MessagePublisherExt, MessageSubscriberExt,
    RequestClient, Subscription, headers,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{
    Effect, RemoteToolExecutor, ToolError, ToolErrorCode, ToolErrorMessage, ToolExecutor, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistration, remote_tool,
};
use rockbot_core::{CallContext, TraceContext};
use rockbot_host::bus::InProcessBus;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use crate::support::{host_of, request, results, settle};

const UNKNOWN: &str = "; it may or may not have taken effect, so check before you try it again";

/// A bus, and a client that asks over it.
struct Line {
    bus: InProcessBus,
    client: Arc<RequestClient>,
}

impl Line {
    fn new() -> Self {
        let bus = InProcessBus::new();
        let client = Arc::new(RequestClient::new(Arc::new(bus.clone()), "agent"));
        Self { bus, client }
    }

    fn executor(&self, effect: Effect) -> RemoteToolExecutor {
        RemoteToolExecutor::new(self.client.clone()).with_effect(effect)
    }

    /// A service that deals with each call as `handle` does.
    async fn serve<F, Fut>(&self, handle: F) -> Subscription
    where
        F: Fn(InProcessBus, Arc<MessageEnvelope>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let bus = self.bus.clone();
        let handler = move |delivery: Delivery| {
            let handled = handle(bus.clone(), delivery.envelope);
            async move {
                handled.await;
                Disposition::Ack
            }
        };
        self.bus.on("tool.invoke", "service", handler).await.unwrap()
    }

    /// A service that answers each call with all that `answer` makes of it.
    async fn answer<F>(&self, answer: F) -> Subscription
    where
        F: Fn(ToolInvokeRequest) -> Vec<MessageEnvelope> + Send + Sync + 'static,
    {
        self.serve(move |bus, call| {
            let answers = answer(call.payload().unwrap());
            async move {
                for answer in answers {
                    bus.reply(&call, answer).await.unwrap();
                }
            }
        })
        .await
    }

    /// Returns the number of stray answers, and of waiting calls.
    fn counts(&self) -> (u64, usize) {
        (self.client.stray_replies(), self.client.open_requests())
    }
}

fn cx() -> CallContext {
    CallContext::new("session")
}

fn of<M: Message + Serialize>(message: &M) -> MessageEnvelope {
    MessageEnvelope::of(message).unwrap()
}

fn error_message(code: &str, is_retryable: bool) -> MessageEnvelope {
    let json = json!({
        "toolCallId": "1", "toolName": "book", "code": code, "message": "full", "isRetryable": is_retryable,
    });
    MessageEnvelope::new(ToolErrorMessage::TYPE, json.to_string())
}

/// Kind, text and retry advice of how a call ended.
fn ending(ended: Result<ToolInvokeResponse, ToolError>) -> (Option<ToolErrorCode>, String, bool) {
    match ended {
        Ok(response) => (response.code, response.content.into_words(), response.is_error),
        Err(error) => (Some(error.code()), error.message().to_owned(), error.retry_helps()),
    }
}

/// A call that the service answers with `answer` ends with this error.
async fn check(effect: Effect, answer: &MessageEnvelope, code: ToolErrorCode, text: &str, is_retryable: bool) {
    let line = Line::new();
    let answer = answer.clone();
    let _service = line.answer(move |_| vec![answer.clone()]).await;
    let ended = line.executor(effect).execute(request("1", "book", "{}"), &cx()).await;
    assert_eq!(ending(ended), (Some(code), text.to_owned(), is_retryable));
    assert_eq!(line.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_travels_with_its_context_and_its_answer_comes_back() {
    let line = Line::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let _service = line
        .serve(move |bus, call| {
            noted.lock().unwrap().push(call.clone());
            let request: ToolInvokeRequest = call.payload().unwrap();
            async move {
                bus.reply(&call, of(&request.succeed("booked"))).await.unwrap();
            }
        })
        .await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let cx = cx()
        .with_principal("me".into())
        .with_turn("turn-1".into())
        .with_trace(TraceContext::parse(trace).unwrap())
        .with_deadline(Instant::now() + Duration::from_secs(5));
    let executor = line
        .executor(Effect::Mutating)
        .with_header(headers::TOOL_PROVIDER, "mcp")
        .with_header(headers::PRINCIPAL, "somebody else");
    let call = request("1", "book", r#"{"day":1}"#);
    let response = executor.execute(call.clone(), &cx).await.unwrap();
    assert_eq!(response, call.clone().succeed("booked"));

    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].payload::<ToolInvokeRequest>().unwrap(), call);
    assert_eq!(
        (&*seen[0].message_type, &*seen[0].source),
        ("RockBot.Tools.ToolInvokeRequest", "agent")
    );
    let expected = [
        ("rb-idempotency-key", "turn-1/1"),
        ("rb-principal", "me"),
        ("rb-timeout-ms", "5000"),
        ("rb-tool-provider", "mcp"),
        ("traceparent", trace),
    ];
    assert_eq!(
        seen[0].headers,
        expected.map(|(name, value)| (name.into(), value.into())).into()
    );
    assert_eq!(line.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_waited_for_as_long_as_all_limits_allow() {
    let secs = Duration::from_secs;
    for (own_limit, left, expected) in [
        (None, None, "60000"),
        (Some(secs(20)), None, "20000"),
        (Some(secs(20)), Some(secs(7)), "7000"),
        (Some(Duration::MAX), Some(secs(1_000_000)), "180000"),
    ] {
        let line = Line::new();
        let asked = Arc::new(Mutex::new(None));
        let noted = asked.clone();
        let _service = line
            .serve(move |_, call| {
                *noted.lock().unwrap() = call.headers.get(headers::TIMEOUT_MS).cloned();
                ready(())
            })
            .await;
        let executor = line.executor(Effect::Pure);
        let executor = own_limit.map_or(executor.clone(), |limit| executor.with_time_limit(limit));
        let began = Instant::now();
        let cx = left.map_or(cx(), |left| cx().with_deadline(began + left));
        let ended = executor.execute(request("1", "book", "{}"), &cx).await;
        let advice = "it may be tried again, perhaps with less to do";
        let text = format!("no answer from `tool.invoke` within {expected} ms; {advice}");
        assert_eq!(ending(ended), (Some(ToolErrorCode::Timeout), text, true));
        assert_eq!(asked.lock().unwrap().as_deref(), Some(expected));
        assert_eq!(began.elapsed().as_millis().to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn no_answer_to_a_mutating_call_is_an_unknown_outcome_and_a_late_one_is_counted() {
    let line = Line::new();
    let _service = line
        .serve(|bus, call| async move {
            sleep(Duration::from_secs(61)).await;
            let request: ToolInvokeRequest = call.payload().unwrap();
            bus.reply(&call, of(&request.succeed("late"))).await.unwrap();
        })
        .await;
    let ended = line
        .executor(Effect::Mutating)
        .execute(request("1", "book", "{}"), &cx())
        .await;
    let text = format!("no answer from `tool.invoke` within 60000 ms{UNKNOWN}");
    assert_eq!(ending(ended), (Some(ToolErrorCode::OutcomeUnknown), text, false));
    assert_eq!(line.counts(), (0, 0));
    advance(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(line.counts(), (1, 0));
}

#[tokio::test]
async fn an_error_message_is_the_error_it_names() {
    use ToolErrorCode::{ExecutionFailed, OutcomeUnknown, Timeout, ToolNotFound};
    let unknown = format!("full{UNKNOWN}");
    for (code, effect, expected, text, is_retryable) in [
        ("ToolNotFound", Effect::Mutating, ToolNotFound, "full", false),
        ("tool_not_found", Effect::Pure, ToolNotFound, "full", false),
        ("no_coffee", Effect::Pure, ExecutionFailed, "full", true),
        ("timeout", Effect::Idempotent, Timeout, "full", true),
        ("timeout", Effect::Mutating, OutcomeUnknown, &unknown, false),
    ] {
        check(
            effect,
            &error_message(code, is_retryable || code == "timeout"),
            expected,
            text,
            is_retryable,
        )
        .await;
    }
}

#[tokio::test]
async fn an_error_reply_is_the_error_it_names() {
    let reply = ErrorReply::new("invalid_arguments", "no day");
    check(
        Effect::Mutating,
        &of(&reply),
        ToolErrorCode::InvalidArguments,
        "no day",
        false,
    )
    .await;
}

#[tokio::test]
async fn a_response_that_failed_is_passed_on() {
    let failed = request("1", "book", "{}").fail(&ToolError::execution_failed("full"));
    let without_code = failed.clone().with_code(None);
    let line = Line::new();
    let answer = of(&without_code);
    let _service = line.answer(move |_| vec![answer.clone()]).await;
    let ended = line
        .executor(Effect::Mutating)
        .execute(request("1", "book", "{}"), &cx())
        .await;
    assert_eq!(ended.unwrap(), without_code);

    check(
        Effect::Mutating,
        &of(&failed),
        ToolErrorCode::ExecutionFailed,
        "full",
        false,
    )
    .await;
    let late = request("1", "book", "{}").fail(&ToolError::new(ToolErrorCode::Timeout, "full"));
    let unknown = format!("full{UNKNOWN}");
    check(
        Effect::Mutating,
        &of(&late),
        ToolErrorCode::OutcomeUnknown,
        &unknown,
        false,
    )
    .await;
    check(Effect::Pure, &of(&late), ToolErrorCode::Timeout, "full", true).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_the_calls_own_is_an_error() {
    let other = of(&request("2", "book", "{}").succeed("booked"));
    let foreign = MessageEnvelope::new("billing.Invoice", "{}");
    let mixed = "the answer to call `1` names the call `2`";
    let wrong = "a message of type `billing.Invoice` came where `RockBot.Tools.ToolInvokeResponse` was expected";
    for (answer, text) in [(other, mixed), (foreign, wrong)] {
        check(Effect::Pure, &answer, ToolErrorCode::ExecutionFailed, text, false).await;
        let unknown = format!("{text}{UNKNOWN}");
        check(
            Effect::Mutating,
            &answer,
            ToolErrorCode::OutcomeUnknown,
            &unknown,
            false,
        )
        .await;
    }
    let broken = MessageEnvelope::new(ToolErrorMessage::TYPE, "{");
    let line = Line::new();
    let _service = line.answer(move |_| vec![broken.clone()]).await;
    let ended = line
        .executor(Effect::Mutating)
        .execute(request("1", "book", "{}"), &cx())
        .await;
    assert_eq!(ended.unwrap_err().code(), ToolErrorCode::OutcomeUnknown);
}

#[tokio::test]
async fn without_a_service_the_call_says_what_to_start() {
    let line = Line::new();
    let ended = line
        .executor(Effect::Mutating)
        .execute(request("1", "book", "{}"), &cx())
        .await;
    let text = "no subscriber listens to `tool.invoke`: start the service that does".to_owned();
    assert_eq!(ending(ended), (Some(ToolErrorCode::ExecutionFailed), text, false));
    assert_eq!(line.counts(), (0, 0));
}

#[tokio::test]
async fn a_bus_that_closes_leaves_a_mutating_call_unknown() {
    let line = Line::new();
    let _service = line.answer(|_| Vec::new()).await;
    let executor = line.executor(Effect::Mutating);
    let cx = cx();
    let (ended, ()) = tokio::join!(executor.execute(request("1", "book", "{}"), &cx), async {
        settle().await;
        let _ = line.bus.close(Duration::ZERO).await;
    });
    assert_eq!(ended.unwrap_err().code(), ToolErrorCode::OutcomeUnknown);
    assert_eq!(line.counts(), (0, 0));
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_has_no_time_left_is_not_sent() {
    let line = Line::new();
    let _service = line.answer(|_| panic!("nothing is sent")).await;
    let cancelled = cx();
    cancelled.cancellation().cancel();
    for (cx, code, text) in [
        (cancelled, ToolErrorCode::Cancelled, "not run: the call was cancelled"),
        (
            cx().with_deadline(Instant::now()),
            ToolErrorCode::ExecutionFailed,
            "not run: no time was left for it",
        ),
    ] {
        let ended = line
            .executor(Effect::Mutating)
            .execute(request("1", "book", "{}"), &cx)
            .await;
        assert_eq!(ending(ended), (Some(code), text.to_owned(), false));
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_of_a_call_that_changes_nothing_and_leaks_none() {
    let line = Line::new();
    let _service = line
        .serve(|bus, call| async move {
            sleep(Duration::from_secs(10)).await;
            let request: ToolInvokeRequest = call.payload().unwrap();
            bus.reply(&call, of(&request.succeed("booked"))).await.unwrap();
        })
        .await;
    for (effect, code, open) in [
        (Effect::Pure, Some(ToolErrorCode::Cancelled), 0),
        (Effect::Mutating, None, 1),
    ] {
        let executor = line.executor(effect);
        let cx = cx();
        let cancellation = cx.cancellation().clone();
        let running = tokio::spawn(async move { executor.execute(request("1", "book", "{}"), &cx).await });
        settle().await;
        assert_eq!(line.client.open_requests(), 1);
        cancellation.cancel();
        settle().await;
        assert_eq!(line.client.open_requests(), open);
        assert_eq!(
            ending(running.await.unwrap()).0,
            code,
            "what a mutating call did is known"
        );
    }

    let executor = line.executor(Effect::Mutating);
    let running = tokio::spawn(async move { executor.execute(request("1", "book", "{}"), &cx()).await });
    settle().await;
    running.abort();
    settle().await;
    assert_eq!(line.client.open_requests(), 0, "a wait that is dropped is forgotten");
}

#[tokio::test]
async fn many_calls_get_their_own_answers_in_whatever_order_and_number_they_come() {
    const CALLS: usize = 64;
    let line = Line::new();
    let held = Arc::new(Mutex::new(Vec::new()));
    let _service = line
        .serve(move |bus, call| {
            let mut held = held.lock().unwrap();
            held.push(call);
            let ready = if held.len() == CALLS {
                std::mem::take(&mut *held)
            } else {
                Vec::new()
            };
            drop(held);
            async move {
                for (copies, call) in ready.iter().enumerate().rev() {
                    let request: ToolInvokeRequest = call.payload().unwrap();
                    let content = format!("answer to {}", request.tool_call_id);
                    let answer = of(&request.succeed(content));
                    for _ in 0..=copies % 3 {
                        bus.reply(call, answer.clone()).await.unwrap();
                    }
                }
            }
        })
        .await;
    let executor = line.executor(Effect::Idempotent);
    let cx = cx();
    let calls = (0..CALLS).map(|n| executor.execute(request(&n.to_string(), "book", "{}"), &cx));
    for (n, ended) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(ending(ended), (None, format!("answer to {n}"), false));
    }
    settle().await;
    let copies: usize = (0..CALLS).map(|n| n % 3).sum();
    assert_eq!(line.counts(), (copies as u64, 0));
}

#[tokio::test(start_paused = true)]
async fn a_host_uses_a_remote_tool_like_any_other() {
    let line = Line::new();
    let _service = line
        .answer(|request| match &*request.arguments {
            r#"{"day":1}"# => vec![of(&request.succeed("booked"))],
            _ => Vec::new(),
        })
        .await;
    let mut registration = ToolRegistration::new("book", "Books a table.", json!({"type": "object"}));
    registration.effect = Effect::Idempotent;
    registration.hints.time_limit = Some(Duration::from_secs(2));
    let tool = remote_tool(registration, RemoteToolExecutor::new(line.client.clone()));
    let model = ScriptedModel::new()
        .calls("book", json!({"day": 1}))
        .calls("book", json!({"day": 2}))
        .says("done");
    let host = host_of(&model).tool(tool).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let told = results(&model.requests()[2]);
    assert_eq!(told[0], "call_1: booked");
    assert!(
        told[1].ends_with("; it may be tried again, perhaps with less to do"),
        "{}",
        told[1]
    );
    assert_eq!(line.counts(), (0, 0));
}
