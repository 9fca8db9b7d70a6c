use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use rockbot_core::config::Config;
use rockbot_core::testing::assert_passes_alone;
#[cfg(target_os = "linux")]
use rockbot_core::testing::peak_growth;
use rockbot_core::tool::{ToolError, ToolErrorCode};

use super::resolver::Lookup;
use super::*;
use crate::test_server::{TestServer, ok, response};

/// A resolver with answers of its own, which records what it was asked.
#[derive(Debug, Default)]
struct Names {
    /// The addresses of the first, the second … question; the last ones stay.
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn of(answers: &[&[&str]]) -> Arc<Self> {
        let parsed = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parsed).collect()),
            asked: Mutex::default(),
        })
    }
}

#[async_trait]
impl Lookup for Arc<Names> {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        })
    }
}

fn get(url: &str) -> EgressRequest {
    EgressRequest::get(url.parse().unwrap())
}

fn local() -> EgressPolicy {
    EgressPolicy::new().with_loopback_for_tests()
}

async fn fetch(policy: EgressPolicy, url: &str) -> Result<EgressResponse, EgressError> {
    EgressClient::new(policy).unwrap().fetch(get(url)).await
}

#[tokio::test]
async fn every_spelling_of_an_internal_host_is_refused_before_it_is_looked_up() {
    let names = Names::of(&[&["93.184.216.34"]]);
    let client = EgressClient::with_lookup(EgressPolicy::new(), names.clone()).unwrap();
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "0xa.0.0.1",
        "012.0.0.1",
        "167772161",
        "172.16.0.1",
        "192.168.1.1",
        "3232235777",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "１２７.０.０.１",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "127．0．0．1",
        "127｡0｡0｡1",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "¹²⁷.⁰.⁰.¹",
        "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
        "%31%32%37.0.0.1",
        "0x7f。1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[0:0:0:0:0:ffff:a00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::1]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:1::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[100::1]",
        "[2001:db8::1]",
        "[::ffff:0:7f00:1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "ｌocalhost",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "local\u{ad}host",
    ] {
        let url = format!("http://{host}/");
        let Ok(url) = url.parse() else {
            panic!("{host}: not a URL")
        };
        let refused = client.fetch(EgressRequest::get(url)).await;
        let is_refused = matches!(
            refused,
            Err(EgressError::Internal { .. } | EgressError::Forbidden { .. })
        );
        assert!(is_refused, "{host}: {refused:?}");
    }
    assert_eq!(*names.asked.lock().unwrap(), [""; 0]);
}

#[test]
fn hosts_that_only_look_internal_are_allowed() {
    for host in [
        "8.8.8.8",
        "134744072",
        "①.①.①.①",
        "[::ffff:8.8.8.8]",
        "[2606:4700:4700::1111]",
        "[64:ff9b::808:808]",
        "11.0.0.1",
        "100.128.0.1",
        "169.253.1.1",
        "172.32.0.1",
        "10.0.0.1.example.org",
        "localhost.example.org",
        "127.example.org",
    ] {
        assert_eq!(
            EgressPolicy::new()
                .check(&format!("http://{host}/"))
                .map_err(|error| error.to_string()),
            Ok(()),
            "{host}"
        );
    }
}

