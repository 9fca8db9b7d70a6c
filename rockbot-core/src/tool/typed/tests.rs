//! Tests of tools that are written as closures.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;

use schemars::JsonSchema;

use super::*;
use crate::BoxError;
use crate::tool::{
    Effect, ToolError, ToolErrorCode, ToolExposure, ToolGroup, ToolHints, ToolInvokeRequest, ToolRegistration,
};

/// Books a table.
///
/// It is paid on the spot.
#[derive(serde::Deserialize, JsonSchema)]
struct Book {
    /// The number of guests.
    guests: u8,
    /// The dishes that they want.
    #[serde(default)]
    dishes: Vec<String>,
}

async fn call_as(tool: &Tool, arguments: &str, cx: &CallContext) -> Result<String, ToolError> {
    let request = ToolInvokeRequest {
        tool_call_id: "call_1".into(),
        tool_name: tool.registration.name.clone(),
        arguments: arguments.into(),
        session_id: cx.session().clone(),
    };
    let response = tool.executor.execute(request.clone(), cx).await?;
    assert_eq!(response, request.succeed(response.content.clone()));
    Ok(response.content.into_words())
}

async fn call(tool: &Tool, arguments: &str) -> Result<String, ToolError> {
    call_as(tool, arguments, &CallContext::new("session")).await
}

