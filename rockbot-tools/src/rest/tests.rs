use std::sync::Arc;

use rockbot_core::tool::{Effect, ToolErrorCode, ToolInvokeRequest};
use rockbot_core::{AgentIdentity, CallContext, SystemClock};
use serde_json::json;

use super::*;
use crate::test_server::{TestServer, ok, response};

fn declared(mut tools: RestTools, settings: &str, variables: &[(&str, &str)]) -> Result<Vec<Tool>, String> {
    let config = Config::new()
        .with_text("agent.json", settings)
        .unwrap()
        .with_variables(variables.iter().copied());
    let mut parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
    parts.provide(Arc::new(config));
    let mut declarations = Declarations::new(parts);
    tools.declare(&mut declarations).map_err(|error| error.to_string())?;
    Ok(declarations.merge().tools)
}

async fn call(tool: &Tool, arguments: &str) -> Result<String, (ToolErrorCode, String)> {
    let request = ToolInvokeRequest::new("c1", tool.registration.name.clone(), arguments);
    let answer = tool.executor.execute(request, &CallContext::new("s")).await;
    let content = answer.map(|response| response.content.text().into_owned());
    content.map_err(|error| (error.code(), error.to_string()))
}

fn schema(names: &[&str]) -> serde_json::Value {
    let properties: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({"type": "object", "properties": properties})
}

#[tokio::test]
async fn the_form_of_the_settings() {
    let server = TestServer::start(|_| ok("application/json", br#"{"celsius": 21}"#)).await;
    let settings = json!({"RestTools": {"Endpoints": [
        {"Name": "get_weather", "Description": "Get current weather for a city",
            "UrlTemplate": server.url("/v1/current?city={city}"), "Method": "GET",
            "ParametersSchema": schema(&["city"]).to_string(),
            "AuthType": "api_key", "AuthEnvVar": "WEATHER_API_KEY", "ApiKeyHeader": "X-Weather"},
        {"Name": "set_alarm", "UrlTemplate": server.url("/alarms/{id}"), "Method": "put",
            "ParametersSchema": schema(&["id", "at"]).to_string(), "AuthType": "bearer", "AuthEnvVar": "ALARMS"},
    ]}});
    let variables = [("WEATHER_API_KEY", "w1"), ("ALARMS", "a1")];
    let tools = declared(RestTools::new(), &settings.to_string(), &variables).unwrap();
    let facts: Vec<_> = tools
        .iter()
        .map(|tool| (tool.registration.source.as_str(), tool.registration.effect))
        .collect();
    assert_eq!(facts, [("rest", Effect::Pure), ("rest", Effect::Idempotent)]);
    assert_eq!(
        call(&tools[0], r#"{"city": "São Paulo"}"#).await.unwrap(),
        r#"{"celsius": 21}"#
    );
    assert_eq!(
        call(&tools[1], r#"{"id": 7, "at": "07:00", "days": [1, 2]}"#)
            .await
            .unwrap(),
        r#"{"celsius": 21}"#
    );
    let seen = server.requests();
    assert!(
        seen[0].starts_with("GET /v1/current?city=S%C3%A3o%20Paulo HTTP"),
        "{}",
        seen[0]
    );
    assert!(seen[0].contains("x-weather: w1"), "{}", seen[0]);
    assert!(
        seen[1].starts_with("PUT /alarms/7 HTTP") && seen[1].contains("authorization: bearer a1"),
        "{}",
        seen[1]
    );
    assert!(
        seen[1].ends_with("\n\n{\"at\":\"07:00\",\"days\":[1,2]}"),
        "{}",
        seen[1]
    );
}

#[test]
fn a_wrong_setting_is_an_error_when_the_host_is_built() {
    let told = |endpoint: serde_json::Value| {
        let settings = json!({"RestTools": {"Endpoints": [endpoint]}}).to_string();
        declared(RestTools::new(), &settings, &[]).unwrap_err()
    };
    let url = "https://api.example.org/{id}";
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": "https://e.org/", "AuthType": "bearer", "AuthEnvVar": "MISSING"})),
        "`RestTools.Endpoints.0.AuthEnvVar` in `agent.json`: expected the name of an environment variable that is set, found text"
    );
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": "https://e.org/", "AuthType": "api_key"})),
        "`RestTools.Endpoints.0.AuthEnvVar`: expected the name of an environment variable, found nothing"
    );
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": "https://e.org/", "AuthType": "oauth"})),
        "`RestTools.Endpoints.0.AuthType` in `agent.json`: expected `none`, `bearer` or `api_key`, found text"
    );
    assert_eq!(
        told(json!({"Name": "a"})),
        "`RestTools.Endpoints.0.UrlTemplate`: expected text, found nothing"
    );
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": url, "ParametersSchema": "x"})),
        "`RestTools.Endpoints.0.ParametersSchema` in `agent.json`: expected the text of a JSON Schema, found text"
    );
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": url})),
        "REST tool `a`: the schema has no property `id`, which the URL needs"
    );
    assert_eq!(
        told(json!({"Name": "a", "UrlTemplate": "https://e.org", "Method": "TRACE"})),
        "REST tool `a`: `TRACE` is not a method"
    );
    assert!(told(json!({"Name": "a", "UrlTemplate": "https://{h}/"})).contains("a model must not choose the server"));
    assert!(told(json!({"Name": "a", "UrlTemplate": "http://169.254.169.254/"})).contains("never allowed"));
}

