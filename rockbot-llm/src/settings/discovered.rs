//! Discovers the settings of all models, in files and variables, and resolves which of them win.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::{ModelSettings, ModelTier, OutputMode};
use rockbot_core::config::{Config, Section};
use rockbot_core::{ExposeSecret, Secret, config};

use super::model_key::{EMBEDDINGS, Field, ModelKey};
use super::{GatewaySettings, Provider, TierSettings};
use crate::error::LlmConfigError;
use crate::http::{SettingNames, base_url, is_key, is_loopback};

/// The origin of a setting; for Balanced the later origin wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    File,
    /// A variable that the provider's own tools know.
    Vendor,
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
    /// Variables that the providers' own tools know.
    variables: BTreeMap<(Provider, Field), Setting>,
    /// Settings that are given to the models.
    model_settings: BTreeMap<ModelKey, ModelSettings>,
    /// Modes of structured output.
    output_modes: BTreeMap<ModelKey, OutputMode>,
    /// Names of the fallback models, in order.
    fallbacks: Vec<String>,
}

impl DiscoveredSettings {
    /// Reads the section `LLM` and the variables of the providers.
    pub(super) fn read(config: &Config) -> Result<Self, LlmConfigError> {
        let mut found = Self::default();
        let llm = config.section("LLM")?;
        for tier in ModelTier::ALL {
            let section = llm.section(tier.name())?;
            for field in Field::CHAT {
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
            found.read_model_settings(ModelKey::Tier(tier), &section)?;
        }
        found.read_model_settings(ModelKey::BALANCED, &llm)?;
        found.read_fallbacks(&llm)?;
        found.read_all(&ModelKey::Embeddings, &llm.section(EMBEDDINGS)?, &Field::CONNECTION)?;
        found.read_variables(config)?;
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
            self.read_all(&ModelKey::Fallback(name.clone()), &section, &Field::CHAT)?;
            self.read_model_settings(ModelKey::Fallback(name.clone()), &section)?;
            self.fallbacks.push(name);
        }
        Ok(())
    }

    /// Reads the settings that are given to a model. Settings that were read for it before override
    /// them.
    fn read_model_settings(&mut self, model_key: ModelKey, section: &Section<'_>) -> Result<(), LlmConfigError> {
        let settings = section.model_settings()?;
        let own = self.model_settings.entry(model_key.clone()).or_default();
        *own = own.over(&settings);
        if let Some(mode) = section.get("StructuredOutput")? {
            self.output_modes.entry(model_key).or_insert(mode);
        }
        Ok(())
    }

    fn model_settings(&self, model_key: &ModelKey) -> Option<Arc<ModelSettings>> {
        self.model_settings.get(model_key).cloned().unwrap_or_default().shared()
    }

    fn read_variables(&mut self, config: &Config) -> Result<(), LlmConfigError> {
        for (provider, field) in Provider::ALL
            .into_iter()
            .flat_map(|provider| Field::CONNECTION.map(|field| (provider, field)))
        {
            let setting = provider.variable(field).and_then(|name| config.variable(name));
            if let Some(setting) = setting {
                let name = setting.to_string();
                let value = setting.read()?;
                self.variables.insert((provider, field), Setting { name, value });
            }
        }
        Ok(())
    }

    fn read_all(
        &mut self,
        model_key: &ModelKey,
        section: &Section<'_>,
        fields: &[Field],
    ) -> Result<(), LlmConfigError> {
        for &field in fields {
            let setting = section.setting(field.name());
            self.add(model_key, field, setting.map(|setting| (origin(setting), setting)))?;
        }
        Ok(())
    }

    /// Returns `true` if no chat model is set.
    pub(super) fn is_empty(&self) -> bool {
        let has_variables = self.uses(Provider::OpenAi) || self.uses(Provider::Anthropic);
        let mut keys = self.settings.keys();
        !has_variables && keys.all(|(model_key, _, _)| *model_key == ModelKey::Embeddings)
    }

