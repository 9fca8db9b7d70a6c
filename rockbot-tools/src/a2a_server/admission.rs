//! The conditions for a client to connect: the name that it calls this host, the page that sends
//! it, its key.

use std::sync::Arc;

use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Uri};

use super::caller::{A2aCaller, Callers};
use super::card::KEY_HEADER;
use crate::http_server::{AcceptedNames, UnknownName};

/// The conditions for a client to connect.
#[derive(Debug, Default)]
pub(super) struct Admission {
    pub(super) callers: Callers,
    pub(super) names: AcceptedNames,
}

impl Admission {
    /// Checks that a request names this host, and comes from no page of another host.
    pub(super) fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        self.names.check(uri, headers).map_err(|unknown| match unknown {
            UnknownName::Host => {
                "the header `Host` names another server: the operator allows names by `A2aServer.AllowedHosts`"
            }
            UnknownName::Origin => {
                "pages of this origin may not call: the operator allows some by `A2aServer.AllowedOrigins`"
            }
        })
    }

    /// Returns the caller of a request.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Option<Arc<A2aCaller>> {
        let text = |value: &hyper::header::HeaderValue| value.to_str().ok().map(str::to_owned);
        let bearer = headers.get(AUTHORIZATION).and_then(text).and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
        });
        let key = bearer.or_else(|| headers.get(KEY_HEADER).and_then(text));
        self.callers.find(key.as_deref())
    }
}
