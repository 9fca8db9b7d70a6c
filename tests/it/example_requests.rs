//! The examples that put requests together: what their settings become on the wire of a model
//! server.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::example_programs::{PATIENCE, Service, example, run, streamed, text};
use crate::support::model_server::ModelServer;

/// Runs the chat with a model server that streams `answer`, and returns its standard output and
/// the first request.
async fn chat(folder: &std::path::Path, arguments: &[&str], answer: &'static str) -> (String, Vec<Value>) {
    let server = ModelServer::start(move |_, _| (200, streamed(answer)));
    let mut chat = example("chat", arguments, folder);
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), server.requests())
}

#[tokio::test]
async fn the_chat_asks_as_its_command_line_says() {
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"type": "object", "properties": {"dish": {"type": "string"}}, "required": ["dish"]});
    std::fs::write(folder.path().join("dish.json"), schema.to_string()).unwrap();
    let answer = r#"{"dish": "Soup"}"#;
    let words = [
        "--temperature",
        "0.5",
        "--schema",
        "dish.json",
        "--schema-by",
        "tool",
        "Dish?",
    ];
    let (printed, requests) = chat(folder.path(), &words, answer).await;
    assert_eq!(printed.trim_end(), answer);
    assert_eq!(requests[0]["temperature"], 0.5);
    let tools = requests[0]["tools"].as_array().unwrap().iter();
    let tools: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    assert!(tools.contains(&&json!("final_answer")), "{tools:?}");
}

#[tokio::test]
async fn a_question_with_an_id_is_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--message-id", "bill-7", "Pay bill 7."];
    let (first, requests) = chat(folder.path(), &words, "Paid.").await;
    assert_eq!((first.trim_end(), requests.len()), ("Paid.", 1));
    let (again, requests) = chat(folder.path(), &words, "Paid twice.").await;
    assert_eq!((again.trim_end(), requests.len()), ("Paid.", 0));
}

#[tokio::test]
async fn a_tier_chooses_the_model() {
    let server = ModelServer::start(|_, _| (200, streamed("Hi.")));
    let folder = tempfile::tempdir().unwrap();
    let mut chat = example("chat", &["--tier", "high", "hello"], folder.path());
    for tier in ["LOW", "BALANCED", "HIGH"] {
        chat.env(format!("ROCKBOT_LLM__{tier}__ENDPOINT"), &server.endpoint);
        chat.env(format!("ROCKBOT_LLM__{tier}__MODELID"), tier);
        chat.env(format!("ROCKBOT_LLM__{tier}__APIKEY"), "k");
    }
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    assert_eq!(text(&output.stdout), "Hi.\n", "{}", text(&output.stderr));
    assert_eq!(server.requests()[0]["model"], "HIGH");
}

#[tokio::test]
async fn a_wrong_option_is_one_line_that_says_what_is_possible() {
    let folder = tempfile::tempdir().unwrap();
    for (words, problem) in [
        (
            &["--tier", "tall", "hi"][..],
            "error: invalid value 'tall' for '--tier <TIER>': `tall` is none of low, balanced, high\n",
        ),
        (
            &["--schema-by", "hand", "hi"],
            "error: invalid value 'hand' for '--schema-by <WAY>': `hand` is none of auto, native, tool, prompt\n",
        ),
        (
            &["--temperature", "hot", "hi"],
            "error: invalid value 'hot' for '--temperature <T>': invalid float literal\n",
        ),
        (
            &["--message-id", "1"],
            "error: `--message-id` is the id of one question: give the question, too\n",
        ),
        (
            &["--sesion", "s", "hi"],
            "error: unexpected argument '--sesion' found\n\n  tip: a similar argument exists: '--session'\n",
        ),
    ] {
        let output = run("chat", words, folder.path()).await;
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.starts_with(problem), "{told}");
    }
}

#[tokio::test]
async fn an_answer_ends_at_its_tokens() {
    let server = ModelServer::start(|_, _| {
        let message = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "calculate", "arguments": "{\"expression\": \"1\"}"}}
        ]});
        let usage = json!({"prompt_tokens": 60, "completion_tokens": 1, "total_tokens": 61});
        let answer = json!({"choices": [{"finish_reason": "tool_calls", "message": message}], "usage": usage});
        (200, answer.to_string())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut chat = example("chat", &["--max-tokens", "100", "hello"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    assert!(server.requests().len() <= 3, "{}", text(&output.stderr));
}

/// The worked example, the guidelines of the message, and the settings of the request reach the
/// model.
#[cfg(unix)]
#[tokio::test]
async fn the_full_agent_reviews_a_text_for_other_programs() {
    let server = ModelServer::start(|_, request| {
        let asked = request["messages"].to_string();
        let message = if asked.contains("Be polite.") {
            json!({"role": "assistant", "content": r#"{"is_ready": true, "changes": []}"#})
        } else {
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "read_guidelines", "arguments": "{}"}}
            ]})
        };
        (200, json!({"choices": [{"message": message}]}).to_string())
    });
    let folder = tempfile::tempdir().unwrap();
    let environment = [("OPENAI_BASE_URL", server.endpoint.as_str()), ("OPENAI_MODEL", "m")];
    let mut service = Service::start_with(folder.path(), &environment).await;
    service.type_line("/review Dear Ada, thank you.").await;
    assert_eq!(service.line().await, "ready");
    service.stop().await;
    let requests = server.requests();
    let asked = requests[0]["messages"].to_string();
    assert_eq!(requests.len(), 2, "one for the guidelines, one for the review");
    for part in ["Dear Ada", "At most 3 changes.", "Send me the files."] {
        assert!(asked.contains(part), "{asked}");
    }
    assert_eq!(requests[0]["max_completion_tokens"], 4000);
}
