//! Texts from outside, broken in every way: no parser panics, and none makes more of a text than
//! it is.
//!
//! Each check runs the documents of its corpus and mutations of them; `PROPTEST_CASES` asks for
//! more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot::agent::profile::AgentProfileDocument;
use rockbot::agent::{AgentHost, FromConfig};
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::implement::store::{StorePath, WorkingNote};
use rockbot::implement::tool::{ArgumentSchema, ContentChunker, InMemoryToolRegistry, Owner, outline};
use rockbot::memory::{Memory, SkillFolder};
use rockbot::store::{
    ConversationLog, ConversationMemory, FeedbackStore, InMemorySkillStore, LongTermMemory, MemoryEntry, Rule,
    RulesStore, Skill, SkillStore, WorkingMemory,
};
use rockbot::testing::{Mutations, ScriptedModel};
use rockbot::tool::{Tool, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, ToolRegistry};
use rockbot_core::chat::Provenance;
use rockbot_core::messaging::{Message, MessageEnvelope, headers};
use rockbot_core::testing::mock_tool;
use rockbot_core::turn::{Approval, RunQuery, TurnJournal};
use rockbot_core::user::{AgentReply, ConversationHistoryRequest, UserFeedback, UserMessage};
use rockbot_core::{Clock, Principal, SystemClock};
use rockbot_store::file::FileTurnJournal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;

use crate::support::unguarded;

fn me() -> Principal {
    Principal::default()
}

const SCHEMAS: [&str; 4] = [
    r##"{"type":"object","properties":{"a":{"type":["string","null"],"minLength":1,"pattern":"^a"},"b":{"$ref":"#/$defs/B"},
        "c":{"oneOf":[{"type":"integer","minimum":-1,"maximum":1e9},{"const":"x"}]}},"required":["a"],
        "$defs":{"B":{"type":"array","items":{"$ref":"#/$defs/B"},"maxItems":3}},"additionalProperties":false}"##,
    r#"{"type":"object","anyOf":[{"properties":{"kind":{"const":"a"}},"required":["kind"]},{"allOf":[{"type":"object"}]}]}"#,
    r#"{"type":"object","properties":{"when":{"type":"string","format":"date-time","default":"now"},"n":{"enum":[1,2.5,null,"x"]}}}"#,
    r#"{"title":"T","description":"d","type":"object","patternProperties":{"^x":{}},"additionalProperties":{"type":"number","multipleOf":0.1}}"#,
];

#[test]
fn schemas_of_tools() {
    Mutations::of(SCHEMAS).check(|document| {
        let Ok(schema) = serde_json::from_slice::<Value>(document) else {
            return;
        };
        let registration = ToolRegistration::new("t", "Does it.", schema.clone());
        let registry = InMemoryToolRegistry::new();
        let (tool, _handle) = mock_tool("t");
        let registered = registry.register(&Owner::new("o"), Tool::new(registration, tool.executor));
        assert_eq!(registered.is_ok(), ArgumentSchema::compile(&schema).is_ok());
        if let Some(entry) = registry.snapshot().find("t") {
            let shown: Value = serde_json::from_str(entry.definition()).unwrap();
            assert!(shown["function"]["parameters"].is_object());
            let made = entry.definition().len();
            let given = document.len();
            assert!(made <= 40 * given + 1_000, "{made} bytes of {given}");
            assert!(entry.arguments().signature().len() <= 1_000);
            for arguments in ["{}", r#"{"a":"abc","b":[[[]]],"c":"x"}"#, r#"{"kind":"a","n":1e400}"#] {
                // Whatever it says, it comes to an end.
                let _ = entry.arguments().check(arguments);
            }
        }
    });
}

#[test]
fn arguments_of_tools() {
    let schemas = SCHEMAS.map(|schema| ArgumentSchema::compile(&serde_json::from_str(schema).unwrap()).unwrap());
    let corpus = [
        r#"{"a": "abc", "b": [[], [[]]], "c": 7}"#,
        r#"{"kind": "a", "when": "2026-01-01T00:00:00Z", "n": 2.5}"#,
        r#"{"x1": {"deep": [1, 2, {"é": "\u00e9\n"}]}, "y": 0.3, "a": null}"#,
    ];
    Mutations::of(corpus).check_text(|text| {
        for schema in &schemas {
            match schema.check(text) {
                Ok(value) => assert_eq!(schema.check(&value.to_string()).ok(), Some(value)),
                Err(error) => assert!(error.to_string().len() <= 8_000, "{}", error.to_string().len()),
            }
        }
    });
}

fn payload<M: Message + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(envelope: &MessageEnvelope) {
    if let Ok(payload) = envelope.payload::<M>() {
        let again = MessageEnvelope::of(&payload).unwrap().payload::<M>().unwrap();
        assert_eq!(again, payload, "what was understood comes back");
    }
}

