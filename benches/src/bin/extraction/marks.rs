//! The pages and what is marked in them.

use std::error::Error;

use serde::Deserialize;

/// A page, and the part of it that is its content. Parts are named by CSS selectors.
#[derive(Debug, Deserialize)]
pub(crate) struct Mark {
    /// The package of Debian 12 that holds the page.
    pub(crate) package: String,
    /// The path of the page below the root.
    pub(crate) page: String,
    /// The main content. `None` for a page without a mark.
    #[serde(default)]
    pub(crate) main: Option<String>,
    /// Parts of the main content that are none, such as anchors of headings.
    #[serde(default)]
    pub(crate) without: String,
    /// Parts that may be kept and may be dropped, such as tables of contents.
    #[serde(default)]
    pub(crate) either: String,
    /// `true` for a page that no heuristic was fitted to.
    #[serde(default)]
    pub(crate) held_out: bool,
}

/// Returns all pages.
pub(crate) fn read() -> Result<Vec<Mark>, Box<dyn Error>> {
    Ok(serde_json::from_str(include_str!("../../../data/pages.json"))?)
}