    /// Returns `true` if the variables of `provider` set a model. The name of a model alone, which
    /// other programs may need, counts only for OpenAI.
    fn uses(&self, provider: Provider) -> bool {
        let has = |field| self.variables.contains_key(&(provider, field));
        has(Field::ApiKey) || has(Field::Endpoint) || (provider == Provider::OpenAi && has(Field::ModelId))
    }

    fn add(
        &mut self,
        model_key: &ModelKey,
        field: Field,
        setting: Option<(Origin, &config::Setting)>,
    ) -> Result<(), LlmConfigError> {
        if let Some((origin, setting)) = setting {
            let name = setting.to_string();
            let value = setting.read()?;
            self.settings
                .insert((model_key.clone(), field, origin), Setting { name, value });
        }
        Ok(())
    }

    /// Returns the own setting of a model.
    fn own(&self, model_key: &ModelKey, field: Field) -> Option<&Setting> {
        let of = |origin| self.settings.get(&(model_key.clone(), field, origin));
        of(Origin::Ours).or_else(|| of(Origin::File))
    }

    /// Returns the setting that wins, among the origins that `is_allowed` and the variables of
    /// `provider`. The provider's variables go before files only for Balanced, whose variables they
    /// are; elsewhere they stand in for settings that are missing.
    fn find(
        &self,
        model_key: &ModelKey,
        field: Field,
        provider: Provider,
        is_allowed: impl Fn(Origin) -> bool,
    ) -> Option<(Origin, &Setting)> {
        let order = if *model_key == ModelKey::BALANCED {
            [Origin::Ours, Origin::Vendor, Origin::File]
        } else {
            [Origin::Ours, Origin::File, Origin::Vendor]
        };
        order
            .into_iter()
            .filter(|origin| is_allowed(*origin))
            .find_map(|origin| {
                let setting = match origin {
                    Origin::Vendor => self.variables.get(&(provider, field)),
                    _ => self.settings.get(&(model_key.clone(), field, origin)),
                };
                Some((origin, setting?))
            })
    }

    /// Returns the errors of all models with a provider that is unknown.
    pub(super) fn unknown_providers(&self) -> Vec<LlmConfigError> {
        let tiers = ModelTier::ALL.into_iter().map(ModelKey::Tier);
        let all = tiers.chain(self.fallbacks.iter().cloned().map(ModelKey::Fallback));
        all.filter_map(|model_key| {
            let setting = self.own(&model_key, Field::Provider)?;
            Provider::parse(setting.text(), &setting.name).err()
        })
        .collect()
    }

    pub(super) fn balanced(&self) -> Result<TierSettings, LlmConfigError> {
        self.standalone(&ModelKey::BALANCED, self.provider_of_balanced()?)
    }

    /// Returns the configured provider of Balanced. Without one it is Anthropic if only Anthropic's
    /// variables name a key or an endpoint, and OpenAI otherwise.
    fn provider_of_balanced(&self) -> Result<Provider, LlmConfigError> {
        let own = |field| self.own(&ModelKey::BALANCED, field);
        if let Some(setting) = own(Field::Provider) {
            return Provider::parse(setting.text(), &setting.name);
        }
        let is_set = own(Field::Endpoint).or(own(Field::ApiKey)).is_some();
        let is_anthropic = !is_set && self.uses(Provider::Anthropic) && !self.uses(Provider::OpenAi);
        Ok(if is_anthropic {
            Provider::Anthropic
        } else {
            Provider::OpenAi
        })
    }

    /// Resolves a model from its own settings and the variables of its provider.
    fn standalone(&self, model_key: &ModelKey, provider: Provider) -> Result<TierSettings, LlmConfigError> {
        let endpoint = self.find(model_key, Field::Endpoint, provider, |_| true);
        let text = endpoint.map_or(provider.default_endpoint(), |(_, setting)| setting.text());
        let is_home = provider.is_home(text);
        // A key goes only where it was meant to go.
        let key = self.find(model_key, Field::ApiKey, provider, |origin| match endpoint {
            Some((Origin::Vendor, _)) => origin != Origin::File,
            Some((Origin::File | Origin::Ours, _)) => origin != Origin::Vendor || is_home,
            None => true,
        });
        let model = self.find(model_key, Field::ModelId, provider, |_| true);
        let default_model = is_home.then_some(provider.default_model());
        self.model(
            model_key,
            provider,
            text,
            [endpoint, key, model].map(setting),
            default_model,
        )
    }

