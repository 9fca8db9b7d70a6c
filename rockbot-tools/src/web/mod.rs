//! The web: searching it and reading pages.
//!
//! [`WebTools`] is the subsystem with the tools `web_search` and `web_browse`. Every request
//! obeys the [`EgressPolicy`]. [`html_to_markdown`] and [`main_content`] are the converters
//! behind `web_browse`, for tools of your own.

mod browse;
mod search;
mod settings;

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{Tool, ToolGroup};
use rockbot_core::{BoxError, Secret};
use url::Url;

pub use rockbot_pages::{MainContent, html_to_markdown, main_content};
pub use search::{SearchError, SearchProvider, SearchResult};
pub use settings::WebSettings;

use crate::egress::{EgressClient, EgressPolicy};
use browse::Chunking;
use search::{Brave, SearXng};

/// The tools of the web: `web_search` and `web_browse`.
///
/// Brave is the search engine, or SearXNG where the settings name an instance;
/// [`search_provider`](Self::search_provider) takes any other search engine. Without a key for
/// Brave, `web_search` answers that there is no key. Texts that both tools return are untrusted,
/// with the tool as their source.
///
/// `web_browse` reads pages, feeds, texts and, with the feature `pdf`, the text layer of PDF
/// documents. A PDF is read up to a budget of 64 MiB of work, to 2 000 pages and to 2 MiB of
/// text; of an incomplete one, the pages that are there are read. Documents that are encrypted or
/// have no text layer are refused, and the error says so.
///
/// The tools stand in a group with a guide, which a model activates when it needs the web. Long
/// pages are kept in chunks of working memory under `{namespace}/web-{url}-chunk{n}`, with an
/// outline under `…-index`.
///
/// Settings: the sections `WebTools` ([`WebSettings`]) and `Egress` ([`EgressPolicy`]).
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::web::WebTools;
///
/// // A host calls this for `.add(WebTools::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// WebTools::new().declare(&mut declarations)?;
/// let names: Vec<_> = declarations.merge().tools.into_iter().map(|tool| tool.registration.name).collect();
/// assert_eq!(names, ["web_search", "web_browse"]);
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct WebTools {
    policy: Option<EgressPolicy>,
    engine: Engine,
    is_always_shown: bool,
}

/// The search engine.
#[derive(Debug, Default)]
enum Engine {
    /// The engine of the settings.
    #[default]
    Configured,
    Brave(Secret),
    SearXng(Url),
    Given(Arc<dyn SearchProvider>),
    None,
}

impl WebTools {
    /// Creates the tools, as the settings describe them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy of requests. Default: the section `Egress` of the settings.
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Searches with Brave and this key, whatever the settings say.
    pub fn brave(mut self, key: Secret) -> Self {
        self.engine = Engine::Brave(key);
        self
    }

    /// Searches with the instance of SearXNG at this URL, whatever the settings say. Its host may be
    /// internal.
    pub fn searxng(mut self, url: Url) -> Self {
        self.engine = Engine::SearXng(url);
        self
    }

    /// Searches with this engine.
    pub fn search_provider(mut self, provider: impl SearchProvider) -> Self {
        self.engine = Engine::Given(Arc::new(provider));
        self
    }

    /// Leaves `web_search` out.
    pub fn without_search(mut self) -> Self {
        self.engine = Engine::None;
        self
    }

    /// Shows the tools in every request. Default: once the model activates the group `web`.
    pub fn always_shown(mut self) -> Self {
        self.is_always_shown = true;
        self
    }

    fn provider(
        &mut self,
        settings: &WebSettings,
        policy: &EgressPolicy,
    ) -> Result<Option<Arc<dyn SearchProvider>>, BoxError> {
        let engine = match std::mem::take(&mut self.engine) {
            Engine::Configured => settings.searxng.clone().map_or(Engine::Configured, Engine::SearXng),
            engine => engine,
        };
        let brave = |key: Option<Secret>| -> Result<Arc<dyn SearchProvider>, BoxError> {
            let client = EgressClient::new(policy.clone())?;
            Ok(Arc::new(Brave::new(client, key, &settings.api_key_variable)))
        };
        Ok(Some(match engine {
            Engine::Configured => brave(settings.api_key.clone())?,
            Engine::Brave(key) => brave(Some(key))?,
            Engine::SearXng(url) => {
                // The operator has named the host by naming the URL.
                let policy = policy.clone().allow_origin(&url)?;
                Arc::new(SearXng::new(EgressClient::new(policy)?, &url))
            }
            Engine::Given(provider) => provider,
            Engine::None => return Ok(None),
        }))
    }
}

#[async_trait]
impl Subsystem for WebTools {
    fn name(&self) -> &str {
        "web"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let settings = WebSettings::from_config(&config)?;
        let configured = EgressPolicy::from_config(&config)?;
        let policy = self.policy.clone().unwrap_or(configured);
        let search = self.provider(&settings, &policy)?;
        let search = search.map(|provider| search::tool(provider, settings.max_search_results));
        let chunking = Chunking {
            threshold: settings.chunking_threshold,
            max_len: settings.chunk_max_length,
            ttl: settings.chunk_ttl,
        };
        let browse = browse::tool(EgressClient::new(policy)?, settings.github_token, chunking);
        let group = ToolGroup::new("web", "search the web, read pages").with_guide(include_str!("guides/web.md"));
        let tools: Vec<Tool> = search.into_iter().chain([browse]).collect();
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        declarations.cost(
            PartCost::on("web")
                .with_switch("`AgentHostBuilder::add(WebTools)`")
                .with_tools(names),
        );
        for tool in tools {
            declarations.tool(if self.is_always_shown {
                tool
            } else {
                tool.on_demand(&group)
            });
        }
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}
