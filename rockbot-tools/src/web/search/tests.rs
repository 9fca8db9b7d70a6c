use rockbot_core::CallContext;
use rockbot_core::tool::{ToolErrorCode, ToolInvokeRequest};

use super::*;
use crate::egress::{EgressClient, EgressPolicy};
use crate::test_server::{TestServer, ok, response};

fn client() -> EgressClient {
    EgressClient::new(EgressPolicy::new().with_loopback_for_tests()).unwrap()
}

async fn call(provider: impl SearchProvider, arguments: &str) -> Result<String, (ToolErrorCode, String)> {
    let request = ToolInvokeRequest::new("c1", "web_search", arguments);
    let answer = tool(Arc::new(provider), 5)
        .executor
        .execute(request, &CallContext::new("s"))
        .await;
    let content = answer.map(|response| response.content.text().into_owned());
    content.map_err(|error| (error.code(), error.to_string()))
}

fn brave(server: &TestServer, key: Option<&str>) -> Brave {
    Brave::new(client(), key.map(Into::into), "BRAVE_API_KEY").at(&server.url("/search"))
}

const FOUND: &str = r#"{"query": {"original": "q"}, "web": {"results": [
    {"title": "A &amp; <strong>B</strong> [x]", "url": "https://a.example/", "description": "One\n<b>two</b>   three"},
    {"title": "C", "url": "https://c.example/d)e f"}
]}}"#;

