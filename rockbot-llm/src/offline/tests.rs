use std::sync::{Arc, Mutex};

use rockbot_core::CallContext;
use rockbot_core::chat::{DeltaSink, ModelSettings, ToolChoice};
use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

/// Says what the weather is like.
#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// The city.
    #[expect(dead_code, reason = "only the schema is of interest")]
    city: String,
}

/// Evaluates an arithmetic expression.
#[derive(Deserialize, JsonSchema)]
struct Calculate {
    /// The expression, such as `2 * (3 + 4)`.
    #[expect(dead_code, reason = "only the schema is of interest")]
    expression: String,
}

/// Adds two whole numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    #[expect(dead_code, reason = "only the schema is of interest")]
    a: i64,
    #[expect(dead_code, reason = "only the schema is of interest")]
    b: i64,
}

/// Tells the current time.
#[derive(Deserialize, JsonSchema)]
struct Time {}

/// Reads a file.
#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// Path of the file.
    #[expect(dead_code, reason = "only the schema is of interest")]
    path: String,
}

/// Removes a file for good.
#[derive(Deserialize, JsonSchema)]
struct DeleteFile {
    /// Path of the file.
    #[expect(dead_code, reason = "only the schema is of interest")]
    path: String,
}

/// Converts a length.
#[derive(Deserialize, JsonSchema)]
struct Convert {
    #[expect(dead_code, reason = "only the schema is of interest")]
    amount: f64,
    #[expect(dead_code, reason = "only the schema is of interest")]
    unit: Unit,
    /// Digits behind the point.
    #[expect(dead_code, reason = "only the schema is of interest")]
    digits: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metre,
    Foot,
}

/// Searches memory.
#[derive(Deserialize, JsonSchema)]
struct SearchMemory {
    #[expect(dead_code, reason = "only the schema is of interest")]
    category: Option<String>,
    /// Words of the memory; without them all are listed.
    #[expect(dead_code, reason = "only the schema is of interest")]
    query: Option<String>,
}

fn tools() -> ToolView {
    let registry = InMemoryToolRegistry::new();
    let owner = Owner::new("test");
    for tool in [
        tool("get_weather", async |_: Weather| ""),
        tool("calculate", async |_: Calculate| ""),
        tool("add", async |_: Add| ""),
        tool("current_time", async |_: Time| ""),
        tool("read_file", async |_: ReadFile| ""),
        tool("delete_file", async |_: DeleteFile| ""),
        tool("convert_length", async |_: Convert| ""),
        tool("search_memory", async |_: SearchMemory| ""),
    ] {
        registry.register(&owner, tool).unwrap();
    }
    registry.snapshot().view().clone()
}

async fn ask(request: ChatRequest) -> ChatResponse {
    let call = ChatCall::new(request, CallContext::new("s"));
    OfflineModel::new().chat(call).await.unwrap()
}

/// The calls that `question` leads to, as `tool {arguments}`.
async fn calls(question: &str, tool_choice: ToolChoice) -> Vec<String> {
    let request = ChatRequest::new([ChatMessage::user(question)])
        .with_settings(ModelSettings::new().with_tool_choice(tool_choice))
        .with_tools(tools());
    let answer = ask(request).await;
    assert_eq!(answer.text.contains("not an LLM"), answer.tool_calls.is_empty());
    let calls = answer.tool_calls.iter();
    calls.map(|call| format!("{} {}", call.name, call.arguments)).collect()
}

async fn check(question: &str, expected: &[&str]) {
    assert_eq!(calls(question, ToolChoice::Auto).await, expected, "{question}");
}

