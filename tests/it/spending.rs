//! The cost of turns in tokens and money: in answers, outcomes, the ledger and budgets.

use async_trait::async_trait;
use rockbot::chat::PriceTable;
use rockbot::testing::ScriptedModel;
use rockbot_core::Principal;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, MicroUsd, ModelInfo, ModelTier, Spent, Usage};
use rockbot_core::turn::{Budget, BudgetLimit, TurnRequest, TurnStatus};
use rockbot_host::turn::Evaluation;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnPolicies};
use tower::util::MapRequestLayer;

use crate::support::log::Log;
use crate::support::{calls, ending, host_of, noting_tool, settle};

/// A thousandth of a dollar for each token.
fn prices() -> PriceTable {
    PriceTable::from_json(r#"{"models": {"known": {"input": 1000, "output": 1000}}}"#).unwrap()
}

fn answer(model: &str, text: &str) -> ChatResponse {
    ChatResponse::text(text).with_model(model).with_usage(Usage::new(2, 1))
}

fn spent(calls: u64, cost: u64, unpriced: u64) -> Spent {
    Spent::default()
        .with_calls(calls)
        .with_usage(Usage::new(2 * calls, calls))
        .with_cost(MicroUsd(cost))
        .with_unpriced(unpriced)
}

#[tokio::test]
async fn an_answer_costs_what_its_provider_says_or_else_what_the_prices_say() {
    let model = ScriptedModel::new()
        .answers(answer("known", "one"))
        .answers(answer("known", "two"))
        .with_cost(MicroUsd(7))
        .answers(answer("unknown", "three"));
    let host = host_of(&model).prices(prices()).build().unwrap();
    let expected = [
        (spent(1, 3_000, 0), Some(MicroUsd(3_000))),
        (spent(1, 7, 0), Some(MicroUsd(7))),
        (spent(1, 0, 1), None),
    ];
    for (spent, price) in expected {
        let outcome = host.agent().ask("s", "go").await.unwrap();
        assert_eq!((outcome.spent(), outcome.spent().price()), (spent, price));
        assert_eq!(host.spending().of_turn(&outcome.turn), spent);
    }
    assert_eq!(
        host.spending().of_session(&Principal::default(), &"s".into()),
        spent(3, 3_007, 1)
    );
    assert_eq!(host.spending().total().price(), None);
}

#[tokio::test]
async fn out_of_band_questions_count_on_their_own_tier() {
    let model = ScriptedModel::new()
        .answers(answer("known", "Done."))
        .answers(answer("known", r#"{"complete": true, "reason": ""}"#));
    let (look, _) = noting_tool("look");
    let evaluation = Evaluation::default()
        .with_max_completion_reprompts(1)
        .with_max_follow_up_passes(0);
    let host = host_of(&model)
        .tool(look)
        .policies(TurnPolicies::new().with_evaluation(evaluation))
        .prices(prices())
        .build()
        .unwrap();
    let request = TurnRequest::new("s", "m", "What is new?").with_tier(ModelTier::High);
    let outcome = host.agent().run(request).await.unwrap();
    let each = spent(1, 3_000, 0);
    assert_eq!(outcome.tiers, [(ModelTier::Low, each), (ModelTier::High, each)].into());
    assert_eq!(host.spending().of_tier(ModelTier::Low), each);
    assert_eq!(outcome.usage, spent(2, 6_000, 0).usage);
}

#[tokio::test]
async fn a_judge_is_not_asked_with_money_that_is_spent() {
    let model = ScriptedModel::new().answers(answer("known", "Done."));
    let (look, _) = noting_tool("look");
    let host = host_of(&model)
        .tool(look)
        .policies(
            TurnPolicies::new().with_evaluation(
                Evaluation::default()
                    .with_max_completion_reprompts(1)
                    .with_max_follow_up_passes(1),
            ),
        )
        .prices(prices())
        .budget(Budget::default().with_max_cost(MicroUsd(3_000)))
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "What is new?").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Done."));
    model.assert_complete();
}

#[tokio::test]
async fn a_limit_in_money_reckons_with_the_prices_of_the_host() {
    let looks = answer("known", "").with_tool_calls(calls([("call_1", "look", "{}")]).tool_calls);
    let model = ScriptedModel::new().answers(looks).answers(answer("known", "this far"));
    let (look, _) = noting_tool("look");
    let host = host_of(&model)
        .tool(look)
        .prices(prices())
        .budget(Budget::default().with_max_cost(MicroUsd(3_000)))
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Partial(BudgetLimit::Cost), "this far"));
    // The last answer is paid beyond the limit.
    assert_eq!(outcome.spent().price(), Some(MicroUsd(6_000)));
}

#[tokio::test]
async fn a_host_with_a_limit_in_money_needs_to_know_its_prices() {
    let limited = |model: &str| {
        let builder = host_of(&ScriptedModel::new().with_id(model)).prices(prices());
        let built = builder.budget(Budget::default().with_max_cost(MicroUsd(1)));
        built.build().map_err(|error| error.to_string())
    };
    limited("vendor/known").unwrap();
    let error = limited("dear").unwrap_err();
    let expected = "the price of the model `dear` of the tier Balanced is unknown: give its price with `.prices(…)`";
    assert!(error.contains(expected), "{error}");
    host_of(&ScriptedModel::new().with_id("dear")).build().unwrap();
}

