//! The client for other crates whose requests a remote text can influence: [`PolicyClient`].

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use rockbot_core::BoxError;

use super::{EgressClient, EgressError, EgressPolicy, EgressRequest};

/// A client whose requests obey an [`EgressPolicy`]. Clones share their connections.
///
/// It is for crates that must go to an address that a server names, such as the address of its
/// authorization server.
#[derive(Debug, Clone)]
pub struct PolicyClient(EgressClient);

/// The response to a request of a [`PolicyClient`], whatever its status.
#[derive(Debug)]
#[non_exhaustive]
pub struct PolicyResponse {
    /// Status. A redirect is not followed.
    pub status: StatusCode,
    /// Header fields, of at most 64 KiB.
    pub headers: HeaderMap,
    /// Body after decompression, cut at the maximum size of the policy.
    pub body: Vec<u8>,
}

impl PolicyClient {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// Returns an error if TLS cannot be set up.
    pub fn new(policy: EgressPolicy) -> Result<Self, BoxError> {
        EgressClient::new(policy).map(Self)
    }

    /// Sends a request within the time limit of the policy.
    ///
    /// # Errors
    ///
    /// Returns an error if the policy refuses the URL or an address of its host, or if there is no
    /// complete response.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<PolicyResponse, EgressError> {
        let request = EgressRequest {
            method,
            headers,
            body: (!body.is_empty()).then(|| Bytes::from(body)),
            ..EgressRequest::get(self.0.policy().parse(url)?)
        };
        let response = self.0.fetch_once(request).await?;
        Ok(PolicyResponse {
            status: response.status,
            headers: response.headers,
            body: response.body,
        })
    }
}
