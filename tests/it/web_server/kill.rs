//! A service that is killed: what got its 202 has its answer after the restart.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use super::client::User;
use crate::example_programs::{PATIENCE, example};
use crate::support::model_server::ModelServer;

/// Starts the service, and returns it with a user of it.
pub(super) async fn serve(model: &ModelServer, folder: &Path) -> (Child, User) {
    let mut service = example("chat", &["serve", "--port", "0", "--serve-web", "127.0.0.1:0"], folder)
        .env("OPENAI_BASE_URL", &model.endpoint)
        .env("OPENAI_MODEL", "m")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stderr.take().unwrap()).lines();
    let address = loop {
        let line = timeout(PATIENCE, lines.next_line())
            .await
            .expect("it logs")
            .unwrap()
            .expect("it runs");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["message"] == "the agent is served to people and their programs" {
            let url = line["url"].as_str().unwrap();
            break url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        }
    };
    // The pipe must not fill up.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (service, User::new(address, ""))
}

#[tokio::test]
async fn what_was_accepted_is_answered_after_a_kill() {
    let (release, held) = mpsc::channel::<()>();
    let mut is_held = true;
    let model = ModelServer::start(move |_, _| {
        if std::mem::replace(&mut is_held, false) {
            // The first process never gets an answer.
            let _ = held.recv();
        }
        let answer = json!({
            "choices": [{"message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}],
        });
        (200, answer.to_string())
    });
    let folder = tempfile::tempdir().unwrap();
    let (mut service, user) = serve(&model, folder.path()).await;
    let mut turns = Vec::new();
    for number in 0..8 {
        let path = format!("/api/sessions/s{number}/messages");
        let posted = user.post(&path, &json!({"content": "Are you there?"})).await;
        assert_eq!(posted.status, 202, "{posted:?}");
        turns.push(posted.json()["turn"].as_str().unwrap().to_owned());
    }
    // SIGKILL on Unix.
    service.kill().await.unwrap();
    release.send(()).unwrap();

    let (mut service, user) = serve(&model, folder.path()).await;
    for turn in turns {
        let read = timeout(PATIENCE, ended(&user, &turn)).await.expect("it is answered");
        assert_eq!(read, "Here.", "{turn}");
    }
    service.kill().await.unwrap();
}

/// Starts a model that answers each request at once.
pub(super) fn answering() -> ModelServer {
    ModelServer::start(|_, _| {
        let answer = json!({
            "choices": [{"message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}],
        });
        (200, answer.to_string())
    })
}

/// A session, and a turn in it that was accepted.
pub(super) type Accepted = (String, String);

/// Posts messages to a session of its own until the service is gone, and notes the turns of those
/// that were accepted.
pub(super) async fn post(user: User, session: String, accepted: Arc<Mutex<Vec<Accepted>>>) {
    let path = format!("/api/sessions/{session}/messages");
    loop {
        let message = user.json("POST", &path, &json!({"content": "Are you there?"}));
        let Ok(response) = message.send().await else {
            return;
        };
        if response.status() == 202 {
            // Of an answer that the kill cut off the client knows nothing.
            let Ok(body) = response.json::<serde_json::Value>().await else {
                return;
            };
            let turn = body["turn"].as_str().unwrap().to_owned();
            accepted.lock().unwrap().push((session.clone(), turn));
        } else {
            // Too many at once, or the service is about to be gone.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn what_was_accepted_under_load_is_answered_after_each_kill() {
    let model = answering();
    let folder = tempfile::tempdir().unwrap();
    let accepted = Arc::default();
    for round in 0..3 {
        let (mut service, user) = serve(&model, folder.path()).await;
        let posting = (0..12).map(|number| post(user.clone(), format!("s{number}"), Arc::clone(&accepted)));
        let posting = futures_util::future::join_all(posting);
        let killing = async {
            tokio::time::sleep(Duration::from_millis(400 + 300 * round)).await;
            service.kill().await.unwrap();
        };
        tokio::join!(posting, killing);
    }
    let (mut service, user) = serve(&model, folder.path()).await;
    let accepted = std::mem::take(&mut *accepted.lock().unwrap());
    assert!(accepted.len() > 30, "{} messages are no load", accepted.len());
    for (_, turn) in &accepted {
        let read = timeout(PATIENCE, ended(&user, turn)).await.expect("it is answered");
        assert_eq!(read, "Here.", "{turn}");
    }
    service.kill().await.unwrap();
}

/// Returns the answer of a turn, once the restarted host has resumed it.
pub(super) async fn ended(user: &User, turn: &str) -> String {
    loop {
        let response = user
            .request("GET", &format!("/api/turns/{turn}/events"))
            .send()
            .await
            .unwrap();
        if response.status() == 200 {
            let events = super::client::Events::of(response).all().await;
            return events.last().unwrap().data["outcome"]["text"]
                .as_str()
                .unwrap()
                .to_owned();
        }
        assert_eq!(response.status(), 503);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
