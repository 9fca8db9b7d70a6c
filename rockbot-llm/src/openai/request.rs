//! The request as OpenAI-compatible servers want it, written straight into bytes.

use bytes::Bytes;
use rockbot_core::chat::{ChatError, ChatRequest, OutputSchema, ReasoningEffort, RequestCache, ToolChoice};
use serde::Serialize;
use serde_json::{Value, json};

use super::messages::{MessageForm, WrittenMessages, push_messages};
use crate::http::{Question, expected_size, invalid_body, push_extra, stated_temperature};

/// Writes the body that asks a question. Unset members are left out. Its scope is for the marks
/// in messages; see [`MessageForm`].
///
/// Most of a body are messages that were sent before, and the tools. So they are written by hand,
/// and copied in long runs. Messages that the turn's last request had, too, are copied from it.
pub(super) fn body(question: Question<'_>) -> Result<Bytes, ChatError> {
    let members = members(&question);
    let Question {
        request,
        settings,
        scope,
        cache,
        ..
    } = question;
    let mut body = Vec::with_capacity(expected_size(request));
    serde_json::to_writer(&mut body, &members).map_err(invalid_body)?;
    push_extra(&mut body, &settings.extra_body)?;
    // The rest goes in front of the closing brace.
    body.pop();
    body.extend_from_slice(b",\"messages\":");
    let form = MessageForm {
        scope,
        takes_media: settings.images.unwrap_or(true),
        takes_parallel_calls: settings.parallel_tool_calls.unwrap_or(true),
    };
    let start = body.len();
    let earlier = cache.and_then(RequestCache::take);
    let seams = push_messages(&mut body, &request.messages, form, earlier);
    if !request.tools.is_empty() {
        body.extend_from_slice(b",\"tools\":");
        match settings.strict_tools {
            Some(true) => push_strict_tools(&mut body, request),
            // They are JSON text already.
            Some(false) | None => body.extend_from_slice(request.tools.json()),
        }
    }
    body.push(b'}');
    let body = Bytes::from(body);
    if let Some(cache) = cache
        && let Some(written) = WrittenMessages::keep(request, &body, start, seams, form)
    {
        cache.put(written);
    }
    Ok(body)
}

/// Returns the members that stand before the messages.
fn members<'a>(question: &Question<'a>) -> Members<'a> {
    let Question { model, settings, .. } = *question;
    let has_tools = !question.request.tools.is_empty();
    Members {
        model,
        max_completion_tokens: settings.max_output_tokens,
        temperature: stated_temperature(model, settings.temperature),
        top_p: settings.top_p,
        seed: settings.seed,
        stop: &settings.stop_sequences,
        reasoning_effort: settings.reasoning_effort.as_ref().map(ReasoningEffort::as_str),
        // Servers reject both without tools.
        tool_choice: settings
            .tool_choice
            .as_ref()
            .filter(|_| has_tools)
            .and_then(tool_choice),
        parallel_tool_calls: settings.parallel_tool_calls.filter(|_| has_tools),
        response_format: question.request.output.as_ref().map(response_format),
        stream: question.is_streamed.then_some(true),
        stream_options: question.is_streamed.then_some(StreamOptions { include_usage: true }),
    }
}

