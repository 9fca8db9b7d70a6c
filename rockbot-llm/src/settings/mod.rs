//! Settings of the model tiers, from a JSON file and the environment.
//!
//! Each setting is looked for in this order:
//!
//! 1. `ROCKBOT_LLM__BALANCED__ENDPOINT`, `…__APIKEY`, `…__MODELID`, and the same for `LOW` and `HIGH`
//! 2. for Balanced: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL`
//! 3. the file's section `LLM`: `LLM.Balanced.Endpoint`, `…ApiKey`, `…ModelId`; `LLM.Endpoint` and so on mean
//!    Balanced too
//!
//! Names are not case-sensitive; an empty text counts as unset. A tier that names no endpoint uses Balanced's
//! endpoint and key. `OPENAI_API_KEY` goes only to `OPENAI_BASE_URL` and to OpenAI itself, never to another
//! endpoint that the file or a `ROCKBOT_` variable names; a key of the file never goes to `OPENAI_BASE_URL`.

mod error;
mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use rockbot_core::chat::ModelTier;
use rockbot_core::{ExposeSecret, Secret};

pub use self::error::LlmConfigError;

use crate::openai::{OpenAiChat, SettingNames, base_url, is_key, is_loopback};

/// The endpoint when only a key is set.
pub const DEFAULT_ENDPOINT: &str = "https://api.openai.com/v1";

/// The model when only a key is set.
pub const DEFAULT_MODEL: &str = "gpt-4.1-mini";

/// Which models to use: one for the ordinary case, others for lower and higher tiers if wanted.
#[derive(Debug, Clone)]
pub struct LlmSettings {
    /// The model for the ordinary case.
    pub balanced: TierSettings,
    /// A model for simple work; without it Balanced does it.
    pub low: Option<TierSettings>,
    /// A model for hard work; without it Balanced does it.
    pub high: Option<TierSettings>,
}

/// The settings of one model.
#[derive(Clone)]
#[non_exhaustive]
pub struct TierSettings {
    /// The server's base URL.
    pub endpoint: String,
    /// The key, unless the server needs none.
    pub api_key: Option<Secret>,
    /// The model's name at that server.
    pub model: String,
    /// Where these settings are set, for messages.
    pub names: SettingNames,
}

impl fmt::Debug for TierSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.endpoint.split('?').next();
        f.debug_struct("TierSettings")
            .field("endpoint", &endpoint.unwrap_or_default())
            .field("has_api_key", &self.api_key.is_some())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl LlmSettings {
    /// The settings in the environment of this process.
    ///
    /// # Errors
    ///
    /// Fails when there are none, or one cannot be used.
    pub fn from_env() -> Result<Self, LlmConfigError> {
        Self::load(None)
    }

    /// The settings in the environment of this process and in the file at `path`, if one is given.
    ///
    /// # Errors
    ///
    /// Fails when there are none, one cannot be used, or the file cannot be read.
    pub fn load(path: Option<&Path>) -> Result<Self, LlmConfigError> {
        Self::read(path, std::env::vars_os())
    }

    /// The settings in `variables`, which stand for the environment, and in the file at `path`, if one is given.
    ///
    /// ```
    /// # use rockbot_llm::LlmSettings;
    /// let settings = LlmSettings::read(None, [("OPENAI_API_KEY", "sk-1234"), ("OPENAI_MODEL", "gpt-5")])?;
    /// assert_eq!(settings.balanced.model, "gpt-5");
    /// # Ok::<_, rockbot_llm::LlmConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`LlmSettings::load`] does.
    pub fn read<K, V>(path: Option<&Path>, variables: impl IntoIterator<Item = (K, V)>) -> Result<Self, LlmConfigError>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let mut found = Found::default();
        if let Some(path) = path {
            file::read(path, &mut found)?;
        }
        read_variables(variables, &mut found)?;
        if found.settings.is_empty() {
            return Err(LlmConfigError::NothingConfigured);
        }
        let balanced = found.balanced()?;
        Ok(Self {
            low: found.beside(ModelTier::Low, &balanced)?,
            high: found.beside(ModelTier::High, &balanced)?,
            balanced,
        })
    }
}

