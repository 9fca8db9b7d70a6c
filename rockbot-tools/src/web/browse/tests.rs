use rockbot_core::tool::ToolErrorCode;

use super::*;
use crate::egress::EgressPolicy;
use crate::test_server::{TestServer, ok, response};

fn browse(api: Option<&str>) -> WebBrowse {
    let chunking = Chunking {
        threshold: 8_000,
        max_len: 4_000,
        ttl: Duration::from_secs(1_800),
    };
    let mut github = GitHub::new(Some("ghp_secret".into()));
    if let Some(api) = api {
        github.api = api.parse().unwrap();
    }
    WebBrowse {
        client: EgressClient::new(EgressPolicy::new().with_loopback_for_tests()).unwrap(),
        github,
        chunking,
        conversions: Arc::new(Semaphore::new(CONVERSIONS)),
    }
}

async fn call(tool: &WebBrowse, url: &str) -> Result<ToolInvokeResponse, ToolError> {
    let request = ToolInvokeRequest::new("c1", "web_browse", serde_json::json!({ "url": url }).to_string());
    tool.execute(request, &CallContext::new("s")).await
}

async fn text(tool: &WebBrowse, url: &str) -> Result<String, (ToolErrorCode, String)> {
    let answer = call(tool, url)
        .await
        .map(|response| response.content.text().into_owned());
    answer.map_err(|error| (error.code(), error.to_string()))
}

#[tokio::test]
async fn pages_feeds_and_texts_are_read() {
    let server = TestServer::with_pages(&[
        (
            "/page",
            "text/html; charset=utf-8",
            "<title>T</title><p>Hello <a href='b'>b</a>",
        ),
        ("/headed", "", "<!DOCTYPE html><h1>H</h1><p>x"),
        (
            "/feed",
            "application/rss+xml",
            "<rss><channel><title>News</title><item><title>A</title></item></channel></rss>",
        ),
        ("/json", "application/json", "{\"a\": 1}"),
        ("/text", "text/plain", "just # text"),
        ("/empty", "text/html", "<script>x</script>"),
    ])
    .await;
    let tool = browse(None);
    let url = |path: &str| server.url(path);
    for (path, expected) in [
        ("/page", format!("# T\n\nHello [b]({})\n", url("/b"))),
        ("/headed", "# H\n\nx\n".to_owned()),
        ("/feed", "# News\n\n## A\n\n\n".to_owned()),
        ("/json", "{\"a\": 1}".to_owned()),
        ("/text", "just # text".to_owned()),
        ("/empty", "(The page has no text.)\n".to_owned()),
    ] {
        assert_eq!(
            text(&tool, &url(path)).await.unwrap(),
            format!("Source: {}\n\n{expected}", url(path))
        );
    }
}

/// A document of one writer of the tests of PDF, in a type that says so, in one that does not,
/// and cut by the policy.
#[cfg(feature = "pdf")]
#[tokio::test]
async fn the_text_of_a_pdf_is_read() {
    let pdf = include_bytes!("../../../../rockbot-pages/src/pdf/testdata/reportlab.pdf");
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/typed" => ok("application/pdf", pdf),
        "/untyped" => response("200 OK", &[], pdf),
        "/damaged" => ok("application/pdf", b"%PDF-1.7 of nothing"),
        "/page" => ok("application/pdf", b"<html><p>Sign in"),
        _ => ok("application/octet-stream", pdf),
    })
    .await;
    let mut tool = browse(None);
    for path in ["/typed", "/untyped", "/octets"] {
        let page = text(&tool, &server.url(path)).await.unwrap();
        let start = format!(
            "Source: {}\n\n# Harbour Report – Größe\n\n## Page 1\n\nHarbour report\n",
            server.url(path)
        );
        assert!(page.starts_with(&start), "{page}");
        assert!(
            page.ends_with("## Page 2\n\nSecond page\n\nIt ends here.\n\n"),
            "{page}"
        );
    }
    for (path, told) in [
        ("/damaged", "the PDF is damaged: none of its pages was found"),
        ("/page", "the document is not a PDF, though the server says so"),
    ] {
        let refused = text(&tool, &server.url(path)).await;
        assert_eq!(refused, Err((ToolErrorCode::ExecutionFailed, told.to_owned())));
    }
    let policy = EgressPolicy::new()
        .with_loopback_for_tests()
        .with_max_bytes(pdf.len() - 600);
    tool.client = EgressClient::new(policy).unwrap();
    let page = text(&tool, &server.url("/typed")).await.unwrap();
    assert!(page.contains("## Page 1\n\nHarbour report\n"), "{page}");
    assert!(
        page.ends_with("\n[The page is longer; the rest was not read.]\n"),
        "{page}"
    );
}

