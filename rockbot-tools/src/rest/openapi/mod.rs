//! Tools from OpenAPI documents of the versions 3.0 and 3.1.

mod filter;
mod load;
mod operation;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use rockbot_core::BoxError;
use serde_json::Value;
use url::Url;

use super::credentials::Credentials;
use super::endpoint::RestEndpoint;
use crate::egress::{EgressClient, EgressPolicy};
use filter::Filter;
pub(super) use load::Document;

/// Maximum number of tools of one document. A model cannot choose among more.
const MAX_TOOLS: usize = 128;

/// Maximum length of the URL of a server, in bytes.
const MAX_SERVER: usize = 2_048;

/// An OpenAPI document whose operations become tools.
///
/// Each operation becomes a tool with its `operationId` as name, its parameters as arguments, and
/// its JSON body as the argument `body`. Operations with a body in another format are left out.
///
/// ```
/// use rockbot_tools::rest::{Credentials, OpenApi, RestTools};
///
/// let shop = OpenApi::file("shop.yaml").include("tag:orders").include("GET /products*");
/// let shop = shop.credentials(Credentials::bearer("secret".into()));
/// let tools = RestTools::new().openapi(shop); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug)]
#[must_use]
pub struct OpenApi {
    source: Source,
    server: Option<String>,
    include: Vec<String>,
    credentials: Credentials,
    needs_approval: bool,
}

/// The place of a document.
#[derive(Debug)]
enum Source {
    File(PathBuf),
    Url(String),
    Text(String),
}

/// The reason why a document is not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// The document cannot be read.
    #[error("the OpenAPI document `{document}` cannot be read: {cause}")]
    Unreadable {
        /// The file or URL.
        document: String,
        /// The reason.
        cause: String,
    },
    /// The document is too large.
    #[error(
        "the OpenAPI document `{document}` is larger than {max} bytes: leave out operations that no tool is made of"
    )]
    TooLarge {
        /// The file or URL.
        document: String,
        /// Maximum size, in bytes.
        max: usize,
    },
    /// The document is neither JSON nor YAML, or not OpenAPI of a known version.
    #[error("`{document}` is not an OpenAPI document of version 3.0 or 3.1: {reason}")]
    NotOpenApi {
        /// The file or URL.
        document: String,
        /// The difference.
        reason: String,
    },
    /// The document names no server with an absolute URL.
    #[error("`{document}` names no server with an absolute URL: set one")]
    NoServer {
        /// The file or URL.
        document: String,
    },
    /// There are credentials, and the document alone names the server.
    #[error("`{document}` alone names `{server}`, and credentials go to no such server: set the server")]
    ServerNotSet {
        /// The file or URL.
        document: String,
        /// The origin of the server.
        server: String,
    },
    /// The document has too many operations.
    #[error("`{document}` has {count} operations, and a model can choose among {max} at most: include fewer")]
    TooMany {
        /// The file or URL.
        document: String,
        /// Number of included operations.
        count: usize,
        /// Maximum number.
        max: usize,
    },
    /// An operation lets its caller choose a header field that frames the request or names the server.
    #[error("`{operation}` of `{document}` lets the model choose the header `{header}`: include other operations")]
    FramingHeader {
        /// The file or URL.
        document: String,
        /// The method and the path.
        operation: String,
        /// The header field.
        header: String,
    },
    /// A filter names no operation.
    #[error("`{pattern}` includes no operation of `{document}`: write an operationId, `GET /path*` or `tag:name`")]
    NothingIncluded {
        /// The file or URL.
        document: String,
        /// The pattern of the filter.
        pattern: String,
    },
}