    /// Resolves a tier beside Balanced: `None` if nothing is set for it; members that it lacks are
    /// Balanced's.
    pub(super) fn beside(
        &self,
        tier: ModelTier,
        balanced: &TierSettings,
    ) -> Result<Option<TierSettings>, LlmConfigError> {
        self.beside_balanced(&ModelKey::Tier(tier), balanced)
    }

    /// Resolves the fallback models, in the order of their names; members that they lack are
    /// Balanced's.
    pub(super) fn fallbacks(&self, balanced: &TierSettings) -> Result<Vec<TierSettings>, LlmConfigError> {
        let keys = self.fallbacks.iter().cloned().map(ModelKey::Fallback);
        let models = keys.filter_map(|model_key| self.beside_balanced(&model_key, balanced).transpose());
        models.collect()
    }

    /// Resolves the embedding model, if there is one; members that it lacks are Balanced's. Its
    /// provider is OpenAI's, as Anthropic has no such models.
    pub(super) fn embeddings(&self) -> Result<Option<TierSettings>, LlmConfigError> {
        let model_key = &ModelKey::Embeddings;
        let provider = Provider::OpenAi;
        let settings = Field::CONNECTION.map(|field| self.own(model_key, field));
        match settings {
            [None, None, None] => Ok(None),
            // Then it needs nothing of Balanced, which may not even be set.
            [Some(endpoint), ..] => self
                .model(model_key, provider, endpoint.text(), settings, None)
                .map(Some),
            [None, ..] => self.like_balanced(model_key, provider, &self.balanced()?).map(Some),
        }
    }

    fn beside_balanced(
        &self,
        model_key: &ModelKey,
        balanced: &TierSettings,
    ) -> Result<Option<TierSettings>, LlmConfigError> {
        if Field::CHAT.iter().all(|field| self.own(model_key, *field).is_none()) {
            // Balanced's model, asked in another way.
            let model_settings = self.model_settings(model_key);
            let mode = self.output_modes.get(model_key);
            return Ok((model_settings.is_some() || mode.is_some()).then(|| TierSettings {
                model_settings,
                output_mode: mode.copied().unwrap_or(balanced.output_mode),
                ..balanced.clone()
            }));
        }
        let provider = match self.own(model_key, Field::Provider) {
            Some(setting) => Provider::parse(setting.text(), &setting.name)?,
            None if self.own(model_key, Field::Endpoint).is_none() => balanced.provider,
            None => Provider::default(),
        };
        self.like_balanced(model_key, provider, balanced).map(Some)
    }

    /// Resolves a model with Balanced's endpoint and key, as far as it has none, if a server of
    /// Balanced's provider may serve it.
    fn like_balanced(
        &self,
        model_key: &ModelKey,
        provider: Provider,
        balanced: &TierSettings,
    ) -> Result<TierSettings, LlmConfigError> {
        if !provider.shares_servers_with(balanced.provider) {
            return self.standalone(model_key, provider);
        }
        let [endpoint, key, model] = Field::CONNECTION.map(|field| self.own(model_key, field));
        let balanced_key = balanced.api_key.as_ref().map(|value| Setting {
            name: balanced.names.api_key.clone().into_owned(),
            value: value.clone(),
        });
        // Balanced's key goes to Balanced's endpoint only.
        let key = key.or(balanced_key.as_ref().filter(|_| endpoint.is_none()));
        let text = endpoint.map_or(balanced.endpoint.as_str(), Setting::text);
        self.model(model_key, provider, text, [endpoint, key, model], None)
    }

