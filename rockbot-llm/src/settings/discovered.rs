//! Discovers the settings of all models, in files and variables, and resolves which of them win.

use std::collections::BTreeMap;

use rockbot_core::chat::ModelTier;
use rockbot_core::config::{Config, Section};
use rockbot_core::{ExposeSecret, Secret, config};

use super::model_key::{EMBEDDINGS, Field, ModelKey};
use super::{DEFAULT_ENDPOINT, DEFAULT_MODEL, GatewaySettings, TierSettings};
use crate::error::LlmConfigError;
use crate::http::{SettingNames, base_url, is_key, is_loopback};

/// The origin of a setting; the later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    File,
    OpenAi,
    Ours,
}

struct Setting {
    /// Name in error messages.
    name: String,
    value: Secret,
}

impl Setting {
    fn text(&self) -> &str {
        self.value.expose_secret()
    }
}

/// All settings that were discovered, before precedence is resolved.
#[derive(Default)]
pub(super) struct DiscoveredSettings {
    settings: BTreeMap<(ModelKey, Field, Origin), Setting>,
    /// Names of the fallback models, in order.
    fallbacks: Vec<String>,
}

impl DiscoveredSettings {
    /// Reads the section `LLM` and the variables of OpenAI.
    pub(super) fn read(config: &Config) -> Result<Self, LlmConfigError> {
        let (mut found, llm) = (Self::default(), config.section("LLM")?);
        for tier in ModelTier::ALL {
            let section = llm.section(tier.name())?;
            for field in Field::ALL {
                let setting = match tier {
                    ModelTier::Balanced => balanced(&section, &llm, field),
                    ModelTier::Low | ModelTier::High => section.setting(field.name()),
                };
                found.add(
                    &ModelKey::Tier(tier),
                    field,
                    setting.map(|setting| (origin(setting), setting)),
                )?;
            }
        }
        found.read_fallbacks(&llm)?;
        found.read_all(&ModelKey::Embeddings, &llm.section(EMBEDDINGS)?)?;
        for field in Field::ALL {
            let setting = config.variable(field.openai_variable());
            found.add(
                &ModelKey::BALANCED,
                field,
                setting.map(|setting| (Origin::OpenAi, setting)),
            )?;
        }
        GatewaySettings::read(&llm)?;
        llm.check_unknown()?;
        Ok(found)
    }

    fn read_fallbacks(&mut self, llm: &Section<'_>) -> Result<(), LlmConfigError> {
        let all = llm.section("Fallbacks")?;
        for name in all.names() {
            let section = all.section(&name)?;
            if !section.is_set() {
                continue;
            }
            self.read_all(&ModelKey::Fallback(name.clone()), &section)?;
            self.fallbacks.push(name);
        }
        Ok(())
    }

    fn read_all(&mut self, model_key: &ModelKey, section: &Section<'_>) -> Result<(), LlmConfigError> {
        for field in Field::ALL {
            let setting = section.setting(field.name());
            self.add(model_key, field, setting.map(|setting| (origin(setting), setting)))?;
        }
        Ok(())
    }

    /// Returns `true` if no chat model is set.
    pub(super) fn is_empty(&self) -> bool {
        self.settings
            .keys()
            .all(|(model_key, _, _)| *model_key == ModelKey::Embeddings)
    }

    fn add(
        &mut self,
        model_key: &ModelKey,
        field: Field,
        setting: Option<(Origin, &config::Setting)>,
    ) -> Result<(), LlmConfigError> {
        if let Some((origin, setting)) = setting {
            let (name, value) = (setting.to_string(), setting.read()?);
            self.settings
                .insert((model_key.clone(), field, origin), Setting { name, value });
        }
        Ok(())
    }

    /// Returns the setting that wins, among the origins that `is_allowed`.
    fn find(
        &self,
        model_key: &ModelKey,
        field: Field,
        is_allowed: impl Fn(Origin) -> bool,
    ) -> Option<(Origin, &Setting)> {
        let range = (model_key.clone(), field, Origin::File)..=(model_key.clone(), field, Origin::Ours);
        let mut newest_first = self.settings.range(range).rev();
        let ((_, _, origin), setting) = newest_first.find(|((_, _, origin), _)| is_allowed(*origin))?;
        Some((*origin, setting))
    }

    pub(super) fn balanced(&self) -> Result<TierSettings, LlmConfigError> {
        let model_key = &ModelKey::BALANCED;
        let endpoint = self.find(model_key, Field::Endpoint, |_| true);
        let text = endpoint.map_or(DEFAULT_ENDPOINT, |(_, setting)| setting.text());
        let is_openai = is_openai(text);
        // A key goes only where it was meant to go.
        let key = self.find(model_key, Field::ApiKey, |origin| match endpoint {
            Some((Origin::OpenAi, _)) => origin != Origin::File,
            Some((Origin::File | Origin::Ours, _)) => origin != Origin::OpenAi || is_openai,
            None => true,
        });
        let model = self.find(model_key, Field::ModelId, |_| true);
        let default_model = is_openai.then_some(DEFAULT_MODEL);
        self.model(model_key, text, [endpoint, key, model].map(setting), default_model)
    }

