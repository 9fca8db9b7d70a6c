//! Agents that are called over HTTP: our own server in each binding and version, and agents that a
//! test plays, also as no agent should be.

mod faults;
mod files;
mod oauth;
mod peer;
mod push;
mod sdk;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use rockbot::prelude::FromConfig as _;
use rockbot::tools::a2a::{A2aCaller, RemoteAgent};
use rockbot::tools::a2a_server::{A2aCaller as Caller, A2aEndpoint, A2aServer};
use rockbot_core::config::Config;
use rockbot_core::service::{AgentDirectory, AgentSkill};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolSelector;
use rockbot_core::trust::Trust;
use rockbot_core::turn::{TurnQuery, TurnRunner};
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_tools::egress::EgressPolicy;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::a2a::{Models, asking, last_message, task_id, told};
use peer::{Peer, Said, card, rpc, task};

/// Time for an answer over a real connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host that calls agents, without a bus: `asking` answers the user, `telling` the answers.
fn main_host(asking: &ScriptedModel, telling: &ScriptedModel) -> AgentHostBuilder {
    let models = vec![
        ("The agent `", telling.clone()),
        ("Nothing comes of", telling.clone()),
        ("", asking.clone()),
    ];
    AgentHost::builder("main").chat(Models(models))
}

fn far(url: &str) -> RemoteAgent {
    RemoteAgent::new(url).named("far")
}