#[tokio::test]
async fn a_tool_is_called_when_the_question_names_it_and_holds_its_arguments() {
    check("What's the weather in Paris?", &[r#"get_weather {"city":"Paris"}"#]).await;
    check("weather for New York tomorrow", &[r#"get_weather {"city":"New York"}"#]).await;
    check("what is 2 * (3 + 4)?", &[r#"calculate {"expression":"2 * (3 + 4)"}"#]).await;
    check("Add 3 and -4.", &[r#"add {"a":3,"b":-4}"#]).await;
    check("What time is it?", &["current_time {}"]).await;
    check("Read notes.txt please", &[r#"read_file {"path":"notes.txt"}"#]).await;
    check("read \"my notes\"", &[r#"read_file {"path":"my notes"}"#]).await;
    check("Search memory \"zebra\"", &[r#"search_memory {"query":"zebra"}"#]).await;
    check("Search memory for zebra.", &[r#"search_memory {"query":"zebra"}"#]).await;
    check("Search my memory", &["search_memory {}"]).await;
    check(
        "convert the length of 2.5 metres to 3 digits",
        &[r#"convert_length {"amount":2.5,"digits":3,"unit":"metre"}"#],
    )
    .await;
    check(
        "convert the length of 2.5 metres",
        &[r#"convert_length {"amount":2.5,"unit":"metre"}"#],
    )
    .await;
}

#[tokio::test]
async fn no_tool_is_called_by_guesswork() {
    check("Hello!", &[]).await;
    check("What is in notes.txt?", &[]).await;
    check("Add the two.", &[]).await;
    check("How is the weather?", &[]).await;
    check("", &[]).await;
}

#[tokio::test]
async fn an_answer_without_a_call_is_two_lines() {
    let text = ask(ChatRequest::new([ChatMessage::user("hello")]).with_tools(tools()))
        .await
        .text;
    let [first, second] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    let named = "`get_weather`, `calculate`, `add`, `current_time` and 4 more.";
    assert_eq!(
        first,
        format!("{INTRODUCTION} Nothing in your message names one together with its arguments: {named}")
    );
    assert_eq!(second, WAY_OUT);
}

#[tokio::test]
async fn the_tool_choice_is_obeyed() {
    let question = "What time is it?";
    assert!(calls(question, ToolChoice::None).await.is_empty());
    assert!(calls(question, ToolChoice::Tool("add".into())).await.is_empty());
    assert_eq!(calls("Hello!", ToolChoice::Required).await, ["current_time {}"]);
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let request = ChatRequest::new([ChatMessage::user("Add 3 to it")]).with_tools(tools());
    let text = ask(request).await.text;
    assert!(
        text.contains("`add` seems to be meant, but I cannot find its `b`"),
        "{text}"
    );
}

#[tokio::test]
async fn results_are_reported_word_for_word() {
    let call = ToolCall::new("1", "current_time", "{}");
    let request = ChatRequest::new([
        ChatMessage::user("What time is it?"),
        ChatMessage::calls(String::new(), vec![call]),
        ChatMessage::tool("1".into(), "{\"time\": \"noon\"}"),
        ChatMessage::system("Be brief."),
    ]);
    let expected = format!("{INTRODUCTION}\n`current_time` says:\n{{\"time\": \"noon\"}}");
    assert_eq!(ask(request).await.text, expected);
}

#[tokio::test]
async fn words_are_streamed_one_by_one() {
    let words = Arc::new(Mutex::new(Vec::new()));
    let seen = words.clone();
    let sink = DeltaSink::new(move |delta| match delta {
        ChatDelta::Text(text) => seen.lock().unwrap().push(text.to_owned()),
        other => panic!("{other:?}"),
    });
    let call = ChatCall::new(ChatRequest::new([ChatMessage::user("hi")]), CallContext::new("s")).with_deltas(sink);
    let answer = OfflineModel::new().chat(call).await.unwrap();
    let words = words.lock().unwrap();
    assert_eq!(words.concat(), answer.text);
    assert_eq!(words[..3], ["I ", "am ", "rockbot's "]);
}

#[tokio::test]
async fn a_given_shape_is_refused() {
    let call = ChatCall::new(
        ChatRequest::new([ChatMessage::user("hi")]).with_output(rockbot_core::chat::OutputSchema::of::<Unit>()),
        CallContext::new("s"),
    );
    let error = OfflineModel::new().chat(call).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::NotConfigured);
}
