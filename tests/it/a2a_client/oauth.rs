//! Agents that are called with an account at an authorization server, which a test plays.

use std::sync::Mutex;

use rockbot_core::testing::ManualClock;

use super::*;

/// An authorization server that grants `token-1`, `token-2` and so on, as the test says.
async fn authorization(grants: impl Fn(usize) -> Said + Send + Sync + 'static) -> Peer {
    let granted = Mutex::new(0);
    Peer::start(move |got, url| {
        if got.head.starts_with("GET /.well-known/oauth-authorization-server ") {
            return Said::Page(404, "", String::new());
        }
        if got.head.starts_with("GET /.well-known/openid-configuration ") {
            return Said::json(&json!({"issuer": url, "token_endpoint": format!("{url}/token")}));
        }
        assert!(got.head.starts_with("POST /token "), "{}", got.head);
        let mut granted = granted.lock().unwrap();
        *granted += 1;
        grants(*granted)
    })
    .await
}

fn grant(number: usize) -> Said {
    let token = format!("token-{number}");
    Said::json(&json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
}

/// An agent that takes these tokens and nothing else, and names an authorization server of its own
/// to all other callers.
async fn guarded(accepted: &'static [&'static str], elsewhere: String) -> Peer {
    let challenge: &'static str =
        format!("WWW-Authenticate: Bearer scope=\"admin\", resource_metadata=\"{elsewhere}/metadata\"\r\n").leak();
    Peer::start(move |got, url| {
        let sent = got.header("authorization").unwrap_or_default();
        if !accepted.iter().any(|token| sent == format!("Bearer {token}")) {
            return Said::Page(401, challenge, String::new());
        }
        if got.head.starts_with("GET") {
            return Said::json(&card(url, "JSONRPC", "1.0", false));
        }
        Said::result(&json!({"task": task("TASK_STATE_COMPLETED", "", "Done.")}))
    })
    .await
}

fn account(agent: &Peer, issuer: &Peer) -> RemoteAgent {
    let agent = far(&agent.url());
    agent
        .client_credentials(issuer.url(), "clerk", "s&same".to_owned())
        .scopes(["books", "read"])
}

/// Hands a task over and returns what the model is told: of the call, or of the end.
async fn words_of(agent: RemoteAgent) -> String {
    let asking = asking([find("Why?")]);
    let telling = ScriptedModel::new().says("Told.");
    let main = started(main_host(&asking, &telling).add(A2aCaller::new().agent_at(agent))).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    let refused = told(&asking).remove(0);
    if refused.contains("cannot be called") {
        return refused;
    }
    until_told(&main, "Told.").await;
    last_message(&telling)
}

/// Returns the tokens that a program got, one after the other.
fn tokens(peer: &Peer) -> Vec<String> {
    let got = peer.got();
    let tokens = got
        .iter()
        .map(|got| got.header("authorization").unwrap_or("-").to_owned());
    tokens.collect()
}

#[tokio::test]
async fn an_agent_is_called_with_a_token_that_is_asked_for_once() {
    let server = authorization(grant).await;
    let evil = Peer::start(|_, _| Said::json(&json!({}))).await;
    let agent = guarded(&["token-1"], evil.url()).await;
    let words = words_of(account(&agent, &server)).await;
    assert!(words.contains("\nDone.\n"), "{words}");
    assert!(
        tokens(&agent).iter().all(|token| token == "Bearer token-1"),
        "{:?}",
        tokens(&agent)
    );
    let asked: Vec<_> = server
        .got()
        .into_iter()
        .filter(|got| got.head.starts_with("POST"))
        .collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].body, "grant_type=client_credentials&scope=books+read");
    // `clerk:s%26same`
    assert_eq!(asked[0].header("authorization"), Some("Basic Y2xlcms6cyUyNnNhbWU="));
    assert!(evil.got().is_empty());
}

