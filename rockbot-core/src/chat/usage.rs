//! Token counts of answers.

use serde::{Deserialize, Serialize};

/// The token counts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, including cached tokens.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the request that the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tokens of the answer that were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

// serde passes fields by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Creates the counts of an answer without cached and reasoning tokens.
    pub fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cached: 0,
            reasoning: 0,
        }
    }

    /// Sets the tokens of the request that the provider had cached.
    #[must_use]
    pub fn with_cached(mut self, cached: u64) -> Self {
        self.cached = cached;
        self
    }

    /// Sets the tokens of the answer that were reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: u64) -> Self {
        self.reasoning = reasoning;
        self
    }

    /// Returns the sum of input and output.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
