//! People who write to the agent over a bus: one final reply to each message, whatever becomes of
//! it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatErrorKind, Role};
use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeadLetters, Delivery, DeliveryHandler, Disposition, MessageEnvelope, MessagePublisher,
    MessagePublisherExt, MessageSubscriber, MessageSubscriberExt, Reach, RequestError, SubscribeOptions, Subscription,
    TopicPattern, headers,
};
use rockbot_core::store::{ConversationQuery, FeedbackSignal, FeedbackStore, InMemoryFeedbackStore, TimelineStore};
use rockbot_core::testing::{ManualClock, ScriptedModel, mock_tool};
use rockbot_core::turn::{Budget, BusyPolicy, TurnOutcome};
use rockbot_core::user::{
    AgentReply, ConversationHistoryRequest, ConversationHistoryResponse, UserFeedback, UserMessage, UserProxy,
};
use rockbot_core::{BoxError, Principal, Timestamp};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::{AgentHost, AgentHostBuilder, MessageOptions, Stack, Stores, TurnCall, UserOptions};
use rockbot_store::file::{FileTurnJournal, JournalOptions};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::timeout::TimeoutLayer;
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{ServiceExt, layer::layer_fn, service_fn};

use crate::support::journal::{Counting, DiskFull};
use crate::support::{Notes, noting_tool, settle, transcript};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(3600);

fn serving(model: &ScriptedModel, bus: &InProcessBus) -> AgentHostBuilder {
    AgentHost::builder("clerk")
        .chat(model.clone())
        .bus(bus.clone())
        .serve_users()
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

fn proxy(bus: &InProcessBus, id: &str) -> UserProxy {
    let bus: Arc<dyn Bus> = Arc::new(bus.clone());
    UserProxy::new(bus, id)
}

fn says(content: &str) -> AgentReply {
    AgentReply::new("s", "clerk", content)
}

fn message(id: &str, text: &str) -> MessageEnvelope {
    MessageEnvelope::of(&UserMessage::new("s", text))
        .unwrap()
        .with_id(id)
        .with_source("desk")
        .with_reply_to("desk")
        .with_correlation_id(format!("about {id}"))
}

/// Everything that was published under a topic.
#[derive(Clone)]
struct Inbox {
    bus: InProcessBus,
    got: Arc<Mutex<Vec<Arc<MessageEnvelope>>>>,
    _listening: Arc<Subscription>,
}

impl Inbox {
    async fn of(bus: &InProcessBus, topic: &str) -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let taken = got.clone();
        let listener = move |delivery: Delivery| {
            taken.lock().unwrap().push(delivery.envelope);
            async { Disposition::Ack }
        };
        let listening = bus.on(topic, &format!("inbox of {topic}"), listener).await.unwrap();
        Self {
            bus: bus.clone(),
            got,
            _listening: Arc::new(listening),
        }
    }

    async fn send(&self, message: MessageEnvelope) {
        self.bus.publish("user.message", Arc::new(message)).await.unwrap();
    }

    /// The replies as `correlation: content`, reports in brackets.
    fn replies(&self) -> Vec<String> {
        let line = |envelope: &Arc<MessageEnvelope>| {
            let reply: AgentReply = envelope.payload().unwrap();
            let correlation = envelope.correlation_id.as_deref().unwrap_or("nothing");
            if reply.is_final {
                format!("{correlation}: {}", reply.content)
            } else {
                format!("{correlation}: [{}]", reply.content)
            }
        };
        self.got.lock().unwrap().iter().map(line).collect()
    }

    fn ids(&self) -> Vec<String> {
        let got = self.got.lock().unwrap();
        got.iter().map(|envelope| envelope.message_id.to_string()).collect()
    }
}

async fn dead_letters(bus: &InProcessBus) -> Vec<String> {
    let letters = bus.dead_letters(100).await.unwrap();
    letters.into_iter().map(|letter| letter.last_error).collect()
}