impl TierSettings {
    /// The client of this model.
    ///
    /// # Errors
    ///
    /// Fails when a setting cannot be used.
    pub fn client(&self) -> Result<OpenAiChat, LlmConfigError> {
        let client = OpenAiChat::builder(&self.endpoint, &self.model).setting_names(self.names.clone());
        match &self.api_key {
            Some(key) => client.api_key(key.clone()).build(),
            None => client.build(),
        }
    }
}

/// What is set for a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Endpoint,
    ApiKey,
    ModelId,
}

impl Field {
    const ALL: [Self; 3] = [Self::Endpoint, Self::ApiKey, Self::ModelId];

    fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "Endpoint",
            Self::ApiKey => "ApiKey",
            Self::ModelId => "ModelId",
        }
    }

    fn variable(self, tier: ModelTier) -> String {
        format!("ROCKBOT_LLM__{}__{}", tier.name(), self.name()).to_ascii_uppercase()
    }

    fn openai_variable(self) -> &'static str {
        match self {
            Self::Endpoint => "OPENAI_BASE_URL",
            Self::ApiKey => "OPENAI_API_KEY",
            Self::ModelId => "OPENAI_MODEL",
        }
    }
}

/// Where a setting was found; the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    File,
    OpenAi,
    Rockbot,
}

struct Setting {
    /// How messages call it.
    name: String,
    value: Secret,
}

impl Setting {
    fn text(&self) -> &str {
        self.value.expose_secret()
    }
}

/// All settings that were found, before it is decided which count.
#[derive(Default)]
struct Found {
    settings: BTreeMap<(ModelTier, Field, Origin), Setting>,
}

impl Found {
    fn add(&mut self, tier: ModelTier, field: Field, origin: Origin, name: String, value: &str) {
        if !value.is_empty() {
            let value = value.into();
            self.settings.insert((tier, field, origin), Setting { name, value });
        }
    }

    /// The setting that counts, among the origins that `is_allowed`.
    fn find(&self, tier: ModelTier, field: Field, is_allowed: impl Fn(Origin) -> bool) -> Option<(Origin, &Setting)> {
        let range = (tier, field, Origin::File)..=(tier, field, Origin::Rockbot);
        let mut newest_first = self.settings.range(range).rev();
        let ((_, _, origin), setting) = newest_first.find(|((_, _, origin), _)| is_allowed(*origin))?;
        Some((*origin, setting))
    }

    fn balanced(&self) -> Result<TierSettings, LlmConfigError> {
        const TIER: ModelTier = ModelTier::Balanced;
        let endpoint = self.find(TIER, Field::Endpoint, |_| true);
        let text = endpoint.map_or(DEFAULT_ENDPOINT, |(_, setting)| setting.text());
        let is_openai = is_openai(text);
        // A key goes only where it was meant to go.
        let key = self.find(TIER, Field::ApiKey, |origin| match endpoint {
            Some((Origin::OpenAi, _)) => origin != Origin::File,
            Some((Origin::File | Origin::Rockbot, _)) => origin != Origin::OpenAi || is_openai,
            None => true,
        });
        let model = self.find(TIER, Field::ModelId, |_| true);
        let default_model = is_openai.then_some(DEFAULT_MODEL);
        self.tier(TIER, text, [endpoint, key, model].map(setting), default_model)
    }

    /// A tier beside Balanced: nothing when nothing is set, else what it lacks is Balanced's.
    fn beside(&self, tier: ModelTier, balanced: &TierSettings) -> Result<Option<TierSettings>, LlmConfigError> {
        let [endpoint, key, model] = Field::ALL.map(|field| setting(self.find(tier, field, |_| true)));
        if endpoint.is_none() && key.is_none() && model.is_none() {
            return Ok(None);
        }
        let balanced_key = balanced.api_key.as_ref().map(|value| Setting {
            name: balanced.names.api_key.clone().into_owned(),
            value: value.clone(),
        });
        // Balanced's key goes to Balanced's endpoint only.
        let key = key.or(balanced_key.as_ref().filter(|_| endpoint.is_none()));
        let text = endpoint.map_or(balanced.endpoint.as_str(), Setting::text);
        self.tier(tier, text, [endpoint, key, model], None).map(Some)
    }

