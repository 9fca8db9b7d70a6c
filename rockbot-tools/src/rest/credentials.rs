//! The credentials of requests, as endpoints and documents take them.

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use rockbot_core::{BoxError, ExposeSecret, Secret};

/// The credentials that go with each request of a tool, to the server that the operator named and
/// to no other.
///
/// ```
/// use rockbot_tools::rest::{Credentials, OpenApi, RestEndpoint};
///
/// let key = Credentials::api_key("X-Api-Key", "secret".into());
/// let weather = RestEndpoint::new("get_weather", "https://api.weather.example/v1/current").credentials(key);
/// let shop = OpenApi::file("shop.yaml").credentials(Credentials::bearer("secret".into()));
/// ```
#[derive(Clone, Default)]
pub struct Credentials(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    None,
    Bearer(Secret),
    Header(String, Secret),
}

impl Credentials {
    /// Creates credentials that send nothing. The default.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates credentials that send `Authorization: Bearer …`.
    #[must_use]
    pub fn bearer(token: Secret) -> Self {
        Self(Kind::Bearer(token))
    }

    /// Creates credentials that send the key in this header field.
    #[must_use]
    pub fn api_key(header: impl Into<String>, key: Secret) -> Self {
        Self(Kind::Header(header.into(), key))
    }

    /// Returns `true` if nothing is sent.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.0, Kind::None)
    }

    /// Returns the header fields.
    pub(super) fn headers(&self) -> Result<HeaderMap, BoxError> {
        let mut headers = HeaderMap::new();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| "the secret is not a header's value");
        match &self.0 {
            Kind::None => {}
            Kind::Bearer(token) => {
                headers.insert(AUTHORIZATION, value(&format!("Bearer {}", token.expose_secret()))?);
            }
            Kind::Header(name, key) => {
                let name: HeaderName = name
                    .parse()
                    .map_err(|_| format!("`{name}` is not the name of a header"))?;
                headers.insert(name, value(key.expose_secret())?);
            }
        }
        Ok(headers)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::None => "None",
            Kind::Bearer(_) => "Bearer",
            Kind::Header(..) => "Header",
        })
    }
}
