//! `chat doctor`: what is wrong is said, with what to do about it and without any secret.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use rockbot::agent::{AgentHost, AgentHostBuilder, FromConfig};
use rockbot::config::Config;
use rockbot::testing::ScriptedModel;
use rockbot_cli::doctor::{Report, examine, inputs};
use rockbot_cli::host;
use rockbot_core::BoxError;
use rockbot_core::subsystem::{Declarations, Idle, Parts, Running, Subsystem};
use rockbot_store::file::FileTurnJournal;
use serde_json::{Value, json};

const CANARY: &str = "canary-key-1234";

/// Runs the doctor on this file, these variables and this data folder; paths are taken out of the
/// report.
async fn examine_all(file: Option<(&str, &str)>, variables: &[(&str, &str)], data: Option<&Path>) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = file.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let default_data = folder.path().join("data");
    let variables: Vec<(OsString, OsString)> = variables.collect();
    let mut report = examine(path.as_deref(), data, &default_data, variables.clone()).await;
    let before = report.to_string();
    let config = path.map_or_else(|| Ok(Config::new()), |path| Config::new().with_file(path));
    let builder = config
        .map(|config| config.with_variables(variables))
        .map_err(BoxError::from);
    report.list_parts(builder.and_then(|config| AgentHost::configured(&config, &default_data)));
    // Without the parts, which have tests of their own.
    let is_part = |line: &&str| line.starts_with("ok       part: ") && !before.contains(*line);
    let report_text = report.to_string();
    let lines = report_text.lines().filter(|line| !is_part(line));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let text = text.replace(&folder.path().display().to_string(), "HERE");
    assert!(!text.contains(CANARY), "{text}");
    (report.has_problem(), text)
}

/// Checks that the report has a line that begins with `line`, and reports a problem exactly when
/// that line is one.
#[track_caller]
fn check((has_problem, text): &(bool, String), expected: &str) {
    assert!(text.lines().any(|line| line == expected), "{text}");
    assert_eq!(*has_problem, expected.starts_with("problem"), "{text}");
}

#[cfg(all(feature = "postgres", feature = "rabbitmq"))]
#[tokio::test]
async fn a_database_and_a_broker_that_are_away_are_named() {
    let variables = [
        (
            "ROCKBOT_POSTGRES__URL",
            "postgres://ann:canary-key-1234@127.0.0.1:9/agents",
        ),
        ("ROCKBOT_RABBITMQ__PORT", "9"),
        ("ROCKBOT_RABBITMQ__PASSWORD", CANARY),
    ];
    let (has_problem, text) = examine_all(None, &variables, None).await;
    assert!(has_problem);
    for part in [
        "problem  database: the database `agents` at 127.0.0.1:9 cannot be opened: ",
        "problem  broker: cannot connect to",
    ] {
        assert!(text.lines().any(|line| line.starts_with(part)), "{text}");
    }
}

/// A server that answers a request for its models with this, and that of a turn as a model does;
/// its endpoint.
fn server(status: u16, models: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let request = read(&mut socket);
            let (status, body) = if request.starts_with("GET ") {
                (status, models.to_owned())
            } else {
                (200, answer(&request).to_string())
            };
            let head = "content-type: application/json\r\nconnection: close";
            let length = body.len();
            let answer = format!("HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    endpoint
}

fn read(socket: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text.into_owned();
            }
        }
        match socket.read(&mut bytes) {
            Ok(count) if count > 0 => request.extend_from_slice(&bytes[..count]),
            _ => return String::from_utf8_lossy(&request).into_owned(),
        }
    }
}

/// A call in the dialect of the request, or words behind its result.
fn answer(request: &str) -> Value {
    let has_result = [r#""role":"tool""#, r#""tool_result""#, r#""function_call_output""#];
    let has_result = has_result.iter().any(|mark| request.contains(mark));
    let arguments = r#"{"word":"rock"}"#;
    match request.split(' ').nth(1).unwrap_or_default() {
        path if path.ends_with("/messages") => {
            let call = json!({"type": "tool_use", "id": "c1", "name": "look_up", "input": {"word": "rock"}});
            let words = json!({"type": "text", "text": "It is there."});
            let (block, reason) = if has_result {
                (words, "end_turn")
            } else {
                (call, "tool_use")
            };
            json!({"type": "message", "role": "assistant", "model": "m", "content": [block], "stop_reason": reason,
                "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        path if path.ends_with("/responses") => {
            let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look_up", "arguments": arguments});
            let words = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "It is there.", "annotations": []}]});
            let item = if has_result { words } else { call };
            json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item]})
        }
        _ => {
            let call = json!({"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": arguments}});
            let words = json!({"content": "It is there."});
            let message = if has_result {
                words
            } else {
                json!({"content": null, "tool_calls": [call]})
            };
            json!({"choices": [{"finish_reason": "stop", "message": message}]})
        }
    }
}