impl OpenApi {
    /// Creates the import of a file in JSON or YAML, which is read when the host is built.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(Source::File(path.into()))
    }

    /// Creates the import of a document at a URL, which is fetched when the host is built, under the
    /// policy of requests.
    pub fn url(url: impl Into<String>) -> Self {
        Self::of(Source::Url(url.into()))
    }

    /// Creates the import of a document with this text, in JSON or YAML.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Source::Text(text.into()))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            server: None,
            include: Vec::new(),
            credentials: Credentials::none(),
            needs_approval: false,
        }
    }

    pub(super) fn configured(settings: super::settings::DocumentSettings) -> Self {
        let source = match super::settings::file_of(&settings.document) {
            Some(file) => Source::File(file),
            None => Source::Url(settings.document),
        };
        Self {
            source,
            server: settings.server,
            include: settings.include,
            credentials: settings.credentials,
            needs_approval: settings.needs_approval,
        }
    }

    /// Sets the URL of the server. Default: the first one that the document names, which gets
    /// credentials and may be internal only if the document comes from its origin.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.server = Some(url.into());
        self
    }

    /// Includes the operations that `pattern` names, and only these and those of other calls: an
    /// `operationId`, a method with a path such as `GET /users/{id}`, or `tag:NAME`. `*` stands for
    /// any text. Default: all operations.
    pub fn include(mut self, pattern: impl Into<String>) -> Self {
        self.include.push(pattern.into());
        self
    }

    /// Sends these credentials with each request. Default: none.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Requires an approval for each call.
    pub fn needs_approval(mut self) -> Self {
        self.needs_approval = true;
        self
    }

    /// Returns the endpoints of the included operations, with the title of the document.
    pub(super) fn endpoints(&self, document: &Document) -> Result<Vec<RestEndpoint>, OpenApiError> {
        let base = self.base(document)?;
        self.check_receiver(document, &base)?;
        let base = base.as_str().trim_end_matches('/');
        let filters: Vec<Filter> = self.include.iter().map(|pattern| Filter::new(pattern)).collect();
        let operations = operation::all(&document.json);
        for (filter, pattern) in filters.iter().zip(&self.include) {
            if !operations.iter().any(|operation| filter.includes(operation)) {
                let document = document.name.clone();
                let pattern = pattern.clone();
                return Err(OpenApiError::NothingIncluded { document, pattern });
            }
        }
        let included = operations
            .iter()
            .filter(|operation| filters.is_empty() || filters.iter().any(|filter| filter.includes(operation)));
        let included: Vec<_> = included.collect();
        if included.len() > MAX_TOOLS {
            return Err(OpenApiError::TooMany {
                document: document.name.clone(),
                count: included.len(),
                max: MAX_TOOLS,
            });
        }
        let mut names = BTreeSet::new();
        let mut endpoints = Vec::with_capacity(included.len());
        for operation in included {
            let endpoint = operation.endpoint(&document.json, base, &mut names);
            let endpoint = endpoint.map_err(|header| OpenApiError::FramingHeader {
                document: document.name.clone(),
                operation: operation.to_string(),
                header: header.to_owned(),
            })?;
            if let Some(mut endpoint) = endpoint {
                endpoint.credentials = self.credentials.clone();
                endpoint.needs_approval = self.needs_approval;
                endpoints.push(endpoint);
            }
        }
        Ok(endpoints)
    }

    /// Returns the client of all tools of the document. Only a server that the operator named may be
    /// internal.
    pub(super) fn client(&self, document: &Document, policy: &EgressPolicy) -> Result<EgressClient, BoxError> {
        let base = self.base(document)?;
        let policy = policy.clone();
        EgressClient::new(if self.names_origin_of(&base) {
            policy.allow_origin(&base)?
        } else {
            policy
        })
    }

    /// Returns the URL that paths are appended to.
    fn base(&self, document: &Document) -> Result<Url, OpenApiError> {
        let stated = document.json.pointer("/servers/0");
        let of_document = || Some(with_variables(stated?, stated?.get("url")?.as_str()?));
        let text = self.server.clone().or_else(of_document);
        let text = text.or_else(|| document.url.as_ref().map(|_| "/".to_owned()));
        let parsed = text.and_then(|text| match &document.url {
            Some(url) => url.join(&text).ok(),
            None => Url::parse(&text).ok(),
        });
        let parsed = parsed.filter(|url| url.has_host() && url.as_str().len() <= MAX_SERVER);
        parsed.ok_or_else(|| OpenApiError::NoServer {
            document: document.name.clone(),
        })
    }

    /// Returns an error if credentials would go to a server that the operator did not name.
    fn check_receiver(&self, document: &Document, base: &Url) -> Result<(), OpenApiError> {
        if self.credentials.is_none() || self.names_origin_of(base) {
            return Ok(());
        }
        Err(OpenApiError::ServerNotSet {
            document: document.name.clone(),
            server: base.origin().ascii_serialization(),
        })
    }

    /// Returns `true` if the operator wrote the origin of `url`, as that of the server or of the
    /// document. Where the document is redirected to does not count.
    fn names_origin_of(&self, url: &Url) -> bool {
        let server = self.server.as_deref().and_then(|server| Url::parse(server).ok());
        let document = match &self.source {
            Source::Url(document) => Url::parse(document).ok(),
            Source::File(_) | Source::Text(_) => None,
        };
        let named = [server, document];
        named.into_iter().flatten().any(|own| own.origin() == url.origin())
    }
}

/// Returns the URL of a server with the defaults of its variables. A default is text: it refers
/// to no other variable.
fn with_variables(server: &Value, url: &str) -> String {
    let default = |name: &str| server.get("variables")?.get(name)?.get("default")?.as_str();
    let mut filled = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{')
        && let Some((name, end)) = after.split_once('}')
        && filled.len() < MAX_SERVER
    {
        filled.push_str(before);
        match default(name) {
            Some(default) => filled.push_str(default),
            None => filled.extend(["{", name, "}"]),
        }
        rest = end;
    }
    filled.push_str(rest);
    filled
}
