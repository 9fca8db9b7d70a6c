//! The errors of steps.

use rockbot_core::ToolName;

/// The error of a step that has no result. The failure is recorded: the step fails alike each
/// time that the pipeline goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The call failed, was denied, or its outcome is unknown.
    #[error("`{tool}` failed: {text}")]
    Failed {
        /// Name of the tool; for a question the agent's.
        tool: ToolName,
        /// Words of the tool.
        text: String,
    },
    /// The result does not have the type that the pipeline asks for.
    #[error("the result of `{tool}` does not fit: {cause}")]
    Result {
        /// Name of the tool; for a question the agent's.
        tool: ToolName,
        /// Error of the deserializer.
        cause: serde_json::Error,
    },
    /// The arguments cannot be written as JSON.
    #[error("the arguments of `{tool}` cannot be written: {cause}")]
    Arguments {
        /// Name of the tool.
        tool: ToolName,
        /// Error of the serializer.
        cause: serde_json::Error,
    },
}

impl StepError {
    /// Returns `true` if the same step may succeed when it is made once more. It is always `false`:
    /// the host has already repeated the calls that may be repeated.
    pub fn retry_helps(&self) -> bool {
        false
    }
}
