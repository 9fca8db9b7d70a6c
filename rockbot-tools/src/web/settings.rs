//! The section `WebTools`.

use std::time::Duration;

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Setting};
use url::Url;

/// The environment variable of the key, unless `ApiKeyEnvVar` names another variable.
const API_KEY_VARIABLE: &str = "BRAVE_API_KEY";

/// Settings of the web tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebSettings {
    /// `ApiKey`: the key of Brave's search. Default: the variable that `ApiKeyEnvVar` names.
    pub api_key: Option<Secret>,
    /// `ApiKeyEnvVar`: the name of the environment variable with the key. Default `BRAVE_API_KEY`.
    pub api_key_variable: String,
    /// `MaxSearchResults`: number of results unless a call states one. Default 5, at most 20.
    pub max_search_results: usize,
    /// `SearXngUrl`: the URL of an instance of SearXNG, which is then asked instead of Brave. Its
    /// host may be internal.
    pub searxng: Option<Url>,
    /// `GitHubTokenEnvVar`: the name of the environment variable with a token for GitHub's API.
    /// Default: none; public repositories need none.
    pub github_token: Option<Secret>,
    /// `ChunkingThreshold`: maximum number of characters of a page that stays in the conversation.
    /// Default 8 000.
    pub chunking_threshold: usize,
    /// `ChunkMaxLength`: maximum number of characters of a chunk of a longer page. Default 4 000.
    pub chunk_max_length: usize,
    /// `ChunkTtlMinutes`: time to live of the chunks. Default 30 minutes.
    pub chunk_ttl: Duration,
}

impl WebSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, and if a variable that a setting names is not
    /// set.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("WebTools")?;
        let variable = |name: &str| config.variable(name).map(Setting::read::<Secret>).transpose();
        let api_key_variable = section.get_or("ApiKeyEnvVar", API_KEY_VARIABLE.to_owned())?;
        let api_key = match section.get("ApiKey")? {
            Some(key) => Some(key),
            None => variable(&api_key_variable)?,
        };
        let minutes: u32 = section.get_or("ChunkTtlMinutes", 30)?;
        let searxng = section.setting("SearXngUrl");
        let github = section.setting("GitHubTokenEnvVar");
        let github_token = github.map(|setting| {
            let token = variable(&setting.read::<String>()?)?;
            token.ok_or_else(|| setting.invalid("the name of an environment variable that is set"))
        });
        Ok(Self {
            api_key,
            api_key_variable,
            max_search_results: section.get_or("MaxSearchResults", 5)?,
            searxng: searxng.map(url_of).transpose()?,
            github_token: github_token.transpose()?,
            chunking_threshold: section.get_or("ChunkingThreshold", 8_000)?,
            chunk_max_length: section.get_or("ChunkMaxLength", 4_000)?,
            chunk_ttl: Duration::from_secs(60 * u64::from(minutes)),
        })
    }
}

fn url_of(setting: &Setting) -> Result<Url, ConfigError> {
    let invalid = || setting.invalid("a URL such as `http://localhost:8888`");
    let url = Url::parse(&setting.read::<String>()?).map_err(|_| invalid())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_web.then_some(url).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use rockbot_core::ExposeSecret;

    use super::*;

    #[test]
    fn settings_and_the_variables_that_they_name() {
        let read = |text: &str| {
            let variables = [("BRAVE_API_KEY", "b"), ("MY_KEY", "m"), ("GH", "g")];
            let config = Config::new()
                .with_text("agent.json", text)
                .unwrap()
                .with_variables(variables);
            WebSettings::from_config(&config)
        };
        let key = |settings: &WebSettings| settings.api_key.as_ref().map(|key| key.expose_secret().to_owned());
        let defaults = read("{}").unwrap();
        assert_eq!(key(&defaults).as_deref(), Some("b"));
        assert_eq!(
            (
                defaults.max_search_results,
                defaults.chunking_threshold,
                defaults.chunk_max_length
            ),
            (5, 8_000, 4_000)
        );
        assert_eq!(
            (defaults.chunk_ttl, defaults.searxng),
            (Duration::from_secs(1_800), None)
        );
        assert!(defaults.github_token.is_none());
        let set = read(
            r#"{"WebTools": {"ApiKeyEnvVar": "MY_KEY", "SearXngUrl": "http://localhost:8888", "GitHubTokenEnvVar": "GH",
                "ChunkTtlMinutes": 5}}"#,
        );
        let set = set.unwrap();
        assert_eq!(key(&set).as_deref(), Some("m"));
        assert_eq!(
            (set.searxng.unwrap().as_str(), set.chunk_ttl),
            ("http://localhost:8888/", Duration::from_secs(300))
        );
        assert_eq!(
            key(&read(r#"{"WebTools": {"ApiKey": "a"}}"#).unwrap()).as_deref(),
            Some("a")
        );
        assert_eq!(
            read(r#"{"WebTools": {"SearXngUrl": "file:///x"}}"#)
                .unwrap_err()
                .to_string(),
            "`WebTools.SearXngUrl` in `agent.json`: expected a URL such as `http://localhost:8888`, found text"
        );
        assert_eq!(
            read(r#"{"WebTools": {"GitHubTokenEnvVar": "MISSING"}}"#)
                .unwrap_err()
                .to_string(),
            "`WebTools.GitHubTokenEnvVar` in `agent.json`: expected the name of an environment variable that is set, found text"
        );
    }
}