#[tokio::test]
async fn arguments_that_the_url_does_not_take_are_the_query_or_the_body() {
    let server = TestServer::start(|_| response("204 No Content", &[], b"")).await;
    let tool = |method: &str| {
        let endpoint = RestEndpoint::new("t", server.url("/a"))
            .method(method)
            .parameters(schema(&["x"]));
        declared(RestTools::new().endpoint(endpoint), "{}", &[])
            .unwrap()
            .remove(0)
    };
    for method in ["GET", "DELETE", "POST", "PATCH"] {
        let answer = call(&tool(method), r#"{"x": "1 2", "y": [1, 2], "z": null}"#).await;
        assert_eq!(answer.unwrap(), "(no content, status 204)");
    }
    let seen = server.requests();
    assert!(seen[0].starts_with("GET /a?x=1+2&y=1&y=2 HTTP") && seen[1].starts_with("DELETE /a?x=1+2&y=1&y=2 HTTP"));
    for request in &seen[2..] {
        assert!(
            request.ends_with("\n\n{\"x\":\"1 2\",\"y\":[1,2],\"z\":null}"),
            "{request}"
        );
        assert!(request.contains("content-type: application/json"), "{request}");
    }
}

#[tokio::test]
async fn another_status_than_success_is_an_error_with_its_body() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/missing" => response("404 Not Found", &[], b"no such order"),
        "/busy" => response("503 Service Unavailable", &[], &[b'x'; 5_000]),
        _ => response("302 Found", &[("location", "http://169.254.169.254/")], b""),
    })
    .await;
    let tool = |path: &str| {
        let endpoint = RestEndpoint::new("t", server.url(path)).method("POST");
        declared(RestTools::new().endpoint(endpoint), "{}", &[])
            .unwrap()
            .remove(0)
    };
    let told = (
        ToolErrorCode::ExecutionFailed,
        "the server answered with status 404 Not Found: no such order".to_owned(),
    );
    assert_eq!(call(&tool("/missing"), "{}").await, Err(told));
    let busy = call(&tool("/busy"), "{}").await.unwrap_err().1;
    let end = "; it may or may not have taken effect, so check before you try it again";
    assert_eq!(
        busy.len(),
        "the server answered with status 503 Service Unavailable: ".len() + 2_000 + end.len()
    );
    assert_eq!(
        call(&tool("/moved"), "{}").await.unwrap_err().0,
        ToolErrorCode::OutcomeUnknown
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_imported_from_its_url_and_called() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/openapi.json" => {
            let document = json!({"openapi": "3.1.0", "info": {"title": "My Shop!"}, "servers": [{"url": "/v1"}],
                "paths": {"/orders/{id}": {"patch": {"operationId": "changeOrder",
                    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                        {"name": "dry", "in": "query", "schema": {"type": "boolean"}}],
                    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}}}});
            ok("application/json", document.to_string().as_bytes())
        }
        _ => ok("application/json", b"{}"),
    })
    .await;
    let settings = json!({"RestTools": {"OpenApi": [{"Document": server.url("/openapi.json"), "Include": ["change*"],
        "NeedsApproval": true}]}});
    let tools = declared(RestTools::new(), &settings.to_string(), &[]).unwrap();
    let registration = &tools[0].registration;
    assert_eq!(
        (registration.name.as_str(), registration.effect),
        ("changeOrder", Effect::Mutating)
    );
    assert!(registration.hints.needs_approval);
    assert_eq!(registration.hints.exposure.group().unwrap().as_str(), "my-shop");
    call(
        &tools[0],
        r#"{"id": 7, "X-Trace": "t1", "dry": true, "body": {"done": true}}"#,
    )
    .await
    .unwrap();
    let request = &server.requests()[1];
    assert!(
        request.starts_with("PATCH /v1/orders/7?dry=true HTTP") && request.contains("x-trace: t1"),
        "{request}"
    );
    assert!(request.ends_with("\n\n{\"done\":true}"), "{request}");
}

