//! Memories that are found by what they mean: over HTTP, in whole turns, across restarts, and
//! without a model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use metrics_util::debugging::DebuggingRecorder;
use rockbot_core::CallContext;
use rockbot_core::chat::ChatClient;
use rockbot_core::embedding::{EmbeddingCall, EmbeddingClient};
use rockbot_core::testing::{HashedEmbeddings, ScriptedModel};
use rockbot_host::AgentHost;
use rockbot_llm::OpenAiEmbeddings;
use rockbot_memory::{Memory, SemanticMemoryOptions};
use serde_json::{Value, json};

use crate::memory_tools::call;
use crate::support::log::Log;
use crate::support::metrics::measured;
use crate::support::{host_of, transcript};

/// Serves OpenAI's embeddings as `client` makes them; returns its endpoint.
fn serve(client: &HashedEmbeddings) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = client.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            answer(socket, &client);
        }
    });
    endpoint
}

fn answer(socket: TcpStream, client: &HashedEmbeddings) {
    let mut request = BufReader::new(socket);
    let mut line = String::new();
    let mut length = 0;
    while request.read_line(&mut line).unwrap() > 2 {
        length = line
            .strip_prefix("content-length: ")
            .map_or(length, |length| length.trim().parse().unwrap());
        line.clear();
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let texts: Vec<String> = serde_json::from_value(asked["input"].clone()).unwrap();
    let vectors = client
        .embed(EmbeddingCall::new(texts, CallContext::new("s")))
        .now_or_never()
        .unwrap();
    let vectors = vectors.unwrap().into_iter().enumerate();
    let data = vectors.map(|(index, vector)| json!({"index": index, "embedding": vector.values()}));
    let answer = json!({"object": "list", "data": data.collect::<Vec<_>>()}).to_string();
    let head = "content-type: application/json\r\nconnection: close";
    // The client may have had enough already.
    let _ = write!(
        request.get_mut(),
        "HTTP/1.1 200 OK\r\n{head}\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    );
}

fn client(endpoint: &str) -> OpenAiEmbeddings {
    OpenAiEmbeddings::builder(endpoint, "hashed")
        .max_attempts(1)
        .build()
        .unwrap()
}

fn open(folder: &Path, model: &ScriptedModel, memory: Memory) -> AgentHost {
    let host = host_of(model).add(memory).data_dir(folder);
    // Background filing is off for what is saved here.
    host.give::<dyn ChatClient>(Arc::new(ScriptedModel::new()))
        .build()
        .unwrap()
}

async fn close(host: AgentHost) {
    host.shutdown(Duration::from_secs(5)).await;
}

const FACT: &str = "The cat is called Miso.";

/// Has no word of the fact.
const QUESTION: &str = "Which name has our feline at home today?";

async fn search(host: &AgentHost, model: &ScriptedModel) -> String {
    call(host, model, "search_memory", json!({"query": QUESTION})).await
}

/// Searches until the fact is found: its vector is made in the background.
async fn found(host: &AgentHost, model: &ScriptedModel) -> String {
    for _ in 0..1_000 {
        let found = search(host, model).await;
        if found.contains(FACT) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the fact is never found");
}

fn meanings() -> HashedEmbeddings {
    HashedEmbeddings::new().same("cat", "feline").same("called", "name")
}

#[tokio::test]
async fn a_paraphrase_is_found_with_embeddings_only_and_after_a_restart_without_embedding_anew() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new();
    let host = open(folder.path(), &model, Memory::default());
    call(&host, &model, "save_memory", json!({"content": FACT})).await;
    assert!(search(&host, &model).await.contains("no evidence"));
    close(host).await;
    assert!(!folder.path().join("embeddings").exists());

    let model = ScriptedModel::new();
    let meant = meanings();
    let host = open(
        folder.path(),
        &model,
        Memory::default().embeddings(client(&serve(&meant))),
    );
    host.start().await.unwrap();
    let shown = found(&host, &model).await;
    assert!(
        shown.starts_with("- [") && shown.ends_with(&format!("(general, remembered today): {FACT}")),
        "{shown}"
    );
    // The model is shown it before a turn, too.
    let _ = model.clone().says("Miso.");
    host.agent().ask("other", QUESTION).await.unwrap();
    let shown = transcript(model.requests().last().unwrap()).join("\n");
    assert!(shown.contains(FACT), "{shown}");
    assert_eq!(meant.texts().iter().filter(|text| *text == FACT).count(), 1);
    close(host).await;
    drop(model);

    let model = ScriptedModel::new();
    let meant = meanings();
    let host = open(
        folder.path(),
        &model,
        Memory::default().embeddings(client(&serve(&meant))),
    );
    host.start().await.unwrap();
    assert!(search(&host, &model).await.contains(FACT));
    assert_eq!(meant.texts(), [QUESTION]);
    close(host).await;
}

#[tokio::test]
async fn a_model_that_saves_what_is_known_in_other_words_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new();
    let host = open(folder.path(), &model, Memory::default().embeddings(meanings()));
    host.start().await.unwrap();
    call(&host, &model, "save_memory", json!({"content": FACT})).await;
    let known = found(&host, &model).await;
    let id = known.trim_start_matches("- [").split(']').next().unwrap().to_owned();

    let save = async |content: &str| call(&host, &model, "save_memory", json!({"content": content})).await;
    let answer = save("The feline is called Miso.").await;
    let notice = format!(
        "It may repeat what is known; archive_memory (group `memory`) forgets the one that is not needed:\n- [{id}]: {FACT}"
    );
    assert!(
        answer.starts_with("Saved as `") && answer.ends_with(&notice),
        "{answer}"
    );
    let answer = save("The dog barks at night.").await;
    assert!(
        answer.starts_with("Saved as `") && !answer.contains("may repeat"),
        "{answer}"
    );
    close(host).await;
}

#[tokio::test]
async fn without_a_server_words_are_enough_and_it_is_said_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let log = Log::default();
    let recorder = DebuggingRecorder::new();
    let _logged = tracing::subscriber::set_default(log.clone());
    let _measured = metrics::set_default_local_recorder(&recorder);
    let model = ScriptedModel::new();
    let host = open(folder.path(), &model, Memory::default().embeddings(client(&endpoint)));
    host.start().await.unwrap();
    let warnings = || {
        let is_warning = |line: &&String| line.starts_with("message=memories are found by their words alone");
        log.lines().iter().filter(is_warning).count()
    };
    call(&host, &model, "save_memory", json!({"content": FACT})).await;
    for _ in 0..1_000 {
        if warnings() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for content in ["The dog is called Rex.", "The owl is called Ugle."] {
        call(&host, &model, "save_memory", json!({"content": content})).await;
        let told = call(&host, &model, "search_memory", json!({"query": "cat"})).await;
        assert!(told.contains(FACT), "{told}");
    }
    assert_eq!(warnings(), 1);
    assert!(measured(&recorder.snapshotter())["rockbot.embedding.failures"] >= 1);
    close(host).await;
}

#[test]
fn two_hosts_do_not_share_a_folder_of_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new();
    let host = |data: &str| {
        let options = SemanticMemoryOptions::default().with_folder(folder.path().join("vectors"));
        let memory = Memory::default().embeddings_with(meanings(), options);
        host_of(&model).add(memory).data_dir(folder.path().join(data)).build()
    };
    let first = host("first").unwrap();
    let refused = host("second").unwrap_err().to_string();
    assert!(refused.contains("the folder of vectors cannot be opened"), "{refused}");
    drop(first);
}
