//! The request as OpenAI-compatible servers want it, written straight into bytes.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::chat::{ChatMessage, ChatRequest, OutputSchema, Role, ToolCall, ToolChoice};
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The body that asks `model` for an answer to `request`, streamed or whole. What is unset is left out.
pub(super) fn body(model: &str, request: &ChatRequest, is_streamed: bool) -> Result<Vec<u8>, serde_json::Error> {
    let tools = request.tools.json();
    let has_tools = !request.tools.is_empty();
    let wire = WireRequest {
        model,
        messages: Messages(&request.messages),
        max_completion_tokens: request.max_output_tokens,
        temperature: request.temperature.filter(|temperature| temperature.is_finite()),
        tool_choice: tool_choice(&request.tool_choice).filter(|_| has_tools),
        response_format: request.output.as_ref().map(response_format),
        stream: is_streamed.then_some(true),
        stream_options: is_streamed.then_some(StreamOptions { include_usage: true }),
    };
    let mut body = Vec::with_capacity(expected_size(request) + tools.len());
    serde_json::to_writer(&mut body, &wire)?;
    if has_tools {
        // The tools are JSON text already: they go in front of the closing brace as they are.
        body.pop();
        body.extend_from_slice(b",\"tools\":");
        body.extend_from_slice(tools);
        body.push(b'}');
    }
    Ok(body)
}

fn expected_size(request: &ChatRequest) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.content);
    let text: usize = parts.map(|part| part.text.len() + part.text.len() / 16).sum();
    256 + text + 160 * request.messages.len()
}

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Messages<'a>(&'a [Arc<ChatMessage>]);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|message| WireMessage::new(message)))
    }
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Calls::is_empty")]
    tool_calls: Calls<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> WireMessage<'a> {
    fn new(message: &'a ChatMessage) -> Self {
        let text = message.text();
        let only_calls = text.is_empty() && !message.tool_calls.is_empty();
        let reasoning = message.reasoning.as_ref();
        let details = reasoning.and_then(|reasoning| reasoning.details.as_deref());
        let thoughts = reasoning.map(|reasoning| reasoning.text.as_str());
        Self {
            role: role(message.role),
            content: (!only_calls).then_some(text),
            // The provider's own form says it all; the plain text is for those who have no other.
            reasoning_content: thoughts.filter(|text| details.is_none() && !text.is_empty()),
            reasoning_details: details,
            tool_calls: Calls(&message.tool_calls),
            tool_call_id: message.tool_call_id.as_ref().map(|id| id.as_str()),
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

struct Calls<'a>(&'a [ToolCall]);

impl Calls<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|call| WireCall {
            id: call.id.as_str(),
            kind: "function",
            function: WireFunction {
                name: sendable_name(&call.name),
                arguments: sendable_arguments(&call.arguments),
            },
        }))
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// A model may make up a name that its own provider refuses to read back: then no later request would succeed.
fn sendable_name(name: &ToolName) -> Cow<'_, str> {
    if name.is_valid() {
        return Cow::Borrowed(name.as_str());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name = name.as_str().chars().map(|c| if allowed(c) { c } else { '_' });
    let name: String = name.take(ToolName::MAX_LEN).collect();
    Cow::Owned(if name.is_empty() { "_".into() } else { name })
}

/// Servers that parse the arguments of earlier calls fail on malformed ones: the model sees its text quoted.
fn sendable_arguments(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<IgnoredAny>(arguments) {
        Ok(_) => Cow::Borrowed(arguments),
        Err(_) => Cow::Owned(json!({ "malformed": arguments }).to_string()),
    }
}

