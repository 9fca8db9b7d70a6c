//! From a delivery to its handler: what cannot be handled becomes a dead letter with a reason,
//! and blocks no other message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use metrics_util::debugging::DebuggingRecorder;
use proptest::prelude::*;
use rockbot_core::context::{Origin, Trust};
use rockbot_core::messaging::{
    BusError, DeadLetter, DeadLetterReason, DeadLetters, Delivery, Disposition, HandlerError, Message, MessageContext,
    MessageEnvelope, MessageHandler, MessagePublisher, MessageSubscriberExt, RequestClient, RequestError,
    SubscribeOptions, headers,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{BoxError, MessageId};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::{AgentHost, AgentHostBuilder, MessageOptions, Stack};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep};
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{ServiceExt, layer::layer_fn, service_fn};

use crate::support::log::Log;
use crate::support::metrics::measured;
use crate::support::{Notes, settle};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than all attempts of a message take.
const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    n: u32,
}

impl Message for Order {
    const TYPE: &'static str = "shop.Order";
    const TOPIC: Option<&'static str> = Some("shop.order");
}

/// A host that takes what is published in the shop.
fn clerk(bus: &InProcessBus) -> AgentHostBuilder {
    AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .subscribe_to("shop.#")
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// The message `id`, about order number `n`.
fn order(id: &str, n: u32) -> MessageEnvelope {
    MessageEnvelope::of(&Order { n })
        .unwrap()
        .with_id(id)
        .with_source("shop")
}

fn raw(id: &str, message_type: &'static str, body: &str) -> MessageEnvelope {
    MessageEnvelope::new(message_type, body.to_owned())
        .with_id(id)
        .with_source("shop")
}

async fn publish(bus: &InProcessBus, envelope: MessageEnvelope) {
    bus.publish("shop.order", Arc::new(envelope)).await.unwrap();
}

/// A handler that notes its orders, and the notes.
fn noting() -> (
    impl Fn(Order, MessageContext) -> std::future::Ready<()> + Send + Sync,
    Notes,
) {
    let notes = Notes::default();
    let taken = notes.clone();
    let handler = move |order: Order, cx: MessageContext| {
        taken.add(format!("{} {}", cx.envelope().message_id, order.n));
        std::future::ready(())
    };
    (handler, notes)
}

/// The dead letters as message, attempts, reason and last error.
async fn letters(bus: &InProcessBus) -> Vec<(String, u32, DeadLetterReason, String)> {
    let line = |letter: DeadLetter| {
        let id = letter.envelope.message_id.to_string();
        (id, letter.attempts, letter.reason, letter.last_error)
    };
    bus.dead_letters(1000).await.unwrap().into_iter().map(line).collect()
}

fn rejected(id: &str, error: &str) -> (String, u32, DeadLetterReason, String) {
    (id.to_owned(), 1, DeadLetterReason::Rejected, error.to_owned())
}

fn exhausted(id: &str, error: &str) -> (String, u32, DeadLetterReason, String) {
    (id.to_owned(), 4, DeadLetterReason::Exhausted, error.to_owned())
}

/// A layer whose service is the function `call`.
fn layer<F, Fut>(
    call: F,
) -> impl tower::Layer<
    Stack<MessageContext, Disposition>,
    Service: tower::Service<MessageContext, Response = Disposition, Error = BoxError, Future: Send>
                 + Clone
                 + Send
                 + Sync,
> + Send
where
    F: Fn(Stack<MessageContext, Disposition>, MessageContext) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Disposition, BoxError>> + Send + 'static,
{
    layer_fn(move |inner: Stack<MessageContext, Disposition>| {
        let call = call.clone();
        service_fn(move |cx| call(inner.clone(), cx))
    })
}

struct Bookkeeper(Notes);

#[async_trait]
impl MessageHandler<Order> for Bookkeeper {
    async fn handle(&self, order: Order, cx: &MessageContext) -> Result<(), BoxError> {
        self.0.add(format!("{} booked {}", cx.identity().name(), order.n));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_of_every_shape_get_their_messages() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let (closure, closed) = noting();
    let tried = notes.clone();
    let trying = move |order: Order, _: MessageContext| {
        tried.add(format!("tried {}", order.n));
        async { Err::<(), _>(std::io::Error::other("no paper")) }
    };
    let host = clerk(&bus)
        .handle(closure)
        .handle_named::<Order, _>("shop.Booking", Bookkeeper(notes.clone()))
        .handle_named::<Order, _>("shop.Trial", trying);
    let _host = started(host).await;
    publish(&bus, order("1", 7)).await;
    publish(&bus, raw("2", "shop.Booking", r#"{"n":8,"unknown":true}"#)).await;
    publish(&bus, raw("3", "SHOP.TRIAL", r#"{"n":9}"#)).await;
    sleep(LONG).await;
    assert_eq!(closed.all(), ["1 7"]);
    assert_eq!(
        notes.all(),
        ["clerk booked 8", "tried 9", "tried 9", "tried 9", "tried 9"]
    );
    assert_eq!(letters(&bus).await, [exhausted("3", "no paper")]);
}

/// Poison between good messages: each becomes a dead letter with its reason, the good ones are
/// handled at once.
async fn check_poison(with: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder) {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let _host = started(with(clerk(&bus).handle(handler))).await;
    let poison = [
        raw("unknown", "shop.Nothing", "{}"),
        raw("no type", "", r#"{"n":1}"#),
        raw("no JSON", Order::TYPE, "{"),
        raw("not text", Order::TYPE, "\u{1}"),
        raw("nothing", Order::TYPE, ""),
        raw("missing", Order::TYPE, r#"{"m":1}"#),
        raw("undeliverable", Order::TYPE, r#"{"n":"sk-canary"}"#),
        raw("negative", Order::TYPE, r#"{"n":-4711}"#),
    ];
    for (n, message) in poison.into_iter().enumerate() {
        publish(&bus, message).await;
        publish(&bus, order(&n.to_string(), 7)).await;
    }
    settle().await;
    let handled: Vec<_> = (0..8).map(|n| format!("{n} 7")).collect();
    assert_eq!(notes.all(), handled);
    let expected = [
        ("unknown", "there is no handler for messages of type `shop.Nothing`"),
        ("no type", "there is no handler for messages of type ``"),
        (
            "no JSON",
            "the body does not fit `shop.Order`: it ends too early, at line 1 column 1",
        ),
        (
            "not text",
            "the body does not fit `shop.Order`: it is not JSON, at line 1 column 1",
        ),
        (
            "nothing",
            "the body does not fit `shop.Order`: it ends too early, at line 1 column 0",
        ),
        (
            "missing",
            "the body does not fit `shop.Order`: missing field `n`, at line 1 column 7",
        ),
        (
            "undeliverable",
            "the body does not fit `shop.Order`: a value is of another shape, at line 1 column 16",
        ),
        (
            "negative",
            "the body does not fit `shop.Order`: a value is of another shape, at line 1 column 10",
        ),
    ];
    assert_eq!(letters(&bus).await, expected.map(|(id, error)| rejected(id, error)));
}

#[tokio::test(start_paused = true)]
async fn a_poison_message_says_why_and_blocks_no_other() {
    check_poison(|host| host).await;
    check_poison(|host| {
        host.layer(ConcurrencyLimitLayer::new(1))
            .layer(layer(|inner, cx| inner.oneshot(cx)))
    })
    .await;
}

/// Delivers an order to a handler that ends like this, and returns its fate.
async fn check_ending(ends: fn(&MessageContext) -> Result<(), BoxError>, attempts: usize, error: &str) {
    let bus = InProcessBus::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let handler = move |order: Order, cx: MessageContext| {
        let ended = if order.n == 0 {
            counted.fetch_add(1, Ordering::SeqCst);
            ends(&cx)
        } else {
            Ok(())
        };
        async move { ended }
    };
    let _host = started(clerk(&bus).handle(handler)).await;
    publish(&bus, order("bad", 0)).await;
    publish(&bus, order("good", 1)).await;
    sleep(LONG).await;
    let reason = match attempts {
        1 => rejected("bad", error),
        _ => exhausted("bad", error),
    };
    assert_eq!(letters(&bus).await, [reason]);
    assert_eq!(asked.load(Ordering::SeqCst), attempts);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_tried_again_a_few_times_and_a_final_one_is_not() {
    check_ending(
        |_| Err(HandlerError::retry("the till is closed").into()),
        4,
        "the till is closed",
    )
    .await;
    check_ending(|_| Err(std::io::Error::other("no paper").into()), 4, "no paper").await;
    check_ending(|_| Err(HandlerError::dead_letter("never").into()), 1, "never").await;
    check_ending(|_| panic!("out of ink"), 4, "the handler panicked: out of ink").await;
    check_ending(
        |cx| {
            #[derive(Deserialize)]
            struct Invoice {}
            impl Message for Invoice {
                const TYPE: &'static str = "shop.Invoice";
            }
            cx.envelope().payload::<Invoice>()?;
            Ok(())
        },
        1,
        "a message of type `shop.Order` came where `shop.Invoice` was expected",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_its_own_that_does_not_fit_is_final_and_is_not_quoted() {
    check_ending(
        |cx| {
            #[derive(Deserialize)]
            struct Strict {
                #[allow(dead_code, reason = "never read: it does not fit")]
                n: Vec<bool>,
            }
            impl Message for Strict {
                const TYPE: &'static str = Order::TYPE;
            }
            cx.envelope().payload::<Strict>()?;
            Ok(())
        },
        1,
        "the body of a `shop.Order` message cannot be read: a value is of another shape, at line 1 column 6",
    )
    .await;
    check_ending(
        |_| {
            serde_json::from_str::<u32>(r#""sk-canary""#)?;
            Ok(())
        },
        4,
        "a value is of another shape, at line 1 column 11",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_stopped_and_the_next_message_is_handled() {
    let bus = InProcessBus::new();
    let handler = |order: Order, _: MessageContext| async move {
        if order.n == 0 {
            std::future::pending::<()>().await;
        }
    };
    let _host = started(
        clerk(&bus)
            .handle(handler)
            .message_options(MessageOptions::new().with_handler_time_limit(SECOND)),
    )
    .await;
    let began = Instant::now();
    publish(&bus, order("stuck", 0)).await;
    publish(&bus, order("good", 1)).await;
    until_a_letter(&bus).await;
    assert_eq!(
        letters(&bus).await,
        [exhausted("stuck", "the handler took longer than 1s")]
    );
    // Four attempts of a second, and the pauses between them.
    let expected = Duration::from_millis(4 * 1000 + 200 + 400 + 800);
    assert!((expected..expected + Duration::from_millis(10)).contains(&began.elapsed()));
}

/// Waits, in paused time, until there is a dead letter.
async fn until_a_letter(bus: &InProcessBus) {
    while letters(bus).await.is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_in_a_layer_is_not_the_handlers_time() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let noted = notes.clone();
    let handler = move |order: Order, cx: MessageContext| {
        let noted = noted.clone();
        async move {
            sleep(Duration::from_millis(800)).await;
            noted.add(format!("{} at attempt {}", order.n, cx.delivery().attempt));
        }
    };
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .subscribe_with("shop.#", SubscribeOptions::new().with_concurrency(3))
        .handle(handler)
        .layer(ConcurrencyLimitLayer::new(1))
        .message_options(MessageOptions::new().with_handler_time_limit(SECOND));
    let _host = started(host).await;
    for n in 1..=3 {
        publish(&bus, order(&n.to_string(), n)).await;
    }
    sleep(LONG).await;
    assert_eq!(notes.all(), ["1 at attempt 1", "2 at attempt 1", "3 at attempt 1"]);
}

/// Delivers an order under this layer, and returns its fate and the number of times its handler
/// ran.
async fn check_layer(
    with: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder,
    runs: usize,
    expected: &[(String, u32, DeadLetterReason, String)],
) {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let _host = started(with(clerk(&bus).handle(handler))).await;
    publish(&bus, order("1", 7)).await;
    sleep(LONG).await;
    assert_eq!((notes.all().len(), letters(&bus).await), (runs, expected.to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_layer_decides_and_never_ends_the_host() {
    let fails = |_, _| async { Err::<Disposition, BoxError>("no guard on duty".into()) };
    let failed = [exhausted("1", "a message layer failed: no guard on duty")];
    check_layer(|host| host.layer(layer(fails)), 0, &failed).await;

    let refuses = |_, _| async { Err::<Disposition, BoxError>(HandlerError::dead_letter("no badge").into()) };
    let refused = [rejected("1", "a message layer failed: no badge")];
    check_layer(|host| host.layer(layer(refuses)), 0, &refused).await;

    let panics = |_, cx: MessageContext| async move {
        assert!(cx.envelope().source.is_empty(), "asleep");
        Ok(Disposition::Ack)
    };
    let panicked = [exhausted("1", "a message layer panicked: asleep")];
    check_layer(|host| host.layer(layer(panics)), 0, &panicked).await;

    let at_once = |inner: Stack<MessageContext, Disposition>, cx: MessageContext| {
        assert!(cx.envelope().source.is_empty(), "asleep");
        inner.oneshot(cx)
    };
    check_layer(|host| host.layer(layer(at_once)), 0, &panicked).await;
    check_layer(|host| host.layer(layer_fn(|_| NeverReady)), 0, &panicked).await;

    let never = |_, _| async { Ok::<_, BoxError>(Disposition::dead_letter("not for us")) };
    check_layer(|host| host.layer(layer(never)), 0, &[rejected("1", "not for us")]).await;
    let swallows = |_, _| async { Ok::<_, BoxError>(Disposition::Ack) };
    check_layer(|host| host.layer(layer(swallows)), 0, &[]).await;

    let twice = |inner: Stack<MessageContext, Disposition>, cx: MessageContext| async move {
        inner.clone().oneshot(cx.clone()).await?;
        inner.oneshot(cx).await
    };
    check_layer(|host| host.layer(layer(twice)), 2, &[]).await;
    let after = |inner: Stack<MessageContext, Disposition>, cx: MessageContext| async move {
        inner.oneshot(cx).await?;
        Ok::<_, BoxError>(Disposition::dead_letter("kept for the auditor"))
    };
    check_layer(
        |host| host.layer(layer(after)),
        1,
        &[rejected("1", "kept for the auditor")],
    )
    .await;

    let hangs = |_, _| std::future::pending::<Result<Disposition, BoxError>>();
    let late = [exhausted("1", "a message layer failed: request timed out")];
    check_layer(
        |host| host.layer(TimeoutLayer::new(SECOND)).layer(layer(hangs)),
        0,
        &late,
    )
    .await;
}

/// A service that breaks down when it is asked whether it is ready.
#[derive(Clone)]
struct NeverReady;

impl tower::Service<MessageContext> for NeverReady {
    type Response = Disposition;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Disposition, BoxError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), BoxError>> {
        panic!("asleep")
    }

    fn call(&mut self, _: MessageContext) -> Self::Future {
        std::future::ready(Ok(Disposition::Ack))
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_layer_added_sees_the_message_first_and_the_verdict_last() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let noting = |name: &'static str| {
        let before = notes.clone();
        let after = notes.clone();
        let before = MapRequestLayer::new(move |cx: MessageContext| {
            before.add(format!("{name} sees {}", cx.envelope().message_id));
            cx
        });
        let after = MapResponseLayer::new(move |verdict: Disposition| {
            after.add(format!("{name} sees {verdict:?}"));
            verdict
        });
        (before, after)
    };
    let (handler, _) = self::noting();
    let (one, one_after) = noting("first");
    let (two, two_after) = noting("second");
    let host = clerk(&bus)
        .layer(one)
        .layer(one_after)
        .handle(handler)
        .layer(two)
        .layer(two_after);
    let _host = started(host).await;
    publish(&bus, order("1", 7)).await;
    settle().await;
    let expected = ["first sees 1", "second sees 1", "second sees Ack", "first sees Ack"];
    assert_eq!(notes.all(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thousand_layers_fit_on_the_stack() {
    let bus = InProcessBus::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut host = clerk(&bus).handle(move |order: Order, _: MessageContext| {
        tell.send(order.n).unwrap();
        async {}
    });
    for _ in 0..1000 {
        host = host.layer(layer(|inner, cx| inner.oneshot(cx)));
    }
    let host = started(host).await;
    publish(&bus, order("1", 7)).await;
    assert_eq!(told.recv().await, Some(7));
    host.shutdown(SECOND).await;
}

/// Each message is delivered one to three times, in any order, and may ask for another attempt
/// first.
async fn check_deliveries(deliveries: Vec<(u8, bool)>) {
    let bus = InProcessBus::new();
    let done = Arc::new(Mutex::new(BTreeMap::<u32, usize>::new()));
    let counted = done.clone();
    let failed = Arc::new(Mutex::new(BTreeSet::new()));
    let handler = move |order: Order, cx: MessageContext| {
        let counted = counted.clone();
        let failed = failed.clone();
        async move {
            // While this one runs, its duplicates come.
            sleep(Duration::from_millis(u64::from(order.n) * 7 % 20)).await;
            let fails = cx.envelope().headers.contains_key("fails") && failed.lock().unwrap().insert(order.n);
            if fails {
                return Err(HandlerError::retry("not yet"));
            }
            *counted.lock().unwrap().entry(order.n).or_default() += 1;
            Ok(())
        }
    };
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .subscribe_with("shop.#", SubscribeOptions::new().with_concurrency(4))
        .handle(handler);
    let _host = started(host).await;
    let mut expected = BTreeMap::new();
    for (n, fails) in deliveries {
        let message = order(&n.to_string(), n.into());
        let message = if fails {
            message.with_header("fails", "once")
        } else {
            message
        };
        publish(&bus, message).await;
        expected.insert(u32::from(n), 1);
    }
    sleep(LONG).await;
    assert_eq!(letters(&bus).await, []);
    assert_eq!(*done.lock().unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_handled_once_however_often_and_in_whatever_order_it_comes(
        deliveries in proptest::collection::vec((0u8..12, any::<bool>()), 0..36),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check_deliveries(deliveries));
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_id_of_another_sender_is_another_message() {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let _host = started(clerk(&bus).handle(handler)).await;
    publish(&bus, order("1", 7)).await;
    publish(&bus, order("1", 8).with_source("another shop")).await;
    publish(&bus, order("1", 9)).await;
    settle().await;
    assert_eq!(notes.all(), ["1 7", "1 8"]);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_messages_are_remembered_and_twenty_thousand_are_not() {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let _host = started(clerk(&bus).handle(handler)).await;
    for n in 0..=20_000 {
        publish(&bus, order(&n.to_string(), 7)).await;
    }
    for again in ["0", "20000", "10001"] {
        publish(&bus, order(again, 8)).await;
    }
    sleep(SECOND).await;
    assert_eq!(notes.all()[20_001..], ["0 8"]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_stuck_message_gets_its_own_time() {
    let bus = InProcessBus::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let handler = move |_: Order, _: MessageContext| {
        let stuck = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if stuck {
                std::future::pending().await
            } else {
                sleep(Duration::from_millis(10)).await
            }
        }
    };
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .subscribe_with("shop.#", SubscribeOptions::new().with_concurrency(2))
        .handle(handler)
        .message_options(MessageOptions::new().with_handler_time_limit(SECOND));
    let _host = started(host).await;
    publish(&bus, order("1", 7)).await;
    publish(&bus, order("1", 7)).await;
    sleep(Duration::from_millis(1500)).await;
    assert_eq!((runs.load(Ordering::SeqCst), letters(&bus).await), (2, vec![]));
}

/// A handler that tells what it was told about its message.
#[derive(Debug, PartialEq)]
struct Told {
    trust: Trust,
    principal: String,
    left: Option<Duration>,
    origin: Origin,
}

/// Delivers a message with these headers over a bus of this trust, and returns what the handler
/// knows of it.
async fn told(trust: Trust, written: &[(&str, &str)]) -> Told {
    let mut options = InProcessBusOptions::default();
    options.trust = trust;
    let bus = InProcessBus::with_options(options);
    let (tell, mut told) = mpsc::unbounded_channel();
    let handler = move |_: Order, cx: MessageContext| {
        let call = cx.call_context("s");
        let principal = call.principal().to_string();
        let trust = call.trust();
        let left = call.time_left();
        let origin = call.origin();
        tell.send(Told {
            trust,
            principal,
            left,
            origin,
        })
        .unwrap();
        async {}
    };
    let _host = started(clerk(&bus).handle(handler)).await;
    let mut message = order("1", 7);
    for (name, value) in written {
        message = message.with_header(*name, *value);
    }
    publish(&bus, message).await;
    told.recv().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_channel_says_whom_to_trust_and_the_message_does_not() {
    let says = |trust, principal: &str, left| Told {
        trust,
        principal: principal.to_owned(),
        left,
        origin: Origin::Bus,
    };
    let liar = [(headers::CONTENT_TRUST, "system"), (headers::PRINCIPAL, "boss")];
    assert_eq!(told(Trust::User, &liar).await, says(Trust::User, "boss", None));
    assert_eq!(told(Trust::Host, &liar).await, says(Trust::User, "boss", None));
    let stranger = says(Trust::Untrusted, "untrusted/boss", None);
    assert_eq!(told(Trust::Untrusted, &liar).await, stranger);
    assert_eq!(told(Trust::Untrusted, &[]).await.principal, "untrusted/");
    assert_eq!(told(Trust::User, &[]).await.principal, "local");
    for (written, left) in [
        ("-1", None),
        ("0", Some(Duration::ZERO)),
        ("1500", Some(Duration::from_millis(1500))),
        ("999999999999999999999999", Some(24 * LONG)),
        ("soon", None),
    ] {
        let cx = told(Trust::User, &[(headers::TIMEOUT_MS, written)]).await;
        assert_eq!(cx.left, left, "{written}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_only_where_answers_may_go() {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let host = clerk(&bus)
        .handle(handler)
        .message_options(MessageOptions::new().with_reply_topics(["desk.*", "shop.*"]));
    let _host = started(host).await;
    let long = format!("desk.{}", "x".repeat(300));
    let topics = [
        "desk.1",
        "shop.order",
        "desk.#",
        "desk..1",
        "",
        &long,
        "elsewhere",
        "desk.a.b",
    ];
    for (n, topic) in topics.into_iter().enumerate() {
        publish(&bus, order(&n.to_string(), 7).with_reply_to(topic)).await;
    }
    settle().await;
    assert_eq!(notes.all(), ["0 7"]);
    let unusable = "its reply topic cannot be used: topic";
    let expected = [
        (
            "1",
            "its reply topic `shop.order` is one that this agent takes messages from: reply elsewhere, or have the agent subscribe to narrower topics".to_owned(),
        ),
        (
            "2",
            format!("{unusable} `desk.#` has a wildcard: publish under a topic without `*` and `#`"),
        ),
        (
            "3",
            format!("{unusable} `desk..1` has an empty segment: put one word between dots"),
        ),
        (
            "4",
            format!("{unusable} `` has an empty segment: put one word between dots"),
        ),
        (
            "5",
            "its reply topic cannot be used: a topic of 305 bytes is too long: use at most 255".to_owned(),
        ),
        (
            "6",
            "its reply topic `elsewhere` is not in the list of topics that this agent may reply to".to_owned(),
        ),
        (
            "7",
            "its reply topic `desk.a.b` is not in the list of topics that this agent may reply to".to_owned(),
        ),
    ];
    let expected: Vec<_> = expected.iter().map(|(id, error)| rejected(id, error)).collect();
    assert_eq!(letters(&bus).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_larger_than_the_bus_carries_is_refused_and_many_headers_are_not() {
    let bus = InProcessBus::new();
    let (handler, notes) = noting();
    let _host = started(clerk(&bus).handle(handler)).await;
    let huge = raw("huge", Order::TYPE, &"x".repeat(100 << 20));
    let refused = bus.publish("shop.order", Arc::new(huge)).await;
    assert!(matches!(refused, Err(BusError::TooLarge { .. })), "{refused:?}");
    let mut many = order("many", 7);
    many.headers = (0..10_000).map(|n| (format!("h{n}"), "v".to_owned())).collect();
    publish(&bus, many).await;
    settle().await;
    assert_eq!(notes.all(), ["many 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_correlation_id_that_is_used_twice_never_mixes_up_answers() {
    let bus = InProcessBus::new();
    let notes = Notes::default();
    let answering = |order: Order, cx: MessageContext| async move { cx.reply(&order).await.map(drop) };
    let _host = started(clerk(&bus).handle(answering)).await;
    let noted = notes.clone();
    let listener = move |delivery: Delivery| {
        let order: Order = delivery.envelope.payload().unwrap();
        noted.add(format!("{} {}", delivery.topic, order.n));
        async { Disposition::Ack }
    };
    let _listening = bus.on("desk.*", "desks", listener).await.unwrap();
    for (n, desk) in [(1, "desk.one"), (2, "desk.two")] {
        let question = order(&n.to_string(), n).with_reply_to(desk).with_correlation_id("c");
        publish(&bus, question).await;
    }
    settle().await;
    assert_eq!(notes.all(), ["desk.one 1", "desk.two 2"]);
}

#[tokio::test(start_paused = true)]
async fn each_message_is_measured_and_names_from_outside_make_no_series() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let bus = InProcessBus::new();
    let handler = |order: Order, _: MessageContext| async move {
        match order.n {
            0 => Err(HandlerError::retry("not yet")),
            _ => Ok(()),
        }
    };
    let _host = started(clerk(&bus).handle(handler)).await;
    for n in 0..3 {
        publish(&bus, order(&n.to_string(), n)).await;
    }
    publish(&bus, order("2", 2)).await;
    for n in 0..100 {
        let message = MessageEnvelope::new(format!("shop.Type{n}"), "{}");
        publish(&bus, message).await;
    }
    sleep(LONG).await;
    let dispatch = |message_type, result| {
        let name = "rockbot.pipeline.dispatch.duration";
        format!("{name} rockbot.message_type={message_type} rockbot.result={result}")
    };
    let expected = [
        (dispatch("_unknown", "deadletter"), 100),
        (dispatch("shop.Order", "ack"), 3),
        (dispatch("shop.Order", "retry"), 4),
        ("rockbot.pipeline.duplicates".to_owned(), 1),
    ];
    let mut measured = measured(&snapshotter);
    measured.retain(|name, _| name.starts_with("rockbot.pipeline."));
    assert_eq!(measured, BTreeMap::from(expected));
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_stays_one_short_line() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let bus = InProcessBus::new();
    let nasty = format!("\u{1b}[31mred\r\nINFO forged {}", "x".repeat(10 << 20));
    let fails = nasty.clone();
    let handler = move |order: Order, _: MessageContext| {
        let fails = fails.clone();
        async move {
            match order.n {
                0 => Err(HandlerError::dead_letter(fails)),
                _ => panic!("{fails}"),
            }
        }
    };
    let _host = started(clerk(&bus).handle(handler)).await;
    publish(
        &bus,
        order(&nasty, 0).with_source(&*nasty).with_header("traceparent", &nasty),
    )
    .await;
    publish(&bus, order("2", 1)).await;
    publish(&bus, MessageEnvelope::new(nasty.clone(), "{}")).await;
    publish(&bus, order("4", 0).with_reply_to("\u{1b}[31m\r\n")).await;
    bus.publish("shop.\u{1b}[31m\r\n", Arc::new(order("5", 0)))
        .await
        .unwrap();
    sleep(LONG).await;
    assert_eq!(letters(&bus).await.len(), 5);
    let lines = log.lines();
    assert!(
        lines.iter().any(|line| line.contains(r"\u{1b}[31mred\r\nINFO forged")),
        "{lines:#?}"
    );
    for line in lines {
        let short: String = line.chars().take(200).collect();
        assert!(
            line.len() < 1000 && !line.contains(char::is_control),
            "{} bytes: {short:?}",
            line.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_a_message_is_in_no_log_and_no_reason() {
    const CANARY: &str = "sk-canary-4711";
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _metrics = metrics::set_default_local_recorder(&recorder);
    let bus = InProcessBus::new();
    let (handler, _) = noting();
    let _host = started(clerk(&bus).handle(handler).serve_users().serve_tools()).await;
    let secret = |message: MessageEnvelope| message.with_header("authorization", format!("Bearer {CANARY}"));
    let bodies = [
        format!(r#"{{"n":"{CANARY}"}}"#),
        format!(r#"{{"n":{CANARY}}}"#),
        format!(r#""{CANARY}""#),
        format!(r#"{{"{CANARY}":1}}"#),
        r#"{"n":1}"#.to_owned(),
    ];
    for (n, body) in bodies.iter().enumerate() {
        publish(&bus, secret(raw(&n.to_string(), Order::TYPE, body))).await;
    }
    publish(&bus, secret(raw("unknown", "shop.Nothing", &bodies[0]))).await;
    for (n, (topic, message_type)) in [
        ("user.message", "RockBot.UserProxy.UserMessage"),
        ("user.feedback", "RockBot.UserProxy.UserFeedback"),
        ("tool.invoke", "RockBot.Tools.ToolInvokeRequest"),
        ("approval.decision", "rockbot.Approval"),
    ]
    .into_iter()
    .enumerate()
    {
        let body =
            format!(r#"{{"sessionId":{{"{CANARY}":1}},"toolCallId":["{CANARY}"],"argsHash":"{CANARY}","turn":"t"}}"#);
        let message = secret(raw(&format!("u{n}"), message_type, &body));
        bus.publish(topic, Arc::new(message)).await.unwrap();
    }
    sleep(LONG).await;
    let letters = letters(&bus).await;
    assert_eq!(letters.len(), 9, "{letters:#?}");
    let reasons = format!("{letters:?}");
    assert!(!reasons.contains(CANARY), "{reasons}");
    let lines = log.lines().join("\n");
    assert!(
        lines.contains("message rejected as a dead letter") && !lines.contains(CANARY),
        "{lines}"
    );
    let metrics = format!("{:?}", snapshotter.snapshot().into_vec());
    assert!(!metrics.contains(CANARY), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_can_be_sent_again_and_is_then_handled() {
    let bus = InProcessBus::new();
    let open = Arc::new(Semaphore::new(0));
    let asked = open.clone();
    let handler = move |_: Order, _: MessageContext| {
        let is_open = asked.available_permits() > 0;
        async move { is_open.then_some(()).ok_or_else(|| HandlerError::dead_letter("closed")) }
    };
    let _host = started(clerk(&bus).handle(handler)).await;
    publish(&bus, order("1", 7)).await;
    settle().await;
    let id = MessageId::from("1");
    let letter = bus.take_dead_letter("clerk.shop-__", &id).await.unwrap().unwrap();
    open.add_permits(1);
    bus.publish(&letter.topic, letter.envelope).await.unwrap();
    settle().await;
    assert!(letters(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_no_handler_can_answer_fails_at_once() {
    let bus = InProcessBus::new();
    let refuse = |_: Order, _: MessageContext| async { Err::<(), _>(HandlerError::dead_letter("sold out")) };
    let _host = started(clerk(&bus).handle(refuse)).await;
    let client = RequestClient::new(Arc::new(bus.clone()), "shop");
    let refused = async |envelope: MessageEnvelope| match client.call("shop.order", envelope).await {
        Err(RequestError::Refused(refusal)) => refusal.message,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(order("1", 7)).await, "sold out");
    let unknown = MessageEnvelope::new("shop.Unknown", "{}");
    assert_eq!(
        refused(unknown).await,
        "there is no handler for messages of type `shop.Unknown`"
    );
}