#[test]
fn a_tool_describes_itself_by_the_doc_comments_of_its_arguments() {
    let tool = tool("book", |_: Book| async { "" });
    let schema = json!({
        "type": "object",
        "properties": {
            "guests": {"description": "The number of guests.", "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
            "dishes": {"description": "The dishes that they want.", "type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["guests"],
    });
    let description = "Books a table.\n\nIt is paid on the spot.";
    assert_eq!(tool.registration, ToolRegistration::new("book", description, schema));
    assert!(tool.executor.checks_arguments());
}

#[test]
fn setters_change_what_the_host_knows() {
    let tool = tool("book", |_: Book| async { "" })
        .description("Books.")
        .source("restaurant")
        .idempotent()
        .needs_approval()
        .time_limit(Duration::from_secs(5))
        .max_concurrency(2)
        .keeps_results_whole()
        .delegates()
        .reads_guides()
        .on_demand(&ToolGroup::new("tables", "tables"))
        .activates("menus");
    let registration = ToolRegistration {
        source: "restaurant".to_owned(),
        effect: Effect::Idempotent,
        hints: ToolHints {
            needs_approval: true,
            own_output: false,
            internal: false,
            outside_text: false,
            needs_endorsement: false,
            argument_roles: Vec::new(),
            trusted_effect: None,
            orders: None,
            time_limit: Some(Duration::from_secs(5)),
            max_concurrency: Some(2),
            keeps_results_whole: true,
            delegates: true,
            runs_turn: false,
            reads_guides: true,
            exposure: ToolExposure::OnDemand(ToolGroup::new("tables", "tables")),
            activates: vec!["menus".into()],
        },
        ..ToolRegistration::new("book", "Books.", tool.registration.parameters_schema.clone())
    };
    assert_eq!(tool.registration, registration);
}

#[tokio::test]
async fn a_tool_gets_its_arguments_and_the_context() {
    let tool = tool("book", |args: Book, cx: CallContext| async move {
        format!("{} of {} eat {:?}", args.guests, cx.session(), args.dishes)
    });
    let cx = CallContext::new("family");
    let output = call_as(&tool, r#"{"guests": 3, "dishes": ["soup"], "more": 1}"#, &cx).await;
    assert_eq!(output.unwrap(), r#"3 of family eat ["soup"]"#);
}

#[tokio::test]
async fn calls_share_the_state() {
    let tool = stateful_tool(
        "book",
        AtomicU32::new(0),
        |sum: ToolState<AtomicU32>, args: Book| async move {
            let guests = u32::from(args.guests);
            (sum.fetch_add(guests, Ordering::Relaxed) + guests).to_string()
        },
    );
    assert_eq!(call(&tool, r#"{"guests": 2}"#).await.unwrap(), "2");
    assert_eq!(call(&tool.clone(), r#"{"guests": 3}"#).await.unwrap(), "5");
}

#[tokio::test]
async fn a_stateful_tool_gets_the_context_too() {
    let run = |sum: ToolState<u32>, args: Book, cx: CallContext| async move {
        format!("{} for {}", *sum + u32::from(args.guests), cx.session())
    };
    let output = call_as(
        &stateful_tool("book", 5, run),
        r#"{"guests": 2}"#,
        &CallContext::new("family"),
    )
    .await;
    assert_eq!(output.unwrap(), "7 for family");
}

#[tokio::test]
async fn numbers_truths_and_nothing_are_outputs() {
    let args = r#"{"guests": 2}"#;
    let count = tool("book", |args: Book| async move { args.guests });
    assert_eq!(call(&count, args).await.unwrap(), "2");
    let half = tool("book", |args: Book| async move { f64::from(args.guests) / 4.0 });
    assert_eq!(call(&half, args).await.unwrap(), "0.5");
    let many = tool("book", |args: Book| async move { Ok::<_, BoxError>(args.guests > 1) });
    assert_eq!(call(&many, args).await.unwrap(), "true");
    let nothing = tool("book", |_: Book| async {});
    assert_eq!(call(&nothing, args).await.unwrap(), "done");
}

#[tokio::test]
async fn output_can_be_json() {
    let tool = tool("book", |args: Book| async move {
        Ok::<_, BoxError>(JsonOutput(json!({"guests": args.guests})))
    });
    assert_eq!(call(&tool, r#"{"guests": 2}"#).await.unwrap(), r#"{"guests":2}"#);
}

#[tokio::test]
async fn any_error_becomes_a_failed_execution_and_keeps_its_source() {
    let tool = tool("book", |_: Book| async {
        Err::<String, _>(io::Error::other("the door is locked"))
    });
    let error = call(&tool, r#"{"guests": 2}"#).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ToolErrorCode::ExecutionFailed, "the door is locked")
    );
    assert!(error.source().is_some_and(<dyn Error>::is::<io::Error>));
}

#[tokio::test]
async fn a_tool_error_keeps_its_code_even_in_a_box() {
    let denied = || ToolError::new(ToolErrorCode::Denied, "members only").with_retryable(true);
    for tool in [
        tool("book", move |_: Book| async move { Err::<String, _>(denied()) }),
        tool("book", move |_: Book| async move {
            Err::<String, BoxError>(denied().into())
        }),
    ] {
        let error = call(&tool, r#"{"guests": 2}"#).await.unwrap_err();
        assert_eq!((error.code(), error.message()), (ToolErrorCode::Denied, "members only"));
        assert!(error.retry_helps());
    }
}

#[tokio::test]
async fn wrong_arguments_are_explained_and_the_tool_is_not_called() {
    let tool = stateful_tool(
        "book",
        AtomicU32::new(0),
        |calls: ToolState<AtomicU32>, _: Book| async move { calls.fetch_add(1, Ordering::Relaxed).to_string() },
    );
    let expected = "\nExpected: {\"dishes\"?: string[], \"guests\": integer (0..=255)}\n\
        Call the tool again with corrected arguments.";
    for (arguments, problem) in [
        (
            r#"{"guest": 2}"#,
            "`guests` is required and missing; did you mean it by `guest`?",
        ),
        (
            r#"{"guests": "two"}"#,
            "`guests` must be an integer, got the string \"two\"",
        ),
        (r#"{"guests": 256}"#, "`guests` must be at most 255, got 256"),
        ("[2, []]", "the arguments must be a JSON object, got an array"),
        // Valid by JSON Schema but not by serde: then the message is serde's.
        (
            r#"{"guests": 2.0}"#,
            "invalid type: floating point `2.0`, expected u8 at line 1 column 14",
        ),
    ] {
        let error = call(&tool, arguments).await.unwrap_err();
        assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
        assert_eq!(
            error.message(),
            format!("invalid arguments for `book`:\n- {problem}{expected}")
        );
    }
    assert_eq!(
        call(&tool, r#"{"guests": 2}"#).await.unwrap(),
        "0",
        "this is the first call"
    );
}

/// Orders.
#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    /// The number.
    #[schemars(range(min = 1, max = 5))]
    count: u32,
    #[schemars(length(max = 3))]
    #[serde(default)]
    code: String,
    #[schemars(extend("enum" = ["red", "green"]))]
    #[serde(default = "red")]
    colour: String,
}

fn red() -> String {
    "red".to_owned()
}

#[tokio::test]
async fn what_the_schema_says_beyond_the_types_is_checked_and_the_tool_is_not_called() {
    let run = |calls: ToolState<AtomicU32>, args: Order| async move {
        calls.fetch_add(1, Ordering::Relaxed);
        format!("{} {} {}", args.count, args.code, args.colour)
    };
    let tool = stateful_tool("order", AtomicU32::new(0), run);
    for (arguments, problem) in [
        (r#"{"count": 500}"#, "`count` must be at most 5, got 500"),
        (r#"{"count": 0}"#, "`count` must be at least 1, got 0"),
        (
            r#"{"count": 1, "code": "abcd"}"#,
            "`code` must have at most 3 characters, got 4",
        ),
        (
            r#"{"count": 1, "colour": "grey"}"#,
            "`colour` must be \"red\" | \"green\", got the string \"grey\"",
        ),
    ] {
        let error = call(&tool, arguments).await.unwrap_err();
        assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
        let beginning = format!("invalid arguments for `order`:\n- {problem}\nExpected: ");
        assert!(error.message().starts_with(&beginning), "{}", error.message());
    }
    assert_eq!(call(&tool, r#"{"count": 5}"#).await.unwrap(), "5  red");
}