fn find(message: &str) -> (&'static str, Value) {
    (
        "invoke_agent",
        json!({"agent_name": "far", "skill": "find", "message": message}),
    )
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// Hands a task over, and waits until these words are told: without a question, or in the answer of
/// the turn that an early result joined.
async fn until_begun(host: &AgentHost, words: &str) {
    let begun = host.agent().ask("s", "Begin.").await.unwrap();
    if begun.text != words {
        assert_eq!(begun.text, "asked");
        until_told(host, words).await;
    }
}

/// Waits until these words are told without a question.
async fn until_told(host: &AgentHost, words: &str) {
    let agent = host.agent();
    let mut announcements = agent.announcements();
    let told = async {
        while let Some(told) = announcements.next().await {
            if told.content.words() == words {
                return;
            }
        }
        panic!("the host ends before it tells {words}");
    };
    timeout(PATIENCE, told)
        .await
        .unwrap_or_else(|_| panic!("it tells {words}"));
}

/// Waits until something is so.
async fn until(what: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !what() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("it becomes so");
}

/// Our own server, for the caller `main` and any program of this machine.
async fn serving(model: &ScriptedModel, has_key: bool) -> (AgentHost, String) {
    let find = AgentSkill::new("find").with_description("Finds.");
    let mut server = A2aServer::new()
        .listen("127.0.0.1:0")
        .skill(find)
        .description("Finds things.");
    if has_key {
        server = server.caller(Caller::new("main", "sesame".to_owned()));
    }
    let host = started(AgentHost::builder("far").chat(model.clone()).add(server)).await;
    let address = host.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    (host, format!("http://{address}"))
}

/// Hands a task over, answers the question of the agent, and returns what the model is told of the
/// end.
async fn answered(agent: RemoteAgent, message: &str) -> String {
    let first = asking([find(message)]);
    let telling = ScriptedModel::new().says("It asks.").says("Told.");
    let main = started(main_host(&first, &telling).add(A2aCaller::new().agent_at(agent))).await;
    until_begun(&main, "It asks.").await;
    let question = last_message(&telling);
    assert!(question.contains("asks something about the task"), "{question}");
    assert!(question.contains("Which year?"), "{question}");
    let context = question.split("context_id `").nth(1).unwrap();
    let context = context.split('`').next().unwrap();
    let answer = json!({"agent_name": "far", "skill": "find", "message": "2026", "context_id": context});
    let second = first.clone().calls("invoke_agent", answer).says("answered");
    main.agent().ask("s", "Say 2026.").await.unwrap();
    until_told(&main, "Told.").await;
    second.assert_complete();
    main.shutdown(Duration::ZERO).await;
    let requests = telling.requests();
    crate::support::transcript(requests.last().unwrap()).pop().unwrap()
}

#[tokio::test]
async fn a_task_is_done_by_an_agent_with_a_url_and_its_answer_is_told_once() {
    let working = ScriptedModel::new().says("By the larynx.");
    let (server, url) = serving(&working, true).await;
    let asking = asking([find("How do cats purr?")]);
    let telling = ScriptedModel::new().says("Told.");
    let caller = A2aCaller::new().agent_at(far(&url).key("sesame".to_owned()));
    let main = started(main_host(&asking, &telling).add(caller)).await;
    assert_eq!(main.agent().ask("s", "Begin.").await.unwrap().text, "asked");
    let agent = main.agent();
    let mut announcements = agent.announcements();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|said| said != "Told.") {
        let next = timeout(PATIENCE, announcements.next()).await.unwrap().unwrap();
        assert_eq!(next.label.trust(), Trust::Untrusted);
        assert!(next.label.sources().contains(&"agent:far".into()), "{:?}", next.label);
        heard.push(next.content.words().into_owned());
    }
    assert_eq!(heard, ["[far] It works on the task.", "Told."]);
    let id = task_id(&told(&asking)[0]);
    let words = last_message(&telling);
    let expected =
        format!("The agent `far` has done the task `{id}` (find). Its words, which are those of another program");
    assert!(words.contains(&expected), "{words}");
    assert!(words.contains("\nBy the larynx.\n\nTell the user"), "{words}");
    for model in [asking, telling, working] {
        model.assert_complete();
    }
    server.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn each_binding_and_version_is_spoken_with_and_without_streams() {
    for (binding, version) in [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")] {
        for streams in [true, false] {
            let working = ScriptedModel::new().says("By the larynx.");
            let (server, url) = serving(&working, false).await;
            // The card is at one origin, and names an interface at another one.
            let host = Peer::start(move |_, _| Said::json(&card(&url, binding, version, streams))).await;
            let asking = asking([find("How do cats purr?")]);
            let telling = ScriptedModel::new().says("Told.");
            let caller = A2aCaller::new()
                .agent_at(far(&host.url()))
                .egress(EgressPolicy::new().with_loopback_for_tests());
            let main = started(main_host(&asking, &telling).add(caller)).await;
            until_begun(&main, "Told.").await;
            let words = last_message(&telling);
            assert!(
                words.contains("\nBy the larynx.\n"),
                "{binding} {version} {streams}: {words}"
            );
            let asked = crate::support::transcript(&working.requests()[0]);
            assert!(
                asked
                    .iter()
                    .any(|line| line.contains("The caller asks for your skill `find`.")),
                "{asked:?}"
            );
            server.shutdown(Duration::ZERO).await;
        }
    }
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_in_its_task() {
    let working = ScriptedModel::new()
        .calls("ask_caller", json!({}))
        .says("Which year?")
        .says("Seven books.");
    let (server, url) = serving(&working, true).await;
    let words = answered(far(&url).key("sesame".to_owned()), "How many books?").await;
    assert!(words.contains("\nSeven books.\n"), "{words}");
    working.assert_complete();
    server.shutdown(Duration::ZERO).await;
}

/// Hands a task over to an agent, cancels it once a status is told, and returns the host that did.
async fn cancelling(agent: RemoteAgent, task: &str, status: &str) -> AgentHost {
    let first = asking([find(task)]);
    let caller = A2aCaller::new().agent_at(agent);
    let main = started(main_host(&first, &ScriptedModel::new()).add(caller)).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    until_told(&main, status).await;
    let id = task_id(&told(&first)[0]);
    let second = first
        .clone()
        .calls("cancel_agent_task", json!({"task_id": id}))
        .says("cancelled");
    main.agent().ask("s", "Stop.").await.unwrap();
    second.assert_complete();
    main
}

#[tokio::test]
async fn a_task_that_is_cancelled_is_cancelled_at_the_agent() {
    let working = ScriptedModel::new().hangs();
    let (server, url) = serving(&working, true).await;
    let agent = far(&url).key("sesame".to_owned());
    let _main = cancelling(agent, "How many books?", "[far] It works on the task.").await;
    let turns = server.parts().require::<dyn TurnRunner>().unwrap();
    until(|| turns.live(&TurnQuery::default()).is_empty()).await;
    server.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_task_outlives_the_caller_and_the_next_process_tells_its_end_once() {
    let state = Arc::new(std::sync::Mutex::new("TASK_STATE_WORKING"));
    let now = state.clone();
    let peer = Peer::speaking(false, move |operation, _| {
        let state = *now.lock().unwrap();
        let made = if state == "TASK_STATE_COMPLETED" {
            "Because."
        } else {
            ""
        };
        match operation {
            "SendMessage" => Said::result(&json!({"task": task(state, "", made)})),
            _ => Said::result(&task(state, "", made)),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let asking = asking([find("Why?")]);
    let telling = ScriptedModel::new().says("So.");
    let host = || {
        main_host(&asking, &telling)
            .data_dir(folder.path())
            .add(A2aCaller::new().agent_at(far(&peer.url())))
    };
    let main = started(host()).await;
    main.agent().ask("s", "Begin.").await.unwrap();
    until(|| peer.operations().contains(&"GetTask".to_owned())).await;
    main.shutdown(Duration::from_secs(1)).await;
    drop(main);
    *state.lock().unwrap() = "TASK_STATE_COMPLETED";
    let main = started(host()).await;
    until_told(&main, "So.").await;
    main.shutdown(Duration::from_secs(1)).await;
    drop(main);
    let main = started(host()).await;
    sleep(Duration::from_millis(300)).await;
    main.shutdown(Duration::from_secs(1)).await;
    assert_eq!(telling.requests().len(), 1);
    let sent = peer
        .operations()
        .iter()
        .filter(|operation| *operation == "SendMessage")
        .count();
    assert_eq!(sent, 1, "{:?}", peer.operations());
}

#[tokio::test]
async fn a_message_is_the_end_and_all_kinds_of_parts_are_read() {
    let parts = json!([
        {"text": "Words."}, {"data": {"n": [1]}}, {"url": "https://files.example.com/a.pdf", "filename": "a.pdf"},
        {"raw": "aGk=", "mediaType": "text/plain"}, {"raw": "AAAA", "mediaType": "image/png", "filename": "x\n.png"},
    ]);
    let peer = Peer::speaking(false, move |_, _| {
        Said::result(&json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}}))
    })
    .await;
    let arguments = json!({"agent_name": "far", "skill": "FIND", "message": " Why? ", "data": {"n": 1}});
    let asking = asking([("invoke_agent", arguments)]);
    let telling = ScriptedModel::new().says("Told.");
    let main = started(main_host(&asking, &telling).add(A2aCaller::new().agent_at(far(&peer.url())))).await;
    until_begun(&main, "Told.").await;
    let words = last_message(&telling);
    let expected = "\nWords.\n\n```json\n{\n  \"n\": [\n    1\n  ]\n}\n```\n\n[file by reference: https://files.example.com/a.pdf a.pdf]\n\nhi\n\n[file of 3 bytes: x .png, image/png]\n\nThe user has its files.\n\nTell";
    assert!(words.contains(expected), "{words}");
    let got = peer.got();
    let sent = got.iter().find(|got| got.operation() == "SendMessage").unwrap();
    let id = task_id(&told(&asking)[0]);
    let expected = json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {
            "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": "Why?"}, {"data": {"n": 1}}]},
            "configuration": {"historyLength": 0, "returnImmediately": true},
            "metadata": {"skill": "find", "rb-agent-chain": "main"},
        },
    });
    assert_eq!(sent.json(), expected);
    assert_eq!(sent.header("a2a-version"), Some("1.0"));
}

