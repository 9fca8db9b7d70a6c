//! The meta search engine SearXNG, which operators host themselves.

use async_trait::async_trait;
use serde::Deserialize;
use url::Url;

use super::provider::{SearchError, SearchProvider, SearchResult};
use crate::egress::{EgressClient, EgressRequest};

/// An instance of the engine.
#[derive(Debug)]
pub(crate) struct SearXng {
    client: EgressClient,
    endpoint: Url,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    content: Option<String>,
}

impl SearXng {
    /// Creates the provider of the instance at `base`, whose host `client` must allow.
    pub(crate) fn new(client: EgressClient, base: &Url) -> Self {
        let mut endpoint = base.clone();
        endpoint.set_path(&format!("{}/search", base.path().trim_end_matches('/')));
        Self { client, endpoint }
    }
}

#[async_trait]
impl SearchProvider for SearXng {
    fn name(&self) -> &str {
        "searxng"
    }

    async fn search(&self, query: &str, count: usize) -> Result<Vec<SearchResult>, SearchError> {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("format", "json");
        let response = self
            .client
            .fetch(EgressRequest::get(url))
            .await
            .map_err(SearchError::Unreachable)?;
        let failed = |reason: String| Err(SearchError::Failed { reason });
        match response.status.as_u16() {
            200 => {}
            403 => {
                return failed(
                    "it does not answer in JSON: the operator adds `json` to its `search.formats`".to_owned(),
                );
            }
            429 => return Err(SearchError::RateLimited { retry_after: None }),
            status => return failed(format!("it answered with status {status}")),
        }
        let Ok(answer) = serde_json::from_slice::<Answer>(&response.body) else {
            return failed("its answer is not understood".to_owned());
        };
        let found = answer.results.into_iter().take(count);
        Ok(found
            .map(|found| SearchResult::new(found.title, found.url, found.content.unwrap_or_default()))
            .collect())
    }
}
