//! The gateway as a whole.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Waker};
use std::time::Duration;

use rockbot_core::chat::{ChatRequest, ModelInfo};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::testing::conformance::{self, ChatScene};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tower::timeout::TimeoutLayer;
use tower::util::MapRequestLayer;
use tower::{ServiceBuilder, ServiceExt};

use super::*;
use crate::retry::RetryPolicy;
use crate::testing::call;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn it_is_idle_when_no_call_is_under_way() {
    let gateway = ModelGateway::new(ScriptedModel::new().hangs().says("done"));
    assert!(gateway.is_idle());
    let asking = tokio::spawn({
        let gateway = gateway.clone();
        async move { timeout(SECOND, gateway.chat(call())).await }
    });
    tokio::task::yield_now().await;
    assert!(!gateway.is_idle());
    let began = Instant::now();
    gateway.idle().await;
    assert_eq!(began.elapsed(), SECOND);
    asking.await.unwrap().unwrap_err();
    assert_eq!(gateway.chat(call()).await.unwrap().text, "done");
    gateway.idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_it_is_cancelled_or_late() {
    let gateway = ModelGateway::new(ScriptedModel::new().hangs().hangs());
    let mut late = call();
    late.cx = late.cx.with_deadline(Instant::now() + SECOND);
    assert_eq!(gateway.chat(late).await.unwrap_err().kind(), ChatErrorKind::TimedOut);

    let cancellation = CancellationToken::new();
    let mut unwanted = call();
    unwanted.cx = unwanted.cx.with_cancellation(cancellation.clone());
    let asking = gateway.chat(unwanted);
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        cancellation.cancel();
    };
    let (answer, ()) = tokio::join!(asking, cancel);
    assert_eq!(answer.unwrap_err().kind(), ChatErrorKind::Cancelled);
    assert!(gateway.is_idle());
}

/// Makes each call one of this tier.
fn at(tier: ModelTier) -> MapRequestLayer<impl Fn(ChatCall) -> ChatCall + Clone> {
    MapRequestLayer::new(move |mut call: ChatCall| {
        let mut request = (*call.request).clone();
        request.tier = Some(tier);
        call.request = request.into();
        call
    })
}

#[tokio::test(start_paused = true)]
async fn the_first_that_is_added_sees_the_call_first_and_stock_layers_fit() {
    let model = ScriptedModel::new().says("done").hangs();
    let gateway = ModelGateway::builder(model.clone())
        .tower_layer(at(ModelTier::Low))
        .tower_layer(at(ModelTier::High))
        .tower_layer(TimeoutLayer::new(SECOND))
        .build();
    gateway.chat(call()).await.unwrap();
    assert_eq!(model.requests()[0].tier, Some(ModelTier::High));
    assert_eq!(gateway.chat(call()).await.unwrap_err().kind(), ChatErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn parts_are_tower_layers() {
    let model = ScriptedModel::new().fails(ChatErrorKind::Overloaded).hangs();
    let other = ScriptedModel::new().says("other");
    let stack = ServiceBuilder::new()
        .layer(Fallback::to("other", other))
        .layer(Retry::default())
        .layer(Permits::default())
        .layer(Meter::default())
        .layer(TimeLimit::of(SECOND))
        .service(ChatService(Arc::new(model.clone())));
    // Then the script is at its end, which no retry helps: nor does another model.
    let error = stack.clone().oneshot(call()).await.unwrap_err();
    assert_eq!(ChatError::from(error).kind(), ChatErrorKind::Other);
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_keeps_the_promises_of_a_chat_client() {
    let make = async |scene| {
        let step = |model: ScriptedModel, _| match scene {
            ChatScene::Answers => model.says("three short words"),
            ChatScene::RateLimited => model.fails(ChatErrorKind::RateLimited),
            ChatScene::CutStream => model.fails(ChatErrorKind::CutStream),
            scene => {
                assert_eq!(scene, ChatScene::Hangs);
                model.hangs()
            }
        };
        // As many steps as the gateway takes with its retries.
        ModelGateway::new((0..20).fold(ScriptedModel::new().with_id("scripted"), step))
    };
    conformance::chat_client(make, ChatRequest::default()).await;
}

#[test]
fn it_describes_the_first_model_through_every_layer() {
    conformance::chat_wrapper(|client| {
        ModelGateway::builder(client)
            .fallback(Fallback::to("other", ScriptedModel::new()))
            .tower_layer(TimeoutLayer::new(SECOND))
            .default_layers(PermitLimits::default(), Meter::default())
            .build()
    });
}

#[tokio::test]
async fn layers_that_fail_keep_their_typed_error() {
    let gateway = ModelGateway::builder(ScriptedModel::new().fails(ChatErrorKind::RateLimited))
        .tower_layer(TimeoutLayer::new(SECOND))
        .build();
    assert_eq!(
        gateway.chat(call()).await.unwrap_err().kind(),
        ChatErrorKind::RateLimited
    );
}

/// Fails so often, and then answers; each time it takes a second and some steps on the way.
#[derive(Clone)]
struct Halting(Arc<AtomicUsize>);

impl Halting {
    fn failing(times: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(times)))
    }
}

#[async_trait]
impl ChatClient for Halting {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(SECOND).await;
        let left = self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(ChatError::new(ChatErrorKind::Overloaded, "not now")),
            Err(_) => Ok(ChatResponse::text("done")),
        }
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// The whole gateway with one permit: its model fails twice, the other one once, so a call is
/// tried again, passed on, and tried again there.
fn strained() -> (ModelGateway, Permits) {
    let permits = Permits::new(PermitLimits::serialized());
    let retry = Retry::new(RetryPolicy::default().with_max_attempts(2));
    let gateway = ModelGateway::builder(Halting::failing(2))
        .fallback(Fallback::to("other", Halting::failing(1)))
        .layer(retry)
        .layer(permits.clone())
        .layer(Meter::default())
        .layer(TimeLimit::of(SECOND * 10))
        .build();
    (gateway, permits)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_at_any_point_leaves_nothing_behind() {
    const STEP: Duration = Duration::from_millis(100);
    let mut has_ended = false;
    for polls in 0.. {
        let (gateway, permits) = strained();
        {
            // A call in front of it, so that it waits for its permit, too.
            let mut first = Some(gateway.chat(call()));
            let mut dropped = gateway.chat(call());
            let mut waker = Context::from_waker(Waker::noop());
            for poll in 0..polls {
                match &mut first {
                    Some(first) if poll < 5 => assert!(first.as_mut().poll(&mut waker).is_pending()),
                    _ => first = None,
                }
                has_ended = dropped.as_mut().poll(&mut waker).is_ready();
                if has_ended {
                    break;
                }
                // Not with each poll: what ends between two timers is to be dropped there, too.
                if poll % 3 == 2 {
                    tokio::time::advance(STEP).await;
                }
            }
        }
        assert_eq!(
            (permits.running(), permits.waiting()),
            (0, 0),
            "dropped after {polls} polls"
        );
        assert!(gateway.is_idle(), "dropped after {polls} polls");
        // The one permit is there again.
        let again = timeout(SECOND * 60, gateway.chat(call())).await;
        assert!(again.is_ok(), "dropped after {polls} polls");
        if has_ended {
            assert!(polls > 60, "it went through all of the gateway: {polls} polls");
            return;
        }
    }
}
