//! The effect of a tool call on the world.

use serde::{Deserialize, Serialize};

/// The effect of a tool call on the world outside the conversation.
///
/// It decides which calls may run concurrently, be retried, or run again after a crash. If in
/// doubt choose [`Effect::Mutating`], the default: it is never wrong, only slower.
///
/// ```
/// use rockbot_core::tool::Effect;
///
/// assert_eq!(Effect::default(), Effect::Mutating);
/// assert!(Effect::Pure < Effect::Mutating, "ordered by how much care a call needs");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads only. Runs concurrently with other calls; runs again after a crash.
    Pure,
    /// Changes something, and running it again changes nothing more. Runs concurrently with other
    /// calls; runs again after a crash.
    Idempotent,
    /// Changes something each time. Runs alone, in the model's order, and never twice.
    #[default]
    Mutating,
}
