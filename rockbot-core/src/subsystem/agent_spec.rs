//! An agent beside the host's own.

use std::fmt;
use std::sync::Arc;

use crate::chat::ChatClient;
use crate::tool::{Tool, ToolFilter};
use crate::turn::Budget;

/// An agent that a host has beside its own. It shares the host's journal, stores, bus, ledger and
/// lifecycle, and has its own instructions, model and tools.
///
/// A turn belongs to the agent if its request [names](crate::turn::TurnRequest::with_agent) the
/// agent. Unless the request says otherwise, the turn's working memory has the namespace
/// `agent/NAME`.
///
/// ```
/// use rockbot_core::subsystem::AgentSpec;
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_core::tool::ToolFilter;
///
/// let reviewer = AgentSpec::new()
///     .instructions("You review texts. Name each mistake with its line.")
///     .chat(ScriptedModel::new().says("Line 3: a comma is missing."))
///     .tools(ToolFilter::only(["read_file"]));
/// # let _ = reviewer;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
#[must_use]
pub struct AgentSpec {
    /// Client of the models; `None`, the default, is the host's.
    pub chat: Option<Arc<dyn ChatClient>>,
    /// Instructions; `None`, the default, are the host's.
    pub instructions: Option<String>,
    /// Filter of the host's tools. Default all of them.
    pub tools: ToolFilter,
    /// Tools that no other agent of the host has.
    pub own_tools: Vec<Tool>,
    /// Budget of a turn whose request has no budget; `None`, the default, is the host's.
    pub budget: Option<Budget>,
    /// `true` if [`chat`](Self::chat) is a program and not a model.
    pub is_program: bool,
}

impl AgentSpec {
    /// Creates an agent with the model, instructions and tools of the host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the client of the agent's models. The host's layers around model calls wrap it, too.
    /// Default: the host's.
    pub fn chat(mut self, chat: impl ChatClient) -> Self {
        self.chat = Some(Arc::new(chat));
        self
    }

    /// Sets the instructions. Default: the host's.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the filter of the host's tools. Default all of them.
    pub fn tools(mut self, tools: ToolFilter) -> Self {
        self.tools = tools;
        self
    }

    /// Adds a tool that no other agent of the host has.
    pub fn tool(mut self, tool: impl Into<Tool>) -> Self {
        self.own_tools.push(tool.into());
        self
    }

    /// Sets the budget of a turn whose request has no budget. Default: the host's.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets a client that is a program and not a model: an interpreter whose answers are calls that
    /// it has decided on.
    ///
    /// A turn of such an agent has the journal, the guard, the approvals and the limits of any
    /// turn. Its requests hold the message, the calls and their whole results alone, no policy of
    /// the loop changes or repeats an answer, and an answer has the cost that the program states,
    /// else none.
    pub fn program(mut self, program: impl ChatClient) -> Self {
        self.is_program = true;
        self.chat(program)
    }
}

impl fmt::Debug for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own_tools = self.own_tools.iter().map(|tool| &tool.registration.name);
        f.debug_struct("AgentSpec")
            .field("instructions", &self.instructions)
            .field("tools", &self.tools)
            .field("own_tools", &own_tools.collect::<Vec<_>>())
            .field("budget", &self.budget)
            .field("is_program", &self.is_program)
            .finish_non_exhaustive()
    }
}
