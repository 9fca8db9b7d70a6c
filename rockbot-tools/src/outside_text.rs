//! Up to a megabyte of hostile text at every door: in each argument of each tool, and in each
//! remote answer. Every call ends, with a bounded result or a short error of a kind that helps.
//!
//! No time is asserted: work that grows faster than the text would keep these tests from ending.

use std::sync::Arc;

use rockbot_core::subsystem::{Declarations, Parts, Subsystem};
use rockbot_core::tool::{Tool, ToolErrorCode, ToolInvokeRequest};
use rockbot_core::{AgentIdentity, CallContext, SystemClock};
use serde_json::{Value, json};

use crate::egress::EgressPolicy;
use crate::files::FileTools;
use crate::rest::{OpenApi, RestEndpoint, RestTools};
use crate::test_server::{TestServer, ok, response};
use crate::web::WebTools;

/// Length of each text, in bytes: a megabyte with `PROPTEST_CASES=10000`, an eighth of it by
/// default.
fn length() -> usize {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    if cases.unwrap_or(0) < 10_000 { 1 << 17 } else { 1 << 20 }
}

/// Maximum length of an error, in bytes.
const MAX_ERROR: usize = 8_500;

/// Returns the texts: long lines, nesting of every kind, signs that begin something and do not
/// end it, and no text at all.
pub(crate) fn texts() -> Vec<Vec<u8>> {
    let pieces: [&[u8]; 15] = [
        b"a",
        b"word ",
        b"[",
        b"((((",
        b"{\"a\":",
        b"<",
        b"\"",
        b"<div>",
        b"\\",
        b"<a b=",
        b"{x}%2e",
        b"&lt;",
        "\u{200b}\u{202e}".as_bytes(),
        "東京都".as_bytes(),
        b"\xff\xfe\x80\0",
    ];
    let texts = pieces.iter().map(|piece| piece.repeat(length() / piece.len()));
    texts.collect()
}

/// Returns the beginning of a text that fits into the arguments of a tool with a typed input: it
/// takes 256 KiB.
fn fitting(text: &str) -> String {
    text.chars().take(40_000).collect()
}

/// Returns the texts as JSON has them, without those of markup, which means nothing there.
fn without_markup() -> impl Iterator<Item = String> {
    texts().into_iter().step_by(2).map(|text| lossy(&text))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn tools_of(mut subsystem: impl Subsystem) -> Result<Vec<Tool>, String> {
    let parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
    let mut declarations = Declarations::new(parts);
    subsystem
        .declare(&mut declarations)
        .map_err(|error| error.to_string())?;
    Ok(declarations.merge().tools)
}

fn local() -> EgressPolicy {
    EgressPolicy::new().with_loopback_for_tests()
}

/// Calls a tool. Its error must be short, and of a kind that does not ask for the same call again.
async fn call(tool: &Tool, arguments: String) -> Result<String, String> {
    let name = tool.registration.name.clone();
    let shown: String = arguments.chars().take(60).collect();
    let request = ToolInvokeRequest::new("c1", name.clone(), arguments);
    let answer = tool.executor.execute(request, &CallContext::new("s")).await;
    answer
        .map(|response| response.content.text().into_owned())
        .map_err(|error| {
            let told = error.to_string();
            assert!(
                told.len() <= MAX_ERROR,
                "{name} {shown}: {} bytes: {told:.300}",
                told.len()
            );
            assert!(!error.retry_helps(), "{name} {shown}: {told}");
            assert_ne!(error.code(), ToolErrorCode::OutcomeUnknown, "{name} {shown}: {told}");
            told
        })
}

fn named<'t>(tools: &'t [Tool], name: &str) -> &'t Tool {
    tools
        .iter()
        .find(|tool| tool.registration.name.as_str() == name)
        .expect("the subsystem declares the tool")
}

