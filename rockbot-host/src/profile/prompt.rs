//! The system prompt that a host holds.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rockbot_core::AgentIdentity;

use super::{AgentProfile, AgentProfileOptions, ProfileError, SystemPromptBuilder};

/// The text that begins every request to a model: a fixed one, or one made of a profile.
///
/// It is made once and then shared, so every request begins with the same bytes until [`SystemPrompt::reload`]
/// finds that the files have changed.
///
/// ```
/// use rockbot_host::profile::SystemPrompt;
///
/// let prompt = SystemPrompt::fixed("You are a clerk.");
/// assert_eq!(&*prompt.current(), "You are a clerk.");
/// ```
#[derive(Debug)]
pub struct SystemPrompt {
    current: ArcSwap<BuiltPrompt>,
    source: Option<PromptSource>,
    /// Held while files are read: of two reloads the one that read last is the one that stays.
    reloading: Mutex<()>,
}

/// A prompt and the profile that it was made of.
#[derive(Debug)]
struct BuiltPrompt {
    text: Arc<str>,
    profile: Option<Arc<AgentProfile>>,
}

/// Where a prompt comes from.
#[derive(Debug)]
struct PromptSource {
    options: AgentProfileOptions,
    builder: Arc<dyn SystemPromptBuilder>,
    identity: AgentIdentity,
}

impl PromptSource {
    fn build(&self) -> Result<BuiltPrompt, ProfileError> {
        let profile = AgentProfile::load(&self.options)?;
        Ok(BuiltPrompt {
            text: self.builder.build(&profile, &self.identity).into(),
            profile: Some(Arc::new(profile)),
        })
    }
}

impl SystemPrompt {
    /// This text, for ever.
    pub fn fixed(text: impl Into<Arc<str>>) -> Self {
        let built = BuiltPrompt {
            text: text.into(),
            profile: None,
        };
        Self::new(built, None)
    }

    /// What `builder` makes of the profile that `options` name, for the agent `identity`. It blocks while it reads.
    ///
    /// # Errors
    ///
    /// Fails as [`AgentProfile::load`] does.
    pub fn of_profile(
        options: AgentProfileOptions,
        builder: Arc<dyn SystemPromptBuilder>,
        identity: AgentIdentity,
    ) -> Result<Self, ProfileError> {
        let source = PromptSource {
            options,
            builder,
            identity,
        };
        Ok(Self::new(source.build()?, Some(source)))
    }

    /// The text as it is now. Whoever holds it keeps it, whatever is reloaded.
    pub fn current(&self) -> Arc<str> {
        self.current.load().text.clone()
    }

    /// The profile that the text was made of; `None` for a fixed one.
    pub fn profile(&self) -> Option<Arc<AgentProfile>> {
        self.current.load().profile.clone()
    }

    /// Reads the profile's files again, and returns whether the text has changed. It blocks while it reads. A fixed
    /// text never changes.
    ///
    /// # Errors
    ///
    /// Fails as [`AgentProfile::load`] does; text and profile then stay as they were.
    pub fn reload(&self) -> Result<bool, ProfileError> {
        let Some(source) = &self.source else {
            return Ok(false);
        };
        // The guarded value is `()`: a panic elsewhere cannot have left it half changed.
        let _reloading = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let built = source.build()?;
        let has_changed = built.text != self.current.load().text;
        self.current.store(Arc::new(built));
        Ok(has_changed)
    }

    fn new(built: BuiltPrompt, source: Option<PromptSource>) -> Self {
        Self {
            current: ArcSwap::from_pointee(built),
            source,
            reloading: Mutex::default(),
        }
    }
}
