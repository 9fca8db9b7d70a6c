//! The limits of calls and of services.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rockbot::tool_services::{TooManyRequests, ToolService, ToolServiceServer, ToolServices};
use rockbot_core::BoxError;
use rockbot_core::messaging::{
    DeadLetters, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt, RetryPolicy,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolErrorCode;
use rockbot_host::bus::InProcessBus;
use serde_json::Value;
use tokio::time::sleep;

use super::{SECOND, SERVICE, Served, call, idle_agent, jokes, started};
use crate::support::host_of;

#[tokio::test(start_paused = true)]
async fn a_call_has_limits_for_each_message_for_all_of_them_and_for_their_size() {
    let bus = InProcessBus::new();
    let publisher = bus.clone();
    // A part a second, without an end.
    let _service = bus
        .on("tg.request.joke", "endless", move |delivery: Delivery| {
            let bus = publisher.clone();
            let id = delivery.envelope.headers["id"].clone();
            let arguments = String::from_utf8_lossy(&delivery.envelope.body).into_owned();
            async move {
                for _ in 0..if arguments.contains("once") { 1 } else { 100 } {
                    let body = r#"{"response": "12345", "end_of_stream": false}"#;
                    let reply = MessageEnvelope::new("reply", body).with_header("id", &id);
                    bus.publish("tg.response.joke", Arc::new(reply)).await.unwrap();
                    sleep(SECOND).await;
                }
                Disposition::Ack
            }
        })
        .await
        .unwrap();
    let limited = async |effect: &str, bytes| {
        let folder = jokes(effect);
        let tools = ToolServices::new().folder(folder.path());
        let tools = tools
            .message_time_limit(2 * SECOND)
            .time_limit(5 * SECOND)
            .max_result_bytes(bytes);
        let host = host_of(&ScriptedModel::new())
            .shared_bus(Arc::new(bus.clone()))
            .add(tools);
        (started(host).await, folder)
    };
    let (host, _folder) = limited("pure", 1000).await;
    let (code, text) = call(&host, r#"{"topic": "once"}"#).await.unwrap_err();
    assert_eq!(code, ToolErrorCode::Timeout);
    assert!(text.contains("it did not answer within 2 s"), "{text}");
    let (_, text) = call(&host, "{}").await.unwrap_err();
    assert!(text.contains("it did not answer within 5 s"), "{text}");
    sleep(200 * SECOND).await;
    let (host, _folder) = limited("mutating", 12).await;
    let (code, text) = call(&host, "{}").await.unwrap_err();
    assert_eq!(code, ToolErrorCode::OutcomeUnknown);
    assert!(text.contains("its answer is longer than 12 bytes"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_service_gets_the_request_again_after_a_delay() {
    let bus = InProcessBus::new();
    let folder = jokes("mutating");
    let attempts = Arc::new(AtomicU32::new(0));
    let began = tokio::time::Instant::now();
    let counted = Arc::clone(&attempts);
    let service = Served(move |_: &str, _: &Value, arguments: &Value| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst) + 1;
        if attempt < 3 || arguments["topic"] == "never" {
            Err(TooManyRequests::new("100 jokes wait").into())
        } else {
            Ok(format!("attempt {attempt}").into())
        }
    });
    let retry = RetryPolicy::default().with_first_delay(SECOND).with_max_attempts(3);
    let server = ToolServiceServer::described(SERVICE, service).unwrap().retry(retry);
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let host = idle_agent(&bus, folder.path()).await;
    assert_eq!(call(&host, "{}").await, Ok("attempt 3".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 3, "after one second, then after two");
    let (_, text) = call(&host, r#"{"topic": "never"}"#).await.unwrap_err();
    assert!(text.ends_with("too-many-requests: 100 jokes wait"), "{text}");
    assert_eq!(attempts.load(Ordering::SeqCst), 6);
    assert_eq!(bus.dead_letters(9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_service_has_a_time_limit_and_replies_under_the_right_id() {
    let bus = InProcessBus::new();
    #[derive(Debug)]
    struct Stuck;
    #[async_trait]
    impl ToolService for Stuck {
        async fn invoke(&self, _: &str, _: &Value, _: &Value) -> Result<Value, BoxError> {
            std::future::pending().await
        }
    }
    let server = ToolServiceServer::described(SERVICE, Stuck).unwrap().time_limit(SECOND);
    let _service = server.serve(Arc::new(bus.clone())).await.unwrap();
    let replies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&replies);
    let _listening = bus
        .on("tg.response.joke", "replies", move |delivery: Delivery| {
            let body: Value = serde_json::from_slice(&delivery.envelope.body).unwrap();
            let message = body["error"]["message"].as_str().unwrap().to_owned();
            seen.lock()
                .unwrap()
                .push((delivery.envelope.headers["id"].clone(), message));
            async { Disposition::Ack }
        })
        .await
        .unwrap();
    let send = async |id: Option<&str>, body: &str| {
        let envelope = MessageEnvelope::new("request", body.to_owned());
        let envelope = id
            .into_iter()
            .fold(envelope, |envelope, id| envelope.with_header("id", id));
        bus.publish("tg.request.joke", Arc::new(envelope)).await.unwrap();
    };
    send(Some("1"), "[]").await;
    send(None, r#"{"config": "["}"#).await;
    send(Some("3"), "null").await;
    send(Some("4"), "{}").await;
    sleep(2 * SECOND).await;
    let replies = replies.lock().unwrap().clone();
    let ids: Vec<_> = replies.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["1", "unknown", "3", "4"]);
    assert_eq!(replies[0].1, "the request is no JSON object");
    assert!(replies[1].1.starts_with("`config` is not JSON: "), "{}", replies[1].1);
    assert_eq!(replies[3].1, "the service took longer than 1 s");
}
