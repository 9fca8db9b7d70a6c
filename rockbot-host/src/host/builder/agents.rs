//! The agents of a host: its own, and the agents beside it.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::store::StorePath;
use rockbot_core::subsystem::AgentSpec;
use rockbot_core::tool::{Tool, ToolFilter};

use super::AgentHostBuilder;
use super::error::AgentProblem;
use crate::agents::{HostAgent, HostAgents};
use crate::chat::GuardedChat;
use crate::profile::SystemPrompt;

/// An agent beside the host's own, whose tools are registered.
#[derive(Debug)]
pub(super) struct AgentBeside {
    name: String,
    spec: AgentSpec,
    namespace: StorePath,
    own_tools: Vec<ToolName>,
}

impl AgentBeside {
    /// Takes the tools of the agent, to be registered.
    pub(super) fn take_tools(&mut self) -> Vec<Tool> {
        take(&mut self.spec.own_tools)
    }
}

impl AgentHostBuilder {
    /// Returns the agents of the builder and of subsystems, and the problems of their names.
    pub(super) fn agents_beside(
        &mut self,
        declared: Vec<(String, AgentSpec)>,
        own: &str,
    ) -> Result<Vec<AgentBeside>, AgentProblem> {
        let mut agents: Vec<AgentBeside> = Vec::new();
        for (name, spec) in take(&mut self.agents).into_iter().chain(declared) {
            if name == own || agents.iter().any(|agent| agent.name == name) {
                return Err(AgentProblem::Taken(name));
            }
            let is_one_segment = !name.contains('/');
            let namespace = StorePath::new(&format!("agent/{name}")).ok().filter(|_| is_one_segment);
            agents.push(AgentBeside {
                namespace: namespace.ok_or_else(|| AgentProblem::Invalid(name.clone()))?,
                own_tools: spec
                    .own_tools
                    .iter()
                    .map(|tool| tool.registration.name.clone())
                    .collect(),
                name,
                spec,
            });
        }
        Ok(agents)
    }
}

/// Puts the agents of a host together. No agent has the own tools of another agent.
pub(super) fn agents_of(chat: GuardedChat, prompt: Arc<SystemPrompt>, beside: Vec<AgentBeside>) -> HostAgents {
    let all: Vec<ToolName> = beside.iter().flat_map(|agent| agent.own_tools.clone()).collect();
    let tools = (!all.is_empty()).then(|| ToolFilter::all().without(all.clone()));
    let own = HostAgent::own(Arc::new(chat), prompt, tools);
    let mut agents = BTreeMap::new();
    for mut agent in beside {
        let is_others = |name: &&ToolName| !agent.own_tools.contains(name);
        let others = all.iter().filter(is_others).cloned();
        let tools = take(&mut agent.spec.tools)
            .also(agent.own_tools.iter().cloned())
            .without(others);
        let built = HostAgent::beside(&own, agent.spec, tools, agent.namespace);
        agents.insert(agent.name, built);
    }
    HostAgents::new(own, agents)
}
