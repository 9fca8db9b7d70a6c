//! What the transport needs to know about a wire dialect.

use super::ErrorFacts;

/// A wire dialect, as the transport sees it. Each dialect has one, as a constant.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Name of the API that the endpoint must serve, for error messages.
    pub(crate) api: &'static str,
    /// A base URL that serves it, as an example for error messages.
    pub(crate) example: &'static str,
    /// Paths of calls below the base URL, which users paste together with it.
    pub(crate) call_paths: &'static [&'static str],
    /// Name of the header that carries the key.
    pub(crate) key_header: &'static str,
    /// Text in front of the key in that header, such as `Bearer `.
    pub(crate) key_prefix: &'static str,
    /// Reads the body of an error answer.
    pub(crate) read_error: fn(&[u8]) -> ErrorFacts,
}
