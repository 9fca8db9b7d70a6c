//! The description of one tool: a method, a URL template, its arguments, its credentials.

use std::fmt;

use reqwest::Method;
use rockbot_core::ToolName;
use rockbot_core::tool::Effect;
use serde_json::{Value, json};

use super::credentials::Credentials;

/// An HTTP endpoint that becomes a tool.
///
/// `{param}` in the URL template is replaced by the argument of this name, percent-encoded; a
/// pair of the query whose argument is missing is left out. The other arguments are the JSON body
/// of POST, PUT and PATCH, and the query of other methods.
///
/// ```
/// use rockbot_tools::rest::{Credentials, RestEndpoint, RestTools};
/// use serde_json::json;
///
/// let weather = RestEndpoint::new("get_weather", "https://api.weather.example/v1/current?city={city}")
///     .description("Gets the current weather of a city.")
///     .parameters(json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}))
///     .credentials(Credentials::api_key("X-Api-Key", "secret".into()));
/// let tools = RestTools::new().endpoint(weather); // for `AgentHostBuilder::add`
/// ```
#[derive(Clone)]
#[must_use]
pub struct RestEndpoint {
    pub(super) name: ToolName,
    pub(super) description: String,
    pub(super) method: String,
    pub(super) url_template: String,
    pub(super) parameters: Value,
    pub(super) credentials: Credentials,
    pub(super) needs_approval: bool,
    /// The places of arguments that do not follow from the template and the method.
    pub(super) places: Vec<(String, Place)>,
}

/// The place of an argument in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Query,
    Header(String),
    /// The whole JSON body.
    Body,
}

impl RestEndpoint {
    /// Creates a GET endpoint without arguments and credentials.
    pub fn new(name: impl Into<ToolName>, url_template: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            method: "GET".to_owned(),
            url_template: url_template.into(),
            parameters: json!({"type": "object", "properties": {}}),
            credentials: Credentials::none(),
            needs_approval: false,
            places: Vec::new(),
        }
    }

    /// Sets the purpose of the tool, in words for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the method. Default GET.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets the JSON Schema of the arguments, which describes an object. Default: no arguments.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
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
}

impl fmt::Debug for RestEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestEndpoint")
            .field("name", &self.name)
            .field("method", &self.method)
            .field("url_template", &self.url_template)
            .finish_non_exhaustive()
    }
}

/// Returns the effect of a method.
pub(super) fn effect_of(method: &Method) -> Effect {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => Effect::Pure,
        Method::PUT | Method::DELETE => Effect::Idempotent,
        _ => Effect::Mutating,
    }
}