#[derive(Serialize)]
struct Members<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// Appends the list of tools in strict mode. Tools without a strict form are appended as they
/// are.
fn push_strict_tools(body: &mut Vec<u8>, request: &ChatRequest) {
    for (index, entry) in request.tools.iter().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        let definition = entry.definition();
        let Ok(schema) = entry.strict_schema() else {
            body.extend_from_slice(definition.as_bytes());
            continue;
        };
        // The parameters stand at the end, in front of two braces.
        let before = definition.len() - entry.parameters().len() - "}}".len();
        body.extend_from_slice(&definition.as_bytes()[..before]);
        body.extend_from_slice(schema.text().as_bytes());
        body.extend_from_slice(b",\"strict\":true}}");
    }
    body.push(b']');
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Returns the member `tool_choice`. `Auto` is left out: it is every server's default, and some
/// servers reject it unless configured for it.
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
    use std::sync::Arc;

    use rockbot_core::chat::{
        ChatErrorKind, ChatMessage, ChatRequest, ContentPart, ModelSettings, Provenance, Reasoning, ToolCall,
    };
    use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};
    use serde_json::value::RawValue;

    use super::*;
    use crate::http::MarkScope;

    fn written(request: &ChatRequest, is_streamed: bool) -> Result<Bytes, ChatError> {
        body(Question {
            model: "m",
            request: &Arc::new(request.clone()),
            settings: &request.settings_over(None),
            scope: MarkScope(["secret", "turn"]),
            is_streamed,
            cache: None,
        })
    }

    fn check(request: &ChatRequest, is_streamed: bool, expected: &str) {
        let body = written(request, is_streamed).unwrap();
        assert_eq!(String::from_utf8(body.into()).unwrap(), expected);
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

    const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"now","description":"Tells the time.","parameters":{"type":"object","properties":{}}}}]"#;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new("c1", name, arguments)
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
        let settings = ModelSettings::new()
            .with_tool_choice(ToolChoice::Required)
            .with_max_output_tokens(9)
            .with_temperature(0.7);
        let request = ChatRequest::default()
            .with_settings(settings)
            .with_output(OutputSchema::new("Answer", json!({"type": "object"})));
        check(
            &request,
            true,
            r#"{"model":"m","max_completion_tokens":9,"temperature":0.7,"response_format":{"json_schema":{"name":"Answer","schema":{"type":"object"}},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true},"messages":[]}"#,
        );
    }

    #[test]
    fn settings_go_in_by_their_names_and_an_extra_body_behind_them() {
        let settings = ModelSettings::new()
            .with_top_p(0.5)
            .with_seed(-3)
            .with_stop_sequences(["END", "\n"])
            .with_reasoning_effort(ReasoningEffort::Minimal)
            .with_parallel_tool_calls(false)
            .with_extra_body("verbosity", "low")
            .with_extra_body("chat_template_kwargs", json!({"enable_thinking": false}));
        let expected = concat!(
            r#"{"model":"m","top_p":0.5,"seed":-3,"stop":["END","\n"],"reasoning_effort":"minimal",[P]"#,
            r#""chat_template_kwargs":{"enable_thinking":false},"verbosity":"low","messages":[][T]}"#,
        );
        let request = ChatRequest::default().with_settings(settings);
        check(&request, false, &expected.replace("[P]", "").replace("[T]", ""));
        let with_tools = request.with_tools(tools());
        let expected = expected.replace("[P]", r#""parallel_tool_calls":false,"#);
        check(&with_tools, false, &expected.replace("[T]", &format!(",{TOOLS}")));
    }

    #[test]
    fn an_extra_body_replaces_nothing() {
        for (name, settings) in [
            ("messages", ModelSettings::new()),
            ("stream", ModelSettings::new()),
            ("temperature", ModelSettings::new().with_temperature(0.0)),
        ] {
            let request = ChatRequest::default().with_settings(settings.with_extra_body(name, 1));
            let error = written(&request, false).unwrap_err();
            assert_eq!(error.kind(), ChatErrorKind::InvalidRequest);
            assert!(error.to_string().contains(&format!("holds `{name}`")), "{error}");
        }
        let alone = ChatRequest::default().with_settings(ModelSettings::new().with_extra_body("temperature", 1));
        check(&alone, false, r#"{"model":"m","temperature":1,"messages":[]}"#);
    }

    #[test]
    fn tools_go_in_as_they_are_with_a_choice_only_if_there_is_one() {
        let check_choice = |tool_choice, expected: &str| {
            let request = ChatRequest::default()
                .with_settings(ModelSettings::new().with_tool_choice(tool_choice))
                .with_tools(tools());
            check(
                &request,
                false,
                &format!(r#"{{"model":"m",{expected}"messages":[],{TOOLS}}}"#),
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
        user.content
            .push(ContentPart::text("time?").with_provenance(Provenance::USER));
        let mut calls = ChatMessage::calls(String::new(), vec![call("now", "{}")]);
        calls.reasoning = Some(Reasoning::new("hm"));
        let mut answer = ChatMessage::assistant("noon");
        answer.reasoning = Some(
            Reasoning::new("hm").with_details(Arc::from(RawValue::from_string(r#"[ {"b":1,"a":2} ]"#.into()).unwrap())),
        );
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
        let request = ChatRequest::new([ChatMessage::user("go"), ChatMessage::calls("so", calls)]);
        check(
            &request,
            false,
            concat!(
                r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":"so","tool_calls":["#,
                r#"{"id":"c1","type":"function","function":{"name":"get_weather__","arguments":"{\"malformed\":\"{\\\"city\\\": \\\"Par\"}"}},"#,
                r#"{"id":"c1","type":"function","function":{"name":"_","arguments":"{}"}}]},"#,
                r#"{"role":"tool","content":"No result was recorded for this call.","tool_call_id":"c1"},"#,
                r#"{"role":"tool","content":"No result was recorded for this call.","tool_call_id":"c1"}]}"#,
            ),
        );
    }
}
