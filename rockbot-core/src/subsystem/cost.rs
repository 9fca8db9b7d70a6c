//! The cost of a part of a host, in model calls and tokens.
//!
//! Costs are stated by the part and counted by the host (`PartCost`): only a part knows which
//! calls of models it causes, and only the host knows the tokens of its tools in a request. A
//! part that states no cost is listed as unknown.

use std::borrow::Cow;
use std::fmt;

use crate::ToolName;

/// The cost of a part of a host in model calls and tokens, as users read it.
///
/// A subsystem states its part of the cost in [`Declarations::cost`](super::Declarations::cost):
/// the names of its tools and its calls of models. The host adds the tokens, which it estimates
/// from the definitions that models are sent.
///
/// ```
/// use rockbot_core::subsystem::PartCost;
///
/// let cost = PartCost::on("weather").with_tools(["forecast".into()]).with_model_calls("one a day, in the background");
/// assert_eq!(cost.to_string(), "weather: no tokens in a request; model calls: one a day, in the background");
/// let log = PartCost::off("conversation log").with_switch("`ConversationLog.Enabled`");
/// assert_eq!(log.to_string(), "conversation log: off, see `ConversationLog.Enabled`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartCost {
    /// Name of the part.
    pub part: Cow<'static, str>,
    /// `true` if the part is on.
    pub is_on: bool,
    /// Setting or method that turns the part on or off. Empty for parts that a host always has.
    pub switch: Cow<'static, str>,
    /// Model calls that the part causes. Empty if it causes none.
    pub model_calls: Cow<'static, str>,
    /// Names of the tools that the part brings.
    pub tools: Vec<ToolName>,
    /// Tokens in each request of a turn, estimated.
    pub request_tokens: u64,
    /// Further tokens in each request of conversations that activate the part's tools, estimated.
    pub on_demand_tokens: u64,
    /// Maximum number of tokens before each message, estimated.
    pub message_tokens: u64,
}

impl PartCost {
    /// Creates the cost of a part that is on, and costs nothing.
    pub fn on(part: impl Into<Cow<'static, str>>) -> Self {
        Self {
            part: part.into(),
            is_on: true,
            switch: "".into(),
            model_calls: "".into(),
            tools: Vec::new(),
            request_tokens: 0,
            on_demand_tokens: 0,
            message_tokens: 0,
        }
    }

    /// Creates the entry of a part that is off.
    pub fn off(part: impl Into<Cow<'static, str>>) -> Self {
        Self {
            is_on: false,
            ..Self::on(part)
        }
    }

    /// Sets the setting or method that turns the part on or off.
    #[must_use]
    pub fn with_switch(mut self, switch: impl Into<Cow<'static, str>>) -> Self {
        self.switch = switch.into();
        self
    }

    /// Sets the model calls that the part causes, in words: which, how many, and when.
    #[must_use]
    pub fn with_model_calls(mut self, calls: impl Into<Cow<'static, str>>) -> Self {
        self.model_calls = calls.into();
        self
    }

    /// Sets the names of the tools that the part brings.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }

    /// Sets the tokens in each request of a turn.
    #[must_use]
    pub fn with_request_tokens(mut self, tokens: u64) -> Self {
        self.request_tokens = tokens;
        self
    }

    /// Sets the further tokens in each request of conversations that activate the part's tools.
    #[must_use]
    pub fn with_on_demand_tokens(mut self, tokens: u64) -> Self {
        self.on_demand_tokens = tokens;
        self
    }

    /// Sets the maximum number of tokens before each message.
    #[must_use]
    pub fn with_message_tokens(mut self, tokens: u64) -> Self {
        self.message_tokens = tokens;
        self
    }
}

impl fmt::Display for PartCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, switch, .. } = self;
        if !self.is_on {
            return match &**switch {
                "" => write!(f, "{part}: off"),
                switch => write!(f, "{part}: off, see {switch}"),
            };
        }
        match self.request_tokens {
            0 => write!(f, "{part}: no tokens in a request")?,
            tokens => write!(f, "{part}: {tokens} tokens in each request")?,
        }
        if self.on_demand_tokens > 0 {
            write!(f, ", {} more on demand", self.on_demand_tokens)?;
        }
        if self.message_tokens > 0 {
            write!(f, ", up to {} before each message", self.message_tokens)?;
        }
        match &*self.model_calls {
            "" => f.write_str("; no model calls of its own"),
            calls => write!(f, "; model calls: {calls}"),
        }
    }
}
