//! The section `RestTools`.

use std::path::PathBuf;

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section, Setting};
use serde_json::Value;

use super::credentials::Credentials;
use super::endpoint::RestEndpoint;

/// The header of a key, unless `ApiKeyHeader` names another header.
const API_KEY_HEADER: &str = "X-Api-Key";

/// An OpenAPI document in the settings.
#[derive(Debug)]
pub(super) struct DocumentSettings {
    /// A file or a URL.
    pub(super) document: String,
    pub(super) server: Option<String>,
    pub(super) include: Vec<String>,
    pub(super) needs_approval: bool,
    pub(super) credentials: Credentials,
}

/// Returns the endpoints of the settings.
pub(super) fn endpoints(config: &Config) -> Result<Vec<RestEndpoint>, ConfigError> {
    let rest = config.section("RestTools")?;
    items(&rest, "Endpoints")?
        .iter()
        .map(|section| endpoint(section, config))
        .collect()
}

/// Returns the OpenAPI documents of the settings.
pub(super) fn documents(config: &Config) -> Result<Vec<DocumentSettings>, ConfigError> {
    let rest = config.section("RestTools")?;
    items(&rest, "OpenApi")?
        .iter()
        .map(|section| document(section, config))
        .collect()
}

/// Returns the sections of a list, in order.
fn items<'c>(rest: &Section<'c>, name: &str) -> Result<Vec<Section<'c>>, ConfigError> {
    if rest
        .setting(name)
        .is_some_and(|list| list.read::<Vec<String>>().is_ok_and(|list| list.is_empty()))
    {
        return Ok(Vec::new());
    }
    let list = rest.section(name)?;
    let mut names = list.names();
    names.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
    names.iter().map(|name| list.section(name)).collect()
}

fn endpoint(section: &Section<'_>, config: &Config) -> Result<RestEndpoint, ConfigError> {
    let required = |name: &str| -> Result<String, ConfigError> {
        section.get(name)?.ok_or_else(|| missing(section, name, "text"))
    };
    let name = required("Name")?;
    let mut endpoint = RestEndpoint::new(name.as_str(), required("UrlTemplate")?)
        .description(section.get_or("Description", name)?)
        .method(section.get_or("Method", "GET".to_owned())?);
    if let Some(setting) = section.setting("ParametersSchema") {
        let schema = serde_json::from_str::<Value>(&setting.read::<String>()?)
            .ok()
            .filter(Value::is_object);
        endpoint = endpoint.parameters(schema.ok_or_else(|| setting.invalid("the text of a JSON Schema"))?);
    }
    endpoint.credentials = credentials(section, config)?;
    endpoint.needs_approval = section.get_or("NeedsApproval", false)?;
    Ok(endpoint)
}

fn document(section: &Section<'_>, config: &Config) -> Result<DocumentSettings, ConfigError> {
    let document = section
        .get("Document")?
        .ok_or_else(|| missing(section, "Document", "a file or a URL"))?;
    Ok(DocumentSettings {
        document,
        server: section.get("Server")?,
        include: section.get_or("Include", Vec::new())?,
        needs_approval: section.get_or("NeedsApproval", false)?,
        credentials: credentials(section, config)?,
    })
}

/// Reads the credentials. A missing credential is an error now, and not at the first call.
fn credentials(section: &Section<'_>, config: &Config) -> Result<Credentials, ConfigError> {
    let header = section.get_or("ApiKeyHeader", API_KEY_HEADER.to_owned())?;
    let variable = section.setting("AuthEnvVar");
    let Some(kind) = section.setting("AuthType") else {
        // The variable alone would have no effect.
        return variable.map_or(Ok(Credentials::none()), |_| {
            Err(missing(section, "AuthType", "`bearer` or `api_key`"))
        });
    };
    let secret = || -> Result<Secret, ConfigError> {
        let named = variable.ok_or_else(|| missing(section, "AuthEnvVar", "the name of an environment variable"))?;
        let secret = config
            .variable(&named.read::<String>()?)
            .map(Setting::read)
            .transpose()?;
        secret.ok_or_else(|| named.invalid("the name of an environment variable that is set"))
    };
    match kind.read::<String>()?.to_ascii_lowercase().as_str() {
        "none" => Ok(Credentials::none()),
        "bearer" => Ok(Credentials::bearer(secret()?)),
        "api_key" => Ok(Credentials::api_key(header, secret()?)),
        _ => Err(kind.invalid("`none`, `bearer` or `api_key`")),
    }
}

fn missing(section: &Section<'_>, name: &str, expected: &'static str) -> ConfigError {
    ConfigError::Invalid {
        setting: format!("`{}`", section.path(name)),
        expected: expected.into(),
        found: "nothing",
    }
}

/// Returns the path of a document, or `None` for a URL.
pub(super) fn file_of(document: &str) -> Option<PathBuf> {
    let is_url = document.starts_with("http://") || document.starts_with("https://");
    (!is_url).then(|| document.into())
}