#[test]
fn a_url_is_http_on_its_own_port_and_names_no_user() {
    let check = |url: &str| EgressPolicy::new().check(url).map_err(|error| error.to_string());
    for url in [
        "http://example.org",
        "https://example.org:443/a?b#c",
        "http://8.8.8.8/",
        "HTTP://EXAMPLE.ORG.",
    ] {
        assert_eq!(check(url), Ok(()), "{url}");
    }
    for (url, told) in [
        (
            "ftp://example.org/",
            "`ftp:` cannot be fetched: only http and https can",
        ),
        (
            "file:///etc/passwd",
            "`file:` cannot be fetched: only http and https can",
        ),
        (
            "http://user@example.org/",
            "the URL contains a user name or password: leave them out",
        ),
        (
            "http://:pass@example.org/",
            "the URL contains a user name or password: leave them out",
        ),
        (
            "http://example.org@127.0.0.1/",
            "the URL contains a user name or password: leave them out",
        ),
        (
            "http://example.org:22/",
            "port 22 of `example.org` is not allowed: only 80 and 443 are, unless the operator allows `example.org:22`",
        ),
        (
            "http://127.0.0.1:80/",
            "`127.0.0.1` is not on the internet: the operator can allow an internal host by its name",
        ),
        (
            "example.org",
            "`example.org` is not a URL: give an absolute one, such as `https://example.org/page`",
        ),
        (
            "?key=s",
            "`` is not a URL: give an absolute one, such as `https://example.org/page`",
        ),
        (
            "http://[fe80::1%25eth0]/",
            "`http://[fe80::1%25eth0]/` is not a URL: give an absolute one, such as `https://example.org/page`",
        ),
    ] {
        assert_eq!(check(url), Err(told.to_owned()));
    }
    let long = |length: usize| {
        format!(
            "https://example.org/{}",
            "a".repeat(length - "https://example.org/".len())
        )
    };
    assert_eq!(check(&long(16 << 10)), Ok(()));
    let told = "the URL is longer than 16384 bytes: send less in it";
    assert_eq!(check(&long((16 << 10) + 1)), Err(told.to_owned()));
    // Percent-encoded, it is longer.
    assert_eq!(
        check(&format!("https://example.org/{}", "ü".repeat(4_000))),
        Err(told.to_owned())
    );
}

#[test]
fn an_operator_names_internal_hosts_but_nothing_that_serves_credentials() {
    let text = r#"{"Egress": {"AllowedHosts": ["Wiki.intern", "10.1.2.3:8080", "localhost:9000", "[fd12::1]"]}}"#;
    let policy = EgressPolicy::from_config(&Config::new().with_text("agent.json", text).unwrap()).unwrap();
    for url in [
        "http://wiki.intern/",
        "http://10.1.2.3:8080/",
        "http://localhost:9000",
        "https://[fd12::1]/",
    ] {
        policy.check(url).unwrap();
    }
    for url in [
        "http://wiki.intern:8080/",
        "http://10.1.2.3/",
        "http://10.1.2.4:8080/",
        "http://localhost/",
        "http://127.0.0.1:9000/",
    ] {
        assert!(policy.check(url).unwrap_err().is_refusal(), "{url}");
    }
    for wrong in ["", "a/b", "http://a", "a@b", "a b"] {
        assert!(EgressPolicy::new().allow_host(wrong).is_err(), "{wrong:?}");
    }
}

#[tokio::test]
async fn an_exception_with_a_port_holds_for_this_port_and_takes_no_other_away() {
    let server = TestServer::start(|_| ok("text/plain", b"own")).await;
    let port = server.port();
    let policy = EgressPolicy::new().allow_host(&format!("wiki.intern:{port}")).unwrap();
    // A host on the internet keeps its own ports.
    policy.check("http://wiki.intern/").unwrap();
    policy.check("https://wiki.intern/").unwrap();
    assert!(matches!(
        policy.check("http://wiki.intern:81/"),
        Err(EgressError::Port { port: 81, .. })
    ));
    let fetch = async |answer: &str, url: &str| {
        let client = EgressClient::with_lookup(policy.clone(), Names::of(&[&[answer]])).unwrap();
        let response = client.fetch(get(url)).await;
        response
            .map(|response| response.body)
            .map_err(|error| error.to_string())
    };
    let named = format!("http://wiki.intern:{port}/");
    assert_eq!(fetch("127.0.0.1", &named).await, Ok(b"own".to_vec()));
    let internal = "is not on the internet: the operator can allow an internal host by its name";
    assert_eq!(
        fetch("127.0.0.1", "http://wiki.intern/").await,
        Err(format!("`wiki.intern` {internal}"))
    );
    assert_eq!(
        fetch("192.168.0.7", "http://other.intern/").await,
        Err(format!("`other.intern` {internal}"))
    );
    assert_eq!(
        fetch("169.254.169.254", &named).await,
        Err("`wiki.intern` has an address that is never allowed, such as a link-local one".to_owned())
    );
}

