//! The agents that an agent knows: the contract of a directory, and a directory from a file.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// Maximum size of a file of agents, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum number of agents of a file.
const MAX_AGENTS: usize = 256;

/// The card of an agent: its name, its purpose and its skills. On the wire its members are
/// camelCase, as the original writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentCard {
    /// The name to address the agent with. Its case does not matter.
    pub agent_name: String,
    /// The purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The address of an agent that is reached over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The skills, the most important first.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<AgentSkill>,
}

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentSkill {
    /// The id, which a task names.
    pub id: String,
    /// The name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words for the skill.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Examples of tasks.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

impl AgentCard {
    /// Creates the card of an agent without skills.
    pub fn new(agent_name: impl Into<String>) -> Self {
        Self {
            agent_name: agent_name.into(),
            description: None,
            version: None,
            url: None,
            skills: Vec::new(),
        }
    }

    /// Sets the purpose.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the skills, the most important first.
    #[must_use]
    pub fn with_skills(mut self, skills: Vec<AgentSkill>) -> Self {
        self.skills = skills;
        self
    }
}

impl AgentSkill {
    /// Creates a skill with its id as its name.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            description: None,
            tags: Vec::new(),
            examples: Vec::new(),
        }
    }

    /// Sets the purpose.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// A directory of the agents that take work.
pub trait AgentDirectory: fmt::Debug + Send + Sync + 'static {
    /// Returns the cards of all agents that are known now.
    fn agents(&self) -> Arc<[AgentCard]>;
}

impl<Shared: AgentDirectory + ?Sized> AgentDirectory for Arc<Shared> {
    fn agents(&self) -> Arc<[AgentCard]> {
        (**self).agents()
    }
}

/// An [`AgentDirectory`] of agents that the operator names, for example in a file
/// `well-known-agents.json`.
///
/// ```
/// use rockbot_core::service::{AgentCard, AgentDirectory, KnownAgents};
///
/// let agents = KnownAgents::new(vec![AgentCard::new("ResearchAgent").with_description("Researches the web.")])?;
/// assert_eq!(agents.agents()[0].agent_name, "ResearchAgent");
/// # Ok::<(), rockbot_core::service::AgentFileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct KnownAgents(Arc<[AgentCard]>);

/// An error of agents that an operator named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFileError {
    /// The file cannot be read.
    #[error("the file of agents `{path}` cannot be read")]
    Unreadable {
        /// The path.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("the file of agents `{0}` has more than 1 MiB: name fewer agents")]
    TooLarge(String),
    /// The file is not a list of agents.
    #[error(
        "the file of agents `{path}` is not a JSON array of agents with `agentName`: see line {line} column {column}"
    )]
    Invalid {
        /// The path.
        path: String,
        /// The line of the problem. Its text is not quoted: a file of agents may have keys.
        line: usize,
        /// The column of the problem.
        column: usize,
    },
    /// There are too many agents.
    #[error("there are {0} agents, and at most 256 can be known: name fewer")]
    TooMany(usize),
    /// Two agents have one name.
    #[error("two agents are named `{0}`: rename or remove one")]
    Duplicate(String),
}

impl KnownAgents {
    /// Creates a directory of these agents.
    ///
    /// # Errors
    ///
    /// Returns an error if there are more than 256 agents, or two agents have one name.
    pub fn new(agents: Vec<AgentCard>) -> Result<Self, AgentFileError> {
        if agents.len() > MAX_AGENTS {
            return Err(AgentFileError::TooMany(agents.len()));
        }
        for (at, agent) in agents.iter().enumerate() {
            let is_same = |other: &AgentCard| other.agent_name.eq_ignore_ascii_case(&agent.agent_name);
            if agents[..at].iter().any(is_same) {
                return Err(AgentFileError::Duplicate(agent.agent_name.clone()));
            }
        }
        Ok(Self(agents.into()))
    }

    /// Reads the agents of a file: a JSON array of cards. Unknown members are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is larger than 1 MiB, or is not such an array.
    pub fn from_file(path: &Path) -> Result<Self, AgentFileError> {
        let shown = || path.display().to_string();
        let unreadable = |source| AgentFileError::Unreadable { path: shown(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_FILE {
            return Err(AgentFileError::TooLarge(shown()));
        }
        let agents: Vec<AgentCard> = serde_json::from_str(&text).map_err(|error| AgentFileError::Invalid {
            path: shown(),
            line: error.line(),
            column: error.column(),
        })?;
        Self::new(agents)
    }
}

impl AgentDirectory for KnownAgents {
    fn agents(&self) -> Arc<[AgentCard]> {
        self.0.clone()
    }
}

/// Reads a member that may be null: the original writes null for a missing value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<KnownAgents, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agents.json");
        std::fs::write(&path, text).unwrap();
        let shown = path.display().to_string();
        KnownAgents::from_file(&path).map_err(|error| error.to_string().replace(&shown, "FILE"))
    }

    #[test]
    fn the_original_s_file_is_read() {
        let text = r#"[{"agentName": "SalesOps", "description": "Sells.", "isDeregistering": false,
            "skills": [{"id": "qbr", "name": "QBR", "tags": ["report"], "examples": null}]},
            {"agentName": "Other", "version": null, "skills": null}]"#;
        let mut sales = AgentCard::new("SalesOps").with_description("Sells.");
        let mut report = AgentSkill::new("qbr");
        report.name = "QBR".to_owned();
        report.tags = vec!["report".to_owned()];
        sales.skills = vec![report];
        assert_eq!(*read(text).unwrap().agents(), [sales, AgentCard::new("Other")]);
    }

    #[test]
    fn what_is_wrong_is_named_and_not_quoted() {
        let error = read(r#"[{"name": "secret"}]"#).unwrap_err();
        assert_eq!(
            error,
            "the file of agents `FILE` is not a JSON array of agents with `agentName`: see line 1 column 19"
        );
        let error = read(r#"[{"agentName": "A"}, {"agentName": "a"}]"#).unwrap_err();
        assert_eq!(error, "two agents are named `a`: rename or remove one");
        let error = read(&" ".repeat((1 << 20) + 1)).unwrap_err();
        assert_eq!(
            error,
            "the file of agents `FILE` has more than 1 MiB: name fewer agents"
        );
        let many = (0..257).map(|number| AgentCard::new(number.to_string())).collect();
        assert_eq!(
            KnownAgents::new(many).unwrap_err().to_string(),
            "there are 257 agents, and at most 256 can be known: name fewer"
        );
    }
}
