//! The rate limit around each of the four services.

use std::time::Duration;

use rockbot_core::chat::ChatErrorKind;
use rockbot_core::context::Origin;
use rockbot_core::layer::{RateLimitExceeded, RateLimitLayer};
use rockbot_core::messaging::{DeadLetters as _, Message, MessageContext, MessagePublisherExt};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::turn::{TurnFailure, TurnRequest, TurnStatus};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{Agent, AgentHost, TurnError};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{Notes, host_of, noting_tool, results, unanswered};

const SECOND: Duration = Duration::from_secs(1);

/// One call a minute.
fn waiting() -> RateLimitLayer {
    RateLimitLayer::new(1, 60 * SECOND)
}

fn refusing() -> RateLimitLayer {
    waiting().with_max_wait(SECOND)
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_token_at_all_four_services() {
    let model = ScriptedModel::new().calls("look", json!({})).says("a").says("b");
    let (look, _) = noting_tool("look");
    let host = host_of(&model)
        .tool(look)
        .turn_layer(waiting())
        .chat_layer(waiting())
        .tool_layer(waiting())
        .build()
        .unwrap();
    let began = Instant::now();
    host.agent().ask("s", "go").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 60, "for the second model call");
    host.agent().ask("s", "go").await.unwrap();
    assert_eq!(
        began.elapsed().as_secs(),
        120,
        "for the model again; the turn's token is there by then"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_an_error_with_its_type() {
    let model = ScriptedModel::new().says("a");
    let host = host_of(&model).turn_layer(refusing()).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let refused = host.agent().ask("s", "go").await.unwrap_err();
    assert!(
        matches!(&refused, TurnError::Layer(error) if error.downcast_ref().map(RateLimitExceeded::retry_after) == Some(60 * SECOND)),
        "{refused:?}"
    );

    let (look, looked) = noting_tool("look");
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .calls("look", json!({}))
        .says("a");
    let host = host_of(&model).tool(look).tool_layer(refusing()).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let denied = "call_2: the rate limit is exceeded: try again in 60 s".to_owned();
    assert_eq!(
        (results(&model.requests()[2])[1].clone(), looked.all().len()),
        (denied, 1)
    );

    let model = ScriptedModel::new().says("a");
    let host = host_of(&model).chat_layer(refusing()).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let saturated = unanswered(host.agent().ask("s", "go").await).status;
    assert_eq!(
        saturated,
        TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::Saturated))
    );
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Invoice {
    amount: u32,
}

impl Message for Invoice {
    const TYPE: &'static str = "billing.Invoice";
    const TOPIC: Option<&'static str> = Some("billing.invoice");
}

#[tokio::test(start_paused = true)]
async fn messages_wait_in_order_and_are_delivered_again_when_refused() {
    let bus = InProcessBus::new();
    let paid = Notes::default();
    let notes = paid.clone();
    let host = AgentHost::builder("clerk")
        .bus(bus.clone())
        .handle(move |invoice: Invoice, _: MessageContext| {
            notes.add(invoice.amount.to_string());
            async {}
        })
        .layer(RateLimitLayer::new(1, SECOND))
        .build()
        .unwrap();
    host.start().await.unwrap();
    for amount in 1..=3 {
        bus.send("shop", &Invoice { amount }).await.unwrap();
    }
    sleep(SECOND / 2).await;
    assert_eq!(paid.all(), ["1"]);
    sleep(2 * SECOND).await;
    assert_eq!(paid.all(), ["1", "2", "3"]);
    assert!(bus.dead_letters(10).await.unwrap().is_empty());
}

/// Two turns of an agent with a limit, and the seconds after which each ended.
async fn ends(limit: RateLimitLayer, model: &ScriptedModel, asks: impl AsyncFn(&Agent, u32)) -> [u64; 2] {
    let host = host_of(model).turn_layer(limit).build().unwrap();
    let agent = host.agent();
    host.add_tool(agent.as_tool("helper", "Helps.")).unwrap();
    let began = Instant::now();
    let ended = async |turn| {
        asks(agent, turn).await;
        began.elapsed().as_secs()
    };
    [ended(1).await, ended(2).await]
}

#[tokio::test(start_paused = true)]
async fn a_user_waits_for_the_limit_and_a_turn_of_another_turn_does_not() {
    let asks = async |agent: &Agent, turn: u32| {
        let answer = agent.ask("s", "Ask the helper.").await.unwrap();
        assert_eq!(answer.text, format!("done {turn}"));
    };
    let delegating = || {
        let model = ScriptedModel::new();
        (1..=2).fold(model, |model, turn| {
            let asked = model.calls("helper", json!({"task": "Help!"})).says("helped");
            asked.says(format!("done {turn}"))
        })
    };
    assert_eq!(ends(waiting(), &delegating(), asks).await, [0, 60]);
    let all = waiting().with_max_wait(200 * SECOND).counting_all_turns();
    assert_eq!(ends(all, &delegating(), asks).await, [60, 180]);
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_turn_does_not_wait_and_a_message_over_a_bus_does() {
    let asks = |origin: Origin| {
        async move |agent: &Agent, turn: u32| {
            let request = TurnRequest::new("s", format!("m{turn}"), "Look!").with_origin(origin);
            assert_eq!(agent.run(request).await.unwrap().text, "seen");
        }
    };
    let seen = || ScriptedModel::new().says("seen").says("seen");
    assert_eq!(ends(waiting(), &seen(), asks(Origin::Scheduled)).await, [0, 0]);
    assert_eq!(ends(waiting(), &seen(), asks(Origin::Bus)).await, [0, 60]);
    let all = waiting().counting_all_turns();
    assert_eq!(ends(all, &seen(), asks(Origin::Scheduled)).await, [0, 60]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_continues_after_a_decision_does_not_wait() {
    for (limit, waited) in [(waiting(), 0), (waiting().counting_all_turns(), 60)] {
        let (pay, paid) = noting_tool("pay");
        let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("paid");
        let host = host_of(&model)
            .tool(pay.needs_approval())
            .turn_layer(limit)
            .build()
            .unwrap();
        let began = Instant::now();
        let parked = host.agent().run(TurnRequest::new("s", "m1", "Pay!")).await.unwrap();
        host.agent()
            .decide(host.agent().approvals()[0].approve())
            .await
            .unwrap();
        assert_eq!(host.agent().outcome(&parked.turn).await.unwrap().text, "paid");
        assert_eq!(paid.all(), ["pay 7"]);
        assert_eq!(began.elapsed().as_secs(), waited);
    }
}