#[test]
fn the_settings_of_the_policy_are_read_and_none_opens_loopback() {
    let read = |text: &str| EgressPolicy::from_config(&Config::new().with_text("a.json", text).unwrap());
    let set = read(r#"{"Egress": {"Timeout": "00:00:07", "MaxBytes": 1000, "MaxRedirects": 1}}"#).unwrap();
    let expected = EgressPolicy::new()
        .with_timeout(Duration::from_secs(7))
        .with_max_bytes(1000)
        .with_max_redirects(1);
    assert_eq!(set, expected);
    let error = read(r#"{"Egress": {"AllowedHosts": ["a/b"]}}"#)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "`Egress.AllowedHosts` in `a.json`: expected a list of hosts such as `wiki.intern` or `10.1.2.3:8080`, found a list"
    );
    let config = Config::new()
        .with_text("a.json", r#"{"Egress": {"AllowsLoopback": true, "Loopback": true}}"#)
        .unwrap();
    assert!(
        EgressPolicy::from_config(&config)
            .unwrap()
            .check("http://127.0.0.1/")
            .is_err()
    );
    assert_eq!(config.unknown().len(), 2);
}

#[tokio::test]
async fn a_host_is_refused_if_any_of_its_addresses_is_internal() {
    let names = Names::of(&[&["93.184.216.34", "10.0.0.1"]]);
    let client = EgressClient::with_lookup(EgressPolicy::new(), names).unwrap();
    let refused = client.fetch(get("http://example.org/")).await.unwrap_err();
    assert!(
        matches!(&refused, EgressError::Internal { host } if host == "example.org"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_name_that_is_rebound_after_its_first_answer_is_checked_again() {
    let server = TestServer::start(|_| response("200 OK", &[("connection", "close")], b"first")).await;
    let names = Names::of(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = EgressClient::with_lookup(local(), names.clone()).unwrap();
    let url = format!("http://rebound.test:{}/", server.port());
    assert_eq!(client.fetch(get(&url)).await.unwrap().body, b"first");
    // The server has closed the connection, so the name is looked up once more; what is dialled is
    // what was checked.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let refused = client.fetch(get(&url)).await;
    match refused {
        Err(EgressError::Forbidden { host }) => assert_eq!(host, "rebound.test"),
        Ok(response) => panic!("{response:?}"),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(names.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_checked() {
    let server = TestServer::start(|request| {
        let target = match request.split(' ').nth(1).unwrap() {
            "/private" => "http://10.0.0.1/",
            "/metadata" => "http://169.254.169.254/latest/meta-data/?token=secret",
            "/file" => "file:///etc/passwd",
            "/user" => "http://me:pass@example.org/",
            "/port" => "//192.168.0.1:22/",
            "/loop" => "/loop",
            "/empty" => return response("302 Found", &[], b""),
            // Line ends would become header fields of the next request.
            "/line-ends" => "/end\r\nx-own: 1\r\n\r\nGET /second",
            "/return" => "/end\rx-own: 1",
            "/feed" => "/end\nx-own: 1",
            "/folded" => "/end\r\n x-own: 1",
            "/escaped" => "/end%0d%0ax-own:%201%0d%0a%0d%0aGET%20/second",
            "/relative" => "end?x=1",
            _ => return ok("text/plain", b"the end"),
        };
        response("302 Found", &[("location", target)], b"")
    })
    .await;
    let check = async |path: &str| {
        fetch(local(), &server.url(path))
            .await
            .map(|response| response.url.path().to_owned())
    };
    let told = async |path: &str| {
        check(path)
            .await
            .unwrap_err()
            .to_string()
            .replace(&server.port().to_string(), "PORT")
    };
    assert_eq!(check("/relative").await.unwrap(), "/end");
    assert_eq!(
        told("/private").await,
        "redirect 1 to `http://10.0.0.1/` was refused: `10.0.0.1` is not on the internet: the operator can allow an \
         internal host by its name"
    );
    assert_eq!(
        told("/metadata").await,
        "redirect 1 to `http://169.254.169.254/latest/meta-data/` was refused: `169.254.169.254` has an address that is \
         never allowed, such as a link-local one"
    );
    assert_eq!(
        told("/file").await,
        "redirect 1 to `file:///etc/passwd` was refused: `file:` cannot be fetched: only http and https can"
    );
    assert_eq!(
        told("/user").await,
        "redirect 1 to `http://example.org/` was refused: the URL contains a user name or password: leave them out"
    );
    assert!(
        told("/port")
            .await
            .starts_with("redirect 1 to `http://192.168.0.1:22/` was refused: ")
    );
    assert_eq!(
        told("/loop").await,
        "more than 5 redirects: the last one was to `http://127.0.0.1:PORT/loop`"
    );
    assert_eq!(
        told("/empty").await,
        "`127.0.0.1` answered with a redirect without a usable target"
    );
    for (path, expected) in [
        ("/line-ends", Some("/end")),
        ("/return", None),
        ("/feed", Some("/end")),
        ("/folded", None),
        ("/escaped", Some("/end%0d%0ax-own:%201%0d%0a%0d%0aGET%20/second")),
    ] {
        assert_eq!(check(path).await.ok().as_deref(), expected, "{path}");
    }
    for request in server.requests() {
        assert!(
            request.starts_with("GET /") && !request.contains("x-own: 1") && !request.contains("GET /second"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn credentials_and_bodies_stay_with_their_origin() {
    let other = TestServer::start(|_| ok("text/plain", b"other")).await;
    let target = other.url("/there");
    let server = TestServer::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/here" => response("307 Temporary Redirect", &[("location", "/end")], b""),
        "/away" => response("307 Temporary Redirect", &[("location", &target)], b""),
        _ => ok("text/plain", b"own"),
    })
    .await;
    let client = EgressClient::new(local()).unwrap();
    let request = |path: &str, body: Option<&'static str>| {
        let mut request = get(&server.url(path));
        request
            .origin_headers
            .insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        if let Some(body) = body {
            (request.method, request.body) = (Method::POST, Some(body.into()));
        }
        request
    };
    client.fetch(request("/here", Some("text"))).await.unwrap();
    let seen = server.requests();
    assert!(
        seen.iter()
            .all(|request| request.contains("authorization: bearer secret")),
        "{seen:?}"
    );
    assert!(seen[1].starts_with("POST /end") && seen[1].ends_with("\n\ntext"));

    client.fetch(request("/away", None)).await.unwrap();
    assert!(!other.requests()[0].contains("authorization"), "{:?}", other.requests());
    let refused = client
        .fetch(request("/away", Some("text")))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.ends_with("it would send the request's body to another server"),
        "{refused}"
    );
    assert_eq!(other.requests().len(), 1);
}

#[test]
fn nothing_goes_from_https_to_http() {
    let mut request = get("https://example.org/");
    let refused = request.redirect(reqwest::StatusCode::FOUND, "http://example.org/".parse().unwrap());
    assert!(matches!(refused, Err(EgressError::Downgrade)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_not_used() {
    let proxy = TestServer::start(|_| ok("text/plain", b"proxy")).await;
    let url = proxy.url("");
    let names = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let variables = names.map(|name| (name, url.as_str()));
    // A list of exceptions from a proxy changes neither where requests go nor what the policy refuses.
    for exceptions in ["", "*", "127.0.0.1,localhost", "example.org"] {
        let variables = [&variables[..], &[("NO_PROXY", exceptions), ("no_proxy", exceptions)]].concat();
        assert_passes_alone("egress::tests::requests_go_to_the_server_itself", &variables);
    }
    assert_eq!(proxy.requests(), [""; 0]);
}

#[tokio::test]
#[ignore = "a_proxy_of_the_environment_is_not_used runs it, with a proxy"]
async fn requests_go_to_the_server_itself() {
    let server = TestServer::start(|_| ok("text/plain", b"direct")).await;
    let client = EgressClient::new(local()).unwrap();
    assert_eq!(client.fetch(get(&server.url("/"))).await.unwrap().body, b"direct");
    for internal in ["http://127.0.0.1/", "http://localhost/", "http://10.0.0.1/"] {
        assert!(
            fetch(EgressPolicy::new(), internal).await.unwrap_err().is_refusal(),
            "{internal}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn hostile_bodies_need_little_memory() {
    assert_passes_alone("egress::tests::bodies_are_read_in_32_mebibytes", &[]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "hostile_bodies_need_little_memory runs it, in a process of its own"]
async fn bodies_are_read_in_32_mebibytes() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    (0..64 * 16).for_each(|_| encoder.write_all(&[0; 64 << 10]).unwrap());
    let bomb = encoder.finish().unwrap();
    let server = TestServer::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/bomb" => response("200 OK", &[("content-encoding", "gzip")], &bomb),
        _ => b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            .to_vec(),
    })
    .await;
    let client = EgressClient::new(local()).unwrap();
    let growth = peak_growth(async {
        for path in ["/bomb", "/endless"] {
            let response = client.fetch(get(&server.url(path))).await.unwrap();
            assert_eq!((response.body.len(), response.is_cut), (5 << 20, true), "{path}");
        }
    })
    .await;
    println!("peak memory grew by {} KiB", growth >> 10);
    assert!(growth < 32 << 20, "{growth}");
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_response_is_bounded_after_decompression() {
    let bomb = gzipped(&vec![0; 64 << 20]);
    let small = gzipped(b"hello");
    let server = TestServer::start(move |request| {
        let gzip = [("content-encoding", "gzip")];
        match request.split(' ').nth(1).unwrap() {
            "/bomb" => response("200 OK", &gzip, &bomb),
            "/small" => response("200 OK", &gzip, &small),
            "/torn" => response("200 OK", &gzip, &small[..small.len() - 4]),
            "/wrong" => response("200 OK", &gzip, b"no gzip at all"),
            "/no-content" => response("204 No Content", &gzip, b""),
            "/brotli" => response("200 OK", &[("content-encoding", "br")], b"x"),
            "/zstd" => response(
                "200 OK",
                &[("content-encoding", "zstd")],
                b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00",
            ),
            "/double" => response("200 OK", &[("content-encoding", "gzip, gzip")], b"x"),
            "/long" => response("200 OK", &[], &vec![b'a'; 3000]),
            "/too-little" => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nmore than five".to_vec()
            }
            "/too-much" => b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\nconnection: close\r\n\r\nless".to_vec(),
            // Without a length, and repeated for ever.
            "/endless" => b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\naaaaaaaaaaaaaaaaaaaaaaaa".to_vec(),
            _ => response("200 OK", &[("x-long", &"y".repeat(70_000))], b""),
        }
    })
    .await;
    let client = EgressClient::new(local().with_max_bytes(2000)).unwrap();
    let check = async |path: &str| {
        let response = client.fetch(get(&server.url(path))).await;
        response
            .map(|response| (response.body.len(), response.is_cut))
            .map_err(|error| error.to_string())
    };
    assert_eq!(check("/bomb").await, Ok((2000, true)));
    assert_eq!(check("/small").await, Ok((5, false)));
    assert_eq!(check("/long").await, Ok((2000, true)));
    assert_eq!(check("/endless").await, Ok((2000, true)));
    // A length that is too small cuts the body; one that is too large makes it a broken connection.
    assert_eq!(check("/too-little").await, Ok((5, false)));
    assert!(
        check("/too-much")
            .await
            .unwrap_err()
            .starts_with("the connection to `127.0.0.1` broke: ")
    );
    assert_eq!(check("/no-content").await, Ok((0, false)));
    let damaged = "the response of `127.0.0.1` is damaged: it is not valid gzip";
    assert_eq!(check("/torn").await, Err(damaged.to_owned()));
    assert_eq!(check("/wrong").await, Err(damaged.to_owned()));
    let unasked =
        |encoding| format!("`127.0.0.1` answered in the content encoding `{encoding}`, which was not asked for");
    assert_eq!(check("/brotli").await, Err(unasked("br")));
    assert_eq!(check("/zstd").await, Err(unasked("zstd")));
    assert_eq!(check("/double").await, Err(unasked("gzip, gzip")));
    let headers = "`127.0.0.1` answered with more than 65536 bytes of header fields";
    assert_eq!(check("/headers").await, Err(headers.to_owned()));
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096])
            .await
            .unwrap();
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, head).await.unwrap();
        // A byte at a time keeps the connection busy, so that only a limit of the whole ends it. The
        // client hangs up.
        while tokio::io::AsyncWriteExt::write_all(&mut stream, b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let limit = Duration::from_millis(200);
    let refused = fetch(local().with_timeout(limit), &url).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`127.0.0.1` did not answer completely within 0.2 seconds"
    );
    server.abort();
}

/// Empty members of gzip, of which each takes as long as some kilobytes of text.
fn slow_body(bytes: usize) -> Vec<u8> {
    let member = gzipped(b"");
    member.repeat(bytes / member.len())
}

#[tokio::test]
async fn other_tasks_run_while_a_body_is_decoded() {
    let (piece, mut turns) = (slow_body(1 << 20), 0);
    let mut body = super::body::Body::new("gzip", 1 << 20).unwrap();
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        received = body.take(&piece) => assert_eq!(received, super::body::Received::More),
        () = others => {}
    }
    assert!(turns > 50, "{turns}");
}

#[tokio::test]
async fn decoding_is_no_waiting_for_the_server() {
    let slow = slow_body(3 << 20);
    let server = TestServer::start(move |_| response("200 OK", &[("content-encoding", "gzip")], &slow)).await;
    // Without optimization, decoding takes three times as long.
    let policy = local().with_timeout(Duration::from_secs(1));
    let response = fetch(policy, &server.url("/")).await.unwrap();
    assert_eq!((response.body.len(), response.is_cut), (0, false));
}

#[test]
fn no_spelling_of_an_address_passes_that_its_numbers_do_not() {
    use proptest::prelude::*;
    proptest!(|(bits: u32, style in 0..5usize)| {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = address.octets();
        let host = match style {
            0 => address.to_string(),
            1 => bits.to_string(),
            2 => format!("0x{bits:x}"),
            3 => format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            _ => format!("[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]"),
        };
        let is_public = super::address::class_of(address.into()) == super::address::AddressClass::Public;
        prop_assert_eq!(EgressPolicy::new().check(&format!("http://{host}/")).is_ok(), is_public, "{}", host);
    });
}

#[tokio::test]
async fn only_decisions_of_the_policy_are_refusals() {
    let server = TestServer::start(|request| match request.split(' ').nth(1).unwrap() {
        "/inner" => response("302 Found", &[("location", "http://10.0.0.1/")], b""),
        "/broken" => response("302 Found", &[("location", "/cut")], b""),
        "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n".to_vec(),
        "/loop" => response("302 Found", &[("location", "/loop")], b""),
        "/nowhere" => response("302 Found", &[], b""),
        "/brotli" => response("200 OK", &[("content-encoding", "br")], b"x"),
        _ => response("200 OK", &[("x-long", &"y".repeat(70_000))], b""),
    })
    .await;
    let failed = async |path: &str| {
        let error = fetch(local(), &server.url(path)).await.unwrap_err();
        let told = error.to_string();
        let is_refusal = error.is_refusal();
        let retry_helps = error.retry_helps();
        (told, is_refusal, retry_helps, ToolError::from(error).code())
    };
    let (told, is_refusal, retry_helps, code) = failed("/broken").await;
    assert!(
        told.starts_with(&format!("redirect 1 to `{}` failed: ", server.url("/cut"))),
        "{told}"
    );
    assert_eq!(
        (is_refusal, retry_helps, code),
        (false, true, ToolErrorCode::ExecutionFailed)
    );
    for path in ["/loop", "/nowhere", "/brotli", "/headers"] {
        let (told, is_refusal, _, code) = failed(path).await;
        assert_eq!((is_refusal, code), (false, ToolErrorCode::ExecutionFailed), "{told}");
    }
    let (told, is_refusal, _, code) = failed("/inner").await;
    assert_eq!((is_refusal, code), (true, ToolErrorCode::Denied), "{told}");
}