/// Returns a model of the id `id` that calls `look` whenever it is asked, and never names itself
/// in an answer.
fn looks_forever(id: &str) -> ScriptedModel {
    let looks = (0..20).map(|number| {
        let look = calls([(&*format!("call_{number}"), "look", &*format!(r#"{{"n": {number}}}"#))]);
        look.with_usage(Usage::new(2, 1))
    });
    looks.fold(ScriptedModel::new().with_id(id), ScriptedModel::answers)
}

/// A client that neither names its model in answers nor lets its script do so.
struct Nameless {
    client: ScriptedModel,
    id: Option<&'static str>,
}

#[async_trait]
impl ChatClient for Nameless {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let mut answer = self.client.chat(call).await?;
        answer.model = None;
        Ok(answer)
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        self.id.map_or_else(ModelInfo::unknown, ModelInfo::new)
    }
}

#[tokio::test]
async fn an_answer_that_names_no_model_costs_what_the_model_of_its_client_costs() {
    let scripted = looks_forever("known");
    let nameless = || Nameless {
        client: looks_forever("other"),
        id: Some("known"),
    };
    let (look, _) = noting_tool("look");
    let limited = |builder: AgentHostBuilder| {
        let budget = Budget::default().with_max_cost(MicroUsd(6_000));
        builder
            .prices(prices())
            .tool(look.clone())
            .budget(budget)
            .build()
            .unwrap()
    };
    for host in [
        limited(host_of(&scripted)),
        limited(AgentHost::in_memory().chat(nameless())),
    ] {
        let outcome = host.agent().ask("s", "go").await.unwrap();
        assert_eq!(outcome.status, TurnStatus::Partial(BudgetLimit::Cost));
        // Two answers reach the limit, and one more is the last answer.
        assert_eq!(outcome.spent(), spent(3, 9_000, 0));
    }
}

#[tokio::test]
async fn an_answer_without_a_price_ends_a_turn_with_a_limit_in_money() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let model = looks_forever("dear");
    let client = Nameless {
        client: model.clone(),
        id: None,
    };
    let (look, _) = noting_tool("look");
    let host = AgentHost::in_memory().chat(client).tool(look).build().unwrap();
    let request = TurnRequest::new("s", "m", "go").with_budget(Budget::default().with_max_cost(MicroUsd(1)));
    let outcome = host.agent().run(request).await.unwrap();
    let expected = "I had to stop because the price of the model is not known, so the limit in money of this request \
                    cannot be kept. Done before that: look.";
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::UnknownPrice), expected)
    );
    assert_eq!(outcome.spent(), spent(1, 0, 1));
    assert_eq!(model.requests().len(), 1);
    let warning = "message=the price of the model is unknown, so the turn ends at its limit in money; \
                   give its price with `.prices(…)`";
    assert!(log.lines().iter().any(|line| line == warning), "{:?}", log.lines());
}

#[tokio::test]
async fn an_answer_without_a_price_that_is_the_last_one_is_given() {
    let model = ScriptedModel::new().answers(answer("unknown", "yes"));
    let host = host_of(&model).build().unwrap();
    let request = TurnRequest::new("s", "m", "go").with_budget(Budget::default().with_max_cost(MicroUsd(1)));
    let outcome = host.agent().run(request).await.unwrap();
    assert_eq!(
        (ending(&outcome), outcome.spent()),
        ((&TurnStatus::Answered, "yes"), spent(1, 0, 1))
    );
}

#[tokio::test]
async fn a_tier_that_a_chat_layer_chooses_is_the_tier_of_the_outcome() {
    let model = ScriptedModel::new().answers(answer("known", "yes"));
    let to_high = MapRequestLayer::new(|call: ChatCall| {
        let request = (*call.request).clone().with_tier(ModelTier::High);
        call.with_request(request)
    });
    let host = host_of(&model).prices(prices()).chat_layer(to_high).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    let each = spent(1, 3_000, 0);
    assert_eq!(outcome.tiers, [(ModelTier::High, each)].into());
    assert_eq!(host.spending().of_tier(ModelTier::High), each);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_costs_what_had_been_sent_and_received() {
    let model = ScriptedModel::new().with_id("known").hangs();
    let host = host_of(&model).prices(prices()).build().unwrap();
    let request = TurnRequest::new("s", "m", "x".repeat(4_000));
    let agent = host.agent().clone();
    let turn = request.turn_id();
    let asking = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    host.agent().cancel(&turn).await.unwrap();
    let outcome = asking.await.unwrap().unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    let spent = outcome.spent();
    assert_eq!((spent.calls, spent.unpriced), (1, 0));
    assert!((1_000..1_200).contains(&spent.usage.input), "{spent:?}");
    assert_eq!(spent.cost, MicroUsd(1_000 * spent.usage.input));
    assert_eq!(host.spending().of_turn(&turn), spent);
}
