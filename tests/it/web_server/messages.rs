//! Messages, the events of their turns, approvals, history, cancellation, images.

use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::{Answer, Events, lines};
use super::{Serving, server, waiting};
use crate::support::{calls, noting_tool};

#[tokio::test]
async fn a_message_is_accepted_and_its_turn_tells_what_became_of_it() {
    let model = ScriptedModel::new().says("Tea, then.");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    let session = ann.post("/api/sessions", &json!({})).await;
    assert_eq!(session.status, 201);
    let session = session.json()["session"].as_str().unwrap().to_owned();
    let posted = ann
        .post(
            &format!("/api/sessions/{session}/messages"),
            &json!({"content": "Coffee is out."}),
        )
        .await;
    assert_eq!(posted.status, 202, "{posted:?}");
    let turn = posted.json()["turn"].as_str().unwrap().to_owned();

    let events = ann.events(&format!("/api/turns/{turn}/events"), None).await.all().await;
    assert_eq!(lines(&events).last().unwrap(), "final Tea, then.");
    let state = ann.get(&format!("/api/turns/{turn}")).await.json();
    assert_eq!(
        (&state["state"], &state["outcome"]["text"]),
        (&json!("ended"), &json!("Tea, then."))
    );

    let sessions = ann.get("/api/sessions").await.json();
    assert_eq!(sessions, json!({"sessions": [session]}));
    let history = ann.get(&format!("/api/sessions/{session}/history")).await.json();
    let said: Vec<_> = history["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["content"])
        .collect();
    assert_eq!(said, ["Coffee is out.", "Tea, then."]);

    let path = format!("/api/sessions/{session}");
    let deleted = Answer::of(ann.request("DELETE", &path).send().await.unwrap()).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(ann.get(&format!("{path}/history")).await.json(), json!({"entries": []}));
    serving.stop().await;
}

#[tokio::test]
async fn readers_come_and_go_and_each_reads_from_where_it_likes() {
    let (wait, gate) = waiting("wait");
    let answer = calls([("c1", "wait", "{}")]).with_text("Let me look.");
    let model = ScriptedModel::new().answers(answer).says("It is open.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(wait).add(server())).await;
    let ann = serving.ann();
    let request = ann
        .json(
            "POST",
            "/api/sessions/door/messages",
            &json!({"content": "Is it open?"}),
        )
        .header("accept", "text/event-stream");
    let mut first = Events::of(request.send().await.unwrap());
    let read = first.until("tool_started").await;
    assert_eq!(lines(&read), ["accepted", "delta Let me look.", "tool_started wait"]);
    let turn = read[0].data["turn"].as_str().unwrap().to_owned();
    let path = format!("/api/turns/{turn}/events");
    let state = ann.get(&format!("/api/turns/{turn}")).await.json();
    assert_eq!(state, json!({"state": "working", "turn": turn, "session": "door"}));

    // The first reader loses its connection; a second reader comes.
    drop(first);
    let mut second = ann.events(&path, None).await;
    assert_eq!(lines(&second.until("tool_started").await), lines(&read[1..]));
    let delta = read[1].id.as_deref();
    let mut again = ann.events(&path, delta).await;
    assert_eq!(again.next().await.unwrap(), read[2]);
    gate.add_permits(1);
    let rest = ["tool_finished wait", "delta It is open.", "final It is open."];
    assert_eq!(lines(&again.until("final").await), rest);
    let read = second.all().await;
    assert_eq!(lines(&read), rest);

    // Nothing follows the end, and a browser that hears so does not connect again.
    let last = read.last().unwrap().id.clone().unwrap();
    let request = ann.request("GET", &path).header("last-event-id", last);
    assert_eq!(request.send().await.unwrap().status(), 204);
    // The id is of another process: the events begin anew.
    let mut anew = ann.events(&path, Some("earlier.7")).await;
    assert_eq!(lines(&anew.until("final").await), ["restarted", "final It is open."]);
    serving.stop().await;
}

#[tokio::test]
async fn a_message_with_an_idempotency_key_is_one_turn() {
    let model = ScriptedModel::new().says("Paid.");
    let serving = Serving::of(&model).await;
    let post = async |text: &str| {
        let request = serving
            .ann()
            .json("POST", "/api/sessions/till/messages", &json!({"content": text}))
            .header("idempotency-key", "order-7");
        Answer::of(request.send().await.unwrap()).await
    };
    let first = post("Pay 7.").await;
    let again = post("Pay 7.").await;
    assert_eq!((first.status, first.json()), (202, again.json()));
    assert_eq!(post("Pay 8.").await.summary(), "409 conflict");
    let turn = first.json()["turn"].as_str().unwrap().to_owned();
    serving
        .ann()
        .events(&format!("/api/turns/{turn}/events"), None)
        .await
        .all()
        .await;
    assert_eq!(post("Pay 7.").await.json(), first.json());
    model.assert_complete();
    serving.stop().await;
}

#[tokio::test]
async fn a_call_waits_for_its_principal_and_for_no_other() {
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new().calls("pay", json!({"n": 7})).says("Paid.");
    let host = AgentHost::in_memory().chat(model).tool(pay.needs_approval());
    let serving = Serving::start(host.add(server())).await;
    let ann = serving.ann();
    let posted = ann
        .post("/api/sessions/till/messages", &json!({"content": "Pay 7."}))
        .await
        .json();
    let path = format!("/api/turns/{}", posted["turn"].as_str().unwrap());
    let mut events = ann.events(&format!("{path}/events"), None).await;
    let asked = events.until("approval_needed").await.pop().unwrap().data["approval"].clone();
    assert_eq!(
        (&asked["tool"], &asked["arguments"]),
        (&json!("pay"), &json!(r#"{"n":7}"#))
    );

    let waiting = json!({"approvals": [asked]});
    assert_eq!(ann.get("/api/approvals").await.json(), waiting);
    let state = ann.get(&path).await.json();
    assert_eq!((&state["state"], &state["approvals"][0]), (&json!("parked"), &asked));
    assert_eq!(
        serving.bob().get("/api/approvals").await.json(),
        json!({"approvals": []})
    );

    let decision = |changed: &[(&str, Value)]| {
        let mut decision = json!({
            "turn": asked["turn"], "call": asked["call"], "argsHash": asked["argsHash"], "approved": true,
        });
        for (name, value) in changed {
            decision[name] = value.clone();
        }
        decision
    };
    let bob = serving.bob();
    // Bob cannot decide, neither as himself nor in Ann's name.
    for decision in [decision(&[]), decision(&[("userId", json!("ann"))])] {
        assert_eq!(bob.post("/api/approvals", &decision).await.summary(), "404 not_found");
    }
    let other = decision(&[("argsHash", json!("0".repeat(64)))]);
    assert_eq!(ann.post("/api/approvals", &other).await.status, 404);
    assert!(paid.all().is_empty());
    assert_eq!(ann.post("/api/approvals", &decision(&[])).await.status, 204);
    assert_eq!(lines(&events.until("final").await).last().unwrap(), "final Paid.");
    assert_eq!(paid.all(), ["pay 7"]);
    serving.stop().await;
}

#[tokio::test]
async fn a_turn_is_cancelled_once() {
    let serving = Serving::of(&ScriptedModel::new().hangs()).await;
    let ann = serving.ann();
    let posted = ann
        .post("/api/sessions/s/messages", &json!({"content": "Think."}))
        .await
        .json();
    let path = format!("/api/turns/{}", posted["turn"].as_str().unwrap());
    assert_eq!(ann.post(&format!("{path}/cancel"), &json!({})).await.status, 204);
    let events = ann.events(&format!("{path}/events"), None).await.all().await;
    assert_eq!(events.last().unwrap().data["outcome"]["status"], "cancelled");
    assert_eq!(
        ann.post(&format!("{path}/cancel"), &json!({})).await.summary(),
        "409 turn_ended"
    );
    serving.stop().await;
}

#[tokio::test]
async fn images_come_in_as_bytes_and_are_read_by_their_user_alone() {
    let model = ScriptedModel::new().says("A cat.");
    let serving = Serving::of(&model).await;
    let ann = serving.ann();
    let image = json!({"type": "image", "mediaType": "image/png", "data": "Y2F0"});
    let content = json!({"content": [{"type": "text", "text": "Who is this?"}, image]});
    let posted = ann.post("/api/sessions/zoo/messages", &content).await.json();
    let turn = posted["turn"].as_str().unwrap();
    ann.events(&format!("/api/turns/{turn}/events"), None).await.all().await;
    let history = ann.get("/api/sessions/zoo/history").await.json();
    let digest = history["entries"][0]["content"][1]["digest"].as_str().unwrap();

    let path = format!("/api/media/{digest}");
    let shown = ann
        .request("GET", &format!("{path}?type=image/png"))
        .send()
        .await
        .unwrap();
    assert_eq!(shown.headers()["content-type"], "image/png");
    assert_eq!(shown.text().await.unwrap(), "cat");
    // A file never becomes a page of this origin.
    let page = ann
        .request("GET", &format!("{path}?type=text/html"))
        .send()
        .await
        .unwrap();
    let headers = ["content-type", "content-disposition", "x-content-type-options"];
    assert_eq!(
        headers.map(|name| &page.headers()[name]),
        ["application/octet-stream", "attachment", "nosniff"]
    );
    assert_eq!(serving.bob().get(&path).await.summary(), "404 not_found");
    serving.stop().await;
}

#[tokio::test]
async fn what_cannot_be_accepted_is_refused_with_words() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let ann = serving.ann();
    let path = "/api/sessions/s/messages";
    let cases = [
        (json!({}), "missing field `content`"),
        (json!({"content": "  "}), "its content is empty"),
        (json!({"content": "hi", "colour": "red"}), "unknown field `colour`"),
        (
            json!({"content": "hi", "agent": "nobody"}),
            "there is no agent `nobody` here",
        ),
        (
            json!({"content": [{"type": "image", "mediaType": "image/png", "data": "!"}]}),
            "not standard Base64",
        ),
    ];
    for (body, words) in cases {
        let answer = ann.post(path, &body).await;
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{body}: {message}");
        assert!([400, 404].contains(&answer.status), "{answer:?}");
    }
    let long = format!("/api/sessions/{}/messages", "x".repeat(300));
    assert_eq!(
        ann.post(&long, &json!({"content": "hi"})).await.summary(),
        "400 invalid_request"
    );
    assert_eq!(ann.get("/api/turns/none").await.summary(), "404 not_found");
    assert_eq!(ann.get("/elsewhere").await.summary(), "404 not_found");
    // Also what the framework below refuses is an error of this form.
    for path in [
        "/api/media/none",
        "/api/sessions/s/history?limit=many",
        "/api/sessions/s/history?colour=red",
        "/api/sessions/%FF/history",
        "/api/skills/a%2F..",
        "/v1/models/%FF",
    ] {
        assert_eq!(ann.get(path).await.summary(), "400 invalid_request", "{path}");
    }
    let wrong = ann.request("PUT", path).send().await.unwrap();
    assert_eq!(wrong.headers()["allow"], "POST");
    assert_eq!(Answer::of(wrong).await.summary(), "405 wrong_method");
    serving.stop().await;
}