#[test]
fn messages() {
    let typed = |envelope: MessageEnvelope| envelope.with_source("desk").with_header("rb-timeout-ms", "1000");
    let corpus = [
        MessageEnvelope::of(&UserMessage::new("s", "Hello.").with_user_id("ann")).unwrap(),
        MessageEnvelope::of(&AgentReply::new("s", "clerk", "Well.").with_structured_data(json!({"a": 1}))).unwrap(),
        MessageEnvelope::of(&ToolInvokeRequest::new("1", "t", "{}").with_session_id("s")).unwrap(),
        MessageEnvelope::of(&ToolInvokeRequest::new("1", "t", "{}").succeed("done")).unwrap(),
    ];
    let corpus = corpus.map(|envelope| serde_json::to_vec(&typed(envelope)).unwrap());
    Mutations::of(corpus).check(|document| {
        let Ok(envelope) = serde_json::from_slice::<MessageEnvelope>(document) else {
            return;
        };
        let again: MessageEnvelope = serde_json::from_slice(&serde_json::to_vec(&envelope).unwrap()).unwrap();
        assert_eq!(again, envelope);
        assert!(headers::timeout(&envelope.headers).is_none_or(|limit| limit <= Duration::from_secs(86_400)));
        headers::trace(&envelope.headers);
        payload::<UserMessage>(&envelope);
        payload::<AgentReply>(&envelope);
        payload::<ToolInvokeRequest>(&envelope);
        payload::<ToolInvokeResponse>(&envelope);
    });
}

#[test]
fn bodies_of_messages() {
    let feedback = json!({"sessionId": "s", "messageId": "m", "isPositive": false, "comment": "no", "agentName": "a"});
    let corpus = [
        serde_json::to_string(&UserMessage::new("s", "Hello.")).unwrap(),
        serde_json::to_string(&ToolInvokeRequest::new("1", "t", "{}")).unwrap(),
        feedback.to_string(),
        r#"{"sessionId":"s","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}"#
            .to_owned(),
        r#"{"turn":"t","call":"c","approved":true,"reason":"x"}"#.to_owned(),
    ];
    Mutations::of(corpus).check(|body| {
        fn read<M: Message + DeserializeOwned>(body: &[u8]) {
            if let Err(error) = MessageEnvelope::new(M::TYPE, body.to_vec()).payload::<M>() {
                assert!(error.to_string().len() <= 2_000, "{error}");
            }
        }
        read::<UserMessage>(body);
        read::<AgentReply>(body);
        read::<UserFeedback>(body);
        read::<ConversationHistoryRequest>(body);
        read::<Approval>(body);
        read::<ToolInvokeRequest>(body);
    });
}

#[test]
fn configurations() {
    let toml = r#"
        [AgentProfile]
        BasePath = "data"
        [AgentHost]
        MaxToolIterations = 50
        MaxTurnTime = "00:10:00"
        ToolResultStashHeadTailRatio = 0.6
        MaxTurnCost = 0.5
        [LLM.Balanced]
        Endpoint = "http://127.0.0.1:9/v1"
        ApiKey = "canary-key"
        ModelId = "m"
        [LLM.Gateway.Permits]
        Total = 1
        [ModelBehaviors.Models."openrouter/deepseek"]
        ToolResultChunkingThreshold = 32000
        [Feedback]
        PollInterval = "00:05:00"
    "#;
    let json = r#"{"AgentHost": {"MaxToolIterations": 30}, "LLM": {"ApiKey": "canary-key", "ModelId": "m",
        "Prices": {"m": {"Input": 1, "Cached": 0.1, "Output": 4.5}}}, "Dream": {"Interval": "04:00:00"}}"#;
    let read = |name: &str, text: &str| {
        let result = Config::new()
            .with_text(name, text)
            .map_err(Into::into)
            .and_then(|config| AgentHost::configured(&config, Path::new("nowhere")).map(|_| config.unknown().len()));
        if let Err(error) = result {
            let error = error.to_string();
            assert!(error.len() <= 4_000, "{} bytes: {error:.200}", error.len());
            assert!(!error.contains("canary"), "{error}");
        }
    };
    Mutations::of([toml]).check_text(|text| read("agent.toml", text));
    Mutations::of([json]).check_text(|text| read("agent.json", text));
}

