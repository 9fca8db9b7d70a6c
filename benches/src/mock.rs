//! A model server on loopback, on a thread of its own: keep-alive, prepared answers, nothing else.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Size of a text delta of a streamed answer, in bytes.
const CHUNK: usize = 16;

/// The prepared answers: two tool calls in each of the first turns, then a text of 1 KiB.
struct Answers {
    tools: Vec<(Vec<u8>, Vec<u8>)>,
    last: (Vec<u8>, Vec<u8>),
}

/// Starts a server whose conversations have `turns` tool turns. It ends with the process.
pub fn start(turns: usize) -> SocketAddr {
    serve_all(Answers::new(turns))
}

/// Starts a server that answers every request with these events. It ends with the process.
pub fn start_with(events: &[u8]) -> SocketAddr {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        events.len()
    );
    let answer = [head.as_bytes(), events].concat();
    serve_all(Answers {
        tools: Vec::new(),
        last: (answer.clone(), answer),
    })
}

fn serve_all(answers: Answers) -> SocketAddr {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
            sender
                .send(listener.local_addr().expect("an address"))
                .expect("the starter waits");
            let answers: &'static Answers = Box::leak(Box::new(answers));
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream, answers));
            }
        });
    });
    receiver.recv().expect("the server starts")
}

async fn serve(mut stream: TcpStream, answers: &Answers) {
    let mut buffer = Vec::with_capacity(1 << 16);
    loop {
        let (head, length) = loop {
            if let Some(found) = head(&buffer) {
                break found;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let answer = answers.to(&buffer[head..head + length]);
        if stream.write_all(answer).await.is_err() {
            return;
        }
        buffer.drain(..head + length);
    }
}

/// Returns the offset of the body and its length, once the head is complete.
fn head(buffer: &[u8]) -> Option<(usize, usize)> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let length = head
        .split("content-length:")
        .nth(1)?
        .lines()
        .next()?
        .trim()
        .parse()
        .ok()?;
    Some((end, length))
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack
        .windows(needle.len())
        .filter(|window| *window == needle)
        .count()
}

impl Answers {
    fn new(turns: usize) -> Self {
        let mut text = String::from("FINAL ");
        while text.len() < 1024 {
            text.push_str("done ");
        }
        let calls = |turn: usize| -> Vec<Value> {
            let call = |index| {
                json!({"id": format!("call_{turn:04}{index:04}"), "type": "function",
                "function": {"name": "tool_0", "arguments": json!({"a": index, "b": "x".repeat(32)}).to_string()}})
            };
            (0..2).map(call).collect()
        };
        let tools = (0..turns).map(|turn| {
            let calls = calls(turn);
            (
                whole(
                    &json!({"role": "assistant", "content": null, "tool_calls": calls}),
                    "tool_calls",
                ),
                call_stream(&calls),
            )
        });
        Self {
            tools: tools.collect(),
            last: (
                whole(&json!({"role": "assistant", "content": text}), "stop"),
                text_stream(&text),
            ),
        }
    }

    /// Chooses the answer by the number of assistant messages so far, and by whether a stream is
    /// wanted.
    fn to(&self, body: &[u8]) -> &[u8] {
        let spoken = count(body, br#""role":"assistant""#);
        let (whole, stream) = self.tools.get(spoken).unwrap_or(&self.last);
        if count(body, br#""stream":true"#) > 0 {
            stream
        } else {
            whole
        }
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})
}

fn http(kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn whole(message: &Value, finish: &str) -> Vec<u8> {
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "mock-1",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}], "usage": usage()});
    http("application/json", &body.to_string())
}

fn stream(deltas: impl IntoIterator<Item = Value>, finish: &str) -> Vec<u8> {
    let chunk = |choices: Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock-1", "choices": choices});
    let mut body = String::new();
    let first = [json!({"role": "assistant", "content": null})];
    for delta in first.into_iter().chain(deltas) {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        body.push_str(&format!("data: {}\n\n", chunk(choice)));
    }
    let end = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish}]);
    body.push_str(&format!("data: {}\n\n", chunk(end)));
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    http("text/event-stream", &body)
}

fn text_stream(text: &str) -> Vec<u8> {
    let pieces = text
        .as_bytes()
        .chunks(CHUNK)
        .map(|piece| json!({"content": String::from_utf8_lossy(piece)}));
    stream(pieces, "stop")
}

fn call_stream(calls: &[Value]) -> Vec<u8> {
    let deltas = calls.iter().enumerate().flat_map(|(index, call)| {
        let name = &call["function"]["name"];
        let begin = json!({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}]});
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default().as_bytes().chunks(CHUNK);
        let pieces = arguments.map(move |piece| {
            json!({"tool_calls": [{"index": index, "function": {"arguments": String::from_utf8_lossy(piece)}}]})
        });
        std::iter::once(begin).chain(pieces).collect::<Vec<_>>()
    });
    stream(deltas, "tool_calls")
}
