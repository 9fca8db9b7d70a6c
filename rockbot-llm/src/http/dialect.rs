//! [`Dialect`]: the part of a wire dialect that the transport needs, such as its headers and paths.

use super::ErrorFacts;

/// A wire dialect, as the transport sees it. Each dialect has one, as a constant.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Name of the API that the endpoint must serve, for error messages.
    pub(crate) api: &'static str,
    /// Name of the provider as OpenTelemetry names it, unless the host of the endpoint is a known one.
    pub(crate) provider: &'static str,
    /// A base URL that serves it, as an example for error messages.
    pub(crate) example: &'static str,
    /// Paths of calls below the base URL, which users paste together with it.
    pub(crate) call_paths: &'static [&'static str],
    /// Name of the header that carries the key.
    pub(crate) key_header: &'static str,
    /// Text in front of the key in that header, such as `Bearer `.
    pub(crate) key_prefix: &'static str,
    /// Headers of each request, beside the key, in lower case.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Path of the list of models below the base URL.
    pub(crate) models_path: &'static str,
    /// Query of the list of models, such as a query for the whole list at once.
    pub(crate) models_query: Option<&'static str>,
    /// Reads the body of an error answer.
    pub(crate) read_error: fn(&[u8]) -> ErrorFacts,
}
