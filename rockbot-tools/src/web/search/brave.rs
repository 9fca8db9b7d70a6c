//! The search engine Brave.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use rockbot_core::{ExposeSecret, Secret};
use serde::Deserialize;
use url::Url;

use super::provider::{SearchError, SearchProvider, SearchResult};
use crate::egress::{EgressClient, EgressRequest, EgressResponse, text_of};

/// The endpoint.
const ENDPOINT: &str = "https://api.search.brave.com/res/v1/web/search";

/// Maximum number of results of a request.
const MAX_COUNT: usize = 20;

/// Longest time that a call waits for the limit of requests per second.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The engine.
#[derive(Debug)]
pub(crate) struct Brave {
    client: EgressClient,
    endpoint: Url,
    key: Option<Secret>,
    /// The settings of the key, for errors.
    setting: String,
}

#[derive(Deserialize)]
struct Answer {
    web: Option<Web>,
    query: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Web {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    title: String,
    url: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
struct RefusalDetail {
    #[serde(default)]
    code: String,
}

impl Brave {
    pub(crate) fn new(client: EgressClient, key: Option<Secret>, variable: &str) -> Self {
        Self {
            client,
            endpoint: Url::parse(ENDPOINT).expect("a constant URL"),
            key,
            setting: format!("`WebTools.ApiKey` or the variable `{variable}`"),
        }
    }

    #[cfg(test)]
    pub(crate) fn at(mut self, endpoint: &str) -> Self {
        self.endpoint = endpoint.parse().unwrap();
        self
    }

    async fn ask(&self, query: &str, count: usize) -> Result<EgressResponse, SearchError> {
        let setting = || self.setting.clone();
        let key = self
            .key
            .as_ref()
            .ok_or_else(|| SearchError::NoKey { setting: setting() })?;
        let mut url = self.endpoint.clone();
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("count", &count.clamp(1, MAX_COUNT).to_string())
            .append_pair("text_decorations", "false");
        let mut request = EgressRequest::get(url);
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        let key = HeaderValue::from_str(key.expose_secret()).map_err(|_| SearchError::BadKey { setting: setting() })?;
        request.origin_headers.insert("x-subscription-token", key);
        self.client.fetch(request).await.map_err(SearchError::Unreachable)
    }

    /// Returns the error of an answer with another status than success.
    fn refusal(&self, response: &EgressResponse) -> SearchError {
        let code = serde_json::from_slice::<Refusal>(&response.body).map(|refusal| refusal.error.code);
        let code = code.unwrap_or_default();
        let bad_key = || SearchError::BadKey {
            setting: self.setting.clone(),
        };
        match (response.status.as_u16(), &*code) {
            (401 | 403, _) | (422, "SUBSCRIPTION_TOKEN_INVALID") => bad_key(),
            (429, _) => SearchError::RateLimited {
                retry_after: wait_of(&response.headers).map(|(wait, _)| wait),
            },
            (status, "") => SearchError::Failed {
                reason: format!("it answered with status {status}"),
            },
            (status, code) => {
                let code: String = code
                    .chars()
                    .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .take(60)
                    .collect();
                SearchError::Failed {
                    reason: format!("it answered with status {status}, `{code}`"),
                }
            }
        }
    }
}

#[async_trait]
impl SearchProvider for Brave {
    fn name(&self) -> &str {
        "brave"
    }

    async fn search(&self, query: &str, count: usize) -> Result<Vec<SearchResult>, SearchError> {
        let mut response = self.ask(query, count).await?;
        if response.status.as_u16() == 429
            && let Some((wait, true)) = wait_of(&response.headers)
            && wait <= MAX_WAIT
        {
            tokio::time::sleep(wait).await;
            response = self.ask(query, count).await?;
        }
        if !response.status.is_success() {
            return Err(self.refusal(&response));
        }
        let not_understood = || SearchError::Failed {
            reason: "its answer is not understood".to_owned(),
        };
        let answer: Answer = serde_json::from_slice(&response.body).map_err(|_| not_understood())?;
        let found = match (answer.web, answer.query) {
            (Some(web), _) => web.results,
            // An answer about the query without a list of pages: there are none.
            (None, Some(_)) => Vec::new(),
            (None, None) => return Err(not_understood()),
        };
        Ok(found
            .into_iter()
            .map(|found| SearchResult::new(found.title, found.url, found.description))
            .collect())
    }
}

/// Returns the wait until the next request, and whether any is left after it. The header fields
/// have a value for each second and one for each month.
fn wait_of(headers: &HeaderMap) -> Option<(Duration, bool)> {
    let numbers = |name: &str| -> Vec<u64> {
        let values = text_of(headers, name)
            .split(',')
            .map_while(|value| value.trim().parse().ok());
        values.collect()
    };
    let wait = Duration::from_secs(*numbers("x-ratelimit-reset").first()?);
    let is_left = numbers("x-ratelimit-remaining").get(1).is_none_or(|left| *left > 0);
    Some((wait, is_left))
}
