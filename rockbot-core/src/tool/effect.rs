//! What a tool call changes in the world.

use serde::{Deserialize, Serialize};

/// What a call changes in the world. It decides what may run together, be retried, or run again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it only reads. Runs together with others; runs again after a crash.
    Pure,
    /// The same thing, however often it runs. Runs together with others; runs again after a crash.
    Idempotent,
    /// Something, each time. Runs alone, in the model's order, and never twice.
    #[default]
    Mutating,
}
