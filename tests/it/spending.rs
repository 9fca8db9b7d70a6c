//! The cost of turns in tokens and money: in answers, outcomes, the ledger and budgets.

use rockbot::chat::PriceTable;
use rockbot::testing::ScriptedModel;
use rockbot_core::Principal;
use rockbot_core::chat::{ChatResponse, MicroUsd, ModelTier, Spent, Usage};
use rockbot_core::turn::{Budget, BudgetLimit, TurnRequest, TurnStatus};
use rockbot_host::TurnPolicies;
use rockbot_host::turn::Evaluation;

use crate::support::log::Log;
use crate::support::{calls, ending, host_of, noting_tool};

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

#[tokio::test]
async fn an_answer_without_a_price_in_a_turn_with_a_limit_is_told() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let model = ScriptedModel::new().answers(answer("unknown", "yes"));
    let host = host_of(&model).build().unwrap();
    let request = TurnRequest::new("s", "m", "go").with_budget(Budget::default().with_max_cost(MicroUsd(1)));
    let outcome = host.agent().run(request).await.unwrap();
    assert_eq!(
        (outcome.status, outcome.tiers[&ModelTier::Balanced].unpriced),
        (TurnStatus::Answered, 1)
    );
    let warning = "message=price of the model unknown; this answer does not count towards the turn's cost limit";
    assert!(log.lines().iter().any(|line| line == warning), "{:?}", log.lines());
}
