//! [`ModelInfo`]: the description of a model by its client.

use std::sync::Arc;

use super::{ModelSettings, OutputMode};

/// A snapshot of the knowledge of a [`ChatClient`](super::ChatClient) about the model that it
/// asks for one tier.
///
/// A host looks up the model's behavior and price by `model`, labels spans and metrics with
/// `model` and `provider`, spans also with `settings`, and postpones background work while
/// `is_busy` is set.
///
/// ```
/// use rockbot_core::chat::ModelInfo;
///
/// let info = ModelInfo::new("gpt-4.1-mini").with_provider("openai");
/// assert_eq!(info.model.as_deref(), Some("gpt-4.1-mini"));
/// assert!(!info.is_busy);
/// assert_eq!(ModelInfo::unknown(), ModelInfo::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Id of the model that is asked first, `None` if the client does not know it.
    pub model: Option<Arc<str>>,
    /// Provider that is asked first, as OpenTelemetry names it, such as `openai`; `None` if the
    /// client does not know it.
    pub provider: Option<Arc<str>>,
    /// Settings that requests are sent with unless they set them; `None` if the client has no
    /// settings, or does not know them.
    pub settings: Option<Arc<ModelSettings>>,
    /// `true` while calls are in flight, as far as the client counts them. `false` for a client that
    /// does not count.
    pub is_busy: bool,
    /// `false` if the client sends the model no images and files, but their descriptions. `None` if
    /// nothing is known.
    pub takes_images: Option<bool>,
    /// Mode of structured output that suits the model. Default [`OutputMode::Auto`]: the client does
    /// not know.
    pub output_mode: OutputMode,
}

impl ModelInfo {
    /// Creates the description of a model with the id `model` by an unknown provider.
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self {
            model: Some(model.into()),
            ..Self::default()
        }
    }

    /// Creates the description that a client returns that knows nothing about its model.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Sets the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Sets whether the model takes images and files.
    #[must_use]
    pub fn with_images(mut self, takes_images: Option<bool>) -> Self {
        self.takes_images = takes_images;
        self
    }

    /// Sets the settings that requests are sent with unless they set them.
    #[must_use]
    pub fn with_settings(mut self, settings: Option<Arc<ModelSettings>>) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the mode of structured output that suits the model.
    #[must_use]
    pub fn with_output_mode(mut self, mode: OutputMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// Sets whether calls are in flight.
    #[must_use]
    pub fn with_busy(mut self, is_busy: bool) -> Self {
        self.is_busy = is_busy;
        self
    }
}
