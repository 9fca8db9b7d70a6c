//! Images from a user and a tool to models of both dialects and back: real HTTP on the loopback, a journal on disk.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rockbot::Principal;
use rockbot::agent::AgentHost;
use rockbot::chat::{AnthropicChat, ChatClient, ModelSettings, OpenAiChat};
use rockbot::content::{Content, ContentError, MAX_MEDIA_BYTES, MediaPart, MediaSource, Provenance};
use rockbot::prelude::TurnError;
use rockbot::store::MediaStore;
use rockbot::tool::tool;
use rockbot::turn::TurnStatus;
use serde_json::{Value, json};

use crate::anthropic_rules::refusal;

/// A server that gives its answers in order and notes the requests.
struct Server {
    endpoint: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn start(answers: impl IntoIterator<Item = Value>) -> Self {
        let mut answers: VecDeque<_> = answers.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                seen.lock().unwrap().push(serve(socket, answers.pop_front()));
            }
        });
        Self { endpoint, requests }
    }

    /// Returns the messages of the request `index`, with the digits of marks left out.
    fn messages(&self, index: usize) -> Value {
        let messages = self.requests.lock().unwrap()[index]["messages"].to_string();
        let mut pieces = messages.split("system_note ");
        let first = pieces.next().unwrap().to_owned();
        let text = pieces.fold(first, |text, piece| format!("{text}system_note{}", &piece[8..]));
        serde_json::from_str(&text).unwrap()
    }
}

fn serve(socket: TcpStream, answer: Option<Value>) -> Value {
    let mut reader = BufReader::new(socket);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let begin = head.len();
        if reader.read_line(&mut head).unwrap() <= 2 {
            break;
        }
        let count = head[begin..].strip_prefix("content-length: ");
        length = count.map_or(length, |count| count.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let is_anthropic = head.contains("/messages");
    let refused = is_anthropic.then(|| refusal(&format!("{head}{body}"))).flatten();
    let (status, text) = match (refused, answer) {
        (Some(why), _) => (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": why}}),
        ),
        (None, Some(answer)) => (200, answer),
        (None, None) => (500, json!({"error": {"message": "no answer is left"}})),
    };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
    // The client may have had enough already.
    let _ = reader.get_mut().write_all((head + &text.to_string()).as_bytes());
    serde_json::from_str(&body).unwrap()
}

/// Draws a plot.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plot {}

fn host(model: impl ChatClient, folder: &Path) -> AgentHost {
    let plot = tool("plot", |_: Plot| async {
        Content::from("The plot:").with_image(MediaPart::bytes("image/png", vec![4, 5, 6]))
    });
    AgentHost::builder("painter")
        .instructions("Be brief.")
        .chat(model)
        .tool(plot.pure())
        .data_dir(folder)
        .build()
        .unwrap()
}

fn question() -> Content {
    Content::from("Who is this?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]).with_name("cat.png"))
}

/// Returns all text in the files below `folder`, media excepted.
fn written(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "media" => {}
            true => text += &written(&entry.path()),
            false => text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()),
        }
    }
    text
}

fn openai_answer(message: &Value) -> Value {
    json!({"choices": [{"finish_reason": "stop", "message": message}]})
}

#[tokio::test]
async fn images_go_to_an_openai_model_and_come_back() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "plot", "arguments": "{}"}});
    let drawn = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,Bwg="}});
    let server = Server::start([
        openai_answer(&json!({"content": null, "tool_calls": [call]})),
        openai_answer(&json!({"content": "A cat.", "images": [drawn]})),
        openai_answer(&json!({"content": "You are welcome."})),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let host = host(
        OpenAiChat::builder(&server.endpoint, "m").build().unwrap(),
        folder.path(),
    );
    let outcome = host.agent().ask("s", question()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Answered);

    let image =
        |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let lead = "<system_note>\nImages and files of the messages above:\n</system_note>";
    let mut expected = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": [{"type": "text", "text": "Who is this?"}, image("AQID")]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "The plot:\n[image image/png, 3 bytes: it follows below]"}),
        json!({"role": "assistant", "content": "[Results received.]"}),
        json!({"role": "user", "content": [{"type": "text", "text": lead}, image("BAUG")]}),
    ];
    assert_eq!(server.messages(1), Value::from(expected.clone()));

    // The model's own image is in the outcome, and its bytes in the store.
    let media = outcome.media[0].as_media().unwrap();
    assert_eq!(
        (&*media.media_type, &media.provenance),
        ("image/png", &Provenance::MODEL)
    );
    let MediaSource::Stored(stored) = media.source else {
        panic!("{media:?}")
    };
    let store = host.parts().get::<dyn MediaStore>().unwrap();
    let bytes = store.get(&Principal::default(), &stored.digest).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(&[7, 8][..]));

    // A later turn shows the images of the conversation again: the user's, and that of the answer.
    host.agent().ask("s", "Thanks.").await.unwrap();
    expected.truncate(2);
    expected.extend([
        json!({"role": "assistant", "content": "A cat.\n[image image/png, 2 bytes: it follows below]"}),
        json!({"role": "user", "content": [{"type": "text", "text": lead}, image("Bwg="), {"type": "text", "text": "Thanks."}]}),
    ]);
    assert_eq!(server.messages(2), Value::from(expected));
    let text = written(folder.path());
    assert!(text.contains("cat.png"), "{text}");
    for bytes in ["AQID", "BAUG", "Bwg="] {
        assert!(!text.contains(bytes), "no record has the bytes {bytes}: {text}");
    }
}

