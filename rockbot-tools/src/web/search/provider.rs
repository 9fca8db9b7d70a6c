//! The contract of search engines.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::tool::{ToolError, ToolErrorCode};

use crate::egress::EgressError;

/// A search engine behind `web_search`.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_tools::web::{SearchError, SearchProvider, SearchResult, WebTools};
///
/// /// Finds the pages of a handbook.
/// #[derive(Debug)]
/// struct Handbook;
///
/// #[async_trait]
/// impl SearchProvider for Handbook {
///     fn name(&self) -> &str {
///         "handbook"
///     }
///
///     async fn search(&self, query: &str, _: usize) -> Result<Vec<SearchResult>, SearchError> {
///         Ok(vec![SearchResult::new(query, "https://handbook.example.org/", "The only page there is.")])
///     }
/// }
///
/// let tools = WebTools::new().search_provider(Handbook); // for `AgentHostBuilder::add`
/// ```
#[async_trait]
pub trait SearchProvider: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the engine, which is the source of the tool.
    fn name(&self) -> &str;

    /// Searches for `query`, and returns at most `count` results, best first. Texts may contain
    /// anything: the tool cleans them.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine was not asked or did not answer. No results are no error.
    async fn search(&self, query: &str, count: usize) -> Result<Vec<SearchResult>, SearchError>;
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchResult {
    /// The title of the page.
    pub title: String,
    /// The URL of the page.
    pub url: String,
    /// The part of the page that fits the query, as text or HTML.
    pub snippet: String,
}

impl SearchResult {
    /// Creates a result.
    pub fn new(title: impl Into<String>, url: impl Into<String>, snippet: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            url: url.into(),
            snippet: snippet.into(),
        }
    }
}

/// The reason why a search has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// There is no key for the engine.
    #[error("web search has no key: the operator sets {setting}")]
    NoKey {
        /// The settings for the key; a single one suffices.
        setting: String,
    },
    /// The engine refuses the key.
    #[error("the search engine refuses the key: the operator checks {setting}")]
    BadKey {
        /// The settings of the key.
        setting: String,
    },
    /// There were too many requests.
    #[error("the search engine has had too many requests{}", .retry_after.map_or_else(String::new, |after| format!(": try again in {} seconds", after.as_secs().max(1))))]
    RateLimited {
        /// Time to wait, if the engine tells it.
        retry_after: Option<Duration>,
    },
    /// The engine answered with something else than results.
    #[error("the search engine failed: {reason}")]
    Failed {
        /// The description of the failure.
        reason: String,
    },
    /// The engine could not be reached.
    #[error("the search engine was not reached: {0}")]
    Unreachable(EgressError),
}

impl SearchError {
    /// Returns `true` if the same search may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::RateLimited { .. } => true,
            Self::Unreachable(error) => error.retry_helps(),
            Self::NoKey { .. } | Self::BadKey { .. } | Self::Failed { .. } => false,
        }
    }
}

impl From<SearchError> for ToolError {
    fn from(error: SearchError) -> Self {
        let code = match &error {
            SearchError::NoKey { .. } | SearchError::BadKey { .. } => ToolErrorCode::Denied,
            SearchError::Unreachable(EgressError::Timeout { .. }) => ToolErrorCode::Timeout,
            _ => ToolErrorCode::ExecutionFailed,
        };
        let is_retryable = error.retry_helps();
        Self::new(code, error.to_string()).with_retryable(is_retryable)
    }
}