    /// Resolves a tier beside Balanced: `None` if nothing is set for it; members that it lacks are Balanced's.
    pub(super) fn beside(
        &self,
        tier: ModelTier,
        balanced: &TierSettings,
    ) -> Result<Option<TierSettings>, LlmConfigError> {
        self.beside_balanced(&ModelKey::Tier(tier), balanced)
    }

    /// Resolves the fallback models, in the order of their names; members that they lack are Balanced's.
    pub(super) fn fallbacks(&self, balanced: &TierSettings) -> Result<Vec<TierSettings>, LlmConfigError> {
        let keys = self.fallbacks.iter().cloned().map(ModelKey::Fallback);
        let models = keys.filter_map(|model_key| self.beside_balanced(&model_key, balanced).transpose());
        models.collect()
    }

    /// Resolves the embedding model, if there is one; members that it lacks are Balanced's.
    pub(super) fn embeddings(&self) -> Result<Option<TierSettings>, LlmConfigError> {
        let model_key = &ModelKey::Embeddings;
        let settings = Field::ALL.map(|field| setting(self.find(model_key, field, |_| true)));
        match settings {
            [None, None, None] => Ok(None),
            // Then it needs nothing of Balanced, which may not even be set.
            [Some(endpoint), ..] => self.model(model_key, endpoint.text(), settings, None).map(Some),
            [None, ..] => self.beside_balanced(model_key, &self.balanced()?),
        }
    }

    fn beside_balanced(
        &self,
        model_key: &ModelKey,
        balanced: &TierSettings,
    ) -> Result<Option<TierSettings>, LlmConfigError> {
        let [endpoint, key, model] = Field::ALL.map(|field| setting(self.find(model_key, field, |_| true)));
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
        self.model(model_key, text, [endpoint, key, model], None).map(Some)
    }

    /// Checks the settings of a model, given in the order of [`Field::ALL`]. `endpoint` is its resolved endpoint,
    /// whatever its origin.
    fn model(
        &self,
        model_key: &ModelKey,
        endpoint: &str,
        settings: [Option<&Setting>; 3],
        default_model: Option<&str>,
    ) -> Result<TierSettings, LlmConfigError> {
        let name = |field: Field| match settings[field as usize] {
            Some(setting) => setting.name.clone(),
            None => self.to_set(model_key, field),
        };
        let [_, key, model] = settings;
        let Some(url) = base_url(endpoint, &[]) else {
            let setting = name(Field::Endpoint);
            return Err(LlmConfigError::InvalidEndpoint { setting });
        };
        let setting = name(Field::ApiKey);
        match key {
            Some(key) if !is_key(key.text()) => return Err(LlmConfigError::InvalidKey { setting }),
            // A server without keys runs in the user's own network, usually without TLS; an https server needs a key.
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

    /// Returns the name of the variable to set, from the family of variables that the user uses already.
    fn to_set(&self, model_key: &ModelKey, field: Field) -> String {
        let uses_openai = self.settings.keys().all(|(_, _, origin)| *origin == Origin::OpenAi);
        match *model_key == ModelKey::BALANCED && uses_openai {
            true => field.openai_variable().to_owned(),
            false => field.variable(model_key),
        }
    }
}

/// Returns the setting for Balanced: from its own section, or from the section `LLM` itself, whichever was set later.
fn balanced<'a>(own: &Section<'a>, flat: &Section<'a>, field: Field) -> Option<&'a config::Setting> {
    let endpoint = own.setting(Field::Endpoint.name());
    let (own, flat) = (own.setting(field.name()), flat.setting(field.name()));
    // One file may hold both ways, each with an endpoint and a key of its own. A key stays with its endpoint.
    let is_of_other_endpoint =
        |flat: &config::Setting| field == Field::ApiKey && endpoint.is_some_and(|endpoint| endpoint.is_beside(flat));
    let flat = flat.filter(|flat| !is_of_other_endpoint(flat));
    match (own, flat) {
        (Some(own), Some(flat)) if flat.is_later_than(own) => Some(flat),
        _ => own.or(flat),
    }
}

fn origin(setting: &config::Setting) -> Origin {
    match setting.is_variable() {
        true => Origin::Ours,
        false => Origin::File,
    }
}

fn setting(found: Option<(Origin, &Setting)>) -> Option<&Setting> {
    found.map(|(_, setting)| setting)
}

fn is_openai(endpoint: &str) -> bool {
    base_url(endpoint, &[]).is_some_and(|url| url.scheme() == "https" && url.host_str() == Some("api.openai.com"))
}