#[tokio::test]
async fn images_go_to_an_anthropic_model() {
    let answer = |content: Value, reason: &str| {
        json!({"type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
            "usage": {"input_tokens": 1, "output_tokens": 1}})
    };
    let call = json!({"type": "tool_use", "id": "c1", "name": "plot", "input": {}});
    let server = Server::start([
        answer(json!([call]), "tool_use"),
        answer(json!([{"type": "text", "text": "A cat."}]), "end_turn"),
    ]);
    let model = AnthropicChat::builder(&server.endpoint, "m")
        .api_key("sk-1".into())
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pdf = MediaPart::bytes("application/pdf", "%PDF").with_name("a.pdf");
    let asked = question()
        .with_image(MediaPart::url("image/*", "https://a.example/b.png"))
        .with_file(pdf);
    let outcome = host(model, folder.path()).agent().ask("s", asked).await.unwrap();
    assert_eq!(outcome.text, "A cat.");
    let source = |data: &str, kind: &str| json!({"type": "base64", "media_type": kind, "data": data});
    let mut messages = server.messages(1);
    // The mark of the prompt cache is not the point here.
    messages[2]["content"][0]
        .as_object_mut()
        .unwrap()
        .remove("cache_control");
    let expected = json!([
        {"role": "user", "content": [
            {"type": "text", "text": "Who is this?"},
            {"type": "image", "source": source("AQID", "image/png")},
            {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
            {"type": "document", "source": source("JVBERg==", "application/pdf")},
        ]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
            {"type": "text", "text": "The plot:"},
            {"type": "image", "source": source("BAUG", "image/png")},
        ]}]},
    ]);
    assert_eq!(messages, expected);
}

#[tokio::test]
async fn a_model_that_takes_no_images_reads_their_description() {
    let server = Server::start([openai_answer(&json!({"content": "I cannot see it."}))]);
    let model = OpenAiChat::builder(&server.endpoint, "m").model_settings(ModelSettings::new().with_images(false));
    let folder = tempfile::tempdir().unwrap();
    host(model.build().unwrap(), folder.path())
        .agent()
        .ask("s", question())
        .await
        .unwrap();
    let words = "Who is this?\n[image \"cat.png\", image/png, 3 bytes: this model does not take images and files]";
    assert_eq!(server.messages(0)[1], json!({"role": "user", "content": words}));
}

#[tokio::test]
async fn a_medium_that_is_gone_is_described_and_the_turn_goes_on() {
    let answers = ["A cat.", "I cannot see it any more."].map(|text| openai_answer(&json!({"content": text})));
    let server = Server::start(answers);
    let folder = tempfile::tempdir().unwrap();
    let host = host(
        OpenAiChat::builder(&server.endpoint, "m").build().unwrap(),
        folder.path(),
    );
    host.agent().ask("s", question()).await.unwrap();
    for entry in std::fs::read_dir(folder.path().join("media"))
        .unwrap()
        .map(Result::unwrap)
    {
        std::fs::remove_file(entry.path()).unwrap();
    }
    host.agent().ask("s", "And now?").await.unwrap();
    let words = "Who is this?[image \"cat.png\", image/png, 3 bytes: it is not stored any more]";
    assert_eq!(server.messages(1)[1], json!({"role": "user", "content": words}));
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([]);
    let host = host(
        OpenAiChat::builder(&server.endpoint, "m").build().unwrap(),
        folder.path(),
    );
    let size = MAX_MEDIA_BYTES + 1;
    let large = Content::from("?").with_image(MediaPart::bytes("image/png", vec![0; size]));
    let refused = host.agent().ask("s", large).await.unwrap_err();
    assert!(matches!(refused, TurnError::Content(ContentError::TooLarge { size: found }) if found == size));
}