#[tokio::test]
async fn results_are_a_numbered_list() {
    let server = TestServer::start(|_| ok("application/json", FOUND.as_bytes())).await;
    let list = call(
        brave(&server, Some("k1")),
        r#"{"query": " rust \n agents ", "count": 500}"#,
    )
    .await
    .unwrap();
    assert_eq!(
        list,
        "1. [A & B x](https://a.example/) — One two three\n2. [C](https://c.example/def)\n"
    );
    let request = &server.requests()[0];
    assert!(
        request.starts_with("GET /search?q=rust+agents&count=20&text_decorations=false "),
        "{request}"
    );
    assert!(request.contains("x-subscription-token: k1"), "{request}");
    call(
        brave(&server, Some("k1")),
        &format!(r#"{{"query": "{}"}}"#, "ab ".repeat(4000)),
    )
    .await
    .unwrap();
    assert!(server.requests()[1].contains("&count=5&") && server.requests()[1].lines().next().unwrap().len() < 500);
}

#[tokio::test]
async fn a_count_is_one_of_1_to_20() {
    let found = |count: usize| {
        let one =
            |number| format!(r#"{{"title": "T{number}", "url": "https://a.example/{number}", "description": ""}}"#);
        let all: Vec<_> = (1..=count).map(one).collect();
        format!(r#"{{"web": {{"results": [{}]}}}}"#, all.join(","))
    };
    // An engine that returns more than it was asked for.
    let server = TestServer::start(move |_| ok("application/json", found(30).as_bytes())).await;
    for (count, asked, default) in [
        ("0", 1, 5),
        ("1", 1, 5),
        ("20", 20, 5),
        ("500", 20, 5),
        ("null", 5, 5),
        ("null", 1, 0),
        ("null", 20, 99),
    ] {
        let provider = Arc::new(brave(&server, Some("k")));
        let request = ToolInvokeRequest::new("c1", "web_search", format!(r#"{{"query": "x", "count": {count}}}"#));
        let answer = tool(provider, default)
            .executor
            .execute(request, &CallContext::new("s"))
            .await;
        let list = answer.unwrap().content.text().into_owned();
        assert_eq!(list.lines().count(), asked, "{count} of {default}");
        assert!(
            list.ends_with(&format!("{asked}. [T{asked}](https://a.example/{asked})\n")),
            "{list}"
        );
        let sent = server.requests().pop().unwrap();
        assert!(sent.starts_with(&format!("GET /search?q=x&count={asked}&")), "{sent}");
    }
    for count in ["-1", "1.5", "\"5\"", "1e99", "99999999999999999999999"] {
        let refused = call(
            brave(&server, Some("k")),
            &format!(r#"{{"query": "x", "count": {count}}}"#),
        )
        .await;
        assert_eq!(refused.unwrap_err().0, ToolErrorCode::InvalidArguments, "{count}");
    }
    assert_eq!(
        server.requests().len(),
        7,
        "nothing is asked with a count that is no number"
    );
}

#[tokio::test]
async fn each_failure_is_told_apart_from_no_results() {
    let server = TestServer::start(|request| {
        let refusal = |code: &str| format!(r#"{{"type": "ErrorResponse", "error": {{"code": "{code}"}}}}"#);
        match request.split("q=").nth(1).unwrap().split('&').next().unwrap() {
            "bad-key" => response(
                "422 Unprocessable",
                &[],
                refusal("SUBSCRIPTION_TOKEN_INVALID").as_bytes(),
            ),
            "rate" => {
                let headers = [("x-ratelimit-reset", "9, 1000"), ("x-ratelimit-remaining", "0, 5")];
                response("429 Too Many Requests", &headers, refusal("RATE_LIMITED").as_bytes())
            }
            "month" => {
                let headers = [("x-ratelimit-reset", "1, 1000"), ("x-ratelimit-remaining", "0, 0")];
                response("429 Too Many Requests", &headers, b"")
            }
            "failure" => response("500 Oops", &[], b"<html>"),
            "schema" => ok("application/json", br#"{"web": {}}"#),
            "other" => ok("application/json", br#"{}"#),
            _ => ok("application/json", br#"{"query": {"original": "none"}}"#),
        }
    })
    .await;
    let ask = async |query: &str| call(brave(&server, Some("k")), &format!(r#"{{"query": "{query}"}}"#)).await;
    let settings = "`WebTools.ApiKey` or the variable `BRAVE_API_KEY`";
    assert_eq!(
        ask("none").await.unwrap(),
        "No results for `none`. Other or fewer words may find something."
    );
    for (query, code, told) in [
        (
            "bad-key",
            ToolErrorCode::Denied,
            format!("the search engine refuses the key: the operator checks {settings}"),
        ),
        (
            "rate",
            ToolErrorCode::ExecutionFailed,
            "the search engine has had too many requests: try again in 9 seconds".to_owned(),
        ),
        (
            "month",
            ToolErrorCode::ExecutionFailed,
            "the search engine has had too many requests: try again in 1 seconds".to_owned(),
        ),
        (
            "failure",
            ToolErrorCode::ExecutionFailed,
            "the search engine failed: it answered with status 500".to_owned(),
        ),
        (
            "schema",
            ToolErrorCode::ExecutionFailed,
            "the search engine failed: its answer is not understood".to_owned(),
        ),
        (
            "other",
            ToolErrorCode::ExecutionFailed,
            "the search engine failed: its answer is not understood".to_owned(),
        ),
    ] {
        assert_eq!(ask(query).await, Err((code, told)), "{query}");
    }
    let before = server.requests().len();
    let told = format!("web search has no key: the operator sets {settings}");
    assert_eq!(
        call(brave(&server, None), r#"{"query": "x"}"#).await,
        Err((ToolErrorCode::Denied, told))
    );
    assert_eq!(server.requests().len(), before, "nothing is asked without a key");
    let empty = call(brave(&server, Some("k")), r#"{"query": "  "}"#).await.unwrap_err();
    assert_eq!(empty.0, ToolErrorCode::InvalidArguments);
}

#[tokio::test]
async fn a_limit_per_second_is_waited_for_once() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    let server = TestServer::start(
        move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => {
                let headers = [("x-ratelimit-reset", "0, 1000"), ("x-ratelimit-remaining", "0, 5")];
                response("429 Too Many Requests", &headers, b"")
            }
            _ => ok("application/json", FOUND.as_bytes()),
        },
    )
    .await;
    assert!(
        call(brave(&server, Some("k")), r#"{"query": "x"}"#)
            .await
            .unwrap()
            .starts_with("1. ")
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn searxng_is_another_engine_behind_the_same_tool() {
    let server = TestServer::start(|request| {
        if request.contains("q=forbidden") {
            response("403 Forbidden", &[], b"")
        } else {
            ok(
                "application/json",
                br#"{"results": [{"title": "A", "url": "https://a.example/", "content": "b"},
            {"title": "C", "url": "https://c.example/", "content": null}]}"#,
            )
        }
    })
    .await;
    let engine = || SearXng::new(client(), &server.url("/sub/").parse().unwrap());
    let list = call(engine(), r#"{"query": "x", "count": 1}"#).await.unwrap();
    assert_eq!(list, "1. [A](https://a.example/) — b\n");
    assert!(
        server.requests()[0].starts_with("GET /sub/search?q=x&format=json "),
        "{:?}",
        server.requests()
    );
    let refused = call(engine(), r#"{"query": "forbidden"}"#).await.unwrap_err().1;
    assert_eq!(
        refused,
        "the search engine failed: it does not answer in JSON: the operator adds `json` to its `search.formats`"
    );
}

/// The megabytes of text in each field of an answer of Brave, and instead of one.
#[cfg(all(feature = "files", feature = "pdf", feature = "rest"))]
#[tokio::test]
async fn hostile_answers_of_brave_become_bounded_lists_and_errors() {
    for text in crate::outside_text::texts() {
        let part: String = String::from_utf8_lossy(&text).chars().take(text.len() / 12).collect();
        let found = serde_json::json!({"title": part, "url": format!("https://a.example/{part}"), "description": part});
        let list = serde_json::json!({"web": {"results": [found, found, {"title": "", "url": part}]}}).to_string();
        let refusal = serde_json::json!({"error": {"code": part}}).to_string();
        let whole = text.clone();
        let answered = list.clone();
        let server = TestServer::start(move |request| match request.split([' ', '?']).nth(1).unwrap() {
            "/list" => ok("application/json", answered.as_bytes()),
            "/refusal" => response("422 Unprocessable", &[], refusal.as_bytes()),
            "/error" => response("500 Internal Server Error", &[], &whole),
            _ => ok("application/json", &whole),
        })
        .await;
        let ask = async |path: &str| {
            let engine = Brave::new(client(), Some("k".into()), "BRAVE_API_KEY").at(&server.url(path));
            call(engine, r#"{"query": "x"}"#).await
        };
        let shown = ask("/list").await.unwrap();
        assert!(shown.len() < 20_000, "{}", shown.len());
        for path in ["/refusal", "/error", "/text"] {
            let (_, told) = ask(path).await.unwrap_err();
            assert!(told.len() < 1_000, "{path}: {}", told.len());
        }
    }
}
