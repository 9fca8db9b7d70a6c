//! The origin of a server's response.

use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::trust::Trust;
use url::Url;

/// Returns the text that `tool` read at `url` as content: untrusted, with both as its sources.
/// The query of the URL is left out, since it may contain a key.
pub(crate) fn from_server(tool: &str, url: &Url, text: String) -> Content {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let source = format!("tool:{tool}, {url}");
    ContentPart::text(text)
        .with_provenance(Provenance::new(source, Trust::Untrusted))
        .into()
}