/// `None` is the default of every server; naming it makes some of them ask for more settings.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn response_format(output: &OutputSchema) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": output.name, "schema": output.schema } })
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::{ContentPart, Provenance, Reasoning};
    use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};

    use super::*;

    fn check(request: &ChatRequest, is_streamed: bool, expected: &str) {
        let body = body("m", request, is_streamed).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    fn tools() -> ToolView {
        /// Tells the time.
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct Now {}
        let registry = InMemoryToolRegistry::new();
        let now = tool("now", async |_: Now| "noon");
        registry.register(&Owner::new("test"), now).unwrap();
        registry.snapshot().view().clone()
    }

    const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"now","description":"Tells the time.","parameters":{"type":"object"}}}]"#;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "c1".into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn what_is_unset_is_left_out() {
        let request = ChatRequest::new([ChatMessage::user("hi")]);
        check(
            &request,
            false,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
        );
    }

    #[test]
    fn every_knob_has_its_name() {
        let request = ChatRequest {
            tool_choice: ToolChoice::Required,
            output: Some(OutputSchema {
                name: "Answer".into(),
                schema: json!({"type": "object"}),
            }),
            max_output_tokens: Some(9),
            temperature: Some(0.7),
            ..ChatRequest::new([])
        };
        check(
            &request,
            true,
            r#"{"model":"m","messages":[],"max_completion_tokens":9,"temperature":0.7,"response_format":{"json_schema":{"name":"Answer","schema":{"type":"object"}},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true}}"#,
        );
    }

    #[test]
    fn tools_go_in_as_they_are_with_a_choice_only_if_there_is_one() {
        let check_choice = |tool_choice, expected: &str| {
            let request = ChatRequest {
                tools: tools(),
                tool_choice,
                ..ChatRequest::new([])
            };
            check(
                &request,
                false,
                &format!(r#"{{"model":"m","messages":[],{expected}{TOOLS}}}"#),
            );
        };
        check_choice(ToolChoice::Auto, "");
        check_choice(ToolChoice::None, r#""tool_choice":"none","#);
        check_choice(ToolChoice::Required, r#""tool_choice":"required","#);
        let named = r#""tool_choice":{"function":{"name":"now"},"type":"function"},"#;
        check_choice(ToolChoice::Tool("now".into()), named);
    }

    #[test]
    fn a_conversation_with_tool_calls() {
        let mut user = ChatMessage::user("what ");
        user.content.push(ContentPart {
            text: "time?".into(),
            provenance: Provenance::USER,
        });
        let mut calls = ChatMessage::calls(String::new(), vec![call("now", "{}")]);
        calls.reasoning = Some(Reasoning {
            text: "hm".into(),
            details: None,
        });
        let mut answer = ChatMessage::assistant("noon");
        answer.reasoning = Some(Reasoning {
            text: "hm".into(),
            details: Some(Arc::from(RawValue::from_string(r#"[ {"b":1,"a":2} ]"#.into()).unwrap())),
        });
        let request = ChatRequest::new([
            ChatMessage::system("Be \"brief\"."),
            user,
            calls,
            ChatMessage::tool("c1".into(), ""),
            answer,
        ]);
        check(
            &request,
            false,
            concat!(
                r#"{"model":"m","messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"what time?"},"#,
                r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"{}"}}]},"#,
                r#"{"role":"tool","content":"","tool_call_id":"c1"},"#,
                r#"{"role":"assistant","content":"noon","reasoning_details":[ {"b":1,"a":2} ]}]}"#,
            ),
        );
    }

    #[test]
    fn a_call_that_servers_would_refuse_is_made_readable() {
        let calls = vec![call("get weather()", r#"{"city": "Par"#), call("", "{}")];
        let request = ChatRequest::new([ChatMessage::calls("so".into(), calls)]);
        check(
            &request,
            false,
            concat!(
                r#"{"model":"m","messages":[{"role":"assistant","content":"so","tool_calls":["#,
                r#"{"id":"c1","type":"function","function":{"name":"get_weather__","arguments":"{\"malformed\":\"{\\\"city\\\": \\\"Par\"}"}},"#,
                r#"{"id":"c1","type":"function","function":{"name":"_","arguments":"{}"}}]}]}"#,
            ),
        );
    }
}
