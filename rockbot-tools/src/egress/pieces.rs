//! A response whose body is read in pieces, as they come: a stream of events.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::EgressError;

/// A response whose body comes in pieces. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EgressPieces {
    response: Response,
    host: String,
}

#[cfg_attr(
    not(feature = "a2a"),
    allow(dead_code, reason = "a notification has no answer to read")
)]
impl EgressPieces {
    pub(super) fn new(response: Response, host: String) -> Result<Self, EgressError> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        let encoding = encoding.map(|value| value.to_str().unwrap_or("?"));
        match encoding {
            None | Some("" | "identity") => Ok(Self { response, host }),
            Some(other) => {
                let encoding = other.chars().take(40).collect();
                Err(EgressError::Encoding { host, encoding })
            }
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns `true` if the body is a stream of events.
    pub(crate) fn is_event_stream(&self) -> bool {
        let kind = self
            .response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// Returns the next piece, waiting up to `limit` for it; `None` at the end.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<Option<Bytes>, EgressError> {
        match timeout(limit, self.response.chunk()).await {
            Ok(piece) => piece.map_err(|error| EgressError::of_transport(error, &self.host)),
            Err(_) => Err(EgressError::Timeout {
                host: self.host.clone(),
                limit,
            }),
        }
    }

    /// Returns the rest of the body, waiting up to `limit` for it. `None` if it has more than `max`
    /// bytes.
    pub(crate) async fn rest(mut self, max: usize, limit: Duration) -> Result<Option<Vec<u8>>, EgressError> {
        let host = self.host.clone();
        let reading = async {
            let mut body = Vec::new();
            while let Some(piece) = self.next(limit).await? {
                if body.len() + piece.len() > max {
                    return Ok(None);
                }
                body.extend_from_slice(&piece);
            }
            Ok(Some(body))
        };
        match timeout(limit, reading).await {
            Ok(body) => body,
            Err(_) => Err(EgressError::Timeout { host, limit }),
        }
    }
}
