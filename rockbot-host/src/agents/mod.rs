//! The agents of a host: its own, and those beside it. They share everything but the parts that
//! are here.
//!
//! Agents of a host (`agents/`). A host has agents beside its own; a request names one, and all
//! agents share the engine. Each has a chat client (through the host's layers), instructions, a
//! filter of tools, a budget and a namespace; a request is completed by its agent when it is
//! accepted, so the journal has all of it. An agent may be a *program* (`AgentSpec::program`): a
//! `ChatClient` that decides by itself, such as the interpreter of wisps. Its turn has journal,
//! guard, approvals and limits of any turn; context, policies of the loop and cost are a model's
//! alone. Several hosts share a journal by `Stores::with_shared_journal`: the name of the agent
//! stands before the id and in the key of each run, and a request to cancel reaches the process
//! that holds the run with its next append.

mod context_windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::store::StorePath;
use rockbot_core::subsystem::AgentSpec;
use rockbot_core::tool::ToolFilter;
use rockbot_core::turn::{Budget, TurnError, TurnRequest};

pub(crate) use context_windows::ContextWindows;

use crate::chat::GuardedChat;
use crate::profile::SystemPrompt;

/// Parts of one agent.
#[derive(Debug)]
pub(crate) struct HostAgent {
    pub(crate) chat: Arc<GuardedChat>,
    pub(crate) windows: Arc<ContextWindows>,
    pub(crate) prompt: Arc<SystemPrompt>,
    /// The tools of the host that the agent has; `None` if it has all.
    pub(crate) tools: Option<Arc<ToolFilter>>,
    pub(crate) namespace: Option<StorePath>,
    pub(crate) budget: Option<Budget>,
    /// `true` if the chat client is a program and not a model.
    pub(crate) is_program: bool,
}

/// Agents of a host.
#[derive(Debug)]
pub(crate) struct HostAgents {
    pub(crate) own: HostAgent,
    beside: BTreeMap<String, HostAgent>,
}

impl HostAgent {
    /// Creates the host's own agent.
    pub(crate) fn own(chat: Arc<GuardedChat>, prompt: Arc<SystemPrompt>, tools: Option<ToolFilter>) -> Self {
        Self {
            windows: Arc::new(ContextWindows::of(chat.clone())),
            chat,
            prompt,
            tools: tools.map(Arc::new),
            namespace: None,
            budget: None,
            is_program: false,
        }
    }

    /// Creates an agent beside the `own` one, with `tools` of the host.
    pub(crate) fn beside(own: &Self, spec: AgentSpec, tools: ToolFilter, namespace: StorePath) -> Self {
        let (chat, windows) = match spec.chat {
            None => (own.chat.clone(), own.windows.clone()),
            Some(client) => {
                let chat = Arc::new(if spec.is_program {
                    GuardedChat::new(client, Default::default())
                } else {
                    own.chat.beside(client)
                });
                (chat.clone(), Arc::new(ContextWindows::of(chat)))
            }
        };
        let instructions = spec.instructions.map(|text| Arc::new(SystemPrompt::fixed(text)));
        Self {
            chat,
            windows,
            prompt: instructions.unwrap_or_else(|| own.prompt.clone()),
            tools: Some(Arc::new(tools)),
            namespace: Some(namespace),
            budget: spec.budget,
            is_program: spec.is_program,
        }
    }

    /// Gives a request what it leaves to its agent.
    pub(crate) fn complete(&self, request: &mut TurnRequest) {
        request.tools = match (&self.tools, request.tools.take()) {
            (None, of_request) => of_request,
            (of_agent, None) => of_agent.clone(),
            (Some(of_agent), Some(of_request)) => Some(Arc::new(ToolFilter::clone(&of_request).and(of_agent))),
        };
        request.namespace = request.namespace.take().or_else(|| self.namespace.clone());
        request.budget = request.budget.or(self.budget);
    }
}

impl HostAgents {
    pub(crate) fn new(own: HostAgent, beside: BTreeMap<String, HostAgent>) -> Self {
        Self { own, beside }
    }

    /// Returns `true` if the host has the agent of this name beside its own.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.beside.contains_key(name)
    }

    /// Checks that the host has the agent that a request names.
    pub(crate) fn check(&self, request: &TurnRequest) -> Result<(), TurnError> {
        match &request.agent {
            Some(name) if !self.has(name) => Err(TurnError::UnknownAgent(name.clone())),
            _ => Ok(()),
        }
    }

    /// Returns the agent of a request that was checked.
    pub(crate) fn of(&self, request: &TurnRequest) -> &HostAgent {
        let beside = request.agent.as_ref().and_then(|name| self.beside.get(name));
        beside.unwrap_or(&self.own)
    }
}
