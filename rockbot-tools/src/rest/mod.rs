//! Tools from HTTP interfaces: endpoints that the settings describe, and OpenAPI documents.
//!
//! [`RestTools`] is the subsystem. Every request obeys the [`EgressPolicy`]. The operator wrote
//! the host of an endpoint, so it may be internal, and a redirect may not leave it for another
//! internal host. A server that an OpenAPI document alone names gets neither credentials nor this
//! exception.

mod credentials;
mod endpoint;
mod executor;
mod openapi;
mod settings;
mod template;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{Tool, ToolGroup};

pub use credentials::Credentials;
pub use endpoint::RestEndpoint;
pub use openapi::{OpenApi, OpenApiError};

use crate::egress::EgressPolicy;

/// Tools that are requests to HTTP servers.
///
/// The settings describe endpoints in `RestTools.Endpoints` and name OpenAPI documents in
/// `RestTools.OpenApi`; the methods add more. GET, HEAD and OPTIONS make a tool that only reads,
/// PUT and DELETE one that may be repeated, POST and PATCH one that is never repeated by the
/// host. An answer with another status than success is an error that the model reads, with status
/// and body. If POST or PATCH may have taken effect, as after a broken connection, the error says
/// so. A secret that the settings name and the environment does not have is an error when the
/// host is built.
///
/// | setting of an endpoint | |
/// |---|---|
/// | `Name`, `Description` | of the tool |
/// | `UrlTemplate`, `Method` | the request; default GET |
/// | `ParametersSchema` | the text of the JSON Schema of the arguments |
/// | `AuthType`, `AuthEnvVar`, `ApiKeyHeader` | `none`, `bearer` or `api_key`, the variable with the secret, its header (`X-Api-Key`) |
/// | `NeedsApproval` | a person approves each call; default `false` |
///
/// The tools of an OpenAPI document (`Document`, `Server`, `Include`, `NeedsApproval` and the
/// settings of credentials) stand in a group with a guide, which a model activates when it needs
/// them. Credentials and an internal server need `Server`, unless the server has the origin of
/// the document's URL.
///
/// ```
/// use rockbot_core::config::Config;
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::rest::RestTools;
///
/// let config = Config::new().with_text("agent.json", r#"{ "RestTools": { "Endpoints": [ {
///     "Name": "get_weather",
///     "Description": "Get current weather for a city",
///     "UrlTemplate": "https://api.weather.example/v1/current?city={city}",
///     "Method": "GET",
///     "ParametersSchema": "{ \"type\": \"object\", \"properties\": { \"city\": { \"type\": \"string\" } } }"
/// } ] } }"#)?;
/// // A host calls this for `.add(RestTools::new())`.
/// let mut parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// parts.provide(std::sync::Arc::new(config));
/// let mut declarations = Declarations::new(parts);
/// RestTools::new().declare(&mut declarations)?;
/// assert_eq!(declarations.merge().tools[0].registration.name, "get_weather");
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct RestTools {
    policy: Option<EgressPolicy>,
    endpoints: Vec<RestEndpoint>,
    documents: Vec<OpenApi>,
}

impl RestTools {
    /// Creates the tools that the settings describe.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy of requests. Default: the section `Egress` of the settings.
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Adds the tool of an endpoint.
    pub fn endpoint(mut self, endpoint: RestEndpoint) -> Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Adds the tools of an OpenAPI document.
    pub fn openapi(mut self, document: OpenApi) -> Self {
        self.documents.push(document);
        self
    }
}

#[async_trait]
impl Subsystem for RestTools {
    fn name(&self) -> &str {
        "rest"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let configured = EgressPolicy::from_config(&config)?;
        let policy = self.policy.clone().unwrap_or(configured);
        let endpoints = settings::endpoints(&config)?
            .into_iter()
            .chain(std::mem::take(&mut self.endpoints));
        let mut tools = Vec::new();
        for endpoint in endpoints {
            let client = executor::client_of(&endpoint, &policy)?;
            tools.push(executor::tool(endpoint, client)?);
        }
        let documents = settings::documents(&config)?.into_iter().map(OpenApi::configured);
        for document in documents.chain(std::mem::take(&mut self.documents)) {
            tools.extend(tools_of(&document, &policy)?);
        }
        let names = tools.iter().map(|tool| tool.registration.name.clone());
        declarations.cost(PartCost::on("rest").with_switch("`RestTools`").with_tools(names));
        tools.into_iter().for_each(|tool| declarations.tool(tool));
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}

fn tools_of(import: &OpenApi, policy: &EgressPolicy) -> Result<Vec<Tool>, BoxError> {
    let document = import.load(policy)?;
    let title: String = document.title().chars().take(60).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let name: String = title
        .to_ascii_lowercase()
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    let name = match name.trim_matches('-') {
        "" => "rest",
        name => name,
    };
    let summary = format!("requests to the interface \"{}\"", title.replace('"', "'"));
    let group = ToolGroup::new(name, summary).with_guide(include_str!("guides/rest.md"));
    let endpoints = import.endpoints(&document)?;
    // All paths are below one server, so that all tools share its connections.
    let client = import.client(&document, policy)?;
    let tools = endpoints
        .into_iter()
        .map(|endpoint| executor::tool(endpoint, client.clone()));
    tools.map(|tool| Ok(tool?.on_demand(&group))).collect()
}
