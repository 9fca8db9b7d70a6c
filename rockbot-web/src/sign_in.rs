//! The people who may use the agent: by a token of their own, or as a reverse proxy names them.

use std::fmt;
use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use rockbot_core::{Digest, ExposeSecret as _, Principal, Secret};

use crate::error::WebError;

/// Maximum length of a name that a proxy gives, in bytes.
const MAX_NAME: usize = 256;

/// A person or a program that may use the agent: the principal, and the token that it signs in
/// with.
///
/// ```
/// use rockbot_web::WebUser;
///
/// let ann = WebUser::new("ann", "sesame".to_owned());
/// assert_eq!(ann.principal().as_str(), "ann");
/// ```
#[derive(Clone)]
pub struct WebUser {
    principal: Principal,
    /// The digest of the token: its comparison tells nothing of the token itself.
    token: Digest,
}

impl WebUser {
    /// Creates a user that sends `token` as a bearer token.
    pub fn new(principal: impl Into<Principal>, token: impl Into<Secret>) -> Self {
        let token: Secret = token.into();
        Self {
            principal: principal.into(),
            token: digest(token.expose_secret()),
        }
    }

    /// Returns the principal on whose behalf the user's turns run.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }
}

impl fmt::Debug for WebUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebUser")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// The users that a server knows, and the proxies whose word it takes.
#[derive(Debug, Default)]
pub(crate) struct SignIn {
    pub(crate) users: Vec<WebUser>,
    pub(crate) header: Option<HeaderName>,
    pub(crate) proxies: Vec<IpAddr>,
    /// Users who may apply and undo dreams.
    pub(crate) operators: Vec<Principal>,
}

impl SignIn {
    /// Returns `true` if every program that reaches the server is the principal `local`.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_empty() && self.header.is_none()
    }

    /// Returns `true` if a user may apply and undo dreams. On a server without users that is every
    /// program of this machine, which decides about approvals as well.
    pub(crate) fn is_operator(&self, user: &Principal) -> bool {
        self.is_open() || self.operators.contains(user)
    }

    /// Returns the first problem with the users, such as two users of one token.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_empty = |user: &&WebUser| user.principal.as_str().trim().is_empty() || user.token == digest("");
        if let Some(user) = self.users.iter().find(is_empty) {
            return Some(format!("the user `{}` has no name or an empty token", user.principal));
        }
        if self.header.is_some() == self.proxies.is_empty() {
            return Some("`UserHeader` and `TrustedProxies` need each other: set both, or none".to_owned());
        }
        let is_user = |name: &&Principal| self.users.iter().any(|user| user.principal == **name);
        if self.header.is_none()
            && !self.is_open()
            && let Some(name) = self.operators.iter().find(|name| !is_user(name))
        {
            return Some(format!(
                "the operator `{name}` is no user: name it in `WebServer.Users`, too"
            ));
        }
        let mut pairs = self
            .users
            .iter()
            .enumerate()
            .flat_map(|(at, one)| self.users[..at].iter().map(move |other| (one, other)));
        // One principal may have several tokens, such as one for each device.
        let (one, other) = pairs.find(|(one, other)| one.token == other.token)?;
        Some(format!(
            "the users `{}` and `{}` have one token: give each its own",
            other.principal, one.principal
        ))
    }

    /// Returns the principal of a request from the address `peer`.
    pub(crate) fn principal(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Principal, WebError> {
        if self.is_open() {
            return Ok(Principal::default());
        }
        if let Some(token) = bearer(headers) {
            let given = digest(token);
            let user = self.users.iter().find(|user| user.token == given);
            let found = user.map(|user| user.principal.clone());
            return found.ok_or_else(|| unauthorized("this bearer token is no user's"));
        }
        match &self.header {
            Some(name) if peer.is_some_and(|peer| self.proxies.contains(&peer.to_canonical())) => named(headers, name),
            _ => Err(unauthorized("send the token of a user as a bearer token")),
        }
    }
}

/// Returns the principal that a proxy names.
fn named(headers: &HeaderMap, name: &HeaderName) -> Result<Principal, WebError> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized(
            "the proxy names no user, or several: it must replace the header that a client sends",
        ));
    };
    let user = value.to_str().unwrap_or_default().trim();
    let is_plain = !user.is_empty() && user.len() <= MAX_NAME && !user.contains(char::is_control);
    // `local` is the person at the keyboard of the host, and a colon stands in the principals of other
    // agents: no name of a directory of users must lead there.
    if is_plain && user != Principal::default().as_str() && !user.contains(':') {
        Ok(Principal::from(user))
    } else {
        Err(WebError::new(
            StatusCode::FORBIDDEN,
            "user_refused",
            "this name of a user cannot sign in: it is empty, too long, `local`, or has a colon",
        ))
    }
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(message: &str) -> WebError {
    WebError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

fn digest(token: &str) -> Digest {
    Digest::of([token])
}
