//! Tools for the world in a whole host: the web, HTTP interfaces and files.
#![cfg(all(feature = "web", feature = "rest", feature = "files"))]

use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::testing::ScriptedModel;
use rockbot::tools::egress::EgressPolicy;
use rockbot::tools::web::WebTools;
use rockbot_core::store::InMemoryWorkingMemory;
use rockbot_host::Stores;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::example_programs::{PATIENCE, example, streamed, text};
use crate::support::model_server::ModelServer;

/// Serves one page, and returns its URL.
async fn page(html: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/guide", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The head of the request has come with the connection.
            let _ = stream.read(&mut [0; 4096]).await;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                html.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(html.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn a_long_page_is_read_in_chunks_and_is_untrusted() {
    let section = |n: u32| {
        format!(
            "<h2>Part {n}</h2><p>{}</p>",
            format!("Sentence of part {n}. ").repeat(150)
        )
    };
    let html = format!(
        "<title>Guide</title><article><h1>Guide</h1>{}</article>",
        (0..5).map(section).collect::<String>()
    );
    let url = page(html).await;
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/guide").to_owned();
    let key = format!("session/s/web-http___127.0.0.1_{port}_guide-chunk3");
    let model = ScriptedModel::new()
        .calls("web_browse", json!({ "url": url }))
        .calls("get_from_working_memory", json!({ "key": key }))
        .says("Part 2 says so.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        .add(WebTools::new().egress(EgressPolicy::new().with_loopback_for_tests()))
        .build()
        .unwrap();
    let answer = host.agent().ask("s", "Read the guide.").await.unwrap();
    let requests = model.requests();
    let index = requests[1].messages.last().unwrap().text().into_owned();
    assert!(index.contains(&format!("| Part 2 | `{key}` |")), "{index}");
    let chunk = requests[2].messages.last().unwrap().text().into_owned();
    assert!(chunk.contains("## Part 2") && !chunk.contains("## Part 3"), "{chunk}");
    let sources: Vec<_> = answer.label.sources().iter().map(ToString::to_string).collect();
    assert_eq!(sources, [url.as_str(), "tool:web_browse"]);
}

#[tokio::test]
async fn an_agent_from_a_configuration_has_the_families_that_it_names() {
    let names = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap().build().unwrap();
        assert!(config.check_unknown().unwrap().is_empty());
        let families = ["web_", "file_", "get_weather"];
        let snapshot = host.tools().snapshot();
        let names = snapshot
            .entries()
            .iter()
            .map(|entry| entry.registration().name.to_string());
        let mut names: Vec<_> = names
            .filter(|name| families.iter().any(|family| name.starts_with(family)))
            .collect();
        names.sort();
        names
    };
    let all = "[WebTools]\nEnabled = true\n[FileTools]\nEnabled = true\n\
        [[RestTools.Endpoints]]\nName = \"get_weather\"\nUrlTemplate = \"https://api.example.org/now\"\n";
    let expected = [
        "file_delete",
        "file_edit",
        "file_list",
        "file_read",
        "file_search",
        "file_write",
        "get_weather",
        "web_browse",
        "web_search",
    ];
    assert_eq!(names(all), expected);
    assert_eq!(names(""), [""; 0]);
}

/// A document with one operation.
const CLOCK: &str = "openapi: 3.1.0\ninfo: {title: Clock}\nservers: [{url: 'https://clock.example'}]\npaths:\n  /now:\n    \
    get: {operationId: now, summary: Tells the time.}\n";

/// Returns the groups of tools in the first request of an example.
async fn groups(name: &str, arguments: &[&str]) -> Vec<String> {
    let server = ModelServer::start(|_, request| {
        let message = json!({"role": "assistant", "content": "Hello."});
        let whole = json!({"choices": [{"finish_reason": "stop", "message": message}]}).to_string();
        (
            200,
            if request["stream"] == true {
                streamed("Hello.")
            } else {
                whole
            },
        )
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clock.yaml"), CLOCK).unwrap();
    let mut program = example(name, arguments, folder.path());
    program
        .env("OPENAI_BASE_URL", &server.endpoint)
        .env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, program.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let request = server.requests().remove(0);
    let tools = request["tools"].as_array().unwrap();
    let activate = tools.iter().find(|tool| tool["function"]["name"] == "activate_tools");
    let told = activate.unwrap()["function"]["description"].as_str().unwrap();
    let groups = told
        .lines()
        .skip(1)
        .map(|line| line.split(':').next().unwrap().to_owned());
    groups.collect()
}

#[tokio::test]
async fn the_examples_have_tools_for_the_world() {
    let world = ["--web", "--openapi", "clock.yaml", "--files", "notes", "hello"];
    for (name, arguments) in [
        ("chat", &world[..]),
        ("full_agent", &["--openapi", "clock.yaml", "--ask", "hello"]),
    ] {
        let found = groups(name, arguments).await;
        for group in ["web", "clock", "files"] {
            assert!(found.iter().any(|name| name == group), "{name}: {found:?}");
        }
    }
    let found = groups("chat", &["hello"]).await;
    assert!(!found.iter().any(|name| name == "web"), "{found:?}");
}
