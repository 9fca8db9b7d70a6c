//! The floor: an agent loop by hand on reqwest and serde, without anything that a framework adds.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Args, USER, description, instructions, work};

#[derive(Serialize)]
struct Message {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Default)]
struct Call {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    function: Function,
}

#[derive(Serialize, Deserialize, Clone, Default)]
#[serde(default)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
    tools: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Deserialize)]
struct Response {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Answer,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    content: Option<String>,
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<ChunkChoice>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    delta: Delta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    content: Option<String>,
    tool_calls: Vec<DeltaCall>,
}

#[derive(Deserialize)]
struct DeltaCall {
    index: usize,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<DeltaFunction>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DeltaFunction {
    name: Option<String>,
    arguments: Option<String>,
}

/// A prepared loop.
#[derive(Clone, Debug)]
pub struct Floor {
    http: reqwest::Client,
    url: String,
    tools: std::sync::Arc<RawValue>,
    stream: bool,
}

impl Floor {
    /// Creates a loop that asks the server at `base` and has `tools` tools.
    pub fn new(base: &str, tools: usize, stream: bool) -> Self {
        let schema = rockbot_core::tool::schema_of::<Args>();
        let definition = |index| {
            serde_json::json!({"type": "function", "function":
            {"name": format!("tool_{index}"), "description": description(index), "parameters": schema}})
        };
        let tools: Vec<_> = (0..tools).map(definition).collect();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(std::time::Duration::from_secs(60))
            .build();
        Self {
            http: http.expect("a client"),
            url: format!("{base}/chat/completions"),
            tools: serde_json::value::to_raw_value(&tools).expect("JSON").into(),
            stream,
        }
    }

    /// Runs one conversation up to its last answer.
    pub async fn conversation(&self) -> String {
        let mut messages = vec![said("system", instructions()), said("user", USER.to_owned())];
        loop {
            let Answer { content, tool_calls } = self.ask(&messages).await;
            if tool_calls.is_empty() {
                return content.unwrap_or_default();
            }
            let results: Vec<_> = tool_calls.iter().map(result).collect();
            messages.push(Message {
                role: "assistant",
                content: None,
                tool_calls,
                tool_call_id: None,
            });
            messages.extend(results);
        }
    }

    /// Asks once, and returns the time to the first text of the streamed answer, which is read to its
    /// end.
    pub async fn first_token(&self) -> Duration {
        let started = Instant::now();
        let messages = [said("system", instructions()), said("user", USER.to_owned())];
        let mut first = None;
        read_stream(self.send(&messages).await, |_| {
            first.get_or_insert_with(|| started.elapsed());
        })
        .await;
        first.expect("an answer has text")
    }

    async fn ask(&self, messages: &[Message]) -> Answer {
        let response = self.send(messages).await;
        if self.stream {
            return read_stream(response, |_| {}).await;
        }
        let body = response.bytes().await.expect("a body");
        let mut response: Response = serde_json::from_slice(&body).expect("JSON");
        response.choices.swap_remove(0).message
    }

    async fn send(&self, messages: &[Message]) -> reqwest::Response {
        let request = Request {
            model: "mock-1",
            messages,
            tools: &self.tools,
            stream: self.stream,
        };
        let body = serde_json::to_vec(&request).expect("JSON");
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .bearer_auth("test")
            .body(body);
        request.send().await.expect("an answer")
    }
}

/// Reads a streamed answer, and reports each text of it.
async fn read_stream(response: reqwest::Response, mut heard: impl FnMut(&str)) -> Answer {
    let mut bytes = response.bytes_stream();
    let mut buffer = Vec::new();
    let mut text = String::new();
    let mut calls = Vec::<Call>::new();
    while let Some(piece) = bytes.next().await {
        buffer.extend_from_slice(&piece.expect("bytes"));
        let mut start = 0;
        while let Some(end) = buffer[start..].windows(2).position(|window| window == b"\n\n") {
            let data = &buffer[start + 6..start + end];
            start += end + 2;
            if data == b"[DONE]" {
                continue;
            }
            let chunk: Chunk = serde_json::from_slice(data).expect("JSON");
            for choice in chunk.choices {
                if let Some(piece) = &choice.delta.content {
                    heard(piece);
                }
                fold(choice.delta, &mut text, &mut calls);
            }
        }
        buffer.drain(..start);
    }
    Answer {
        content: Some(text),
        tool_calls: calls,
    }
}

fn fold(delta: Delta, text: &mut String, calls: &mut Vec<Call>) {
    text.push_str(&delta.content.unwrap_or_default());
    for piece in delta.tool_calls {
        if calls.len() <= piece.index {
            calls.resize(
                piece.index + 1,
                Call {
                    kind: "function".to_owned(),
                    ..Call::default()
                },
            );
        }
        let call = &mut calls[piece.index];
        call.id = piece.id.unwrap_or(std::mem::take(&mut call.id));
        let function = piece.function.unwrap_or_default();
        call.function.name.push_str(&function.name.unwrap_or_default());
        call.function
            .arguments
            .push_str(&function.arguments.unwrap_or_default());
    }
}

fn said(role: &'static str, text: String) -> Message {
    Message {
        role,
        content: Some(text),
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn result(call: &Call) -> Message {
    let args: Args = serde_json::from_str(&call.function.arguments).expect("arguments");
    Message {
        tool_call_id: Some(call.id.clone()),
        ..said("tool", work(&args))
    }
}
