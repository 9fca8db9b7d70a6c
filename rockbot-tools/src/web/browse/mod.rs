//! The tool `web_browse`: reads a page as Markdown.

mod charset;
mod feed;
mod github;
mod page;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, HeaderValue, USER_AGENT};
use rockbot_core::tool::{
    ResultChunks, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::{CallContext, Digest, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use crate::egress::{self, EgressClient, EgressRequest, EgressResponse, from_server};
use github::{GitHub, Thread};
use page::Page;

/// Number of pages that are converted at a time.
const CONVERSIONS: usize = 4;

/// Maximum time that a page waits for others to be converted. Each of them ends: the parsers have
/// limits of their own.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Maximum number of characters of a URL in a key.
const MAX_KEY: usize = 80;

/// Maximum number of characters of an error's page that are shown.
const MAX_ERROR: usize = 500;

/// The form in which long pages are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunking {
    pub(super) threshold: usize,
    pub(super) max_len: usize,
    pub(super) ttl: Duration,
}

/// The tool.
#[derive(Debug)]
pub(super) struct WebBrowse {
    client: EgressClient,
    github: GitHub,
    chunking: Chunking,
    conversions: Arc<Semaphore>,
}

/// Reads a web page, text or feed as Markdown.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The absolute URL, such as `https://example.org/page`.
    url: String,
}

/// Returns the tool.
pub(super) fn tool(client: EgressClient, token: Option<Secret>, chunking: Chunking) -> Tool {
    let registration = ToolRegistration::of::<Arguments>("web_browse").with_source("web");
    let browse = WebBrowse {
        client,
        github: GitHub::new(token),
        chunking,
        conversions: Arc::new(Semaphore::new(CONVERSIONS)),
    };
    Tool::new(registration, browse).pure()
}

#[async_trait]
impl ToolExecutor for WebBrowse {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let arguments: Arguments = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let url = self.client.policy().parse(&arguments.url)?;
        let (url, page) = self.read(url).await?;
        let chunks = ResultChunks::new(key_of(&arguments.url))
            .with_threshold(self.chunking.threshold)
            .with_max_len(self.chunking.max_len)
            .with_ttl(self.chunking.ttl);
        let content = from_server(request.tool_name.as_str(), &url, written(&url, &page));
        Ok(request.succeed(content).with_chunks(chunks))
    }
}

impl WebBrowse {
    async fn read(&self, url: Url) -> Result<(Url, Page), ToolError> {
        if let Some(thread) = Thread::of(&url)
            && let Some(page) = self.github.read(&self.client, &thread).await
        {
            return Ok((url, page));
        }
        let mut request = EgressRequest::get(url);
        request
            .headers
            .insert(USER_AGENT, HeaderValue::from_static(egress::USER_AGENT));
        let accepted =
            "text/html,application/xhtml+xml,text/markdown;q=0.9,text/*;q=0.8,application/json;q=0.8,*/*;q=0.5";
        request.headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        let response = self.client.fetch(request).await?;
        self.convert(response).await
    }

    /// Converts a page on a thread for blocking work: hostile ones take long.
    async fn convert(&self, response: EgressResponse) -> Result<(Url, Page), ToolError> {
        let permit = tokio::time::timeout(MAX_WAIT, self.conversions.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| {
            let text = "the page was fetched, but too many others are being converted: fetch it again later";
            ToolError::new(ToolErrorCode::Timeout, text).with_retryable(true)
        })?;
        let work = move || {
            let _permit = permit;
            let page = Page::read(&response);
            if response.status.is_success() {
                page.map(|page| (response.url, page))
            } else {
                Err(refused(&response, page.ok()))
            }
        };
        let converted = tokio::task::spawn_blocking(work).await;
        converted.map_err(|_| ToolError::execution_failed("the page could not be converted"))?
    }
}

/// Returns the error of a server that answers with another status than success.
fn refused(response: &EgressResponse, page: Option<Page>) -> ToolError {
    let status = response.status;
    let host = response.url.host_str().unwrap_or_default();
    let text = page.map(|page| page.text).unwrap_or_default();
    let shown: String = text.trim().chars().take(MAX_ERROR).collect();
    let message = format!("`{host}` answered with status {status}: {shown}");
    let is_temporary = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    ToolError::new(ToolErrorCode::ExecutionFailed, message.trim_end_matches([':', ' '])).with_retryable(is_temporary)
}

/// Returns the page as the model reads it, with its source.
fn written(url: &Url, page: &Page) -> String {
    let title = if page.text.starts_with("# ") || page.title.is_empty() {
        String::new()
    } else {
        format!("# {}\n\n", page.title)
    };
    let end = if page.is_cut {
        "\n[The page is longer; the rest was not read.]\n"
    } else {
        ""
    };
    let text = if page.text.trim().is_empty() {
        "(The page has no text.)\n"
    } else {
        &page.text
    };
    format!("Source: {url}\n\n{title}{text}{end}")
}

/// Returns the name under which the chunks of a page are kept. Long URLs end with a digest, so
/// that they stay different.
fn key_of(url: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    let name: String = url.trim().chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('_');
    if name.chars().count() <= MAX_KEY {
        return format!("web-{name}");
    }
    let start: String = name.chars().take(MAX_KEY - 9).collect();
    format!("web-{start}-{}", &Digest::of([url]).short()[..8])
}