    /// The checked settings of a tier, from `settings` in the order of [`Field::ALL`]. `endpoint` is what its
    /// endpoint comes down to, whoever set it.
    fn tier(
        &self,
        tier: ModelTier,
        endpoint: &str,
        settings: [Option<&Setting>; 3],
        default_model: Option<&str>,
    ) -> Result<TierSettings, LlmConfigError> {
        let name = |field: Field| match settings[field as usize] {
            Some(setting) => setting.name.clone(),
            None => self.to_set(tier, field),
        };
        let [_, key, model] = settings;
        let Some(url) = base_url(endpoint) else {
            let setting = name(Field::Endpoint);
            return Err(LlmConfigError::InvalidEndpoint { setting });
        };
        let setting = name(Field::ApiKey);
        match key {
            Some(key) if !is_key(key.text()) => return Err(LlmConfigError::InvalidKey { setting }),
            // Servers without keys stand in one's own network, where nobody bothers with certificates.
            None if url.scheme() == "https" && !is_loopback(&url) => return Err(LlmConfigError::NoKey { setting }),
            _ => {}
        }
        let Some(model) = model.map(Setting::text).or(default_model) else {
            let setting = name(Field::ModelId);
            return Err(LlmConfigError::NoModel { setting });
        };
        Ok(TierSettings {
            endpoint: endpoint.to_owned(),
            api_key: key.map(|key| key.value.clone()),
            model: model.to_owned(),
            names: SettingNames {
                endpoint: name(Field::Endpoint).into(),
                api_key: setting.into(),
                model: name(Field::ModelId).into(),
            },
        })
    }

    /// What to tell people to set: the family of variables that they use already.
    fn to_set(&self, tier: ModelTier, field: Field) -> String {
        let uses_openai = self.settings.keys().all(|(_, _, origin)| *origin == Origin::OpenAi);
        match tier == ModelTier::Balanced && uses_openai {
            true => field.openai_variable().to_owned(),
            false => field.variable(tier),
        }
    }
}

fn setting(found: Option<(Origin, &Setting)>) -> Option<&Setting> {
    found.map(|(_, setting)| setting)
}

fn is_openai(endpoint: &str) -> bool {
    base_url(endpoint).is_some_and(|url| url.scheme() == "https" && url.host_str() == Some("api.openai.com"))
}

fn read_variables<K, V>(variables: impl IntoIterator<Item = (K, V)>, found: &mut Found) -> Result<(), LlmConfigError>
where
    K: Into<OsString>,
    V: Into<OsString>,
{
    for (name, value) in variables {
        let name: OsString = name.into();
        let Some((tier, field, origin)) = name.to_str().and_then(known_variable) else {
            refuse_misspelt(&name.to_string_lossy())?;
            continue;
        };
        let name = name.to_string_lossy().into_owned();
        let value: OsString = value.into();
        let Some(value) = value.to_str() else {
            return Err(LlmConfigError::WrongType {
                setting: name,
                expected: "text in UTF-8",
            });
        };
        found.add(tier, field, origin, name, value);
    }
    Ok(())
}

/// A variable that is meant for us and that nobody reads would be silently without effect.
fn refuse_misspelt(name: &str) -> Result<(), LlmConfigError> {
    match name.to_ascii_uppercase().starts_with("ROCKBOT_LLM__") {
        true => Err(LlmConfigError::UnknownSetting {
            setting: name.to_owned(),
        }),
        false => Ok(()),
    }
}

fn known_variable(name: &str) -> Option<(ModelTier, Field, Origin)> {
    let name = name.to_ascii_uppercase();
    let openai = Field::ALL.into_iter().find(|field| field.openai_variable() == name);
    if let Some(field) = openai {
        return Some((ModelTier::Balanced, field, Origin::OpenAi));
    }
    let mut all = ModelTier::ALL
        .into_iter()
        .flat_map(|tier| Field::ALL.map(|field| (tier, field)));
    let (tier, field) = all.find(|(tier, field)| field.variable(*tier) == name)?;
    Some((tier, field, Origin::Rockbot))
}