#[test]
fn markdown() {
    let corpus = [
        "# One\n\ntext\n\n## Two\n```rust\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n  - y\n",
        "intro\r\n\r\nSetext\r\n======\r\n\r\n~~~\r\nfence\r\n~~~\r\n### Drei\r\nzwölf 🚀 東京",
        "{\"a\": [1, 2, {\"b\": \"c\"}]}\n\n<p>html</p>\n\n    indented\n",
    ];
    Mutations::of(corpus).check_text(|text| {
        for max_len in [1, 40, 4_000] {
            let chunks = ContentChunker::new(max_len).split(text);
            assert_eq!(
                chunks.iter().map(|chunk| chunk.text).collect::<String>(),
                text,
                "nothing is lost"
            );
            let listed = outline(&chunks, 500, |index| index);
            assert!(listed.len() <= 700, "{}", listed.len());
        }
        let document = AgentProfileDocument::parse("soul", text);
        assert_eq!(document.raw(), text);
        let sections: usize = document.sections().iter().map(|section| section.content.len()).sum();
        assert!(sections <= text.len());
    });
}

#[tokio::test]
async fn skill_files() {
    let corpus = [
        "---\nname: zebra\ndescription: How to care for zebras.\nlicense: MIT\nmetadata:\n  author: ann\n  version: \"1.0\"\n---\n\n# Zebras\n\nBrush them.\n",
        "---\nname: 'quoted: name'\ndescription: >\n  folded\n  text\nallowed-tools: [Read, Write]\n---\nBody",
        "---\nname: alias\ndescription: &a |\n  literal\n  text\nsee: *a\n---\n",
    ];
    for document in Mutations::of(corpus) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("zebra")).unwrap();
        std::fs::write(folder.path().join("zebra/SKILL.md"), &document).unwrap();
        let store = InMemorySkillStore::new();
        let report = SkillFolder::new(folder.path())
            .import(&me(), &store, &SystemClock)
            .await;
        let report = report.unwrap_or_else(|error| panic!("{error} in {}", document.escape_ascii()));
        assert_eq!(
            report.skills.len() + report.skipped.len(),
            1,
            "{}",
            document.escape_ascii()
        );
        for file in &report.skipped {
            assert!(file.reason.to_string().len() <= 1_000, "{}", file.reason);
        }
    }
}

/// Writes a data folder with a bit of everything, and returns its files.
async fn data_folder(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let model = ScriptedModel::new()
        .calls("note", json!({"text": "door"}))
        .says("The door is green.")
        .says("Still green.");
    let (note, mut handle) = mock_tool("note");
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model)
        .tool(note)
        .data_dir(folder);
    let host = host.add(Memory::default().with_conversation_log()).build().unwrap();
    let parts = host.parts();
    let now = SystemClock.now();
    let path = |text| StorePath::new(text).unwrap();
    let memories = parts.get::<dyn LongTermMemory>().unwrap();
    memories
        .save(
            &me(),
            MemoryEntry::new("m1", "The door is green.", now, Provenance::USER),
        )
        .await
        .unwrap();
    let skills = parts.get::<dyn SkillStore>().unwrap();
    let skill = Skill::new(path("doors"), "Knock first.", now, Provenance::USER);
    skills
        .save(&me(), skill.with_summary("how to open doors"))
        .await
        .unwrap();
    let rules = parts.get::<dyn RulesStore>().unwrap();
    rules.add(&me(), Rule::new("Be brief.").unwrap()).await.unwrap();
    rules.set_time_zone(&me(), "Europe/Paris").await.unwrap();
    let working = parts.get::<dyn WorkingMemory>().unwrap();
    working
        .put(
            &me(),
            vec![WorkingNote::new(path("session/s/door"), "Green.", Provenance::TOOL)],
        )
        .await
        .unwrap();
    let (asked, ()) = tokio::join!(host.agent().ask("s", "What of the door?"), async {
        handle.next_call().await.respond("noted");
    });
    asked.unwrap();
    host.agent().ask("s", "And now?").await.unwrap();
    host.shutdown(Duration::from_secs(5)).await;
    drop((memories, skills, rules, working, host));
    files(folder, folder)
}

fn files(root: &Path, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(root, &path))
        } else {
            found.push((
                path.strip_prefix(root).unwrap().to_owned(),
                std::fs::read(&path).unwrap(),
            ))
        }
    }
    found.sort();
    found.retain(|(_, bytes)| !bytes.is_empty());
    found
}

/// Opens a data folder and reads everything in it. An error is fine, unless it is that of a panic.
async fn read_all(folder: &Path) {
    let model = ScriptedModel::new().says("Well.").says("Well.").says("Well.");
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model)
        .data_dir(folder);
    let host = match host.add(Memory::default().with_conversation_log()).build() {
        Ok(host) => host,
        Err(error) => return check_error(&error),
    };
    if let Err(error) = host.start().await {
        return check_error(&error);
    }
    if let Err(error) = host.agent().ask("s", "What of the door?").await {
        check_error(&error);
    }
    let parts = host.parts();
    macro_rules! read {
        ($part:ty, $read:ident($($argument:expr),*)) => {
            if let Err(error) = parts.get::<$part>().unwrap().$read(&me(), $($argument),*).await {
                check_error(&error);
            }
        };
    }
    read!(dyn LongTermMemory, list());
    read!(dyn SkillStore, list());
    read!(dyn RulesStore, list());
    read!(dyn RulesStore, time_zone());
    read!(dyn WorkingMemory, list(None));
    read!(dyn ConversationLog, read("reader", 100));
    read!(
        dyn FeedbackStore,
        query_recent(rockbot_core::Timestamp::from_millis(0), 100)
    );
    read!(dyn ConversationMemory, recent(&"s".into(), 100));
    host.shutdown(Duration::from_secs(1)).await;
}

