//! The host's part of an authorization: asking the user.

use std::fmt;

use async_trait::async_trait;

/// The handler of servers' demands for an authorization: it sends the user to a page, and returns
/// where the page sent the user's browser afterwards.
///
/// It is set by [`McpTools::authorization`](crate::McpTools::authorization), or provided to the
/// host as the part `dyn AuthorizationHandler`. Without one, a server that demands an
/// authorization is not connected, unless its [`McpOAuth`](crate::McpOAuth) has credentials of
/// the program's own.
#[async_trait]
pub trait AuthorizationHandler: fmt::Debug + Send + Sync + 'static {
    /// Asks the user to authorize the agent.
    ///
    /// The future is dropped after five minutes and when the host stops; the authorization then
    /// counts as declined, as it does if the page refuses, or three addresses in turn are wrong. If
    /// the user declined a server, it asks again once its configuration changes, or the host
    /// restarts.
    async fn authorize(&self, authorization: Authorization) -> AuthorizationAnswer;
}

/// A demand for an authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Authorization {
    /// Name of the server, as configured.
    pub server: String,
    /// Page of the authorization server, with `http` or `https`. Show its host, and open it only if the user agrees; never
    /// hand it to a shell.
    pub url: String,
    /// Address where the page sends the browser at the end, with a code.
    pub redirect_uri: String,
}

/// The answer to a demand for an authorization.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizationAnswer {
    /// The whole address of the browser at the end: the redirect URI with a code and a state.
    Redirected(String),
    /// The user refuses.
    Decline,
}

/// Shows no code.
impl fmt::Debug for AuthorizationAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redirected(_) => "Redirected(…)",
            Self::Decline => "Decline",
        })
    }
}