/// Returns the text of a document with one operation, `GET /a`, below this server.
fn document_of(server: &str) -> String {
    json!({"openapi": "3.1.0", "servers": [{"url": server}], "paths": {"/a": {"get": {}}}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_neither_sends_credentials_elsewhere_nor_opens_internal_hosts() {
    let server = TestServer::start(|_| ok("text/plain", b"internal")).await;
    let to_server = document_of(&server.url(""));
    let elsewhere = document_of("https://evil.example/v1");
    let documents = TestServer::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/inner.json" => ok("application/json", to_server.as_bytes()),
        "/own.json" => ok("application/json", document_of("/").as_bytes()),
        _ => ok("application/json", b"{}"),
    })
    .await;
    let tools = |import: OpenApi| declared(RestTools::new().openapi(import), "{}", &[]);
    let bearer = || Credentials::bearer("secret".into());
    for import in [
        OpenApi::text(document_of(&server.url(""))),
        OpenApi::url(documents.url("/inner.json")),
    ] {
        let refused = tools(import).unwrap_err();
        assert!(refused.contains("is not allowed: only 80 and 443 are"), "{refused}");
    }
    assert_eq!(
        tools(OpenApi::text(elsewhere.as_str()).credentials(bearer())).unwrap_err(),
        "`the given text` alone names `https://evil.example`, and credentials go to no such server: set the server"
    );
    assert!(tools(OpenApi::text(elsewhere)).is_ok(), "nothing secret is sent");
    let named = OpenApi::text(document_of("https://evil.example")).server(server.url("/v1"));
    call(&tools(named.credentials(bearer())).unwrap()[0], "{}")
        .await
        .unwrap();
    assert!(server.requests()[0].contains("authorization: bearer secret"));
    let own = OpenApi::url(documents.url("/own.json")).credentials(bearer());
    call(&tools(own).unwrap()[0], "{}").await.unwrap();
    assert!(documents.requests()[2].contains("authorization: bearer secret"));
}

/// Returns a document with one operation, `GET /a`, that takes these header fields as arguments.
fn document_with_headers(server: &str, headers: &[&str]) -> String {
    let parameter = |name: &&str| json!({"name": name, "in": "header", "schema": {"type": "string"}});
    let parameters: Vec<_> = headers.iter().map(parameter).collect();
    json!({"openapi": "3.1.0", "servers": [{"url": server}], "paths": {"/a": {"get": {"parameters": parameters}}}})
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_in_headers_do_not_follow_a_redirect_to_another_origin() {
    let other = TestServer::start(|_| ok("text/plain", b"other")).await;
    let port = other.port();
    let target = other.url("/there");
    let server = TestServer::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/a" => response("307 Temporary Redirect", &[("location", "/b")], b""),
        _ => response("307 Temporary Redirect", &[("location", &target)], b""),
    })
    .await;
    let document = document_with_headers(&server.url(""), &["X-Api-Key", "Cookie", "X-Own"]);
    let import = OpenApi::text(document)
        .server(server.url(""))
        .credentials(Credentials::api_key("X-Own", "secret".into()));
    let policy = EgressPolicy::new().allow_host(&format!("127.0.0.1:{port}"));
    let tools = declared(RestTools::new().egress(policy.unwrap()).openapi(import), "{}", &[]).unwrap();
    let arguments = r#"{"X-Api-Key": "key", "Cookie": "c=1", "X-Own": "mine"}"#;
    call(&tools[0], arguments).await.unwrap();
    for request in server.requests() {
        let told = ["x-api-key: key", "cookie: c=1", "x-own: secret"];
        assert!(told.iter().all(|header| request.contains(header)), "{request}");
    }
    let elsewhere = &other.requests()[0];
    let secrets = ["x-api-key", "cookie", "x-own"];
    assert!(!secrets.iter().any(|header| elsewhere.contains(header)), "{elsewhere}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_arguments_frame_the_request_is_refused() {
    for header in ["Host", "content-length", "Transfer-Encoding", "CONNECTION"] {
        let import = OpenApi::text(document_with_headers("https://example.org", &["X-Fine", header]));
        let refused = declared(RestTools::new().openapi(import), "{}", &[]).unwrap_err();
        let expected = format!(
            "`GET /a` of `the given text` lets the model choose the header `{header}`: include other operations"
        );
        assert_eq!(refused, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_a_document_names_no_server_for_credentials() {
    let target = TestServer::start(|_| ok("application/json", document_of("/").as_bytes())).await;
    let location = target.url("/own.json");
    let server = TestServer::start(move |_| response("302 Found", &[("location", &location)], b"")).await;
    let policy = EgressPolicy::new().allow_host(&format!("127.0.0.1:{}", target.port()));
    let import = OpenApi::url(server.url("/moved.json")).credentials(Credentials::bearer("secret".into()));
    let tools = RestTools::new().egress(policy.unwrap()).openapi(import);
    let refused = declared(tools, "{}", &[]).unwrap_err();
    assert!(
        refused.ends_with("and credentials go to no such server: set the server"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_call_that_may_have_taken_effect_is_not_reported_as_failed() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/cut-head" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n".to_vec(),
        "/cut-body" => b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\nconnection: close\r\n\r\nless".to_vec(),
        "/brotli" => response("200 OK", &[("content-encoding", "br")], b"x"),
        "/internal" => response("303 See Other", &[("location", "http://169.254.169.254/")], b""),
        "/result" => response("303 See Other", &[("location", "/missing")], b""),
        "/500" => response("500 Internal Server Error", &[], b""),
        "/502" => response("502 Bad Gateway", &[], b""),
        "/504" => response("504 Gateway Timeout", &[], b""),
        "/429" => response("429 Too Many Requests", &[], b""),
        _ => response("404 Not Found", &[], b""),
    })
    .await;
    let failed = async |method: &str, url: String| {
        let endpoint = RestEndpoint::new("t", url).method(method);
        let tool = declared(RestTools::new().endpoint(endpoint), "{}", &[])
            .unwrap()
            .remove(0);
        let request = ToolInvokeRequest::new("c1", "t", "{}");
        let error = tool
            .executor
            .execute(request, &CallContext::new("s"))
            .await
            .unwrap_err();
        (error.code(), error.retry_helps())
    };
    use ToolErrorCode::{Denied, ExecutionFailed, OutcomeUnknown};
    for path in [
        "/cut-head",
        "/cut-body",
        "/brotli",
        "/internal",
        "/result",
        "/500",
        "/502",
        "/504",
    ] {
        assert_eq!(
            failed("POST", server.url(path)).await,
            (OutcomeUnknown, false),
            "{path}"
        );
    }
    assert_eq!(failed("POST", server.url("/404")).await, (ExecutionFailed, false));
    assert_eq!(failed("POST", server.url("/429")).await, (ExecutionFailed, true));
    assert_eq!(failed("GET", server.url("/cut-body")).await, (ExecutionFailed, true));
    assert_eq!(failed("GET", server.url("/502")).await, (ExecutionFailed, true));
    assert_eq!(failed("GET", server.url("/internal")).await, (Denied, false));
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    assert_eq!(
        failed("POST", format!("http://{closed}/")).await,
        (ExecutionFailed, true)
    );
}
