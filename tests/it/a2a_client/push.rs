//! Push notifications: the addresses of a task, and what they are told.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::a2a_server::client::send;

const JSON: [&str; 1] = ["Content-Type: application/json"];

/// A server whose notifications reach this machine, and its address.
async fn telling(model: &ScriptedModel, policy: EgressPolicy) -> (AgentHost, SocketAddr) {
    let server = A2aServer::new()
        .listen("127.0.0.1:0")
        .caller(Caller::new("partner", "sesame".to_owned()))
        .egress(policy);
    let host = started(AgentHost::builder("far").chat(model.clone()).add(server)).await;
    let address = host.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    (host, address)
}

async fn call(address: SocketAddr, version: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let version = format!("A2A-Version: {version}");
    send(address, "POST", "/", &[JSON[0], &version], &body).await.json()
}

fn message(push: &Value) -> Value {
    json!({
        "message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Work."}]},
        "configuration": {"returnImmediately": true, "taskPushNotificationConfig": push},
    })
}

#[tokio::test]
async fn the_end_of_a_task_is_told_to_its_address_once_with_token_and_credentials() {
    let attempts = AtomicUsize::new(0);
    // The address does not answer well at first.
    let peer = Peer::start(move |_, _| match attempts.fetch_add(1, Ordering::Relaxed) {
        0 => Said::Page(503, "", String::new()),
        _ => Said::Page(204, "", String::new()),
    })
    .await;
    let model = ScriptedModel::new().says("Done.");
    let (host, address) = telling(&model, EgressPolicy::new().with_loopback_for_tests()).await;
    let push = json!({
        "url": format!("{}/hook", peer.url()), "token": "t-7",
        "authentication": {"scheme": "Bearer", "credentials": "secret"},
    });
    let task = call(address, "1.0", "SendMessage", message(&push)).await["result"]["task"]["id"].clone();
    until(|| peer.got().len() == 2).await;
    let got = &peer.got()[1];
    assert_eq!(got.operation(), "POST /hook");
    assert_eq!(got.header("x-a2a-notification-token"), Some("t-7"));
    assert_eq!(got.header("authorization"), Some("Bearer secret"));
    assert_eq!(got.header("content-type"), Some("application/a2a+json"));
    let told = &got.json()["task"];
    assert_eq!(
        (&told["id"], &told["status"]["state"]),
        (&task, &json!("TASK_STATE_COMPLETED"))
    );
    assert_eq!(told["artifacts"][0]["parts"][0]["text"], "Done.");
    // The same state is told once, and no answer repeats the credentials.
    let listed = call(
        address,
        "1.0",
        "ListTaskPushNotificationConfigs",
        json!({"taskId": task}),
    )
    .await;
    let config = &listed["result"]["configs"][0];
    assert_eq!((&config["taskId"], &config["token"]), (&task, &json!("t-7")));
    assert!(!listed.to_string().contains("secret"), "{listed}");
    assert_eq!(peer.got().len(), 2);
    host.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn addresses_are_registered_listed_and_deleted_in_each_binding_and_version() {
    let model = ScriptedModel::new().hangs();
    let (host, address) = telling(&model, EgressPolicy::new()).await;
    let begun = call(address, "1.0", "SendMessage", message(&Value::Null)).await;
    let task = begun["result"]["task"]["id"].as_str().unwrap().to_owned();
    let url = "https://hooks.example.com/a";
    let made = call(
        address,
        "1.0",
        "CreateTaskPushNotificationConfig",
        json!({"taskId": task, "id": "a", "url": url}),
    )
    .await;
    assert_eq!(made["result"], json!({"id": "a", "taskId": task, "url": url}));
    let old = json!({"taskId": task, "pushNotificationConfig": {"id": "b", "url": url, "token": "t"}});
    let made = call(address, "0.3", "tasks/pushNotificationConfig/set", old.clone()).await;
    assert_eq!(made["result"], old);
    let path = format!("/tasks/{task}/pushNotificationConfigs");
    let made = send(
        address,
        "POST",
        &path,
        &JSON,
        &json!({"id": "c", "url": url}).to_string(),
    )
    .await;
    assert_eq!(made.json(), json!({"id": "c", "taskId": task, "url": url}));
    let found = send(address, "GET", &format!("{path}/c"), &JSON, "").await;
    assert_eq!(found.json(), made.json());
    let query = json!({"id": task, "pushNotificationConfigId": "b"});
    assert_eq!(
        call(address, "0.3", "tasks/pushNotificationConfig/get", query.clone()).await["result"],
        old
    );
    assert_eq!(
        call(address, "0.3", "tasks/pushNotificationConfig/delete", query).await["result"],
        Value::Null
    );
    assert_eq!(
        send(address, "DELETE", &format!("{path}/c"), &JSON, "").await.json(),
        json!({})
    );
    let listed = send(address, "GET", &path, &JSON, "").await.json();
    assert_eq!(listed["configs"], json!([{"id": "a", "taskId": task, "url": url}]));
    for number in 0..3 {
        let one = json!({"taskId": task, "url": format!("{url}/{number}")});
        assert!(call(address, "1.0", "CreateTaskPushNotificationConfig", one).await["result"]["id"].is_string());
    }
    let more = json!({"taskId": task, "url": format!("{url}/more")});
    let refused = call(address, "1.0", "CreateTaskPushNotificationConfig", more).await;
    assert_eq!(
        refused["error"]["message"],
        "a task has at most 4 addresses: delete one"
    );
    host.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn an_address_inside_of_the_network_is_not_gone_to() {
    let model = ScriptedModel::new().hangs();
    let (host, address) = telling(&model, EgressPolicy::new()).await;
    let begun = call(address, "1.0", "SendMessage", message(&Value::Null)).await;
    let task = begun["result"]["task"]["id"].clone();
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/",
        "http://localhost/",
        "file:///etc/passwd",
        "http://10.0.0.1/",
    ] {
        let refused = call(
            address,
            "1.0",
            "CreateTaskPushNotificationConfig",
            json!({"taskId": task, "url": url}),
        )
        .await;
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains("is not gone to"), "{url}: {words}");
    }
    let refused = call(
        address,
        "1.0",
        "SendMessage",
        message(&json!({"url": "http://127.0.0.1/"})),
    )
    .await;
    assert_eq!(refused["error"]["code"], -32602);
    host.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_change_that_was_not_told_is_told_by_the_next_process() {
    let is_up = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = is_up.clone();
    let peer = Peer::start(move |_, _| {
        let status = if now.load(Ordering::Relaxed) { 204 } else { 503 };
        Said::Page(status, "", String::new())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("Done.");
    let host = || async {
        let server = A2aServer::new()
            .listen("127.0.0.1:0")
            .caller(Caller::new("partner", "sesame".to_owned()))
            .egress(EgressPolicy::new().with_loopback_for_tests());
        let host = AgentHost::builder("far").chat(model.clone()).data_dir(folder.path());
        started(host.add(server)).await
    };
    let first = host().await;
    let address = first.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    call(address, "1.0", "SendMessage", message(&json!({"url": peer.url()}))).await;
    until(|| !peer.got().is_empty()).await;
    first.shutdown(Duration::from_millis(100)).await;
    drop(first);
    let before = peer.got().len();
    is_up.store(true, Ordering::Relaxed);
    let second = host().await;
    until(|| peer.got().len() > before).await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(peer.got().len(), before + 1);
    assert_eq!(
        peer.got().last().unwrap().json()["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    second.shutdown(Duration::ZERO).await;
}
