//! Reading of a document from a file or a URL.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;

use serde_json::Value;
use url::Url;

use super::{OpenApi, OpenApiError, Source};
use crate::egress::{EgressClient, EgressPolicy, EgressRequest};

/// Maximum size of a document, in bytes.
const MAX_SIZE: usize = 16 << 20;

/// Maximum number of nodes of a document in YAML, aliases replaced.
const MAX_NODES: usize = 2_000_000;

/// Maximum number of nodes that aliases of a document in YAML add. Each is copied for every alias
/// around it, so that a document of a kilobyte with ten times as many took seconds to refuse.
const MAX_ALIASED: usize = 100_000;

/// The name of a document, its text, and the URL that it came from.
type Read<'t> = (String, Cow<'t, [u8]>, Option<Url>);

/// A document that was read.
#[derive(Debug)]
pub(in crate::rest) struct Document {
    /// The file or URL, for errors.
    pub(super) name: String,
    /// The URL that the document came from.
    pub(super) url: Option<Url>,
    pub(super) json: Value,
}

impl Document {
    /// Returns the title of the document.
    pub(in crate::rest) fn title(&self) -> &str {
        self.json
            .pointer("/info/title")
            .and_then(Value::as_str)
            .unwrap_or(&self.name)
    }
}

impl OpenApi {
    /// Reads the document. A URL is fetched on a thread of its own, since hosts are built without
    /// waiting.
    pub(in crate::rest) fn load(&self, policy: &EgressPolicy) -> Result<Document, OpenApiError> {
        let (name, text, url) = self.read(policy)?;
        if text.len() > MAX_SIZE {
            return Err(OpenApiError::TooLarge {
                document: name,
                max: MAX_SIZE,
            });
        }
        let not_openapi = |reason: String| OpenApiError::NotOpenApi {
            document: name.clone(),
            reason,
        };
        let json = parse(&text).map_err(not_openapi)?;
        let version = match json.get("openapi") {
            Some(Value::String(version)) => version.clone(),
            // Without quotes, `3.1` is a number in YAML.
            Some(Value::Number(version)) => version.to_string(),
            _ => "none".to_owned(),
        };
        if !version.starts_with("3.0") && !version.starts_with("3.1") {
            let swagger = json.get("swagger").map_or("", |_| " (it is Swagger 2.0: convert it)");
            let version: String = version.chars().take(20).collect();
            return Err(not_openapi(format!("its version is {version}{swagger}")));
        }
        Ok(Document { name, url, json })
    }

    /// Returns the name of the document, its text, and the URL that it came from. Of a file that is
    /// too large, the text is cut behind the first byte too many.
    fn read(&self, policy: &EgressPolicy) -> Result<Read<'_>, OpenApiError> {
        match &self.source {
            Source::Text(text) => Ok(("the given text".to_owned(), text.as_bytes().into(), None)),
            Source::File(path) => {
                let name = path.display().to_string();
                let mut text = Vec::new();
                let read = File::open(path).and_then(|file| file.take(MAX_SIZE as u64 + 1).read_to_end(&mut text));
                read.map_err(|error| unreadable(&name, &error.to_string()))?;
                Ok((name, text.into(), None))
            }
            Source::Url(url) => {
                let (text, from) = fetch(url, policy).map_err(|cause| unreadable(url, &cause))?;
                Ok((url.clone(), text.into(), Some(from)))
            }
        }
    }
}

/// Parses JSON, or YAML if the text does not begin as JSON does.
fn parse(text: &[u8]) -> Result<Value, String> {
    if text.trim_ascii_start().starts_with(b"{") {
        return serde_json::from_slice(text)
            .map_err(|error| format!("no JSON at line {} column {}", error.line(), error.column()));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_documents: 1,
            max_merge_keys: 1_000,
            max_recorded_anchor_events: 2 * MAX_ALIASED,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
        // As in JSON: `no` is a word.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
        let line: String = error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect();
        format!("no YAML: {line}")
    })
}

fn unreadable(document: &str, cause: &str) -> OpenApiError {
    OpenApiError::Unreadable {
        document: document.to_owned(),
        cause: cause.to_owned(),
    }
}

/// Fetches a document whose URL the operator wrote.
fn fetch(url: &str, policy: &EgressPolicy) -> Result<(Vec<u8>, Url), String> {
    let url = url.to_owned();
    let policy = policy.clone();
    let work = move || -> Result<(Vec<u8>, Url), String> {
        let parsed = Url::parse(&url).map_err(|error| error.to_string())?;
        let policy = policy.allow_origin(&parsed).map_err(|error| error.to_string())?;
        let client = EgressClient::new(policy).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let response = runtime
            .block_on(client.fetch(EgressRequest::get(parsed)))
            .map_err(|error| error.to_string())?;
        match (response.status.is_success(), response.is_cut) {
            (true, false) => Ok((response.body, response.url)),
            (true, true) => Err("it is longer than `Egress.MaxBytes`".to_owned()),
            (false, _) => Err(format!("the server answered with status {}", response.status)),
        }
    };
    std::thread::spawn(work)
        .join()
        .unwrap_or_else(|_| Err("the client failed".to_owned()))
}
