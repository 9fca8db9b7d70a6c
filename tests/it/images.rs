//! Images from a user and a tool to models of both dialects and back: real HTTP on the loopback,
//! a journal on disk.

use std::collections::VecDeque;
use std::path::Path;

use rockbot::Principal;
use rockbot::agent::AgentHost;
use rockbot::chat::{AnthropicChat, ChatClient, ModelSettings, OpenAiChat};
use rockbot::content::{Content, ContentError, MediaPart, MediaSource, Provenance};
use rockbot::implement::content::MAX_MEDIA_BYTES;
use rockbot::prelude::TurnError;
use rockbot::store::MediaStore;
use rockbot::tool::tool;
use rockbot::turn::TurnStatus;
use serde_json::{Value, json};

use crate::anthropic_rules::refusal;
use crate::support::end_of;
use crate::support::model_server::ModelServer;

/// Starts a server that gives its answers in order, and refuses what Anthropic's refuses.
fn server(answers: impl IntoIterator<Item = Value>) -> ModelServer {
    let mut answers: VecDeque<_> = answers.into_iter().collect();
    ModelServer::start(move |raw, _| {
        let refused = raw.starts_with("POST /v1/messages").then(|| refusal(raw)).flatten();
        let (status, answer) = match (refused, answers.pop_front()) {
            (Some(why), _) => (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": why}}),
            ),
            (None, Some(answer)) => (200, answer),
            (None, None) => (400, json!({"error": {"message": "no answer is left"}})),
        };
        (status, answer.to_string())
    })
}

/// Returns the messages of the request `index`, with the digits of marks left out.
fn messages(server: &ModelServer, index: usize) -> Value {
    let messages = server.requests()[index]["messages"].to_string();
    let mut pieces = messages.split("[Note ");
    let first = pieces.next().unwrap().to_owned();
    let text = pieces.fold(first, |text, piece| format!("{text}[Note{}", &piece[7..]));
    serde_json::from_str(&text).unwrap()
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
pub(crate) fn written(folder: &Path) -> String {
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
    let server = server([
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
    let lead = "[Note: Images and files of the messages above:]";
    let mut expected = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": [{"type": "text", "text": "Who is this?"}, image("AQID")]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "The plot:\n[image image/png, 3 bytes: it follows below]"}),
        json!({"role": "assistant", "content": "[Results received.]"}),
        json!({"role": "user", "content": [{"type": "text", "text": lead}, image("BAUG")]}),
    ];
    assert_eq!(messages(&server, 1), Value::from(expected.clone()));

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
    assert_eq!(messages(&server, 2), Value::from(expected));
    let text = written(folder.path());
    assert!(text.contains("cat.png"), "{text}");
    for bytes in ["AQID", "BAUG", "Bwg="] {
        assert!(!text.contains(bytes), "no record has the bytes {bytes}: {text}");
    }
}

#[tokio::test]
async fn an_image_of_a_streamed_answer_is_in_the_outcome() {
    let server = ModelServer::start(|_, request| {
        assert_eq!(request["stream"], true);
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,Bwg="}});
        let chunk = |delta: Value, reason: Value| {
            let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            format!("data: {chunk}\n\n")
        };
        let text = chunk(json!({"content": "Here "}), Value::Null)
            + &chunk(json!({"content": "it is.", "images": [image]}), Value::Null)
            + &chunk(json!({}), "stop".into());
        (200, text + "data: [DONE]\n\n")
    });
    let folder = tempfile::tempdir().unwrap();
    let host = host(
        OpenAiChat::builder(&server.endpoint, "m").build().unwrap(),
        folder.path(),
    );
    let outcome = end_of(host.agent().stream("s", "Draw a cat.")).await;
    assert_eq!(outcome.text, "Here it is.");
    let stored = outcome.media[0].as_media().unwrap().source.digest();
    assert_eq!(stored, MediaSource::Bytes(vec![7, 8].into()).digest());
}

#[tokio::test]
async fn images_go_to_an_anthropic_model() {
    let answer = |content: Value, reason: &str| {
        json!({"type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
            "usage": {"input_tokens": 1, "output_tokens": 1}})
    };
    let call = json!({"type": "tool_use", "id": "c1", "name": "plot", "input": {}});
    let server = server([
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
    let mut sent = messages(&server, 1);
    // The mark of the prompt cache is not the point here.
    sent[2]["content"][0].as_object_mut().unwrap().remove("cache_control");
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
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_model_that_takes_no_images_reads_their_description() {
    let server = server([openai_answer(&json!({"content": "I cannot see it."}))]);
    let model = OpenAiChat::builder(&server.endpoint, "m").model_settings(ModelSettings::new().with_images(false));
    let folder = tempfile::tempdir().unwrap();
    host(model.build().unwrap(), folder.path())
        .agent()
        .ask("s", question())
        .await
        .unwrap();
    let words = "Who is this?\n[image \"cat.png\", image/png, 3 bytes: this model does not take images and files]";
    assert_eq!(messages(&server, 0)[1], json!({"role": "user", "content": words}));
}

#[tokio::test]
async fn a_medium_that_is_gone_is_described_and_the_turn_goes_on() {
    let answers = ["A cat.", "I cannot see it any more."].map(|text| openai_answer(&json!({"content": text})));
    let server = server(answers);
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
    assert_eq!(messages(&server, 1)[1], json!({"role": "user", "content": words}));
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = server([]);
    let host = host(
        OpenAiChat::builder(&server.endpoint, "m").build().unwrap(),
        folder.path(),
    );
    let size = MAX_MEDIA_BYTES + 1;
    let large = Content::from("?").with_image(MediaPart::bytes("image/png", vec![0; size]));
    let refused = host.agent().ask("s", large).await.unwrap_err();
    assert!(matches!(refused, TurnError::Content(ContentError::TooLarge { size: found }) if found == size));
}
