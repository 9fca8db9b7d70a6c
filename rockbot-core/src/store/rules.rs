//! Rules: standing instructions of the user for every turn, and the user's time zone.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::per_principal::PerPrincipal;
use crate::Principal;
use crate::shared::share;

/// A store of rules, in the order of their addition, and of the time zone of the user.
#[async_trait]
pub trait RulesStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a rule. Returns `false` if an equal rule exists; case is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the rules cannot be written.
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError>;

    /// Removes a rule, ignoring case. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the rules cannot be written.
    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError>;

    /// Returns all rules of `principal`.
    ///
    /// # Errors
    ///
    /// Returns an error if the rules cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError>;

    /// Returns the stored time zone of `principal`; `None` if it is not set. The text may be invalid:
    /// users can edit it by hand.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read.
    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError>;

    /// Sets the time zone of `principal`: an IANA name such as `Europe/Paris`, which the caller has
    /// validated.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError>;
}

share! {
    RulesStore {
        async add<'a>(principal: &'a Principal, rule: Rule) -> Result<bool, StoreError>;
        async remove<'a, 'b>(principal: &'a Principal, rule: &'b Rule) -> Result<bool, StoreError>;
        async list<'a>(principal: &'a Principal) -> Result<Vec<Rule>, StoreError>;
        async time_zone<'a>(principal: &'a Principal) -> Result<Option<String>, StoreError>;
        async set_time_zone<'a, 'b>(principal: &'a Principal, name: &'b str) -> Result<(), StoreError>;
    }
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
    /// Parses a rule: strips leading list marks and collapses white space and line ends. Returns
    /// `None` if no text is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(|c: char| matches!(c, '-' | '*' | '#') || c.is_whitespace());
        let words: Vec<_> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| Self(words.join(" ").into()))
    }

    /// Returns the rule as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if both rules are equal, ignoring case.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A [`RulesStore`] in memory, lost when the process ends.
#[derive(Debug, Default)]
pub struct InMemoryRulesStore {
    rules: PerPrincipal<Vec<Rule>>,
    zones: PerPrincipal<Option<String>>,
}

impl InMemoryRulesStore {
    /// Creates an empty store.
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