#[tokio::test]
async fn arguments_of_the_web() {
    let server = TestServer::start(|request| {
        if request.contains("/search?") {
            ok("application/json", br#"{"results": []}"#)
        } else {
            ok("text/plain", b"page")
        }
    })
    .await;
    let tools = WebTools::new().egress(local()).searxng(server.url("").parse().unwrap());
    let tools = tools_of(tools).unwrap();
    for text in texts().iter().map(|text| lossy(text)) {
        let found = call(
            named(&tools, "web_search"),
            json!({ "query": fitting(&text) }).to_string(),
        )
        .await;
        assert!(found.as_ref().is_ok_and(|found| found.len() < 3_000), "{found:?}");
        for url in [
            text.clone(),
            format!("https://{text}/"),
            server.url(&format!("/{text}")),
            server.url(&format!("/?{text}")),
        ] {
            let page = call(named(&tools, "web_browse"), json!({ "url": url }).to_string()).await;
            assert_eq!(
                page,
                Err("the URL is longer than 16384 bytes: send less in it".to_owned())
            );
        }
        for tool in &tools {
            call(tool, text.clone()).await.unwrap_err();
        }
    }
    assert!(server.requests().iter().all(|request| request.len() < 10_000));
}

#[tokio::test]
async fn arguments_of_an_interface() {
    let server = TestServer::start(|_| ok("application/json", b"{}")).await;
    let schema = |name: &str| json!({"type": "object", "properties": {name: {}}});
    let endpoint =
        |name: &str, path: &str| RestEndpoint::new(name.to_owned(), server.url(path)).parameters(schema("a"));
    let tools = RestTools::new()
        .egress(local())
        .endpoint(endpoint("in_path", "/{a}"))
        .endpoint(endpoint("in_template", "/?a={a}").method("DELETE"))
        .endpoint(endpoint("in_query", "/"))
        .endpoint(endpoint("in_body", "/").method("POST"));
    let tools = tools_of(tools).unwrap();
    for text in without_markup() {
        let list: Vec<_> = text.chars().take(20_000).map(String::from).collect();
        for value in [json!(text), json!(list)] {
            let arguments = json!({ "a": value }).to_string();
            for name in ["in_path", "in_template", "in_query"] {
                let answer = call(named(&tools, name), arguments.clone()).await;
                assert_eq!(
                    answer,
                    Err("the URL is longer than 16384 bytes: send less in it".to_owned()),
                    "{name}"
                );
            }
            assert_eq!(call(named(&tools, "in_body"), arguments).await, Ok("{}".to_owned()));
        }
        for tool in &tools {
            call(tool, text.clone()).await.unwrap_err();
        }
    }
    assert!(server.requests().iter().all(|request| request.starts_with("POST / ")));
}

#[tokio::test]
async fn arguments_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let tools = tools_of(FileTools::new(folder.path())).unwrap();
    for text in texts().iter().map(|text| lossy(text)) {
        std::fs::write(folder.path().join("a"), &text).unwrap();
        let part = fitting(&text);
        let one = text.chars().next().unwrap().to_string();
        let asked = [
            ("file_write", json!({"path": part, "content": ""})),
            ("file_read", json!({ "path": part })),
            ("file_delete", json!({ "path": part })),
            ("file_edit", json!({"path": part, "old_string": "a", "new_string": "b"})),
            (
                "file_edit",
                json!({"path": "a", "old_string": format!("{part}\n!"), "new_string": "b"}),
            ),
            // Each of many places would become a megabyte.
            (
                "file_edit",
                json!({"path": "a", "old_string": one, "new_string": part, "replace_all": true}),
            ),
        ];
        for (name, arguments) in asked {
            call(named(&tools, name), arguments.to_string()).await.unwrap_err();
        }
        for (name, arguments) in [
            ("file_list", json!({ "prefix": part })),
            ("file_search", json!({ "query": part })),
            ("file_search", json!({"query": one, "prefix": ""})),
            ("file_read", json!({"path": "a"})),
        ] {
            let shown = call(named(&tools, name), arguments.to_string()).await;
            // What is no text is not shown. 40 000 characters have up to 120 000 bytes.
            let is_bounded = shown.is_ok_and(|shown| shown.len() < 130_000);
            assert!(is_bounded || text.contains('\0'), "{name}");
        }
        for tool in &tools {
            call(tool, text.clone()).await.unwrap_err();
        }
        call(named(&tools, "file_delete"), json!({"path": "a"}).to_string())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn answers_of_servers() {
    let texts = Arc::new(texts());
    let bodies = texts.clone();
    // The path is the number of the text, and the media type.
    let server = TestServer::start(move |request| {
        let path = request.split([' ', '?']).nth(1).unwrap().trim_start_matches('/');
        let (number, kind) = path.split_once('/').unwrap();
        let text = &bodies[number.parse::<usize>().unwrap()];
        // Escaped in JSON, it is longer.
        let part: String = lossy(text).chars().take(text.len() / 12).collect();
        let found = json!({"title": part, "url": format!("https://a.example/{part}"), "content": part});
        match kind {
            "search" => ok(
                "application/json",
                json!({"results": [found, found]}).to_string().as_bytes(),
            ),
            "text/feed" => {
                let start = b"<rss><channel><item><title>a</title><link>b</link><description>";
                ok("application/rss+xml", &[start, &**text].concat())
            }
            "text/attributes" => ok(
                "application/rss+xml",
                &[b"<rss><channel><item><link ", &**text].concat(),
            ),
            "text/pdf" => ok("application/pdf", &[b"%PDF-1.7\n1 0 obj ", &**text].concat()),
            "text/refused" => response("404 Not Found", &[("content-type", "text/plain")], text),
            "text/encoded" => response("200 OK", &[("content-encoding", "gzip")], text),
            kind => ok(kind, text),
        }
    })
    .await;
    for (number, text) in texts.iter().enumerate() {
        let base = server.url(&format!("/{number}"));
        let tools = WebTools::new().egress(local()).searxng(base.parse().unwrap());
        let mut tools = tools_of(tools).unwrap();
        tools.extend(
            tools_of(
                RestTools::new()
                    .egress(local())
                    .endpoint(RestEndpoint::new("get", format!("{base}/a/b"))),
            )
            .unwrap(),
        );
        let found = call(named(&tools, "web_search"), json!({"query": "x"}).to_string())
            .await
            .unwrap();
        assert!(found.len() < 20_000, "{number}: {}", found.len());
        for kind in ["html", "plain", "feed", "attributes", "pdf", "refused", "encoded"] {
            let url = format!("{base}/text/{kind}");
            // What is no text is refused.
            if let Ok(page) = call(named(&tools, "web_browse"), json!({ "url": url }).to_string()).await {
                assert!(
                    page.len() <= 8 * text.len() + (65 << 10),
                    "{kind} {number}: {}",
                    page.len()
                );
            }
        }
        let answer = call(named(&tools, "get"), "{}".to_owned()).await.unwrap();
        assert!(answer.len() <= 3 * text.len() + 100, "{number}: {}", answer.len());
    }
}

/// Returns documents with `text` in each place of their parts.
fn documents(text: &str) -> Vec<Value> {
    let document = |server: Value, paths: Value| json!({"openapi": "3.1.0", "info": {"title": text}, "servers": [server], "paths": paths});
    let server = json!({"url": "https://e.org"});
    let own = |operation: Value| json!({"/a": {"get": operation}});
    let schema = |schema: Value| own(json!({"parameters": [{"name": "p", "in": "query", "schema": schema}]}));
    let variables = json!({"url": "https://{a}{a}{a}{a}.e.org/{a}", "variables": {
        "a": {"default": "{b}".repeat(10_000)}, "b": {"default": "{c}".repeat(10_000)}, "c": {"default": text}}});
    let operation = own(json!({"operationId": text, "summary": text, "description": text, "tags": [text]}));
    let names = json!([{"name": text, "in": "query"}, {"name": "h", "in": "header", "description": text}]);
    vec![
        document(json!({ "url": text }), json!({})),
        document(json!({"url": format!("https://e.org/{text}")}), json!({})),
        document(variables, json!({})),
        document(server.clone(), json!({ format!("/{text}"): {"get": {}} })),
        document(server.clone(), operation),
        document(server.clone(), own(json!({ "parameters": names }))),
        document(
            server.clone(),
            schema(json!({"properties": {text: {"description": text, "enum": [text]}}})),
        ),
        document(server.clone(), schema(json!({"$ref": format!("#/{text}")}))),
        document(server, schema(json!({"anyOf": [{"const": text}, {"type": "string"}]}))),
    ]
}

#[test]
fn documents_of_interfaces() {
    let import = |text: String| tools_of(RestTools::new().egress(local()).openapi(OpenApi::text(text)));
    for text in without_markup() {
        let whole = [
            text.clone(),
            format!("openapi: 3.1.0\n{text}"),
            format!("{{\"openapi\": \"3.1.0\", {text}"),
        ];
        let parts = documents(&text).into_iter().map(|document| document.to_string());
        for document in parts.chain(whole) {
            match import(document) {
                Ok(tools) => {
                    for tool in tools {
                        let shown =
                            tool.registration.parameters_schema.to_string().len() + tool.registration.description.len();
                        assert!(shown < 200_000, "{}: {shown}", tool.registration.name);
                    }
                }
                Err(told) => assert!(told.len() <= MAX_ERROR, "{} bytes: {told:.300}", told.len()),
            }
        }
    }
}

#[test]
fn an_operation_has_up_to_128_parameters() {
    let many: Vec<_> = (0..20_000)
        .map(|number| json!({"name": format!("p{number}"), "in": "query"}))
        .collect();
    let document = json!({"openapi": "3.1.0", "servers": [{"url": "https://e.org"}],
        "paths": {"/a": {"parameters": many, "get": {}, "put": {}, "delete": {}, "head": {}}}});
    let tools = tools_of(RestTools::new().openapi(OpenApi::text(document.to_string()))).unwrap();
    let counts = tools.iter().map(|tool| {
        tool.registration.parameters_schema["properties"]
            .as_object()
            .unwrap()
            .len()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [128; 4]);
}

/// A schema that each operation refers to does not weigh more for being used often.
#[test]
fn a_large_schema_that_many_operations_share() {
    let values: Vec<_> = (0..50_000).map(|number| json!(format!("value {number}"))).collect();
    let properties: serde_json::Map<_, _> = (0..20_000)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let shared = json!([{"$ref": "#/components/parameters/A"}, {"$ref": "#/components/parameters/B"}, {"$ref": "#/components/parameters/C"}]);
    let paths: serde_json::Map<_, _> = (0..100)
        .map(|number| (format!("/{number}"), json!({"get": {"parameters": shared}})))
        .collect();
    let document = json!({"openapi": "3.1.0", "servers": [{"url": "https://e.org"}], "paths": paths, "components": {"parameters": {
        "A": {"name": "a", "in": "query", "schema": {"type": "string"}},
        "B": {"name": "b", "in": "query", "schema": {"type": "string", "enum": values}},
        "C": {"name": "c", "in": "query", "schema": {"type": "object", "properties": properties}}}}});
    let tools = tools_of(RestTools::new().openapi(OpenApi::text(document.to_string()))).unwrap();
    assert_eq!(tools.len(), 100);
    for tool in tools {
        let schema = &tool.registration.parameters_schema;
        assert!(schema.to_string().len() < 200_000, "{}", schema.to_string().len());
        assert_eq!(schema["properties"]["a"], json!({"type": "string"}));
        assert_eq!(
            schema["properties"]["b"],
            json!({"type": "string"}),
            "a list of values that is too long accepts everything"
        );
    }
}