fn check_error(error: &dyn std::error::Error) {
    let text = error.to_string();
    assert!(!text.contains("panic") && text.len() <= 4_000, "{text}");
}

/// Journal, conversations, memories, notes, skills, rules, logs: each file broken in turn.
#[tokio::test]
async fn files_of_the_data_folder() {
    let whole = tempfile::tempdir().unwrap();
    let files = data_folder(whole.path()).await;
    assert!(files.len() >= 8, "{files:?}");
    for (broken, bytes) in &files {
        for document in Mutations::of([bytes]).divided_by(24) {
            let folder = tempfile::tempdir().unwrap();
            for (path, bytes) in &files {
                let path = folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            std::fs::write(folder.path().join(broken), &document).unwrap();
            println!("{}: {}", broken.display(), document.escape_ascii());
            read_all(folder.path()).await;
        }
    }
}

/// Lines of a journal broken one by one: the other runs are there.
#[tokio::test]
async fn lines_of_a_journal() {
    let whole = tempfile::tempdir().unwrap();
    data_folder(whole.path()).await;
    let name = "turns-00000001.jsonl";
    let journal = std::fs::read(whole.path().join("turns").join(name)).unwrap();
    let lines: Vec<_> = journal.split_inclusive(|byte| *byte == b'\n').collect();
    for document in Mutations::of(&lines).divided_by(2) {
        let folder = tempfile::tempdir().unwrap();
        let other = [&document[..], b"\n", &journal[..]].concat();
        std::fs::write(folder.path().join(name), other).unwrap();
        let journal = FileTurnJournal::open(folder.path()).unwrap();
        println!("{}", document.escape_ascii());
        for run in journal.unfinished(&RunQuery::all()).await.unwrap() {
            if let Err(error) = journal.read(&run).await {
                check_error(&error);
            }
        }
    }
}

/// Answers of model servers, whole and streamed, in all dialects.
#[tokio::test]
async fn answers_of_model_servers() {
    let openai = [
        r#"{"choices":[{"message":{"role":"assistant","content":"Hi.","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        "event: x\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"t\",\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        r#"{"error":{"message":"This model's maximum context length is 4096 tokens, you requested 99999999999999999999","code":"context_length_exceeded","type":"x"}}"#,
    ];
    let anthropic = [
        r#"{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi."},{"type":"tool_use","id":"c","name":"t","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}"#,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let responses = [
        r#"{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"},{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi.","annotations":[]}]},{"type":"function_call","id":"f","call_id":"c","name":"t","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":1}}"#,
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[]}}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n",
    ];
    served("openai", &openai).await;
    served("anthropic", &anthropic).await;
    served("openai-responses", &responses).await;
}

async fn served(provider: &str, corpus: &[&str]) {
    let mut answers = Mutations::of(corpus).divided_by(6);
    let count = answers.clone().count();
    let server = ModelServer::start(move |_, _| {
        let text = answers.next().unwrap_or_else(|| b"{}".to_vec());
        let status = if text.starts_with(b"{\"error") { 400 } else { 200 };
        (status, String::from_utf8_lossy(&text).into_owned())
    });
    let endpoint = format!("{}/v1", server.endpoint);
    let mut config = Config::new();
    for name in ["PROVIDER", "ENDPOINT", "APIKEY", "MODELID"] {
        let value = match name {
            "PROVIDER" => provider,
            "ENDPOINT" => endpoint.as_str(),
            _ => "m",
        };
        config = config.with_variables([(format!("ROCKBOT_LLM__BALANCED__{name}"), value.to_owned())]);
    }
    let config = config.with_variables([("ROCKBOT_LLM__GATEWAY__RETRIES".to_owned(), "0".to_owned())]);
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(ModelGateway::from_config(&config).unwrap())
        .build()
        .unwrap();
    for number in 0..count {
        let outcome = host.agent().ask(format!("s{number}"), "Hello.").await;
        let text = match outcome {
            Ok(answer) => answer.text,
            Err(error) => error.to_string(),
        };
        assert!(!text.contains("panicked") && text.len() <= 64 * 1024, "{text:.500}");
    }
    assert!(server.requests().len() >= count, "each answer was read");
}
