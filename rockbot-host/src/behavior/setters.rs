//! The setters of a [`ModelBehavior`].

use std::sync::Arc;

use rockbot_core::chat::ModelSettings;

use rockbot_core::turn::ResultMode;

use super::ModelBehavior;

impl ModelBehavior {
    /// Creates a behavior without exceptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a further system message after the instructions.
    #[must_use]
    pub fn with_additional_system_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.additional_system_prompt = Some(text.into());
        self
    }

    /// Sets the text at the end of each request whose model may call tools.
    #[must_use]
    pub fn with_pre_tool_loop_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.pre_tool_loop_prompt = Some(text.into());
        self
    }

    /// Sets whether the model calls tools in plain text. Default `false`.
    #[must_use]
    pub fn with_text_based_tool_calling(mut self, is_on: bool) -> Self {
        self.text_based_tool_calling = is_on;
        self
    }

    /// Sets [`Nudges::on_hallucinated_calls`](crate::turn::Nudges::on_hallucinated_calls) for the
    /// model.
    #[must_use]
    pub fn with_nudge_on_hallucinated_tool_calls(mut self, is_on: bool) -> Self {
        self.nudge_on_hallucinated_tool_calls = Some(is_on);
        self
    }

    /// Sets [`Nudges::on_leaked_syntax`](crate::turn::Nudges::on_leaked_syntax) for the model.
    #[must_use]
    pub fn with_nudge_on_leaked_tool_syntax(mut self, is_on: bool) -> Self {
        self.nudge_on_leaked_tool_syntax = Some(is_on);
        self
    }

    /// Sets [`Nudges::on_unexpected_cjk`](crate::turn::Nudges::on_unexpected_cjk) for the model.
    #[must_use]
    pub fn with_nudge_on_unexpected_cjk_output(mut self, is_on: bool) -> Self {
        self.nudge_on_unexpected_cjk_output = Some(is_on);
        self
    }

    /// Sets [`Nudges::on_tool_failure_giveup`](crate::turn::Nudges::on_tool_failure_giveup) for the
    /// model.
    #[must_use]
    pub fn with_nudge_on_tool_failure_giveup(mut self, is_on: bool) -> Self {
        self.nudge_on_tool_failure_giveup = Some(is_on);
        self
    }

    /// Sets the maximum number of questions to the model in a turn.
    #[must_use]
    pub fn with_max_tool_iterations(mut self, count: u32) -> Self {
        self.max_tool_iterations = Some(count);
        self
    }

    /// Sets the maximum length in characters of a tool result that stays in the conversation.
    #[must_use]
    pub fn with_tool_result_chunking_threshold(mut self, chars: usize) -> Self {
        self.tool_result_chunking_threshold = Some(chars);
        self
    }

    /// Sets the maximum number of times that an answer judged incomplete is sent back to the model.
    #[must_use]
    pub fn with_max_completion_reprompts(mut self, count: u32) -> Self {
        self.max_completion_reprompts = Some(count);
        self
    }

    /// Sets the maximum number of follow-ups after a complete answer.
    #[must_use]
    pub fn with_max_follow_up_passes(mut self, count: u32) -> Self {
        self.max_follow_up_passes = Some(count);
        self
    }

    /// Sets the form of tool results in the answers of scheduled turns.
    #[must_use]
    pub fn with_scheduled_task_result_mode(mut self, mode: ResultMode) -> Self {
        self.scheduled_task_result_mode = mode;
        self
    }

    /// Sets the settings of requests to the model, over the settings of its tier.
    #[must_use]
    pub fn with_model_settings(mut self, settings: ModelSettings) -> Self {
        self.model_settings = settings.shared();
        self
    }
}