const MODELS: &str = r#"{"object":"list","data":[{"id":"large"},{"id":"small"}]}"#;

#[tokio::test]
async fn when_all_is_well_it_says_what_is_used() {
    let endpoint = server(200, MODELS);
    let file = format!(
        r#"{{ "LLM": {{
            "Balanced": {{ "Endpoint": "{endpoint}", "ApiKey": "{CANARY}", "ModelId": "large" }},
            "Low": {{ "ModelId": "small" }}
        }} }}"#
    );
    let data = tempfile::tempdir().unwrap();
    let report = examine_all(Some(("agent.json", &file)), &[], Some(data.path())).await;
    let text = report.1.replace(&data.path().display().to_string(), "DATA");
    let expected = "\
ok       configuration: `HERE/agent.json` and the environment
ok       data folder: `DATA`
ok       Balanced: the key is set by `LLM.Balanced.ApiKey` in `HERE/agent.json`
ok       Balanced: model `large`: it answers and has the model
ok       Balanced: model `large`: a turn's requests are accepted, and the model calls tools
ok       Low: the key is set by `LLM.Balanced.ApiKey` in `HERE/agent.json`
ok       Low: model `small`: it answers and has the model
ok       Low: model `small`: a turn's requests are accepted, and the model calls tools
ok       High: not set; Balanced stands in
ok       gateway: up to 4 attempts of each model call that fails
";
    assert_eq!((report.0, text.as_str()), (false, expected));
}

