//! Tests of arguments that do not match: what a model reads of them.

use serde_json::json;

use super::{ArgumentSchema, ToolError, ToolErrorCode, ToolInvokeRequest, tool};
use crate::testing::mock_tool;
use crate::{CallContext, ToolName};

/// Texts that a model may send instead of arguments.
fn malformed() -> Vec<(String, &'static str)> {
    let deep = |open: &str, close: &str| format!("{{\"text\":{}{}}}", open.repeat(10_000), close.repeat(10_000));
    vec![
        (String::new(), "the arguments are empty: send a JSON object"),
        ("  \n".to_owned(), "the arguments are empty: send a JSON object"),
        ("null".to_owned(), "must be a JSON object, got null"),
        ("[]".to_owned(), "must be a JSON object, got an array"),
        ("[\"a\"]".to_owned(), "must be a JSON object, got an array"),
        ("\"\"".to_owned(), "must be a JSON object, got a string"),
        ("17".to_owned(), "must be a JSON object, got a number"),
        ("true".to_owned(), "must be a JSON object, got a boolean"),
        ("text".to_owned(), "must be a JSON object"),
        ("{".to_owned(), "not valid JSON: EOF"),
        ("{\"text\": \"a\"} {}".to_owned(), "not valid JSON: trailing characters"),
        (
            format!("{{\"text\": \"{}\"}}", "x".repeat(1024 * 1024)),
            "262144 are allowed: send less",
        ),
        (deep("[", "]"), "nested deeper than 64 levels"),
        (deep("{\"a\":", "}"), "nested deeper than 64 levels"),
        (deep("[", ""), "nested deeper than 64 levels"),
        ("{\"text\": \"a\", \"text\": \"b\"}".to_owned(), "`text` is given twice"),
        ("{\"text\": 1e999}".to_owned(), "not valid JSON: number out of range"),
        ("{\"text\": \"\\ud800\"}".to_owned(), "not valid JSON: "),
        ("{\"text\": \"a\u{0}\"}".to_owned(), "not valid JSON: control character"),
    ]
}

#[track_caller]
fn teaches(message: &str, words: &str) {
    assert!(message.contains(words), "{message:?} should say {words:?}");
    assert!(
        message.contains("Expected: {\"text\": string}"),
        "{message:?} should show what is expected"
    );
    assert!(
        message.ends_with("Call the tool again with corrected arguments."),
        "{message:?} should say what to do"
    );
    assert!(
        message.len() < 1_000,
        "a message for a model is short, this one has {} bytes",
        message.len()
    );
}

#[test]
fn malformed_arguments_are_refused_by_a_schema() {
    let schema = json!({"properties": {"text": {"type": "string"}}, "required": ["text"]});
    let schema = ArgumentSchema::compile(&schema).unwrap();
    for (arguments, words) in malformed() {
        let error = schema.check(&arguments).unwrap_err();
        let error = ToolError::of_arguments(&ToolName::from("measure"), error);
        assert!(error.message().starts_with("invalid arguments for `measure`:\n- "));
        assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
        teaches(error.message(), words);
    }
}

#[tokio::test]
async fn malformed_arguments_never_reach_a_typed_tool() {
    /// Measures a text.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Measure {
        #[expect(dead_code, reason = "the tool is never called")]
        text: String,
    }
    let tool = tool("measure", |_: Measure| async move {
        #[expect(unreachable_code, reason = "gives the closure its type")]
        {
            panic!("the tool was called");
            ""
        }
    });
    for (arguments, words) in malformed() {
        let request = ToolInvokeRequest {
            tool_call_id: "call_1".into(),
            tool_name: "measure".into(),
            arguments: arguments.into(),
            session_id: "session".into(),
        };
        let error = tool
            .executor
            .execute(request, &CallContext::new("session"))
            .await
            .unwrap_err();
        assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
        teaches(error.message(), words);
    }
}

#[tokio::test]
async fn a_mock_tool_accepts_every_object() {
    let (tool, _handle) = mock_tool("mock");
    let schema = ArgumentSchema::compile(&tool.registration.parameters_schema).unwrap();
    schema.check(r#"{"a": [1]}"#).unwrap();
}
