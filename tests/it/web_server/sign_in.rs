//! Users: who gets in, and what each sees of another.

use std::net::IpAddr;

use axum::http::HeaderName;
use rockbot::web_server::{WebServer, WebUser};
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::json;

use super::client::{Answer, User, lines};
use super::{Serving, server};
use crate::support::noting_tool;

async fn answered(user: &User, headers: &[(&str, &str)]) -> String {
    let mut request = user.request("GET", "/api/sessions");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.send().await.unwrap()).await.summary()
}

#[tokio::test]
async fn a_user_signs_in_by_a_token() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let with = |token| User::new(serving.address, token);
    assert_eq!(answered(&with("sesame"), &[]).await, "200");
    assert_eq!(answered(&with(""), &[]).await, "401 unauthorized");
    assert_eq!(answered(&with("sesame2"), &[]).await, "401 unauthorized");
    assert_eq!(
        answered(&with(""), &[("authorization", "Basic sesame")]).await,
        "401 unauthorized"
    );
    // No proxy is set up: a header is the client's own word.
    assert_eq!(
        answered(&with(""), &[("x-forwarded-user", "ann")]).await,
        "401 unauthorized"
    );
    serving.stop().await;
}

#[tokio::test]
async fn a_proxy_names_users_from_a_trusted_address_alone() {
    let header = HeaderName::from_static("x-forwarded-user");
    let proxied = |proxy: IpAddr| {
        let server = WebServer::new()
            .listen("127.0.0.1:0")
            .user(WebUser::new("ann", "sesame".to_owned()));
        Serving::start(
            AgentHost::in_memory()
                .chat(ScriptedModel::new())
                .add(server.user_header(header.clone(), [proxy])),
        )
    };
    let trusting = proxied([127, 0, 0, 1].into()).await;
    let anyone = User::new(trusting.address, "");
    let named = |name| [("x-forwarded-user", name)];
    for (name, expected) in [
        ("carl@example.com", "200"),
        ("", "403 user_refused"),
        // The person at the keyboard of the host, and other agents, sign in by no proxy.
        ("local", "403 user_refused"),
        ("a2a:partner", "403 user_refused"),
    ] {
        assert_eq!(answered(&anyone, &named(name)).await, expected, "{name}");
    }
    // A proxy that adds to the header that a client sent.
    let twice = [named("carl")[0], named("ann")[0]];
    assert_eq!(answered(&anyone, &twice).await, "401 unauthorized");
    assert_eq!(answered(&anyone, &[]).await, "401 unauthorized");
    assert_eq!(answered(&User::new(trusting.address, "sesame"), &[]).await, "200");
    trusting.stop().await;

    let other = proxied([10, 0, 0, 7].into()).await;
    let anyone = User::new(other.address, "");
    assert_eq!(answered(&anyone, &named("carl")).await, "401 unauthorized");
    other.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let server = server()
        .allow_origin("https://app.example.com")
        .allow_host("agent.example.com");
    let serving = Serving::start(AgentHost::in_memory().chat(ScriptedModel::new()).add(server)).await;
    let ann = serving.ann();
    for (headers, expected) in [
        (&[("origin", "https://evil.example")][..], "403 name_refused"),
        (&[("origin", "null")], "403 name_refused"),
        (&[("host", "evil.example")], "403 name_refused"),
        (&[("host", "agent.example.com")], "200"),
        (
            &[("host", "agent.example.com"), ("origin", "https://agent.example.com")],
            "200",
        ),
        (
            &[
                ("host", "agent.example.com"),
                ("origin", "https://agent.example.com:8443"),
            ],
            "403 name_refused",
        ),
        (&[("origin", "https://app.example.com")], "200"),
        (&[("origin", "http://localhost:3000")], "200"),
    ] {
        assert_eq!(answered(&ann, headers).await, expected, "{headers:?}");
    }
    // A form of another site can send these types without being asked first.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let request = ann
            .request("POST", "/api/sessions/s/messages")
            .header("content-type", kind);
        let answer = Answer::of(request.body(r#"{"content":"hi"}"#).send().await.unwrap()).await;
        assert_eq!(answer.summary(), "415 wrong_content_type", "{kind}");
    }
    serving.stop().await;
}

#[tokio::test]
async fn users_never_see_what_is_anothers() {
    let (pay, _) = noting_tool("pay");
    let model = ScriptedModel::new()
        .says("Hello Ann.")
        .calls("pay", json!({"n": 7}))
        .hangs();
    let host = AgentHost::in_memory().chat(model).tool(pay.needs_approval());
    let serving = Serving::start(host.add(server())).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    let mut turns = Vec::new();
    for text in ["I am Ann.", "Pay 7.", "Think."] {
        let posted = ann.post("/api/sessions/main/messages", &json!({"content": text})).await;
        let turn = posted.json()["turn"].as_str().unwrap().to_owned();
        let kind = match text {
            "I am Ann." => Some("final"),
            "Pay 7." => Some("approval_needed"),
            _ => None,
        };
        if let Some(kind) = kind {
            ann.events(&format!("/api/turns/{turn}/events"), None)
                .await
                .until(kind)
                .await;
        }
        turns.push(turn);
    }
    // An ended, a parked and a working turn are all as unknown to Bob as a turn that never was.
    for turn in turns.iter().map(String::as_str).chain(["never-was"]) {
        let path = format!("/api/turns/{turn}");
        assert_eq!(bob.get(&path).await.summary(), "404 not_found");
        assert_eq!(bob.get(&format!("{path}/events")).await.summary(), "404 not_found");
        assert_eq!(
            bob.post(&format!("{path}/cancel"), &json!({})).await.summary(),
            "404 not_found"
        );
    }
    assert_eq!(bob.get("/api/sessions").await.json(), json!({"sessions": []}));
    assert_eq!(
        bob.get("/api/sessions/main/history").await.json(),
        json!({"entries": []})
    );
    assert_eq!(bob.get("/api/approvals").await.json(), json!({"approvals": []}));
    let path = "/api/sessions/main";
    assert_eq!(
        Answer::of(bob.request("DELETE", path).send().await.unwrap())
            .await
            .status,
        204
    );
    let history = ann.get("/api/sessions/main/history").await.json();
    assert_eq!(
        history["entries"][0]["content"], "I am Ann.",
        "Bob's session of the same name is another"
    );
    let events = ann
        .events(&format!("/api/turns/{}/events", turns[1]), None)
        .await
        .until("approval_needed")
        .await;
    assert_eq!(lines(&events).last().unwrap(), "approval_needed pay");
    serving.stop().await;
}

#[tokio::test]
async fn a_server_without_users_is_for_this_machine() {
    let open = WebServer::new().listen("127.0.0.1:0");
    let serving = Serving::start(
        AgentHost::in_memory()
            .chat(ScriptedModel::new().says("Hello."))
            .add(open),
    )
    .await;
    let anyone = User::new(serving.address, "");
    anyone.post("/api/sessions/s/messages", &json!({"content": "hi"})).await;
    // As the person at the keyboard: the principal `local`.
    let turns = serving.host.agent().sessions().await.unwrap();
    assert!(turns.is_empty() || turns[0].as_str() == "s");
    serving.stop().await;

    for (server, words) in [
        (WebServer::new(), "nothing says where to serve"),
        (WebServer::new().listen("0.0.0.0:0"), "would work for everyone"),
        (WebServer::new().listen("nowhere"), "is an address with a port"),
        (
            server().user(WebUser::new("carl", "sesame".to_owned())),
            "have one token",
        ),
        (server().user(WebUser::new("carl", String::new())), "an empty token"),
        (server().operator("carl"), "the operator `carl` is no user"),
        (
            server().user_header(HeaderName::from_static("x-user"), []),
            "need each other",
        ),
    ] {
        let built = AgentHost::in_memory().chat(ScriptedModel::new()).add(server).build();
        let problem = built.unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
    }
}
