//! Compaction as the journal records it: which parts of a conversation are removed, and where the
//! originals are.

use rockbot_core::CallId;
use rockbot_core::store::StorePath;
use serde::{Deserialize, Serialize};

/// The parts that are removed from a conversation so that it becomes shorter.
///
/// The plan is recorded before it is carried out, so a replay removes the same parts even when a
/// newer version of the planner would choose others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Compaction {
    /// Tool results that lose their middle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) elided: Vec<Elision>,
    /// Number of messages from before the turn that are removed, the oldest first.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) past: usize,
    /// Number of the turn's steps that are removed, the first steps first. A step is an answer of
    /// the model with tool calls, together with their results.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) steps: usize,
    /// `true` when the model refused the conversation as too long, so the same question is asked
    /// again afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) after_overflow: bool,
}

/// A tool result that loses its middle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Elision {
    /// The call that returned the result.
    pub(crate) call: CallId,
    /// Number of bytes of the result that stay.
    pub(crate) keep: usize,
}

/// The place in working memory of the original of a shortened or removed tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OffloadedMessage {
    /// The call that returned the result.
    pub(crate) call: CallId,
    /// The key of the original in working memory.
    pub(crate) key: StorePath,
}

// serde passes fields by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
