//! Which tier a message goes to.

use rockbot::llm::KeywordTierSelector;
use rockbot::testing::ScriptedModel;
use rockbot_core::chat::{ModelTier, TierDecision, TierSelector};
use rockbot_core::turn::TurnRequest;
use rockbot_host::AgentHost;

/// The tier that a message is asked with.
async fn tier(selector: impl TierSelector, request: TurnRequest) -> Option<ModelTier> {
    let model = ScriptedModel::new().says("Hello.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tier_selector(selector)
        .build()
        .unwrap();
    host.agent().run(request).await.unwrap();
    model.requests()[0].tier
}

fn request(text: &str) -> TurnRequest {
    TurnRequest::new("s", "m", text)
}

#[tokio::test]
async fn a_message_that_names_no_tier_goes_where_the_selector_says() {
    let simple = request("What is the capital of France?");
    assert_eq!(
        tier(KeywordTierSelector::default(), simple.clone()).await,
        Some(ModelTier::Low)
    );
    let named = TurnRequest {
        tier: Some(ModelTier::High),
        ..simple
    };
    assert_eq!(tier(KeywordTierSelector::default(), named).await, Some(ModelTier::High));
}

#[tokio::test]
async fn a_selector_that_breaks_down_selects_nothing() {
    struct Broken;
    impl TierSelector for Broken {
        fn select(&self, _: &str) -> TierDecision {
            panic!("no idea")
        }
    }
    assert_eq!(tier(Broken, request("Hello")).await, None);
}
