//! The reloadable system prompt of a host.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rockbot_core::AgentIdentity;

use super::{AgentProfile, AgentProfileOptions, ProfileError, SystemPromptBuilder};

/// The text that begins every request to a model: fixed, or built from a profile.
///
/// It is built once and shared, so that requests begin with the same bytes and hit the provider's
/// prompt cache until [`SystemPrompt::reload`] finds changed files.
///
/// # Examples
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
    /// Held while files are read, so that concurrent reloads store their results in the order of
    /// their reads.
    reloading: Mutex<()>,
}

/// A prompt with the profile that it was built from.
#[derive(Debug)]
struct BuiltPrompt {
    text: Arc<str>,
    profile: Option<Arc<AgentProfile>>,
}

/// The inputs of a prompt, for reloading.
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
    /// Creates a prompt with a fixed text, which no reload changes.
    pub fn fixed(text: impl Into<Arc<str>>) -> Self {
        let built = BuiltPrompt {
            text: text.into(),
            profile: None,
        };
        Self::new(built, None)
    }

    /// Creates a prompt that `builder` builds from the profile at `options` for the agent `identity`.
    /// Blocks while it reads.
    ///
    /// # Errors
    ///
    /// Returns an error as [`AgentProfile::load`] does.
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

    /// Returns the current text. A reload does not change texts that were returned before.
    pub fn current(&self) -> Arc<str> {
        self.current.load().text.clone()
    }

    /// Returns the profile that the text was built from; `None` for a fixed text.
    pub fn profile(&self) -> Option<Arc<AgentProfile>> {
        self.current.load().profile.clone()
    }

    /// Reads the profile's files again, and returns `true` if the text has changed. Blocks while it
    /// reads. A fixed text never changes.
    ///
    /// # Errors
    ///
    /// Returns an error as [`AgentProfile::load`] does; text and profile then stay unchanged.
    pub fn reload(&self) -> Result<bool, ProfileError> {
        let Some(source) = &self.source else {
            return Ok(false);
        };
        // The guarded value is `()`, so a poisoned lock is safe to use.
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