#[tokio::test]
async fn documents_that_are_no_text_are_refused_by_name() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/png" => ok("image/png", b"\x89PNG"),
        "/binary" => ok("text/html", b"\x7FELF\0\0\0"),
        "/octets" => ok("application/octet-stream", b"<html><p>x"),
        _ => response(
            "503 Service Unavailable",
            &[("content-type", "text/html")],
            b"<title>Busy</title><p>Come back later.",
        ),
    })
    .await;
    let tool = browse(None);
    let refused = async |path: &str| text(&tool, &server.url(path)).await.unwrap_err();
    let told = |what: &str| {
        (
            ToolErrorCode::ExecutionFailed,
            format!("{what} cannot be read: only pages, feeds and texts can"),
        )
    };
    assert_eq!(refused("/png").await, told("a document of the type `image/png`"));
    assert_eq!(
        refused("/octets").await,
        told("a document of the type `application/octet-stream`")
    );
    assert_eq!(refused("/binary").await, told("a document that is not text"));
    let busy = call(&tool, &server.url("/busy")).await.unwrap_err();
    assert_eq!(
        busy.to_string(),
        "`127.0.0.1` answered with status 503 Service Unavailable: Come back later."
    );
    assert!(busy.retry_helps());
    assert_eq!(
        text(&tool, "http://10.0.0.1/").await.unwrap_err().0,
        ToolErrorCode::Denied
    );
    assert_eq!(
        text(&tool, "nonsense").await.unwrap_err().0,
        ToolErrorCode::InvalidArguments
    );
}

#[tokio::test]
async fn a_result_says_how_it_is_kept_if_it_is_long() {
    let server = TestServer::with_pages(&[("/a/b?c=d", "text/plain", "x")]).await;
    let url = server.url("/a/b?c=d");
    let response = call(&browse(None), &url).await.unwrap();
    let key = format!("web-http___127.0.0.1_{}_a_b_c_d", server.port());
    let expected = ResultChunks::new(key)
        .with_threshold(8_000)
        .with_max_len(4_000)
        .with_ttl(Duration::from_secs(1_800));
    assert_eq!(response.chunks(), Some(&expected));
    let long = |end: &str| key_of(&format!("https://example.org/{}{end}", "a".repeat(100)));
    assert_ne!(long("1"), long("2"));
    assert_eq!(long("1").len(), "web-".len() + MAX_KEY);
}

#[tokio::test]
async fn a_page_waits_a_bounded_time_for_others_to_be_converted() {
    let server = TestServer::start(|_| ok("text/plain", b"x")).await;
    let mut tool = browse(None);
    let response = tool.client.fetch(EgressRequest::get(server.url("/").parse().unwrap()));
    let response = response.await.unwrap();
    tool.conversions = Arc::new(Semaphore::new(0));
    tokio::time::pause();
    let converted = tokio::time::timeout(Duration::from_secs(3_600), tool.convert(response)).await;
    let error = converted.unwrap().unwrap_err();
    let told = "the page was fetched, but too many others are being converted: fetch it again later";
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (ToolErrorCode::Timeout, told)
    );
    assert!(error.retry_helps());
}

#[tokio::test]
async fn a_page_of_50_megabytes_is_cut() {
    let server = TestServer::start(|_| {
        let paragraph = "<p>A paragraph that is one of many in a page that is far too long to be read.</p>\n";
        ok("text/html", paragraph.repeat((50 << 20) / paragraph.len()).as_bytes())
    })
    .await;
    let page = text(&browse(None), &server.url("/")).await.unwrap();
    assert!(page.ends_with("\n[The page is longer; the rest was not read.]\n"));
    assert!(page.len() < 6 << 20, "{}", page.len());
}