    /// Checks the settings of a model, given in the order of [`Field::CONNECTION`]. `endpoint` is its
    /// resolved endpoint, whatever its origin.
    fn model(
        &self,
        model_key: &ModelKey,
        provider: Provider,
        endpoint: &str,
        settings: [Option<&Setting>; 3],
        default_model: Option<&str>,
    ) -> Result<TierSettings, LlmConfigError> {
        let name = |field: Field| match settings[field as usize] {
            Some(setting) => setting.name.clone(),
            None => self.to_set(model_key, field, provider, endpoint),
        };
        let [_, key, model] = settings;
        if provider == Provider::Offline {
            return Ok(self.offline(model_key));
        }
        let Some(url) = base_url(endpoint, &[]) else {
            let setting = name(Field::Endpoint);
            return Err(LlmConfigError::InvalidEndpoint { setting });
        };
        let setting = name(Field::ApiKey);
        match key {
            Some(key) if !is_key(key.text()) => return Err(LlmConfigError::InvalidKey { setting }),
            // A server without keys runs in the user's own network, usually without TLS; an https server needs a key.
            None if url.scheme() == "https" && !is_loopback(&url) => {
                let is_set = settings[Field::Endpoint as usize].is_some() || !provider.is_home(endpoint);
                return Err(provider.no_key((!is_set).then(|| name(Field::Endpoint)), setting));
            }
            _ => {}
        }
        let Some(model) = model.map(Setting::text).or(default_model) else {
            let setting = name(Field::ModelId);
            return Err(LlmConfigError::NoModel { setting });
        };
        Ok(TierSettings {
            provider,
            endpoint: endpoint.to_owned(),
            api_key: key.map(|key| key.value.clone()),
            model: model.to_owned(),
            model_settings: self.model_settings(model_key),
            output_mode: self.output_modes.get(model_key).copied().unwrap_or_default(),
            names: SettingNames {
                endpoint: name(Field::Endpoint).into(),
                api_key: setting.into(),
                model: name(Field::ModelId).into(),
            },
        })
    }

    /// Returns the settings of the offline model, which needs none.
    fn offline(&self, model_key: &ModelKey) -> TierSettings {
        TierSettings {
            provider: Provider::Offline,
            endpoint: Provider::Offline.default_endpoint().to_owned(),
            api_key: None,
            model: Provider::Offline.default_model().to_owned(),
            model_settings: self.model_settings(model_key),
            output_mode: self.output_modes.get(model_key).copied().unwrap_or_default(),
            names: SettingNames {
                endpoint: Field::Endpoint.variable(model_key).into(),
                api_key: Field::ApiKey.variable(model_key).into(),
                model: Field::ModelId.variable(model_key).into(),
            },
        }
    }

    /// Returns the name of the variable to set, from the family of variables that the user uses
    /// already.
    fn to_set(&self, model_key: &ModelKey, field: Field, provider: Provider, endpoint: &str) -> String {
        let uses_variables = *model_key == ModelKey::BALANCED && self.settings.is_empty();
        // Every model at Anthropic itself takes this key if it has none of its own.
        let takes_variable = provider == Provider::Anthropic && field == Field::ApiKey && provider.is_home(endpoint);
        match provider.variable(field).filter(|_| uses_variables || takes_variable) {
            Some(variable) => variable.to_owned(),
            None => field.variable(model_key),
        }
    }
}

/// Returns the setting for Balanced: from its own section, or from the section `LLM` itself,
/// whichever was set later.
fn balanced<'a>(own: &Section<'a>, flat: &Section<'a>, field: Field) -> Option<&'a config::Setting> {
    let endpoint = own.setting(Field::Endpoint.name());
    let own = own.setting(field.name());
    let flat = flat.setting(field.name());
    // One file may hold both ways, each with an endpoint and a key of its own. A key stays with its
    // endpoint.
    let is_of_other_endpoint =
        |flat: &config::Setting| field == Field::ApiKey && endpoint.is_some_and(|endpoint| endpoint.is_beside(flat));
    let flat = flat.filter(|flat| !is_of_other_endpoint(flat));
    match (own, flat) {
        (Some(own), Some(flat)) if flat.is_later_than(own) => Some(flat),
        _ => own.or(flat),
    }
}

fn origin(setting: &config::Setting) -> Origin {
    if setting.is_variable() {
        Origin::Ours
    } else {
        Origin::File
    }
}

fn setting(found: Option<(Origin, &Setting)>) -> Option<&Setting> {
    found.map(|(_, setting)| setting)
}
