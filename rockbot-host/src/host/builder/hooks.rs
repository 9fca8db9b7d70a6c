//! Hooks: async functions of the program that turns ask.

use std::sync::Arc;

use rockbot_core::turn::{HistoryProcessor, InputGuardrail, LoopPolicy, OutputValidator};

use super::AgentHostBuilder;

/// Hooks: async functions of the program that turns ask, whose decisions the journal keeps.
/// [`HookLimits`](crate::turn::HookLimits) are their limits.
impl AgentHostBuilder {
    /// Adds a guardrail of users' messages: its verdict on a message, to pass, refuse or replace
    /// it, comes before anything else of the turn. Guardrails are asked in the order of their
    /// addition.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::{InputVerdict, UserInput, guardrail_fn};
    /// use rockbot_host::AgentHost;
    ///
    /// let no_passwords = guardrail_fn(|input: UserInput| async move {
    ///     Ok(match input.text().contains("password") {
    ///         true => InputVerdict::refuse("Please do not send me passwords."),
    ///         false => InputVerdict::Pass,
    ///     })
    /// });
    /// let model = ScriptedModel::new();
    /// let host = AgentHost::in_memory().chat(model.clone()).input_guardrail(no_passwords).build()?;
    /// let answer = host.agent().ask("s", "My password is 1234.").await?;
    /// assert_eq!((answer.text.as_str(), model.requests().len()), ("Please do not send me passwords.", 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn input_guardrail(mut self, guardrail: impl InputGuardrail) -> Self {
        self.hooks.guardrails.push(Arc::new(guardrail));
        self
    }

    /// Adds a policy of the loop: it is asked before each question to the model, after each answer,
    /// and after the results of its calls, and may add a message, ask again, or end the turn.
    /// Policies are asked in the order of their addition.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::{LoopDecision, LoopPoint, policy_fn};
    /// use rockbot_host::AgentHost;
    ///
    /// let polite = policy_fn(|point, _turn| async move {
    ///     Ok(match point {
    ///         LoopPoint::AfterAnswer(answer) if !answer.text.contains("please") => {
    ///             LoopDecision::ask_again("Say please.")
    ///         }
    ///         _ => LoopDecision::Continue,
    ///     })
    /// });
    /// let model = ScriptedModel::new().says("Wait.").says("Wait, please.");
    /// let host = AgentHost::in_memory().chat(model).loop_policy(polite).build()?;
    /// assert_eq!(host.agent().ask("kitchen", "Is the tea ready?").await?.text, "Wait, please.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn loop_policy(mut self, policy: impl LoopPolicy) -> Self {
        self.hooks.policies.push(Arc::new(policy));
        self
    }

    /// Adds a check of final answers. Its complaint goes back to the model, at most
    /// [`HookLimits::max_corrections`](crate::turn::HookLimits::max_corrections) times in a turn;
    /// then the turn fails.
    /// [`TurnCall::with_output_validator`](crate::TurnCall::with_output_validator) adds a check for
    /// a single message.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::{OutputVerdict, validator_fn};
    /// use rockbot_host::AgentHost;
    ///
    /// let metric = validator_fn(|answer, _turn| async move {
    ///     Ok(match answer.text.contains("°F") {
    ///         true => OutputVerdict::complain("Give temperatures in degrees Celsius."),
    ///         false => OutputVerdict::Accept,
    ///     })
    /// });
    /// let model = ScriptedModel::new().says("It is 39 °F.").says("It is 4 °C.");
    /// let host = AgentHost::in_memory().chat(model).output_validator(metric).build()?;
    /// assert_eq!(host.agent().ask("oslo", "How cold is it?").await?.text, "It is 4 °C.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn output_validator(mut self, validator: impl OutputValidator) -> Self {
        self.hooks.validators.push(Arc::new(validator));
        self
    }

    /// Adds a processor of the conversation that the model is about to read: it may drop, shorten,
    /// add and reorder messages. Processors are asked in the order of their addition, each with the
    /// result of the processor before it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rockbot_core::chat::ContextReason;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::history_fn;
    /// use rockbot_host::AgentHost;
    ///
    /// let forgetful = history_fn(|mut messages, _turn| async move {
    ///     messages.retain(|message| message.why() != ContextReason::History);
    ///     Ok(messages)
    /// });
    /// let model = ScriptedModel::new().says("Hello, Ada.").says("Who are you?");
    /// let host = AgentHost::in_memory().chat(model.clone()).history_processor(forgetful).build()?;
    /// host.agent().ask("s", "I am Ada.").await?;
    /// host.agent().ask("s", "Who am I?").await?;
    /// assert_eq!(model.requests()[1].messages.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn history_processor(mut self, processor: impl HistoryProcessor) -> Self {
        self.hooks.history.push(Arc::new(processor));
        self
    }
}
