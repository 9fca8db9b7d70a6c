//! Replies that the bus does not take: a call runs once all the same.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, Delivery, DeliveryHandler, Disposition, MessageEnvelope, MessagePublisher,
    MessageSubscriber, Reach, SubscribeOptions, Subscription, TopicPattern,
};
use serde_json::{Value, json};

use super::handler::ServiceHandler;
use crate::tool_services::tool_service::ToolService;
use crate::tool_services::wire::{ATTEMPT, ID};

/// A bus that refuses large messages, and the first ones for another reason.
#[derive(Debug, Default)]
struct Refusing {
    failures: AtomicU32,
    published: Mutex<Vec<Arc<MessageEnvelope>>>,
}

#[async_trait]
impl MessagePublisher for Refusing {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        let size = envelope.body.len();
        let limit = 1000;
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        let one_less = |failures: u32| failures.checked_sub(1);
        if self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_ok()
        {
            return Err(BusError::Rejected(topic.to_owned()));
        }
        self.published.lock().unwrap().push(envelope);
        Ok(Reach::Subscribers)
    }
}

#[async_trait]
impl MessageSubscriber for Refusing {
    async fn subscribe(
        &self,
        _: TopicPattern,
        _: &str,
        _: SubscribeOptions,
        _: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        Err(BusError::Closed)
    }
}

#[async_trait]
impl Bus for Refusing {
    async fn close(&self, _: Duration) -> CloseReport {
        CloseReport::default()
    }
}

/// A service that answers with as many letters as it is asked for, and counts its calls.
#[derive(Debug, Default)]
struct Letters(AtomicU32);

#[async_trait]
impl ToolService for Letters {
    async fn invoke(&self, _: &str, _: &Value, arguments: &Value) -> Result<Value, BoxError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok("x".repeat(arguments["letters"].as_u64().unwrap() as usize).into())
    }
}

/// The bodies of the replies to a request for this many letters; the bus refuses the first
/// `failures` of them.
async fn replies(letters: u32, failures: u32, attempt: u32) -> (Disposition, Vec<Value>, Vec<Option<String>>) {
    let bus = Arc::new(Refusing::default());
    let service = Arc::new(Letters::default());
    bus.failures.store(failures, Ordering::SeqCst);
    let handler = ServiceHandler {
        bus: bus.clone(),
        response: "replies".into(),
        service: service.clone(),
        time_limit: Duration::from_secs(1),
        max_attempts: 20,
    };
    let body = json!({"arguments": json!({"letters": letters}).to_string()}).to_string();
    let request = MessageEnvelope::new("request", body).with_header(ID, "1");
    let ended = handler
        .handle(Delivery::new("requests", request).with_attempt(attempt))
        .await;
    assert_eq!(service.0.load(Ordering::SeqCst), 1);
    let published = bus.published.lock().unwrap();
    let bodies = published
        .iter()
        .map(|reply| serde_json::from_slice(&reply.body).unwrap());
    let attempts = published.iter().map(|reply| reply.headers.get(ATTEMPT).cloned());
    (ended, bodies.collect(), attempts.collect())
}

#[tokio::test]
async fn a_result_that_is_too_large_for_the_bus_is_an_error_of_its_call() {
    let (ended, bodies, _) = replies(2000, 0, 1).await;
    assert_eq!(ended, Disposition::Ack);
    let [body] = bodies.as_slice() else {
        panic!("{bodies:?}")
    };
    let message = body["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the call has run, and its result is lost: a message of "),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_the_bus_refuses_is_published_again_and_its_call_does_not_run_again() {
    let (ended, bodies, _) = replies(2, 3, 1).await;
    let expected = json!({"error": null, "response": "xx", "end_of_stream": true});
    assert_eq!((ended, bodies), (Disposition::Ack, vec![expected]));
    let (ended, bodies, _) = replies(2, 4, 1).await;
    assert!(matches!(ended, Disposition::DeadLetter { .. }), "{ended:?}");
    assert_eq!(bodies, Vec::<Value>::new());
}

#[tokio::test]
async fn replies_to_a_request_that_came_again_say_so() {
    assert_eq!(replies(2, 0, 1).await.2, [None]);
    assert_eq!(replies(2, 0, 3).await.2, [Some("3".to_owned())]);
}
