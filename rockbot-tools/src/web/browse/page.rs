//! A fetched page as text for a model.

use rockbot_core::tool::{ToolError, ToolErrorCode};
use rockbot_pages::main_content;
#[cfg(feature = "pdf")]
use rockbot_pages::pdf;

use super::{charset, feed};
use crate::egress::EgressResponse;

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    /// Markdown, or plain text.
    pub(super) text: String,
    /// `true` if the end of the page is missing.
    pub(super) is_cut: bool,
}

/// The kind of a document, by its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Xml,
    /// Text that the model reads as it is.
    Plain,
    #[cfg(feature = "pdf")]
    Pdf,
    Unknown,
}

impl Page {
    /// Reads the body of a response. It takes time: it is called on a thread for blocking work.
    pub(super) fn read(response: &EgressResponse) -> Result<Self, ToolError> {
        let media_type = response.media_type();
        let refused = |what: &str| {
            let text = format!("{what} cannot be read: only pages, feeds and texts can");
            ToolError::new(ToolErrorCode::ExecutionFailed, text)
        };
        let kind = kind_of(&media_type, &response.body)
            .ok_or_else(|| refused(&format!("a document of the type `{media_type}`")))?;
        #[cfg(feature = "pdf")]
        if kind == Kind::Pdf {
            return Self::of_pdf(response);
        }
        let text = charset::decode(&response.body, response.content_type());
        let text = text.ok_or_else(|| refused("a document that is not text"))?;
        let kind = match kind {
            Kind::Unknown if looks_like_html(&text) => Kind::Html,
            Kind::Unknown if text.trim_start().starts_with("<?xml") => Kind::Xml,
            kind => kind,
        };
        Ok(match kind {
            Kind::Xml if feed::is_feed(&text) => {
                let feed = feed::read(&text, &response.url);
                Self {
                    title: feed.title,
                    text: feed.markdown,
                    is_cut: response.is_cut,
                }
            }
            Kind::Html => {
                let content = main_content(&text, Some(&response.url));
                let is_cut = content.is_cut || response.is_cut;
                Self {
                    title: content.title,
                    text: content.markdown,
                    is_cut,
                }
            }
            _ => Self {
                title: String::new(),
                text,
                is_cut: response.is_cut,
            },
        })
    }

    #[cfg(feature = "pdf")]
    fn of_pdf(response: &EgressResponse) -> Result<Self, ToolError> {
        let refused = |error: pdf::PdfError| {
            let setting = match error {
                pdf::PdfError::Cut { .. } => " (`Egress.MaxBytes` is the bound of a page)",
                _ => "",
            };
            ToolError::new(ToolErrorCode::ExecutionFailed, format!("{error}{setting}"))
        };
        let pdf = pdf::read(&response.body, response.is_cut).map_err(refused)?;
        Ok(Self {
            title: pdf.title,
            text: pdf.markdown,
            is_cut: pdf.is_cut,
        })
    }
}

/// Returns the kind of a document, or `None` for a document that is not text.
#[cfg_attr(
    not(feature = "pdf"),
    expect(unused_variables, reason = "only a PDF is known by its bytes")
)]
fn kind_of(media_type: &str, body: &[u8]) -> Option<Kind> {
    let (family, kind) = media_type.split_once('/').unwrap_or((media_type, ""));
    match (family, kind) {
        #[cfg(feature = "pdf")]
        ("application", "pdf" | "x-pdf") => Some(Kind::Pdf),
        // Many servers do not state the type of a document.
        #[cfg(feature = "pdf")]
        ("application", "octet-stream") | ("", _) if pdf::is_pdf(body) => Some(Kind::Pdf),
        ("text", "html") | ("application", "xhtml+xml") => Some(Kind::Html),
        ("text" | "application", "xml") => Some(Kind::Xml),
        ("image", "svg+xml") => None,
        (_, kind) if kind.ends_with("+xml") => Some(Kind::Xml),
        ("text", _) => Some(Kind::Plain),
        ("application", "json" | "javascript" | "yaml" | "x-yaml" | "toml" | "x-sh" | "sql" | "x-ndjson") => {
            Some(Kind::Plain)
        }
        (_, kind) if kind.ends_with("+json") => Some(Kind::Plain),
        ("", _) => Some(Kind::Unknown),
        _ => None,
    }
}

fn looks_like_html(text: &str) -> bool {
    let start: String = text
        .trim_start()
        .chars()
        .take(200)
        .collect::<String>()
        .to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| start.contains(tag))
}
