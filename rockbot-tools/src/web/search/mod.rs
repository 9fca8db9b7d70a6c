//! The tool `web_search`, and the engines behind it.

mod brave;
mod provider;
mod searxng;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::sync::Arc;

use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use rockbot_core::trust::Trust;
use rockbot_pages::plain_text;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) use brave::Brave;
pub use provider::{SearchError, SearchProvider, SearchResult};
pub(super) use searxng::SearXng;

/// Maximum number of results of a call.
const MAX_COUNT: usize = 20;

/// Maximum length of a query, in characters; the rest is left out. Brave takes no longer one.
const MAX_QUERY: usize = 400;

/// Maximum length of the URL of a result, in bytes. Of one with a longer URL, the text alone is
/// shown.
const MAX_URL: usize = 2_048;

/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 200;

/// Maximum length of a snippet, in characters.
const MAX_SNIPPET: usize = 600;

/// State of the tool.
#[derive(Debug)]
struct WebSearch {
    provider: Arc<dyn SearchProvider>,
    /// Number of results unless a call states one.
    count: usize,
}

/// Searches the web. It shows titles, URLs and snippets; read a page with web_browse.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The words to search for.
    query: String,
    /// The number of results, 20 at most.
    #[serde(default)]
    count: Option<usize>,
}

/// Returns the tool.
pub(super) fn tool(provider: Arc<dyn SearchProvider>, count: usize) -> Tool {
    let source = provider.name().to_owned();
    stateful_tool("web_search", WebSearch { provider, count }, search)
        .source(source)
        .pure()
}

async fn search(this: ToolState<WebSearch>, arguments: Arguments) -> Result<Content, ToolError> {
    let query = arguments.query.split_whitespace().collect::<Vec<_>>().join(" ");
    let query: String = query.chars().take(MAX_QUERY).collect();
    if query.is_empty() {
        return Err(ToolError::invalid_arguments(
            "the query is empty: say what to search for",
        ));
    }
    let count = arguments.count.unwrap_or(this.count).clamp(1, MAX_COUNT);
    let results = this.provider.search(&query, count).await?;
    if results.is_empty() {
        return Ok(format!("No results for `{query}`. Other or fewer words may find something.").into());
    }
    let mut list = String::new();
    for (number, result) in results.iter().take(count).enumerate() {
        writeln!(list, "{}. {}", number + 1, shown(result)).expect("a String takes everything");
    }
    let source = format!("tool:web_search, search:{}", this.provider.name());
    Ok(ContentPart::text(list)
        .with_provenance(Provenance::new(source, Trust::Untrusted))
        .into())
}

/// Returns the line of a result.
fn shown(result: &SearchResult) -> String {
    let title = cleaned(&result.title, MAX_TITLE).replace(['[', ']'], "");
    let snippet = cleaned(&result.snippet, MAX_SNIPPET);
    let dash = if snippet.is_empty() { "" } else { " — " };
    if result.url.len() <= MAX_URL {
        format!("[{title}]({}){dash}{snippet}", result.url.replace([' ', '\n', ')'], ""))
    } else {
        format!("{title}{dash}{snippet}")
    }
}

/// Returns the text of a fragment of HTML, on one line.
fn cleaned(html: &str, max: usize) -> String {
    let text = plain_text(html);
    let line: String = text.chars().take(max).collect();
    if line.len() < text.len() {
        format!("{line}…")
    } else {
        line
    }
}
