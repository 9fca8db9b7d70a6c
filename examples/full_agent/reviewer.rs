//! A second agent, which reviews texts: a tool of the first one, and by itself a function whose answer has a type.

use std::fmt;

use rockbot::agent::AgentTool;
use rockbot::config::Config;
use rockbot::prelude::*;

/// A review of a text.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Review {
    /// `true` if the text can go out as it is.
    is_ready: bool,
    /// The changes that it needs, one sentence each.
    changes: Vec<String>,
}

/// Builds the host of the reviewer. It keeps nothing: each review stands for itself.
pub(crate) fn host(config: &Config) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("reviewer")
        .chat(ModelGateway::from_config_or_offline(config)?)
        .instructions(
            "You review texts before they are sent. Name what is wrong, unclear or impolite, and nothing else.",
        )
        .build()?;
    Ok(host)
}

/// Returns the tool by which another agent gives texts to the reviewer. What that costs counts for the calling turn.
pub(crate) fn tool(reviewer: &AgentHost) -> AgentTool {
    reviewer
        .agent()
        .as_tool(
            "ask_reviewer",
            "Asks the reviewer, another agent, for a second opinion on a text.",
        )
        .with_budget(Budget::default().with_max_model_calls(3))
}

/// Reviews a text, as a program does that acts on the answer.
pub(crate) async fn review(reviewer: &AgentHost, text: &str) -> Result<Review, BoxError> {
    let request = reviewer.agent().ask("reviews", text).output::<Review>();
    Ok(request.instructions("At most three changes.").await?)
}

impl fmt::Display for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready { "ready" } else { "not ready" })?;
        self.changes.iter().try_for_each(|change| write!(f, "\n- {change}"))
    }
}