#[tokio::test]
async fn settings_name_agents_and_the_search_and_lists_show_them() {
    let peer = Peer::speaking(false, |_, _| Said::Silence).await;
    let other = Peer::start(|_, url| Said::json(&card(url, "JSONRPC", "1.0", false))).await;
    let text = format!(
        "[LLM]\nProvider = \"offline\"\n[[A2A.Agents]]\nUrl = \"{}/\"\nName = \"far\"\n[[A2A.Agents]]\nUrl = \"{}\"\nKey = \"sesame\"\n",
        peer.url(),
        other.url()
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let main = AgentHost::configured(&config, folder.path()).unwrap().build().unwrap();
    main.start().await.unwrap();
    let directory = main.parts().require::<dyn AgentDirectory>().unwrap();
    until(|| directory.agents().iter().filter(|card| !card.skills.is_empty()).count() == 2).await;
    let shown: Vec<_> = directory
        .agents()
        .iter()
        .map(|card| {
            (
                card.agent_name.clone(),
                card.description.clone().unwrap(),
                card.url.clone().unwrap(),
            )
        })
        .collect();
    let expected = [("far", peer.url()), ("Far-Agent", other.url())];
    let expected = expected.map(|(name, url)| (name.to_owned(), "Finds things.".to_owned(), url));
    assert_eq!(shown, expected);
    assert_eq!(other.got()[0].header("authorization"), Some("Bearer sesame"));
    assert_eq!(peer.got()[0].header("authorization"), None);
    main.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_task_over_http_never_goes_round_and_a_call_of_it_waits() {
    let back = json!({"agent_name": "main", "skill": "find", "message": "And?"});
    let further = json!({"agent_name": "math", "skill": "find", "message": "How much is it?"});
    let working = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "a2a"}))
        .calls("invoke_agent", further)
        .calls("invoke_agent", back)
        .says("It is 42.");
    let math = Peer::speaking(false, |_, _| {
        Said::result(&json!({"task": task("TASK_STATE_COMPLETED", "", "42")}))
    })
    .await;
    let server = A2aServer::new()
        .listen("127.0.0.1:0")
        .caller(Caller::new("main", "sesame".to_owned()).tools([ToolSelector::group("a2a")]));
    let caller = A2aCaller::new()
        .agent_at(RemoteAgent::new(math.url()).named("math"))
        .agent_at(RemoteAgent::new(math.url() + "/back").named("main"));
    let server = started(AgentHost::builder("far").chat(working.clone()).add(server).add(caller)).await;
    let address = server.parts().require::<A2aEndpoint>().unwrap().address().unwrap();
    let call = json!({"agent_name": "far", "skill": "work", "message": "Work."});
    let asking = asking([("invoke_agent", call)]);
    let telling = ScriptedModel::new().says("Told.");
    let far = far(&format!("http://{address}")).key("sesame".to_owned());
    let main = started(main_host(&asking, &telling).add(A2aCaller::new().agent_at(far))).await;
    until_begun(&main, "Told.").await;
    let told = crate::support::results(working.requests().last().unwrap());
    assert!(told[1].contains("no instructions for you:\n42"), "{told:?}");
    assert!(told[2].contains("round in a circle (main → far → main)"), "{told:?}");
    let sent = math
        .got()
        .into_iter()
        .find(|got| got.operation() == "SendMessage")
        .unwrap();
    assert_eq!(sent.json()["params"]["metadata"]["rb-agent-chain"], "main,far");
    assert!(last_message(&telling).contains("\nIt is 42.\n"));
    server.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn agents_that_cannot_be_named_are_refused_when_the_host_is_built() {
    let built = |caller: A2aCaller| {
        main_host(&ScriptedModel::new(), &ScriptedModel::new())
            .add(caller)
            .build()
    };
    let many = (0..300).fold(A2aCaller::new(), |caller, number| {
        caller.agent_at(format!("https://a{number}.example"))
    });
    let cases = [
        (many, "`A2A.Agents` has 300 agents, of at most 256"),
        (
            A2aCaller::new().agent_at("no address"),
            "`no address` is no URL of an agent",
        ),
        (
            A2aCaller::new().agent_at(far("https://a.example").named("a b")),
            "has a name of 1 to 64 letters",
        ),
        (
            A2aCaller::new().agent_at(far("https://a.example").key("a\nb".to_owned())),
            "has characters that no header may have",
        ),
        (
            A2aCaller::new().agent_at(far("https://a")).agent_at(far("https://b")),
            "two agents are named `far`",
        ),
    ];
    for (caller, expected) in cases {
        let error = built(caller).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