#[tokio::test]
async fn without_a_model_it_says_who_answers() {
    let (has_problem, text) = examine_all(None, &[], None).await;
    assert!(!has_problem, "{text}");
    assert!(
        text.contains("ok       configuration: the environment; --config names a file\n"),
        "{text}"
    );
    assert!(
        text.contains("warning  models: no model is configured: set OPENAI_API_KEY"),
        "{text}"
    );
    assert!(
        text.contains("until then the built-in offline model answers\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_model_server_that_cannot_be_asked_is_a_problem() {
    let refuses = server(401, r#"{"error":{"message":"no"}}"#);
    let lacks = server(200, MODELS);
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let report = async |endpoint: &str, model: &str| {
        let variables = [
            ("OPENAI_BASE_URL", endpoint),
            ("OPENAI_API_KEY", CANARY),
            ("OPENAI_MODEL", model),
        ];
        examine_all(None, &variables, None).await
    };
    check(
        &report(&refuses, "m").await,
        &format!("problem  Balanced: model `m`: `{refuses}` refused the key (status 401): no; check OPENAI_API_KEY"),
    );
    check(
        &report(&lacks, "m").await,
        "warning  Balanced: model `m`: it answers and lists 2 models, but not `m`; check OPENAI_MODEL",
    );
    let (has_problem, text) = report(&closed, "m").await;
    assert!(
        has_problem && text.contains(&format!("problem  Balanced: model `m`: cannot reach `{closed}`: ")),
        "{text}"
    );
    check(
        &examine_all(None, &[("OPENAI_MODEL", "m")], None).await,
        "problem  models: OPENAI_BASE_URL is not set: set it to the base URL of your server, or set OPENAI_API_KEY to the key \
         of an account at https://api.openai.com/v1",
    );
}

#[tokio::test]
async fn a_model_of_anthropic_has_the_variables_of_anthropic() {
    let refuses = server(
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#,
    );
    let has = server(
        200,
        r#"{"data":[{"type":"model","id":"claude-m-20260101"}],"has_more":false}"#,
    );
    let report = async |endpoint: &str, model: &str| {
        let variables = [
            ("ANTHROPIC_BASE_URL", endpoint),
            ("ANTHROPIC_API_KEY", CANARY),
            ("ANTHROPIC_MODEL", model),
        ];
        examine_all(None, &variables, None).await
    };
    let well = report(&has, "claude-m").await;
    check(&well, "ok       Balanced: the key is set by ANTHROPIC_API_KEY");
    check(
        &well,
        "ok       Balanced: model `claude-m`: it answers and has the model",
    );
    check(
        &well,
        "ok       Balanced: model `claude-m`: a turn's requests are accepted, and the model calls tools",
    );
    check(
        &report(&has, "claude-x").await,
        "warning  Balanced: model `claude-x`: it answers and lists 1 model, but not `claude-x`; check ANTHROPIC_MODEL",
    );
    let refuses = refuses.trim_end_matches("/v1");
    check(
        &report(refuses, "claude-m").await,
        &format!(
            "problem  Balanced: model `claude-m`: `{refuses}` refused the key (status 401): no; check ANTHROPIC_API_KEY"
        ),
    );
    let file = r#"{ "LLM": { "ApiKey": "x", "High": { "Provider": "anthropic", "ModelId": "claude-m" } } }"#;
    check(
        &examine_all(Some(("agent.json", file)), &[], None).await,
        "problem  models: ANTHROPIC_API_KEY is not set: set it to the key of your account, or to any word if the \
         server needs none",
    );
    let file = r#"{ "LLM": { "ApiKey": "x", "High": { "Provider": "antropic" } } }"#;
    let (has_problem, text) = examine_all(Some(("agent.json", file)), &[], None).await;
    assert!(
        has_problem
            && text.contains(
                "`LLM.High.Provider` in `HERE/agent.json` must be one of these: openai, openai-responses, anthropic, offline"
            ),
        "{text}"
    );
}

#[tokio::test]
async fn a_model_of_the_responses_api_is_looked_up_as_any_of_openai() {
    let endpoint = server(200, MODELS);
    let variables = [
        ("OPENAI_BASE_URL", endpoint.as_str()),
        ("OPENAI_API_KEY", CANARY),
        ("OPENAI_MODEL", "small"),
        ("ROCKBOT_LLM__BALANCED__PROVIDER", "OpenAIResponses"),
    ];
    let report = examine_all(None, &variables, None).await;
    check(
        &report,
        "ok       Balanced: model `small`: it answers and has the model",
    );
    check(
        &report,
        "ok       Balanced: model `small`: a turn's requests are accepted, and the model calls tools",
    );
}

#[tokio::test]
async fn a_model_of_embeddings_is_looked_at_when_there_is_one() {
    let endpoint = server(200, MODELS);
    let report = async |text: &str| examine_all(Some(("a.toml", text)), &[], None).await;
    let small = format!("[LLM.Embeddings]\nEndpoint = \"{endpoint}\"\nModelId = \"small\"");
    check(
        &report(&small).await,
        "ok       embeddings: model `small`: it answers and has the model",
    );
    check(
        &report(&format!("[LLM.Embeddings]\nEndpoint = \"{endpoint}\"")).await,
        "problem  embeddings: ROCKBOT_LLM__EMBEDDINGS__MODELID is not set: set it to the name of a model that the server knows",
    );
    let (_, text) = examine_all(None, &[], None).await;
    assert!(!text.contains("embeddings"), "{text}");
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_said_with_its_place() {
    let report = async |name: &str, text: &str| examine_all(Some((name, text)), &[], None).await;
    check(
        &report("a.json", "{\n  \"LLM\": canary-key-1234 }").await,
        "problem  configuration: `HERE/a.json` is not JSON, at line 2 column 10",
    );
    check(
        &report(
            "a.toml",
            "[ConversationMemory]\nSessionIdleTimeout = \"canary-key-1234\"",
        )
        .await,
        "problem  configuration: `ConversationMemory.SessionIdleTimeout` in `HERE/a.toml`: expected a time span such as `00:05:00` (`[days.]hours:minutes[:seconds]`), found text",
    );
    check(
        &report("a.toml", "[LLM.Balanced]\nApiKey = [\"canary-key-1234\"]").await,
        "problem  models: `LLM.Balanced.ApiKey` in `HERE/a.toml`: expected text, found a list",
    );
    check(
        &report(
            "a.toml",
            "[ConversationMemory]\nSessionIdleTimeoutt = \"canary-key-1234\"",
        )
        .await,
        "problem  configuration: `ConversationMemory.SessionIdleTimeoutt` in `HERE/a.toml` is not a setting; did you mean `SessionIdleTimeout`?",
    );
    check(
        &examine_all(None, &[("ROCKBOT_CONVERSATIONMEMORY__KEEPCALL", CANARY)], None).await,
        "problem  configuration: ROCKBOT_CONVERSATIONMEMORY__KEEPCALL is not a setting; did you mean `KeepCalls`?",
    );
    check(
        &examine_all(None, &[("ROCKBOT_LLM__BALANCED__API_KEY", CANARY)], None).await,
        "problem  models: ROCKBOT_LLM__BALANCED__API_KEY is not a setting; did you mean `ApiKey`?",
    );
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_used_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let _journal = FileTurnJournal::open(folder.path().join("turns")).unwrap();
    let shown = folder.path().display();
    check(
        &examine_all(None, &[], Some(folder.path())).await,
        &format!("problem  data folder: another process uses `{shown}`: stop that process, or choose another folder"),
    );
    let lock = folder.path().join("turns").join("lock");
    check(
        &examine_all(None, &[], Some(&lock)).await,
        &format!("problem  data folder: `{shown}/turns/lock` is not a folder: remove it, or choose another folder"),
    );
}

/// Even an administrator cannot write there.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_data_folder_that_cannot_be_written_is_a_problem() {
    let (has_problem, text) = examine_all(None, &[], Some(Path::new("/proc/self"))).await;
    assert!(
        has_problem && text.contains("problem  data folder: `/proc/self` is not writable: "),
        "{text}"
    );
}

#[tokio::test]
async fn a_profile_lacks_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().display().to_string();
    let report = async || examine_all(None, &[("AgentProfile__BasePath", &base)], None).await;
    check(
        &report().await,
        &format!(
            "warning  profile: there is no `{base}/soul.md`: write one that says who the agent is: its identity, \
             values and character; until then the agent has no profile"
        ),
    );
    std::fs::write(folder.path().join("soul.md"), "I am.").unwrap();
    check(
        &report().await,
        &format!(
            "problem  profile: there is no `{base}/directives.md`: write one that says how the agent works here: its \
             instructions"
        ),
    );
    std::fs::write(folder.path().join("directives.md"), "Be brief.").unwrap();
    check(&report().await, &format!("ok       profile: `{base}`"));
}

/// Returns the lines of the parts of a host with this configuration.
fn parts(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new().with_text("a.toml", text).unwrap();
    let builder = AgentHost::configured(&config, folder.path()).map(|builder| {
        let root = folder.path().to_owned();
        host::tools(root).into_iter().fold(builder, AgentHostBuilder::tool)
    });
    let mut report = Report::default();
    report.list_parts(builder);
    assert!(!report.has_problem(), "{report}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "a doctor leaves nothing behind: {left:?}");
    report.to_string()
}

#[test]
fn each_part_is_listed_with_its_cost() {
    // Without the date, whose length changes from day to day.
    insta::assert_snapshot!(parts("[AgentHost]\nDateTime = false"));
}

#[test]
fn what_the_configuration_turns_on_is_listed_as_on() {
    let all = parts(
        r#"
        [AgentHost]
        MaxCompletionReprompts = 2
        MaxFollowUpPasses = 1
        WorkingMethod = true
        [LLM]
        ApiKey = "none"
        Endpoint = "http://127.0.0.1:9/v1"
        ModelId = "m"
        [LLM.Low]
        ModelId = "s"
        [LLM.Embeddings]
        Endpoint = "http://127.0.0.1:9/v1"
        ModelId = "e"
        [Feedback]
        Enabled = true
        [ConversationLog]
        Enabled = true
        "#,
    );
    for line in [
        "part: completion judge: no tokens in a request; model calls: in a turn up to 2 of a judge on the low tier, and \
         what its verdicts prolong",
        "part: follow-up: no tokens in a request; model calls: in a turn up to 1 of a judge",
        "part: tier selector: no tokens in a request; no model calls of its own",
        "part: embeddings: no tokens in a request; model calls: one of the embedding model",
        "part: conversation log: no tokens in a request; no model calls",
        "part: feedback signals: no tokens in a request; no model calls",
        "part: session evaluation: no tokens in a request; model calls: one on the Balanced tier for each ended session",
    ] {
        assert!(all.contains(line), "{line}: {all}");
    }
}

#[derive(Debug)]
struct Silent;

#[async_trait::async_trait]
impl Subsystem for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}

#[test]
fn a_subsystem_that_states_no_cost_is_not_hidden() {
    let mut report = Report::default();
    report.list_parts(Ok(AgentHost::in_memory().chat(ScriptedModel::new()).add(Silent)));
    let line = "part: silent: no tokens in a request; model calls: unknown, it states no cost\n";
    assert!(report.to_string().contains(line), "{report}");
}

#[tokio::test]
async fn the_offline_model_is_a_warning_also_where_it_was_asked_for() {
    let report = examine_all(None, &[("ROCKBOT_LLM__PROVIDER", "offline")], None).await;
    check(
        &report,
        "warning  Balanced: it is the built-in offline model, which is not an LLM",
    );
}

#[test]
fn what_parts_read_below_the_data_folder_is_found_from_elsewhere() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("well-known-agents.json"), "[]").unwrap();
    let text =
        "[Mcp]\nConfigPath = \"mcp.json\"\n[ServiceSearch]\nHints = true\n[ToolServices]\nFolder = \"/srv/tools\"";
    let config = Config::new().with_text("a.toml", text).unwrap();
    let expected = [
        ("ROCKBOT_MCP__CONFIGPATH", data.path().join("mcp.json")),
        (
            "ROCKBOT_SERVICESEARCH__AGENTSPATH",
            data.path().join("well-known-agents.json"),
        ),
        ("ROCKBOT_TOOLSERVICES__FOLDER", "/srv/tools".into()),
    ];
    let expected = expected.map(|(name, path)| (name.to_owned(), path));
    assert_eq!(inputs(&config, data.path()).unwrap(), expected);
}
