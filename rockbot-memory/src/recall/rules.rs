//! Recall of the user's rules, which stand with the agent's instructions in every turn.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::Provenance;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::RulesStore;

const HEADING: &str = "Rules of the user: always follow them";

/// A context source of all rules of the user.
#[derive(Debug)]
pub struct RuleRecall {
    rules: Arc<dyn RulesStore>,
}

impl RuleRecall {
    /// Creates a source over `rules`.
    pub fn new(rules: Arc<dyn RulesStore>) -> Self {
        Self { rules }
    }
}

#[async_trait]
impl ContextSource for RuleRecall {
    fn name(&self) -> &str {
        "rules"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let rules = self.rules.list(&query.principal).await?;
        let item = |rule| ContextItem::new(HEADING, format!("- {rule}"), "a rule", Provenance::USER).as_instruction();
        Ok(rules.into_iter().map(item).collect())
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::Principal;
    use rockbot_core::store::{InMemoryRulesStore, Rule};

    use super::*;

    #[tokio::test]
    async fn every_rule_is_an_instruction() {
        let rules = InMemoryRulesStore::new();
        for rule in ["Answer in Norwegian.", "No emojis."] {
            rules
                .add(&Principal::default(), Rule::new(rule).unwrap())
                .await
                .unwrap();
        }
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), "hi");
        let items = RuleRecall::new(Arc::new(rules)).gather(&query).await.unwrap();
        let texts: Vec<_> = items
            .iter()
            .map(|item| (item.text.as_str(), item.is_instruction))
            .collect();
        assert_eq!(texts, [("- Answer in Norwegian.", true), ("- No emojis.", true)]);
    }
}