#[tokio::test]
async fn issues_come_through_the_api_and_else_from_the_page() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/repos/o/r/issues/7" => ok(
            "application/json",
            br#"{"title": "It breaks", "state": "closed", "state_reason": "completed",
                "user": {"login": "ann"}, "labels": [{"name": "bug"}, "old"], "body": "Steps:\n1. run", "comments": 3,
                "created_at": "2026-11-01T00:00:00Z"}"#,
        ),
        "/repos/o/r/issues/7/comments?per_page=50" => ok(
            "application/json",
            br#"[{"user": null, "body": "Same here.", "created_at": "2026-11-02T00:00:00Z"}]"#,
        ),
        "/repos/o/r/pulls/8" => ok(
            "application/json",
            br#"{"title": "Fix", "state": "closed", "merged": true, "user": null, "body": null}"#,
        ),
        // Renamed, and a pull request under the URL of an issue.
        "/repos/old/r/issues/3" => response(
            "301 Moved Permanently",
            &[("location", "/repositories/1/issues/3")],
            b"",
        ),
        "/repositories/1/issues/3" => ok(
            "application/json",
            br#"{"title": "Moved", "state": "open", "user": null, "body": "", "pull_request": {}}"#,
        ),
        // The comments of what is not there.
        "/repos/o/gone/issues/1/comments?per_page=50" => ok("application/json", b"[]"),
        "/repos/o/gone/issues/1" => response("404 Not Found", &[], br#"{"message": "Not Found"}"#),
        _ => response("403 Forbidden", &[("x-ratelimit-remaining", "0")], b"{}"),
    })
    .await;
    let tool = browse(Some(&server.url("/")));
    let thread = |url: &str| Thread::of(&url.parse().unwrap()).unwrap();
    let page = tool
        .github
        .read(&tool.client, &thread("https://github.com/o/r/issues/7"))
        .await
        .unwrap();
    assert_eq!(page.title, "Issue #7: It breaks [o/r]");
    assert_eq!(
        page.text,
        "State: closed (completed)\nAuthor: ann\nLabels: bug, old\nCreated: 2026-11-01T00:00:00Z\n\nSteps:\n1. run\n\n\
         ## Comment by unknown, 2026-11-02T00:00:00Z\n\nSame here.\n\n(2 more comments are not shown.)\n"
    );
    let page = tool
        .github
        .read(&tool.client, &thread("https://github.com/o/r/pull/8"))
        .await
        .unwrap();
    assert_eq!(
        (page.title.as_str(), page.text.as_str()),
        (
            "PR #8: Fix [o/r]",
            "State: merged\nAuthor: unknown\nCreated: \n\n(no text)\n"
        )
    );
    let moved = thread("https://github.com/old/r/issues/3");
    let page = tool.github.read(&tool.client, &moved).await.unwrap();
    assert_eq!(page.title, "PR #3: Moved [old/r]");
    assert_eq!(
        tool.github
            .read(&tool.client, &thread("https://github.com/o/r/issues/9"))
            .await,
        None
    );
    let gone = thread("https://github.com/o/gone/issues/1");
    assert_eq!(tool.github.read(&tool.client, &gone).await, None);
    assert!(server.requests()[0].contains("authorization: bearer ghp_secret"));
}

/// The megabytes of text in each field of an answer of GitHub's API.
#[cfg(all(feature = "files", feature = "pdf", feature = "rest"))]
#[tokio::test]
async fn hostile_answers_of_github_become_bounded_pages() {
    for text in crate::outside_text::texts() {
        let part: String = String::from_utf8_lossy(&text).chars().take(text.len() / 12).collect();
        let part = serde_json::json!(part);
        let user = serde_json::json!({"login": part});
        let length = part.to_string().len();
        let issue = serde_json::json!({"title": part, "state": part, "state_reason": part, "user": user,
            "labels": [{"name": part}, part], "body": part, "created_at": part, "comments": u64::MAX});
        let comments = serde_json::json!([{"user": user, "body": part, "created_at": part}]);
        let server = TestServer::start(move |request| match request.split([' ', '?']).nth(1).unwrap() {
            "/repos/o/r/issues/1" => ok("application/json", issue.to_string().as_bytes()),
            "/repos/o/r/issues/1/comments" => ok("application/json", comments.to_string().as_bytes()),
            _ => ok("application/json", &text),
        })
        .await;
        let tool = browse(Some(&server.url("/")));
        let read = async |url: &str| {
            let thread = Thread::of(&url.parse().unwrap()).unwrap();
            tool.github.read(&tool.client, &thread).await
        };
        let page = read("https://github.com/o/r/issues/1").await.unwrap();
        let written = page.title.len() + page.text.len();
        // Eleven fields.
        assert!(written <= 11 * length + 1_000, "{written} of {length}");
        assert_eq!(read("https://github.com/o/r/issues/2").await, None, "it is no answer");
    }
}