/// The one final reply to a message `Hi!` of a host that is made like this.
async fn check_reply(model: ScriptedModel, with: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder, expected: &str) {
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let _host = started(with(serving(&model, &bus))).await;
    inbox.send(message("1", "Hi!")).await;
    sleep(LONG).await;
    let finals: Vec<_> = inbox
        .replies()
        .into_iter()
        .filter(|reply| !reply.contains(": ["))
        .collect();
    assert_eq!(finals, [format!("about 1: {expected}")]);
}

fn same(host: AgentHostBuilder) -> AgentHostBuilder {
    host
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_turn_is_one_final_reply() {
    let model = ScriptedModel::new;
    check_reply(model().says("Hello."), same, "Hello.").await;
    check_reply(
        model().says(" ").says("").says("").says(""),
        same,
        "The model gave no answer: it returned an empty answer.",
    )
    .await;
    check_reply(
        model().fails(ChatErrorKind::Auth),
        same,
        "The model could not be asked: the script of the model says so",
    )
    .await;
    check_reply(
        model().calls("nothing", json!({})).says("No such tool."),
        same,
        "No such tool.",
    )
    .await;
    let (broken, _) = mock_tool("work");
    let breaking = |host: AgentHostBuilder| host.tool(broken);
    check_reply(
        model().calls("work", json!({})).says("It broke."),
        breaking,
        "It broke.",
    )
    .await;
    let short = |host: AgentHostBuilder| {
        host.tool(noting_tool("look").0)
            .budget(Budget::default().with_max_model_calls(2))
    };
    check_reply(
        model().calls("look", json!({})).says("That far I got."),
        short,
        "That far I got.",
    )
    .await;
    let late = |host: AgentHostBuilder| host.budget(Budget::default().with_max_wall_clock(SECOND));
    check_reply(model().hangs().says("Late."), late, "Late.").await;
}

type Turns = Stack<TurnCall, TurnOutcome>;

/// A turn layer whose service is the function `call`.
fn with_layer<F, Fut>(call: F) -> impl FnOnce(AgentHostBuilder) -> AgentHostBuilder
where
    F: Fn(Turns, TurnCall) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<TurnOutcome, BoxError>> + Send + 'static,
{
    let layer = layer_fn(move |inner: Turns| {
        let call = call.clone();
        service_fn(move |turn| call(inner.clone(), turn))
    });
    move |host| host.turn_layer(layer)
}

fn hello() -> ScriptedModel {
    ScriptedModel::new().says("Hello, the PIN is 1234.")
}

#[tokio::test(start_paused = true)]
async fn what_a_turn_layer_makes_of_an_outcome_is_what_the_user_gets() {
    let redact = |host: AgentHostBuilder| {
        host.turn_layer(MapResponseLayer::new(|mut outcome: TurnOutcome| {
            outcome.text = outcome.text.replace("1234", "****");
            outcome
        }))
    };
    check_reply(hello(), redact, "Hello, the PIN is ****.").await;

    let refuses = |_, _| async { Err::<TurnOutcome, BoxError>("the office is closed".into()) };
    let refused = "This message was not accepted: the office is closed";
    check_reply(ScriptedModel::new(), with_layer(refuses), refused).await;

    let by_itself = |inner: Turns, turn: TurnCall| async move {
        let mut outcome = inner.oneshot(turn).await?;
        outcome.text = "By itself.".to_owned();
        Ok::<_, BoxError>(outcome)
    };
    check_reply(hello(), with_layer(by_itself), "By itself.").await;

    let of_its_own = |inner: Turns, turn: TurnCall| async move {
        let mut outcome = inner.oneshot(TurnCall::new(turn.request, turn.progress)).await?;
        outcome.text = "Of its own.".to_owned();
        Ok::<_, BoxError>(outcome)
    };
    check_reply(hello(), with_layer(of_its_own), "Of its own.").await;

    let twice = |inner: Turns, turn: TurnCall| async move {
        inner.clone().oneshot(turn.clone()).await?;
        inner.oneshot(turn).await
    };
    check_reply(hello(), with_layer(twice), "Hello, the PIN is 1234.").await;
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_a_turn_layer_does_not_let_through_does_not_reach_the_user() {
    let fails = |inner: Turns, turn: TurnCall| async move {
        inner.oneshot(turn).await?;
        Err::<TurnOutcome, BoxError>("the censor is ill".into())
    };
    let failed = "This message could not be answered: a turn layer failed: the censor is ill.";
    check_reply(hello(), with_layer(fails), failed).await;

    let panics = |inner: Turns, turn: TurnCall| async move {
        let outcome = inner.oneshot(turn).await?;
        assert!(outcome.text.is_empty(), "the censor died");
        Ok::<_, BoxError>(outcome)
    };
    let broke = "This message could not be answered: a turn layer failed: it panicked; see the log for the cause.";
    check_reply(hello(), with_layer(panics), broke).await;

    let hangs = |inner: Turns, turn: TurnCall| async move {
        inner.oneshot(turn).await?;
        std::future::pending::<Result<TurnOutcome, BoxError>>().await
    };
    let late = "This message could not be answered: a turn layer exceeded its time limit.";
    check_reply(hello(), with_layer(hangs), late).await;

    let timed = |host: AgentHostBuilder| host.turn_layer(TimeoutLayer::new(SECOND));
    let timed_out = "This message could not be answered: a turn layer failed: request timed out.";
    check_reply(ScriptedModel::new().hangs(), timed, timed_out).await;
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_a_layer_gives_by_itself_is_the_reply_and_no_turn_runs() {
    let model = ScriptedModel::new();
    let cached = |_, turn: TurnCall| async move {
        let outcome = json!({
            "turn": turn.request.turn_id(), "status": "answered", "text": "As I said.",
            "usage": {"input": 0, "output": 0}, "modelCalls": 0,
        });
        Ok::<TurnOutcome, BoxError>(serde_json::from_value(outcome)?)
    };
    check_reply(model.clone(), with_layer(cached), "As I said.").await;
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_a_turn_is_refused_in_words() {
    let model = ScriptedModel::new().says("Hello.");
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let _host = started(serving(&model, &bus)).await;
    inbox.send(message("blank", " \n")).await;
    inbox.send(message("1", "Hi!")).await;
    settle().await;
    inbox
        .send(message("1", "Something else.").with_correlation_id("other words"))
        .await;
    let elsewhere = UserMessage::new("s", "Hi!").with_target_agent("another");
    inbox
        .send(MessageEnvelope::of(&elsewhere).unwrap().with_reply_to("desk"))
        .await;
    sleep(LONG).await;
    let long = UserMessage::new("s".repeat(100_000), "Hi!");
    let long = MessageEnvelope::of(&long)
        .unwrap()
        .with_id("long")
        .with_reply_to("desk");
    inbox.send(long).await;
    sleep(LONG).await;
    let mut replies = inbox.replies();
    let expected = "long: This message cannot be answered: the session of the message has 100000 bytes: use one of at most \
                    1024 bytes.";
    assert_eq!(replies.pop().unwrap().replace("nothing", "long"), expected);
    assert_eq!(
        replies[..2],
        [
            "about blank: The message is empty: write what you would like to know.",
            "about 1: Hello.",
        ]
    );
    assert!(
        replies[2].starts_with("other words: This message cannot be answered: "),
        "{replies:?}"
    );
    assert_eq!((replies.len(), model.requests().len()), (3, 1));
    assert_eq!(dead_letters(&bus).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_agent_that_is_meant_is_found_without_case() {
    let model = ScriptedModel::new().says("Hello.");
    let bus = InProcessBus::new();
    let _host = started(serving(&model, &bus)).await;
    let meant = UserMessage::new("s", "Hi!").with_target_agent("CLERK");
    assert_eq!(
        proxy(&bus, "test").send_message(&meant, |_| {}).await.unwrap(),
        says("Hello.")
    );
}

/// A host whose model calls `work`, which the handle answers, then says 1, 2, 3.
fn working() -> ScriptedModel {
    ScriptedModel::new()
        .calls("work", json!({}))
        .says("1")
        .says("2")
        .says("3")
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_is_answered_again_but_not_run_again() {
    let model = working();
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let (work, mut handle) = mock_tool("work");
    let _host = started(serving(&model, &bus).tool(work)).await;
    let again = |id: &str| message("1", "Hi!").with_correlation_id(id);
    inbox.send(again("first")).await;
    let call = handle.next_call().await;
    inbox.send(again("first")).await;
    inbox.send(again("while it runs")).await;
    settle().await;
    call.respond("done");
    settle().await;
    assert_eq!(inbox.replies(), ["first: [Using work …]", "first: 1"]);
    inbox.send(again("first")).await;
    inbox.send(again("after its end")).await;
    sleep(LONG).await;
    assert_eq!(inbox.replies()[2..], ["after its end: 1"]);
    let ids = inbox.ids();
    assert_eq!(ids[1], ids[2], "the same reply is the same message");
    assert_eq!((model.requests().len(), handle.started()), (2, 1));
}

/// The final replies to two messages, sent while the first one works.
async fn check_busy(busy: BusyPolicy, expected: &[&str]) {
    let model = working();
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let (work, mut handle) = mock_tool("work");
    let options = UserOptions::default().with_busy(busy);
    let host = serving(&model, &bus)
        .serve_users()
        .message_options(MessageOptions::new().with_users(options))
        .tool(work.pure());
    let _host = started(host).await;
    inbox.send(message("1", "one")).await;
    let call = handle.next_call().await;
    inbox.send(message("2", "two")).await;
    settle().await;
    call.respond("done");
    sleep(LONG).await;
    let mut finals: Vec<_> = inbox
        .replies()
        .into_iter()
        .filter(|reply| !reply.contains(": ["))
        .collect();
    finals.sort();
    assert_eq!(finals, expected, "{busy:?}");
    assert!(dead_letters(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn both_messages_of_a_busy_session_get_one_final_reply() {
    check_busy(BusyPolicy::Queue, &["about 1: 1", "about 2: 2"]).await;
    check_busy(BusyPolicy::Steer, &["about 1: 1", "about 2: 1"]).await;
    check_busy(
        BusyPolicy::Supersede,
        &[
            "about 1: This request was not finished: a newer message took its place. Done before that: work (failed).",
            "about 2: 1",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_goes_to_its_requester_alone_and_to_all_when_none_is_named() {
    let model = ScriptedModel::new().says("a").says("b").says("c");
    let bus = InProcessBus::new();
    let all = Inbox::of(&bus, "user.response.#").await;
    let _host = started(serving(&model, &bus)).await;
    let one = proxy(&bus, "one");
    let two = proxy(&bus, "two");
    assert_eq!(one.send("s", "Hi!").await.unwrap().content, "a");
    assert_eq!(two.send("s", "Hi!").await.unwrap().content, "b");
    let mut topicless = message("3", "Hi!");
    topicless.reply_to = None;
    topicless.correlation_id = None;
    all.send(topicless).await;
    settle().await;
    assert_eq!((one.stray_replies(), two.stray_replies()), (0, 0));
    assert_eq!(all.replies().len(), 3);
    assert_eq!(all.replies()[2], "3: c");
    let got = all.got.lock().unwrap();
    assert_eq!(got[2].destination.as_deref(), Some("desk"));
}

#[tokio::test(start_paused = true)]
async fn a_host_with_a_waiting_turn_shuts_down_at_once() {
    let model = ScriptedModel::new().calls("pay", json!({}));
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let host = started(serving(&model, &bus).tool(noting_tool("pay").0.needs_approval())).await;
    inbox.send(message("1", "Pay!")).await;
    settle().await;
    assert_eq!(inbox.replies().len(), 1);
    let began = Instant::now();
    host.shutdown(LONG).await;
    assert!(began.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_decision_over_an_unauthenticated_channel_is_refused() {
    let model = ScriptedModel::new().calls("pay", json!({})).says("Paid.");
    let mut options = InProcessBusOptions::default();
    options.trust = Trust::Untrusted;
    let bus = InProcessBus::with_options(options);
    let inbox = Inbox::of(&bus, "desk").await;
    let (pay, paid) = noting_tool("pay");
    let host = serving(&model, &bus).tool(pay.needs_approval()).approver("operator");
    let host = started(host).await;
    inbox.send(message("1", "Pay!")).await;
    settle().await;
    let asks = host.agent().for_principal("operator").approvals();
    proxy(&bus, "test").decide(&asks[0].approve()).await.unwrap();
    settle().await;
    let why = "decision about a tool call rejected: the channel does not authenticate its senders";
    assert_eq!(dead_letters(&bus).await, [why]);
    assert_eq!(
        (paid.all().len(), host.agent().for_principal("operator").approvals()),
        (0, asks)
    );
}

/// Returns the role and the text of each message of a history.
fn lines(history: &ConversationHistoryResponse) -> Vec<(Role, &str)> {
    let turns = history.turns.iter();
    turns
        .map(|turn| (turn.role, turn.content.as_text().unwrap_or_default()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_said_can_be_read_by_who_said_it_alone() {
    let model = ScriptedModel::new()
        .says("Hello, Ann.")
        .says("Hello, Bob.")
        .says("Bye, Ann.");
    let bus = InProcessBus::new();
    let clock = ManualClock::new(Timestamp::default());
    let _host = started(serving(&model, &bus).clock(clock.clone())).await;
    let proxy = proxy(&bus, "test");
    for user in ["ann", "bob"] {
        let message = UserMessage::new("s", format!("I am {user}.")).with_user_id(user);
        proxy.send_message(&message, |_| {}).await.unwrap();
    }
    let history = async |user: &str| {
        let request = ConversationHistoryRequest::new("s").with_user_id(user);
        let history: ConversationHistoryResponse = proxy.ask(&request).await.unwrap();
        let line = |turn: rockbot_core::user::HistoryTurn| (turn.role, turn.content.into_words());
        history.turns.into_iter().map(line).collect::<Vec<_>>()
    };
    let said = |user: &str, answer: &str| {
        vec![
            (Role::User, format!("I am {user}.")),
            (Role::Assistant, answer.to_owned()),
        ]
    };
    assert_eq!(history("ann").await, said("ann", "Hello, Ann."));
    assert_eq!(history("bob").await, said("bob", "Hello, Bob."));
    assert_eq!(history("eve").await, []);
    assert_eq!(proxy.history("s").await.unwrap().turns, []);
    let ann = self::proxy(&bus, "of ann").with_user_id("ann");
    assert_eq!(ann.history("s").await.unwrap().turns.len(), 2);

    ann.send("s", "And now?").await.unwrap();
    let last = ann
        .history_page("s", ConversationQuery::new().with_limit(1))
        .await
        .unwrap();
    assert_eq!(lines(&last), [(Role::User, "And now?"), (Role::Assistant, "Bye, Ann.")]);
    let before = ConversationQuery::new().with_before(last.earlier);
    let first = ann.history_page("s", before).await.unwrap();
    assert_eq!(
        lines(&first),
        [(Role::User, "I am ann."), (Role::Assistant, "Hello, Ann.")]
    );
    assert_eq!(first.earlier, None);
    let tomorrow = ConversationQuery::new().with_from(Timestamp::from_millis(86_400_000));
    assert_eq!(ann.history_page("s", tomorrow).await.unwrap().turns, []);
    let nobody = MessageEnvelope::of(&ConversationHistoryRequest::new("s"));
    bus.publish("user.history.request", Arc::new(nobody.unwrap()))
        .await
        .unwrap();
    settle().await;
    assert!(dead_letters(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn feedback_is_written_down() {
    let bus = InProcessBus::new();
    let store = Arc::new(InMemoryFeedbackStore::new());
    let _host = started(serving(&ScriptedModel::new(), &bus).give::<dyn FeedbackStore>(store.clone())).await;
    let proxy = proxy(&bus, "test");
    let all = [
        (true, None, ""),
        (false, Some("clerk"), ""),
        (true, Some("another"), ""),
        (true, None, "ann"),
    ];
    for (is_positive, agent_name, user_id) in all {
        let mut feedback = UserFeedback::new("s", "m", is_positive).with_user_id(user_id);
        feedback.agent_name = agent_name.map(ToOwned::to_owned);
        proxy.feedback(&feedback).await.unwrap();
    }
    settle().await;
    let kept = store
        .query_recent(&Principal::default(), Timestamp::default(), 10)
        .await
        .unwrap();
    let kept: Vec<_> = kept
        .into_iter()
        .map(|entry| (entry.signal_type, entry.summary))
        .collect();
    let summary = |what| format!("The user {what} the reply to message m.");
    assert_eq!(
        kept,
        [
            (FeedbackSignal::UserThumbsUp, summary("liked")),
            (FeedbackSignal::UserThumbsDown, summary("disliked")),
        ]
    );
    let of_ann = store
        .query_recent(&"ann".into(), Timestamp::default(), 10)
        .await
        .unwrap();
    assert_eq!(of_ann.len(), 1, "feedback stands where the user's conversations do");
}

#[tokio::test(start_paused = true)]
async fn a_message_is_acknowledged_when_it_is_accepted_and_order_is_kept() {
    let model = working();
    let bus = InProcessBus::new();
    let (work, mut handle) = mock_tool("work");
    let notes = Notes::default();
    let noted = notes.clone();
    let host = serving(&model, &bus)
        .tool(work)
        .layer(MapResponseLayer::new(move |verdict: Disposition| {
            noted.add(format!("{verdict:?}"));
            verdict
        }));
    let _host = started(host).await;
    let inbox = Inbox::of(&bus, "desk").await;
    for id in ["1", "2", "3"] {
        inbox.send(message(id, id)).await;
    }
    let call = handle.next_call().await;
    settle().await;
    assert_eq!(
        notes.all(),
        ["Ack", "Ack", "Ack"],
        "the model still works on the first one"
    );
    call.respond("done");
    settle().await;
    assert_eq!(inbox.replies()[1..], ["about 1: 1", "about 2: 2", "about 3: 3"]);
}

/// A bus that cannot be reached for a number of publications under a topic.
#[derive(Debug, Clone)]
struct Unreachable {
    bus: InProcessBus,
    topic: &'static str,
    failures: Arc<AtomicUsize>,
    tried: Arc<Mutex<Vec<String>>>,
}

impl Unreachable {
    fn new(bus: &InProcessBus, failures: usize) -> Self {
        Self {
            bus: bus.clone(),
            topic: "desk",
            failures: Arc::new(AtomicUsize::new(failures)),
            tried: Arc::default(),
        }
    }
}

#[async_trait]
impl MessagePublisher for Unreachable {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        if topic != self.topic {
            return self.bus.publish(topic, envelope).await;
        }
        self.tried.lock().unwrap().push(envelope.message_id.to_string());
        let left = |failures: usize| failures.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) => Err(BusError::Provider {
                context: "the broker does not answer".to_owned(),
                source: "connection refused".into(),
            }),
            Err(_) => self.bus.publish(topic, envelope).await,
        }
    }
}

#[async_trait]
impl MessageSubscriber for Unreachable {
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        self.bus.subscribe(pattern, name, options, handler).await
    }
}

#[async_trait]
impl Bus for Unreachable {
    async fn close(&self, within: Duration) -> CloseReport {
        self.bus.close(within).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_cannot_be_sent_is_tried_again_under_the_same_id() {
    let model = ScriptedModel::new().says("Hello.");
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let broken = Unreachable::new(&bus, 3);
    let _host = started(serving(&model, &bus).bus(broken.clone())).await;
    inbox.send(message("1", "Hi!")).await;
    sleep(LONG).await;
    assert_eq!(inbox.replies(), ["about 1: Hello."]);
    let tried = broken.tried.lock().unwrap().clone();
    assert_eq!(tried, vec![tried[0].clone(); 4]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_reply_cannot_be_sent_is_not_finished_and_ends_when_it_can_be() {
    let model = ScriptedModel::new().says("Hello.").says("And again?");
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let broken = Unreachable::new(&bus, 4);
    let host = started(serving(&model, &bus).bus(broken.clone())).await;
    inbox.send(message("1", "Hi!")).await;
    sleep(LONG).await;
    assert_eq!(inbox.replies(), Vec::<String>::new());
    let resumed = host.resume().await.unwrap();
    assert_eq!(resumed.running.len(), 1);
    sleep(SECOND).await;
    assert_eq!(inbox.replies(), ["about 1: Hello."]);
    assert_eq!(host.resume().await.unwrap().running.len(), 0);
    assert_eq!(model.requests().len(), 1);
    inbox.send(message("2", "Go on.")).await;
    sleep(SECOND).await;
    let said = transcript(&model.requests()[1])[1..].to_vec();
    assert_eq!(
        said,
        ["user: Hi!", "assistant: Hello.", "user: Go on."],
        "it stands in the conversation once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_journal_does_not_take_is_tried_again_and_then_refused_in_words() {
    for (failures, expected) in [
        (3, "about 1: Hello."),
        (100, "about 1: This message could not be accepted: "),
    ] {
        let model = ScriptedModel::new().says("Hello.");
        let bus = InProcessBus::new();
        let inbox = Inbox::of(&bus, "desk").await;
        let folder = tempfile::tempdir().unwrap();
        let journal = FileTurnJournal::open_with(folder.path(), JournalOptions::default()).unwrap();
        let full = Counting::new(journal, DiskFull(1, failures));
        let _host = started(serving(&model, &bus).stores(Stores::new().with_journal(full))).await;
        inbox.send(message("1", "Hi!")).await;
        sleep(LONG).await;
        let replies = inbox.replies();
        assert!(replies.len() == 1 && replies[0].starts_with(expected), "{replies:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_host_sends_the_reply_that_its_predecessor_owed() {
    let folder = tempfile::tempdir().unwrap();
    let bus = InProcessBus::new();
    let host = started(serving(&ScriptedModel::new().hangs(), &bus).data_dir(folder.path())).await;
    Inbox::of(&bus, "desk").await.send(message("1", "Hi!")).await;
    settle().await;
    host.shutdown(SECOND).await;
    drop(host);

    let model = ScriptedModel::new().calls("work", json!({})).says("Sorry, I was away.");
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let (work, mut handle) = mock_tool("work");
    let host = serving(&model, &bus)
        .tool(work)
        .data_dir(folder.path())
        .build()
        .unwrap();
    let resumed = host.start().await.unwrap();
    assert_eq!(resumed.running.len(), 1);
    let call = handle.next_call().await;
    inbox.send(message("1", "Hi!")).await;
    settle().await;
    call.respond("done");
    sleep(SECOND).await;
    assert_eq!(inbox.replies(), ["about 1: Sorry, I was away."]);
    assert_eq!(host.resume().await.unwrap().running.len(), 0);
    inbox.send(message("1", "Hi!").with_correlation_id("again")).await;
    settle().await;
    assert_eq!(inbox.replies()[1..], ["again: Sorry, I was away."]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_reply_and_the_end_of_its_turn_sends_the_same_message_again() {
    let folder = tempfile::tempdir().unwrap();
    let bus = InProcessBus::new();
    let inbox = Inbox::of(&bus, "desk").await;
    let open = || FileTurnJournal::open_with(folder.path(), JournalOptions::default()).unwrap();
    // Writes: the acceptance, then records; the end fails for ever.
    let model = ScriptedModel::new().says("Hello.");
    let journal = Counting::new(open(), DiskFull(4, 100));
    let host = started(
        serving(&model, &bus)
            .shared_bus(Arc::new(bus.clone()))
            .stores(Stores::new().with_journal(journal)),
    )
    .await;
    inbox.send(message("1", "Hi!")).await;
    sleep(SECOND).await;
    assert_eq!(inbox.replies(), ["about 1: Hello."]);
    drop(host);
    settle().await;

    let host = started(serving(&ScriptedModel::new(), &bus).stores(Stores::new().with_journal(open()))).await;
    sleep(SECOND).await;
    assert_eq!(inbox.replies()[1..], ["about 1: Hello."]);
    let ids = inbox.ids();
    assert_eq!(ids[0], ids[1], "sent twice, it is the same message");
    assert_eq!(host.resume().await.unwrap().running.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_proxy_gives_up_in_time_and_counts_the_late_reply() {
    let model = working();
    let bus = InProcessBus::new();
    let (work, mut handle) = mock_tool("work");
    let _host = started(serving(&model, &bus).tool(work.time_limit(LONG))).await;
    let proxy = proxy(&bus, "test").with_time_limit(SECOND);
    let began = Instant::now();
    let sent = proxy.send("s", "Hi!").await;
    assert!(
        matches!(sent, Err(RequestError::TimedOut { after, .. }) if after == SECOND),
        "{sent:?}"
    );
    assert!(began.elapsed() < 2 * SECOND);
    handle.next_call().await.respond("done");
    settle().await;
    assert_eq!(proxy.stray_replies(), 1);
    let nobody = self::proxy(&InProcessBus::new(), "test").send("s", "Hi!").await;
    assert!(matches!(nobody, Err(RequestError::NoSubscribers(topic)) if topic == "user.message"));
}

#[tokio::test(start_paused = true)]
async fn an_untrusted_sender_that_claims_a_principal_reads_nothing_of_it() {
    let model = ScriptedModel::new().says("Hello.").says("Hello, stranger.");
    let mut options = InProcessBusOptions::default();
    options.trust = Trust::Untrusted;
    let bus = InProcessBus::with_options(options);
    let host = started(serving(&model, &bus)).await;
    host.agent().ask("s", "I am the owner.").await.unwrap();
    let inbox = Inbox::of(&bus, "desk").await;
    inbox
        .send(message("1", "Hi!").with_header(headers::PRINCIPAL, "local"))
        .await;
    settle().await;
    let said = transcript(&model.requests()[1])[1..].to_vec();
    assert_eq!(said, ["user: Hi!"]);
    assert_eq!(proxy(&bus, "test").history("s").await.unwrap().turns, []);
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_change_what_a_message_says() {
    let model = ScriptedModel::new().says("Hello.");
    let bus = InProcessBus::new();
    let louder = MapRequestLayer::new(|mut turn: TurnCall| {
        turn.request.content = turn.request.content.text().to_uppercase().into();
        turn
    });
    let _host = started(serving(&model, &bus).turn_layer(louder)).await;
    assert_eq!(proxy(&bus, "test").send("s", "hi").await.unwrap(), says("Hello."));
    assert_eq!(model.requests()[0].messages[1].text(), "HI");
    bus.send("test", &UserMessage::new("s", "unheard")).await.unwrap();
}

#[tokio::test]
async fn an_envelope_of_ones_own_keeps_its_id_and_its_headers() {
    let model = ScriptedModel::new().says("Hello.");
    let bus = InProcessBus::new();
    let host = serving(&model, &bus).build().unwrap();
    host.start().await.unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::channel(1);
    let spy = move |delivery: Delivery| {
        sender.try_send(delivery.envelope).unwrap();
        async { Disposition::Ack }
    };
    let _spy = bus.on("user.message", "spy", spy).await.unwrap();

    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
    let message = message.with_id("m1").with_header(headers::PRINCIPAL, "ada");
    let reply = proxy(&bus, "test")
        .send_envelope(message.clone(), |_| {})
        .await
        .unwrap();
    assert_eq!(reply, says("Hello."));

    let sent = seen.recv().await.unwrap();
    let mut expected = message.with_source("test");
    expected.correlation_id.clone_from(&sent.correlation_id);
    expected.reply_to.clone_from(&sent.reply_to);
    assert_eq!(*sent, expected);
}
