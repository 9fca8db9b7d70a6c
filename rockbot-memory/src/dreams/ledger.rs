//! The state of dreams that outlives a restart: the last cycle, principals, recent queries and
//! answered questions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rockbot_core::support::redact;
use rockbot_core::{Digest, Principal, Timestamp};
use serde::{Deserialize, Serialize};

/// Time after which an answered question may be asked again, though its texts have not changed.
const ASK_AGAIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Maximum number of principals. Beyond it no new principal is cared for.
const MAX_PRINCIPALS: usize = 100;

/// Maximum number of recent queries of a principal.
const MAX_QUERIES: usize = 50;

/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 300;

/// Maximum number of answered questions. Beyond it the oldest questions are dropped.
const MAX_ASKED: usize = 5_000;

/// The state, as it is stored in `state.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Ledger {
    /// End of the last cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_cycle: Option<Moment>,
    /// Recent messages of each principal, as queries to replay recall.
    pub(super) queries: BTreeMap<Principal, VecDeque<String>>,
    /// Answered questions to models, with the time of the answer.
    asked: BTreeMap<String, Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Moment {
    #[serde(with = "rockbot_core::rfc3339")]
    at: Timestamp,
}

impl Ledger {
    /// Returns the end of the last cycle.
    pub(super) fn last_cycle(&self) -> Option<Timestamp> {
        self.last_cycle.map(|last| last.at)
    }

    /// Records the end of a cycle.
    pub(super) fn cycle_ended(&mut self, at: Timestamp) {
        self.last_cycle = Some(Moment { at });
    }

    /// Records the message of a principal, without keys that it may hold.
    pub(super) fn heard(&mut self, principal: &Principal, text: &str) {
        if self.queries.len() >= MAX_PRINCIPALS && !self.queries.contains_key(principal) {
            return;
        }
        let queries = self.queries.entry(principal.clone()).or_default();
        let text: String = text.chars().take(MAX_QUERY).collect();
        let text = redact(text.trim());
        if text.is_empty() || queries.contains(&text) {
            return;
        }
        queries.push_back(text);
        if queries.len() > MAX_QUERIES {
            queries.pop_front();
        }
    }

    /// Returns the principals whose knowledge is cared for: `local`, and all principals that wrote.
    pub(super) fn principals(&self) -> BTreeSet<Principal> {
        let mut principals: BTreeSet<_> = self.queries.keys().cloned().collect();
        principals.insert(Principal::default());
        principals
    }

    /// Records that a question has a usable answer.
    pub(super) fn answered(&mut self, question: &Digest, at: Timestamp) {
        self.asked.insert(question.to_string(), Moment { at });
        while self.asked.len() > MAX_ASKED {
            let oldest = self.asked.iter().min_by_key(|(_, asked)| **asked);
            let Some(oldest) = oldest.map(|(question, _)| question.clone()) else {
                return;
            };
            self.asked.remove(&oldest);
        }
    }

    /// Returns the questions that were answered in the last 7 days.
    pub(super) fn answered_questions(&self, now: Timestamp) -> BTreeSet<Digest> {
        let recent = self.asked.iter().filter(|(_, asked)| now.since(asked.at) < ASK_AGAIN);
        let parsed = recent.filter_map(|(question, _)| serde_json::from_value(question.as_str().into()).ok());
        parsed.collect()
    }
}