#[tokio::test]
async fn a_token_that_is_refused_or_ends_is_asked_for_anew() {
    let server = authorization(grant).await;
    let evil = Peer::start(|_, _| Said::json(&json!({}))).await;
    // The agent takes the first token no more: the card and the task are asked for once more each.
    let agent = guarded(&["token-2", "token-3"], evil.url()).await;
    let clock = ManualClock::default();
    let model = asking([find("Why?")]);
    let telling = ScriptedModel::new().says("Told.").says("Told again.");
    let host = main_host(&model, &telling).clock(clock.clone());
    let main = started(host.add(A2aCaller::new().agent_at(account(&agent, &server)))).await;
    until_begun(&main, "Told.").await;
    let granted = |server: &Peer| server.got().iter().filter(|got| got.head.starts_with("POST")).count();
    assert_eq!(
        (&*tokens(&agent)[0], &**tokens(&agent).last().unwrap()),
        ("Bearer token-1", "Bearer token-2")
    );
    // Requests at once that are refused get one new token.
    assert_eq!(granted(&server), 2);
    // Half a minute before its end a token counts no more.
    clock.advance(Duration::from_secs(3570));
    let (tool, call) = find("And why?");
    let again = model.clone().calls(tool, call).says("asked");
    main.agent().ask("s", "Go on.").await.unwrap();
    until_told(&main, "Told again.").await;
    again.assert_complete();
    assert_eq!(tokens(&agent).last().unwrap(), "Bearer token-3");
    // An agent that refuses each token is asked twice, and no scope is added on its word.
    let closed = guarded(&[], evil.url()).await;
    let words = words_of(account(&closed, &server)).await;
    assert!(words.contains("does not let this host in (HTTP 401)"), "{words}");
    let forms = server.got().into_iter().filter(|got| got.head.starts_with("POST"));
    assert!(forms.clone().count() > 3 && forms.into_iter().all(|form| !form.body.contains("admin")));
    assert!(evil.got().is_empty());
}

#[tokio::test]
async fn an_account_that_is_refused_is_told_and_the_agent_hears_nothing() {
    let refused = |status, body: &str| Said::Page(status, "", body.to_owned());
    let cases = [
        (
            refused(
                401,
                r#"{"error": "invalid_client", "error_description": "s&same is wrong"}"#,
            ),
            "grants no token (HTTP 401, `invalid_client`)",
        ),
        (refused(429, "slow down"), "grants no token (HTTP 429)"),
        (refused(302, ""), "grants no token (HTTP 302)"),
        (
            Said::json(&json!({"access_token": "t", "token_type": "DPoP"})),
            "has a token that is no bearer token",
        ),
        (
            Said::json(&json!({"access_token": "a\nb", "token_type": "Bearer"})),
            "has a token that no header may have",
        ),
        (
            Said::json(&json!({"access_token": "x".repeat(1 << 20)})),
            "has a document that cannot be read",
        ),
        (Said::Dies, "is not reached"),
    ];
    for (answer, expected) in cases {
        let server = authorization(move |_| answer.clone()).await;
        let agent = guarded(&["token-1"], String::new()).await;
        let words = words_of(account(&agent, &server)).await;
        let server_s = format!("its authorization server `{}` {expected}", server.url());
        assert!(words.contains(&server_s), "{expected}: {words}");
        assert!(!words.contains("s&same"), "{words}");
        assert!(agent.got().is_empty());
    }
}

#[tokio::test]
async fn the_secret_and_the_token_go_to_nobody_else() {
    let evil = Peer::start(|_, url| Said::json(&card(url, "JSONRPC", "1.0", false))).await;
    // The metadata name another issuer, or a place for the secret elsewhere.
    let elsewhere = evil.url();
    type Metadata = Box<dyn Fn(&str) -> Value + Send + Sync>;
    let metadata: [(Metadata, &str); 2] = [
        (
            Box::new(|_| json!({"issuer": "https://login.example.com", "token_endpoint": "https://a.example/"})),
            "has metadata of another issuer",
        ),
        (
            Box::new(move |url| json!({"issuer": url, "token_endpoint": elsewhere})),
            "has no token endpoint behind https",
        ),
    ];
    for (metadata, expected) in metadata {
        let server = Peer::start(move |_, url| Said::json(&metadata(url))).await;
        let agent = guarded(&[], String::new()).await;
        let words = words_of(account(&agent, &server)).await;
        assert!(words.contains(expected), "{words}");
    }
    assert!(evil.got().is_empty());
    // The card names an interface at another origin.
    let server = authorization(grant).await;
    let target = evil.url();
    let agent = Peer::start(move |_, _| Said::json(&card(&target, "JSONRPC", "1.0", false))).await;
    let asking = asking([find("Why?")]);
    let telling = ScriptedModel::new().says("Told.");
    let caller = A2aCaller::new()
        .agent_at(account(&agent, &server))
        .egress(EgressPolicy::new().with_loopback_for_tests());
    assert!(!format!("{caller:?}").contains("s&same"));
    let main = started(main_host(&asking, &telling).add(caller)).await;
    until_begun(&main, "Told.").await;
    assert_eq!(tokens(&agent)[0], "Bearer token-1");
    assert!(!evil.got().is_empty());
    assert!(tokens(&evil).iter().all(|token| token == "-"), "{:?}", tokens(&evil));
}
