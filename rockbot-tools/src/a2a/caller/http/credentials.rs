//! The credentials of a request to an agent: none, a key, or a token of an account.

use std::sync::Arc;

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::account::Tokens;
use super::error::PeerError;
use crate::egress::{EgressClient, EgressRequest};

/// The credentials for one agent. They go to the origin of its URL alone.
#[derive(Debug, Clone)]
pub(super) enum Credentials {
    None,
    /// The header with a key.
    Key(HeaderName, HeaderValue),
    Account(Arc<Tokens>),
}

impl Credentials {
    /// Sets the credentials in a request, in place of a token that was `refused`. Returns the token.
    pub(super) async fn set(
        &self,
        request: &mut EgressRequest,
        client: &EgressClient,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, PeerError> {
        match self {
            Self::None => Ok(None),
            Self::Key(name, value) => {
                request.origin_headers.insert(name.clone(), value.clone());
                Ok(None)
            }
            Self::Account(tokens) => {
                let token = tokens.header(client, refused).await?;
                request.origin_headers.insert(AUTHORIZATION, token.clone());
                Ok(Some(token))
            }
        }
    }

    /// Returns `true` if an answer refuses a token that can be asked for anew.
    pub(super) fn is_refused(&self, status: StatusCode) -> bool {
        matches!(self, Self::Account(_)) && status == StatusCode::UNAUTHORIZED
    }
}
