//! Rules: what the person told the agent to keep to, in every turn, and where that person is.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::per_principal::PerPrincipal;
use crate::Principal;

/// Remembers the rules, in the order in which they were added, and the time zone of the person who gave them.
#[async_trait]
pub trait RulesStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a rule. Returns whether it is new: one that differs only in its case is there already.
    ///
    /// # Errors
    ///
    /// Fails when the rules cannot be written.
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError>;

    /// Removes a rule, whatever its case. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the rules cannot be written.
    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError>;

    /// All rules of `principal`.
    ///
    /// # Errors
    ///
    /// Fails when the rules cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError>;

    /// The time zone in which `principal` is, as it was kept; `None` when nobody said. People may have written anything.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read.
    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError>;

    /// Keeps in which time zone `principal` is: an IANA name such as `Europe/Paris`, which the caller has checked.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be written.
    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError>;
}

/// A rule: one line of text.
///
/// ```
/// # use rockbot_core::store::Rule;
/// assert_eq!(Rule::new(" - Answer in\n Norwegian. ").unwrap().as_str(), "Answer in Norwegian.");
/// assert_eq!(Rule::new("- "), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rule(Arc<str>);

impl Rule {
    /// The rule that `text` says: without list marks before it, its blanks and line ends single blanks. `None`
    /// when nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(|c: char| matches!(c, '-' | '*' | '#') || c.is_whitespace());
        let words: Vec<_> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| Self(words.join(" ").into()))
    }

    /// The rule as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `other`, whatever the case.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Rules of a process: gone when it ends.
#[derive(Debug, Default)]
pub struct InMemoryRulesStore {
    rules: PerPrincipal<Vec<Rule>>,
    zones: PerPrincipal<Option<String>>,
}

impl InMemoryRulesStore {
    /// A store without rules.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl RulesStore for InMemoryRulesStore {
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError> {
        Ok(self.rules.write(principal, |rules| {
            let is_new = !rules.iter().any(|known| known.is_same_as(&rule));
            if is_new {
                rules.push(rule);
            }
            is_new
        }))
    }

    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError> {
        Ok(self.rules.write(principal, |rules| {
            let before = rules.len();
            rules.retain(|known| !known.is_same_as(rule));
            rules.len() < before
        }))
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError> {
        Ok(self.rules.read(principal, Clone::clone))
    }

    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        Ok(self.zones.read(principal, Clone::clone))
    }

    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        self.zones.write(principal, |zone| *zone = Some(name.to_owned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_rules_store() {
        conformance::rules_store(async || InMemoryRulesStore::new()).await;
    }
}
