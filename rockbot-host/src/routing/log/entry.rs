//! The entries of the routing log, in their file format.

use rockbot_core::chat::{MicroUsd, ModelTier};
use rockbot_core::turn::TierDecision;
use rockbot_core::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};

use super::preview::preview;

/// A routing decision and, once its turn has ended, its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RoutingEntry {
    /// Time of the decision.
    #[serde(with = "rfc3339")]
    pub timestamp: Timestamp,
    /// The beginning of the text with keys redacted; empty without previews.
    #[serde(default)]
    pub prompt_preview: String,
    /// The selected tier.
    #[serde(with = "tier_name")]
    pub tier: ModelTier,
    /// The kind of message: `user-message`, `subagent` or `scheduled`.
    #[serde(default)]
    pub context: String,
    /// Complexity score of the text, as the selector reported it.
    #[serde(default)]
    pub complexity_score: f64,
    /// The reasons for the tier.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The result; `None` for decisions without an ended turn.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub result: Option<RoutingResult>,
}

/// The result of a decision: the end of its turn and its cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RoutingResult {
    /// Status of the turn: `answered`, `partial`, `failed`, `cancelled` or `superseded`.
    pub status: String,
    /// The tier that the turn was escalated to, if the selected one was too low.
    #[serde(default, with = "maybe_tier_name", skip_serializing_if = "Option::is_none")]
    pub escalated_to: Option<ModelTier>,
    /// Number of model calls.
    pub model_calls: u32,
    /// Number of input tokens of all calls.
    pub input_tokens: u64,
    /// Number of output tokens of all calls.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar; `None` if it is unknown, which is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<MicroUsd>,
    /// Working time of the turn in milliseconds, without its waits for a person.
    pub latency_ms: u64,
}

impl RoutingEntry {
    /// Creates the entry of a `decision` about `text`, without a result.
    pub fn new(at: Timestamp, context: impl Into<String>, text: &str, decision: &TierDecision) -> Self {
        Self {
            timestamp: at,
            prompt_preview: preview(text),
            tier: decision.tier,
            context: context.into(),
            complexity_score: decision.score,
            reasons: decision.reasons.clone(),
            result: None,
        }
    }
}

/// Serializes a tier by its name; reading ignores case.
mod tier_name {
    use rockbot_core::chat::ModelTier;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(tier: &ModelTier, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(tier.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelTier, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let tier = ModelTier::ALL
            .into_iter()
            .find(|tier| tier.name().eq_ignore_ascii_case(&name));
        tier.ok_or_else(|| de::Error::custom(format_args!("`{name}` is no tier")))
    }
}

/// Serializes an optional tier as [`tier_name`] does.
mod maybe_tier_name {
    use rockbot_core::chat::ModelTier;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(tier: &Option<ModelTier>, serializer: S) -> Result<S::Ok, S::Error> {
        match tier {
            Some(tier) => super::tier_name::serialize(tier, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelTier>, D::Error> {
        #[derive(Deserialize)]
        struct Named(#[serde(with = "super::tier_name")] ModelTier);
        Ok(Option::<Named>::deserialize(deserializer)?.map(|Named(tier)| tier))
    }
}
