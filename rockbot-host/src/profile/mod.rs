//! The agent's profile: Markdown files with its identity and instructions, and the system prompt
//! made of them.
//!
//! `soul.md` and `directives.md` are required; `memory-rules.md` and `style.md` are optional.
//! `load` reads the files, `document` parses each into sections, and a [`SystemPrompt`] holds the
//! text that begins every request to a model, which it can reload.

mod document;
mod load;
mod prompt;
#[cfg(test)]
mod tests;

use rockbot_core::AgentIdentity;

pub use document::{AgentProfileDocument, AgentProfileSection};
pub use load::{AgentProfileOptions, MAX_PROFILE_FILE_BYTES, ProfileError};
pub use prompt::SystemPrompt;

/// The profile of an agent: its documents in the order of the prompt.
///
/// # Examples
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
    /// Creates a profile of these documents.
    pub fn new(documents: impl IntoIterator<Item = AgentProfileDocument>) -> Self {
        Self {
            documents: documents.into_iter().collect(),
        }
    }

    /// Returns the documents. A profile from files has `soul`, `directives`, `memory-rules` and
    /// `style`, as far as they exist.
    pub fn documents(&self) -> &[AgentProfileDocument] {
        &self.documents
    }

    /// Returns the document with this name.
    pub fn document(&self, name: &str) -> Option<&AgentProfileDocument> {
        self.documents.iter().find(|document| document.name() == name)
    }

    /// Returns the first section with this name in any document, ignoring case.
    pub fn find_section(&self, name: &str) -> Option<&AgentProfileSection> {
        let name = name.to_lowercase();
        let mut sections = self.documents.iter().flat_map(AgentProfileDocument::sections);
        sections.find(|section| section.name.to_lowercase() == name)
    }
}

/// A builder of system prompts.
///
/// An implementation must be deterministic: providers cache the beginning of requests (prompt
/// caching), and a prompt that changes is billed in full again.
pub trait SystemPromptBuilder: std::fmt::Debug + Send + Sync + 'static {
    /// Builds the prompt of the agent `identity` from its profile.
    fn build(&self, profile: &AgentProfile, identity: &AgentIdentity) -> String;
}

impl<Shared: SystemPromptBuilder + ?Sized> SystemPromptBuilder for std::sync::Arc<Shared> {
    fn build(&self, profile: &AgentProfile, identity: &AgentIdentity) -> String {
        (**self).build(profile, identity)
    }
}

/// The default builder: `You are {name}.`, then each document.
///
/// Documents are separated by an empty line and lose trailing whitespace; blank ones are left
/// out. Line ends stay as they are in the files.
///
/// # Examples
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
