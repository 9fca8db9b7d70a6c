//! The services of the host itself: its tools, guides and skills, and the agents of its directory.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::content::Provenance;
use rockbot_core::service::{AgentCard, AgentDirectory, KnownService, ServiceKind, ServiceSource};
use rockbot_core::store::SkillStore;
use rockbot_core::support::one_line;
use rockbot_core::tool::{ToolGuides, ToolRegistration, ToolRegistry};
use rockbot_core::trust::Trust;
use rockbot_core::{BoxError, Principal};

use super::tool::{GUIDE, NAME};

/// The beginning of the source of tools that an MCP server has: they are found with their server.
const OF_SERVERS: &str = "mcp:";

/// The tool that hands a task to an agent.
const CALLING: &str = "invoke_agent";

/// Length of a skill's text that is searched, in bytes.
const MAX_SKILL: usize = 4_000;

/// Returns the sources of the host's own services.
pub(super) fn of_host(
    registry: Arc<dyn ToolRegistry>,
    guides: Arc<ToolGuides>,
    skills: Option<Arc<dyn SkillStore>>,
    agents: Arc<dyn AgentDirectory>,
) -> Vec<Arc<dyn ServiceSource>> {
    let skills = skills.map(|skills| Arc::new(Skills(skills)) as Arc<dyn ServiceSource>);
    let others: [Arc<dyn ServiceSource>; 3] = [
        Arc::new(Agents {
            agents,
            registry: registry.clone(),
        }),
        Arc::new(Tools(registry)),
        Arc::new(Guides(guides)),
    ];
    others.into_iter().chain(skills).collect()
}

#[derive(Debug)]
struct Tools(Arc<dyn ToolRegistry>);

#[async_trait]
impl ServiceSource for Tools {
    fn name(&self) -> &str {
        "tools"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let snapshot = self.0.snapshot();
        let tools = snapshot.entries().iter().map(|entry| entry.registration());
        let tools = tools.filter(|tool| !tool.source.starts_with(OF_SERVERS) && tool.name != NAME);
        Ok(tools.map(of_tool).collect())
    }
}

fn of_tool(tool: &ToolRegistration) -> KnownService {
    let hints = &tool.hints;
    let service = KnownService::new(ServiceKind::Tool, tool.name.as_str(), one_line(&tool.description));
    let service = if hints.outside_text {
        service.with_provenance(Provenance::new(format!("tools:{}", tool.source), Trust::Untrusted))
    } else {
        service
    };
    if hints.exposure.is_always() {
        service
    } else {
        service.with_activates(tool.name.clone())
    }
}

#[derive(Debug)]
struct Guides(Arc<ToolGuides>);

#[async_trait]
impl ServiceSource for Guides {
    fn name(&self) -> &str {
        "guides"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let guides = self.0.snapshot();
        // The guide to the search itself is about searching, and no task is.
        let others = guides.iter().filter(|(name, _)| **name != GUIDE);
        let described =
            others.map(|(name, guide)| KnownService::new(ServiceKind::Guide, name.as_str(), one_line(guide.summary())));
        Ok(described.collect())
    }
}

#[derive(Debug)]
struct Skills(Arc<dyn SkillStore>);

#[async_trait]
impl ServiceSource for Skills {
    fn name(&self) -> &str {
        "skills"
    }

    async fn services(&self, principal: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let skills = self.0.list(principal).await?;
        let live = skills.iter().filter(|skill| skill.is_live());
        let described = live.map(|skill| {
            let end = skill.content.floor_char_boundary(MAX_SKILL);
            KnownService::new(ServiceKind::Skill, skill.name.as_str(), one_line(&skill.summary))
                .with_words(&skill.content[..end])
                .with_provenance(skill.provenance.clone())
        });
        Ok(described.collect())
    }
}

#[derive(Debug)]
pub(super) struct Agents {
    pub(super) agents: Arc<dyn AgentDirectory>,
    pub(super) registry: Arc<dyn ToolRegistry>,
}

#[async_trait]
impl ServiceSource for Agents {
    fn name(&self) -> &str {
        "agents"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let snapshot = self.registry.snapshot();
        let calling = snapshot.find(CALLING).map(|entry| &entry.registration().hints.exposure);
        let group = calling.and_then(|exposure| exposure.group());
        let shown = |service: KnownService| match group {
            Some(group) => service.with_activates(group.clone()),
            None => service,
        };
        Ok(self.agents.agents().iter().map(of_agent).map(shown).collect())
    }
}

/// Describes an agent. Its card is text of another program.
fn of_agent(card: &AgentCard) -> KnownService {
    let summary = match &card.description {
        Some(description) => one_line(description).into_owned(),
        None => format!("Agent: {}", one_line(&card.agent_name)),
    };
    let words = card.skills.iter().flat_map(|skill| {
        let described = [Some(&skill.name), skill.description.as_ref()];
        let described = described.into_iter().flatten();
        described.chain(&skill.tags).chain(&skill.examples).map(String::as_str)
    });
    let source = format!("agent:{}", one_line(&card.agent_name));
    KnownService::new(ServiceKind::Agent, one_line(&card.agent_name), summary)
        .with_items(
            card.skills
                .iter()
                .map(|skill| one_line(&skill.id).into_owned())
                .collect(),
        )
        .with_words(words.collect::<Vec<_>>().join("\n"))
        .with_provenance(Provenance::new(source, Trust::Untrusted))
}
