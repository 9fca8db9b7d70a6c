//! The agent's profile: Markdown files that say who the agent is and how it works, and the system prompt made of them.
//!
//! Two files are required, `soul.md` and `directives.md`; `memory-rules.md` and `style.md` may be there too. A
//! [`SystemPrompt`] holds the text that begins every request to a model, and can be told to read the files again.

mod document;
mod load;
mod prompt;
#[cfg(test)]
mod tests;

use rockbot_core::AgentIdentity;

pub use document::{AgentProfileDocument, AgentProfileSection};
pub use load::{AgentProfileOptions, MAX_PROFILE_FILE_BYTES, ProfileError};
pub use prompt::SystemPrompt;

/// Who an agent is: its documents, in the order in which they stand in the prompt.
///
/// ```
/// use rockbot_host::profile::{AgentProfile, AgentProfileDocument};
///
/// let soul = AgentProfileDocument::parse("soul", "Be kind.\n\n## Values\nHonesty.\n");
/// let profile = AgentProfile::new([soul]);
/// assert_eq!(profile.find_section("values").map(|section| section.content.as_str()), Some("Honesty.\n"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentProfile {
    documents: Vec<AgentProfileDocument>,
}

impl AgentProfile {
    /// A profile of these documents.
    pub fn new(documents: impl IntoIterator<Item = AgentProfileDocument>) -> Self {
        Self {
            documents: documents.into_iter().collect(),
        }
    }

    /// The documents: from files they are `soul`, `directives`, `memory-rules` and `style`, those that there are.
    pub fn documents(&self) -> &[AgentProfileDocument] {
        &self.documents
    }

    /// The document of this name.
    pub fn document(&self, name: &str) -> Option<&AgentProfileDocument> {
        self.documents.iter().find(|document| document.name() == name)
    }

    /// The first section of this name in any document, upper or lower case.
    pub fn find_section(&self, name: &str) -> Option<&AgentProfileSection> {
        let name = name.to_lowercase();
        let mut sections = self.documents.iter().flat_map(AgentProfileDocument::sections);
        sections.find(|section| section.name.to_lowercase() == name)
    }
}

/// Writes the system prompt of an agent. The same profile and identity always give the same text: providers keep
/// what requests begin with, and a prompt that changes is paid anew.
pub trait SystemPromptBuilder: std::fmt::Debug + Send + Sync + 'static {
    /// The prompt.
    fn build(&self, profile: &AgentProfile, identity: &AgentIdentity) -> String;
}

/// `You are {name}.`, then each document as it stands without the blanks at its end, with an empty line between
/// them. Documents that are all blank are left out; line ends stay as they are in the files.
///
/// ```
/// use rockbot_core::AgentIdentity;
/// use rockbot_host::profile::{
///     AgentProfile, AgentProfileDocument, DefaultSystemPromptBuilder, SystemPromptBuilder,
/// };
///
/// let soul = AgentProfileDocument::parse("soul", "Be kind.\n");
/// let prompt = DefaultSystemPromptBuilder.build(&AgentProfile::new([soul]), &AgentIdentity::new("Ada"));
/// assert_eq!(prompt, "You are Ada.\n\nBe kind.");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultSystemPromptBuilder;

impl SystemPromptBuilder for DefaultSystemPromptBuilder {
    fn build(&self, profile: &AgentProfile, identity: &AgentIdentity) -> String {
        let mut prompt = format!("You are {}.", identity.name());
        let texts = profile.documents().iter().map(|document| document.raw().trim_end());
        for text in texts.filter(|text| !text.is_empty()) {
            prompt.push_str("\n\n");
            prompt.push_str(text);
        }
        prompt
    }
}
