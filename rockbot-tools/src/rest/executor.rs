//! Calls of endpoints.

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Method, StatusCode};
use rockbot_core::tool::{
    Effect, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::{BoxError, CallContext};
use serde_json::{Map, Value};

use super::endpoint::{Place, RestEndpoint, effect_of};
use super::template::{Template, text_of};
use crate::egress::{self, EgressClient, EgressError, EgressPolicy, EgressRequest, EgressResponse, from_server};

/// Maximum number of characters of an error's body that are shown.
const MAX_ERROR: usize = 2_000;

/// The executor of one endpoint.
#[derive(Debug)]
struct RestTool {
    client: EgressClient,
    method: Method,
    effect: Effect,
    template: Template,
    credentials: HeaderMap,
    places: Vec<(String, Place)>,
}

/// Returns a client for the server of an endpoint. The operator named its host, so it may be
/// internal.
pub(super) fn client_of(endpoint: &RestEndpoint, policy: &EgressPolicy) -> Result<EgressClient, BoxError> {
    let of_endpoint = |error: &dyn std::fmt::Display| format!("REST tool `{}`: {error}", endpoint.name);
    let template = Template::parse(&endpoint.url_template).map_err(|error| of_endpoint(&error))?;
    let policy = policy.clone().allow_origin(template.origin());
    EgressClient::new(policy.map_err(|error| of_endpoint(&error))?)
}

/// Returns the tool of an endpoint, whose server `client` allows.
pub(super) fn tool(endpoint: RestEndpoint, client: EgressClient) -> Result<Tool, BoxError> {
    let of_endpoint = |error: &dyn std::fmt::Display| format!("REST tool `{}`: {error}", endpoint.name);
    let template = Template::parse(&endpoint.url_template).map_err(|error| of_endpoint(&error))?;
    let method = method_of(&endpoint.method).map_err(|error| of_endpoint(&error))?;
    let mut origin = template.origin().clone();
    client
        .policy()
        .check_url(&mut origin)
        .map_err(|error| of_endpoint(&error))?;
    let missing = template
        .path_parameters()
        .find(|name| endpoint.parameters["properties"].get(name).is_none());
    if let Some(name) = missing {
        return Err(of_endpoint(&format!("the schema has no property `{name}`, which the URL needs")).into());
    }
    let effect = effect_of(&method);
    let credentials = endpoint.credentials.headers().map_err(|error| of_endpoint(&error))?;
    let registration = ToolRegistration::new(endpoint.name, endpoint.description, endpoint.parameters);
    let places = endpoint.places;
    let executor = RestTool {
        client,
        method,
        effect,
        template,
        credentials,
        places,
    };
    let tool = Tool::new(registration.with_source("rest"), executor).effect(effect);
    Ok(if endpoint.needs_approval {
        tool.needs_approval()
    } else {
        tool
    })
}

fn method_of(name: &str) -> Result<Method, String> {
    let known = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
    let upper = name.to_ascii_uppercase();
    let method = upper.parse().ok().filter(|_| known.contains(&&*upper));
    method.ok_or_else(|| format!("`{name}` is not a method"))
}

#[async_trait]
impl ToolExecutor for RestTool {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let sent = self.request(&request.arguments)?;
        let response = self.client.fetch(sent).await.map_err(|error| self.failed(error))?;
        let text = shown(&response);
        if response.status.is_success() {
            let content = from_server(request.tool_name.as_str(), &response.url, text);
            Ok(request.succeed(content))
        } else {
            Err(self.refused(&response, &text))
        }
    }
}

impl RestTool {
    fn request(&self, arguments: &str) -> Result<EgressRequest, ToolError> {
        let invalid = |error: &dyn std::fmt::Display| ToolError::invalid_arguments(error.to_string());
        let mut arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| invalid(&error))?;
        let url = self.template.expand(&mut arguments).map_err(|error| invalid(&error))?;
        let mut request = EgressRequest::get(url);
        request.method = self.method.clone();
        request.origin_headers = self.credentials.clone();
        request
            .headers
            .insert(USER_AGENT, HeaderValue::from_static(egress::USER_AGENT));
        let mut body = None;
        for (name, place) in &self.places {
            let Some(value) = arguments.remove(name) else { continue };
            match place {
                Place::Body => body = Some(value),
                Place::Query => append_query(&mut request, name, &value),
                Place::Header(header) => {
                    let header: HeaderName = header
                        .parse()
                        .map_err(|_| invalid(&"the API names an invalid header"))?;
                    let value = text_of(&value).unwrap_or_default();
                    let unfit = || invalid(&format!("the argument `{name}` does not fit into a header"));
                    let value = HeaderValue::from_str(&value).map_err(|_| unfit())?;
                    // The operator's credentials win, and no argument follows a redirect to another origin.
                    request.origin_headers.entry(header).or_insert(value);
                }
            }
        }
        let takes_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        if takes_body && body.is_none() && !arguments.is_empty() {
            body = Some(std::mem::take(&mut arguments).into());
        }
        for (name, value) in &arguments {
            append_query(&mut request, name, value);
        }
        if let Some(body) = body {
            request
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request.body = Some(body.to_string().into());
        }
        Ok(request)
    }
}

impl RestTool {
    /// Returns the error of a call without a response.
    fn failed(&self, error: EgressError) -> ToolError {
        match self.effect {
            Effect::Mutating if error.was_sent() => ToolError::outcome_unknown(error),
            _ => error.into(),
        }
    }

    /// Returns the error of a call whose response is no success. The server itself says by a status
    /// of the client's errors that it did nothing.
    fn refused(&self, response: &EgressResponse, text: &str) -> ToolError {
        let status = response.status;
        let body: String = text.chars().take(MAX_ERROR).collect();
        let told = format!("the server answered with status {status}: {body}");
        let may_have_run = response.is_redirected || status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT;
        if self.effect == Effect::Mutating && may_have_run {
            return ToolError::outcome_unknown(told);
        }
        let is_temporary = matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504);
        ToolError::execution_failed(told).with_retryable(is_temporary)
    }
}

/// Appends an argument to the query: a list as one pair for each item.
fn append_query(request: &mut EgressRequest, name: &str, value: &Value) {
    let values = match value {
        Value::Array(items) => items.iter().collect(),
        value => vec![value],
    };
    for value in values.into_iter().filter_map(text_of) {
        request.url.query_pairs_mut().append_pair(name, &value);
    }
}

fn shown(response: &EgressResponse) -> String {
    let text = String::from_utf8_lossy(&response.body);
    match (text.trim().is_empty(), response.is_cut) {
        (true, _) => format!("(no content, status {})", response.status.as_u16()),
        (false, true) => format!("{text}\n[The answer is longer; the rest was not read.]"),
        (false, false) => text.into_owned(),
    }
}
