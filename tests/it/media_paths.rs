//! Images on their way through a turn: which of them reach the user, what hooks and layers add,
//! and that no record of the host has their bytes.

use std::path::Path;
use std::sync::Arc;

use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::chat::{ChatMessage, ChatResponse};
use rockbot::content::{Content, ContentPart, MediaPart, MediaSource};
use rockbot::layer::{TurnCall, turn_fn};
use rockbot::testing::ScriptedModel;
use rockbot::turn::{
    BusyPolicy, FinalAnswer, LoopDecision, LoopPoint, OutputVerdict, TurnOutcome, TurnRequest, TurnStatus, history_fn,
    policy_fn, validator_fn,
};
use serde_json::json;

use crate::support::{Notes, collect, noting_tool, settle};

/// An image whose bytes no other text contains. In Base64: `//79/P` and one more character.
fn image(last: u8) -> MediaPart {
    MediaPart::bytes("image/png", vec![255, 254, 253, 252, last])
}

fn drawn(text: &str, last: u8) -> ChatResponse {
    ChatResponse::text(text).with_media(vec![ContentPart::image(image(last))])
}

fn in_folder(model: &ScriptedModel, folder: &Path) -> AgentHostBuilder {
    AgentHost::builder("painter").chat(model.clone()).data_dir(folder)
}

/// Returns the digests of the images of an outcome; panics at bytes.
fn digests(outcome: &TurnOutcome) -> Vec<String> {
    let digest = |part: &ContentPart| match part.as_media().unwrap().source {
        MediaSource::Stored(stored) => stored.digest.to_string(),
        ref other => panic!("{other:?} is in an outcome"),
    };
    outcome.media.iter().map(digest).collect()
}

fn digest_of(last: u8) -> String {
    image(last).source.digest().unwrap().to_string()
}

/// Checks that no file below `folder` has the bytes of an image, except those of the media store.
fn assert_no_bytes(folder: &Path) {
    let text = crate::images::written(folder);
    assert!(!text.contains("//79/P"), "{text}");
}

#[tokio::test]
async fn an_image_of_an_answer_that_a_validator_rejects_never_reaches_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new()
        .answers(drawn("Here.", 1))
        .answers(drawn("Here, in green.", 2));
    let seen = Notes::default();
    let notes = seen.clone();
    let green = validator_fn(move |answer: FinalAnswer, _| {
        let shown = answer.media.iter().filter_map(|part| match &part.as_media()?.source {
            MediaSource::Bytes(bytes) => bytes.last().copied(),
            _ => None,
        });
        let shown: Vec<_> = shown.collect();
        notes.add(format!("{shown:?}"));
        async move {
            Ok(if shown == [2] {
                OutputVerdict::Accept
            } else {
                OutputVerdict::complain("It is not green.")
            })
        }
    });
    let host = in_folder(&model, folder.path())
        .output_validator(green)
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "Draw a tree.").await.unwrap();
    assert_eq!(
        (&*outcome.text, digests(&outcome)),
        ("Here, in green.", vec![digest_of(2)])
    );
    assert_eq!(
        seen.all(),
        ["[1]", "[2]"],
        "a validator judges the images, by their bytes"
    );
    assert_no_bytes(folder.path());
}

#[tokio::test]
async fn an_image_beside_a_call_belongs_to_the_answer_until_it_is_sent_back() {
    let model = ScriptedModel::new()
        .answers(drawn("A sketch.", 1).with_tool_calls(vec![rockbot::chat::ToolCall::new("c1", "look", "{}")]))
        .answers(drawn("And in colour.", 2));
    let host = AgentHost::in_memory().chat(model).tool(noting_tool("look").0);
    let outcome = host.build().unwrap().agent().ask("s", "Draw.").await.unwrap();
    assert_eq!(digests(&outcome), [digest_of(1), digest_of(2)]);
}

#[tokio::test]
async fn an_answer_of_a_policy_has_its_own_images_and_not_the_models() {
    let check = async |answer: fn() -> Content, expected: Vec<String>| {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new().answers(drawn("Here.", 1));
        let policy = policy_fn(move |point, _| async move {
            Ok(match point {
                LoopPoint::AfterAnswer(_) => LoopDecision::answer(answer()),
                _ => LoopDecision::Continue,
            })
        });
        let host = in_folder(&model, folder.path()).loop_policy(policy).build().unwrap();
        let outcome = host.agent().ask("s", "Draw.").await.unwrap();
        assert_eq!((&*outcome.text, digests(&outcome)), ("Not today.", expected));
        assert_no_bytes(folder.path());
    };
    check(|| "Not today.".into(), vec![]).await;
    check(|| Content::from("Not today.").with_image(image(7)), vec![digest_of(7)]).await;
}

#[tokio::test]
async fn a_policy_shows_the_model_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("one").says("two");
    let policy = policy_fn(|point, turn: rockbot::turn::TurnView| async move {
        let again = matches!(point, LoopPoint::AfterAnswer(_)) && turn.model_calls == 1;
        Ok(if again {
            LoopDecision::ask_again(Content::from("It looks like this:").with_image(image(3)))
        } else {
            LoopDecision::Continue
        })
    });
    let host = in_folder(&model, folder.path()).loop_policy(policy).build().unwrap();
    assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "two");
    let asked = model.requests()[1].clone();
    let last = asked.messages.last().unwrap();
    assert_eq!(last.content.media().next().unwrap().source, image(3).source);
    assert_no_bytes(folder.path());
}

#[tokio::test]
async fn what_a_history_processor_adds_is_stored_once_and_the_model_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("A tree.");
    let adds = history_fn(|mut messages: Vec<Arc<ChatMessage>>, _| async move {
        let shown = Content::from("Look:").with_image(image(4));
        messages.insert(0, Arc::new(ChatMessage::user(shown)));
        Ok(messages)
    });
    let host = in_folder(&model, folder.path())
        .history_processor(adds)
        .build()
        .unwrap();
    host.agent().ask("s", "What is it?").await.unwrap();
    let asked = model.requests()[0].clone();
    let shown = asked
        .messages
        .iter()
        .find(|message| message.content.has_media())
        .unwrap();
    assert_eq!(shown.content.media().next().unwrap().source, image(4).source);
    assert_no_bytes(folder.path());
}

#[tokio::test]
async fn what_a_turn_layer_adds_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("A tree.").says("Yes.");
    let adds = turn_fn(|mut call: TurnCall, next| async move {
        let shown = Content::from("Look:").with_image(image(5));
        call.request = call.request.with_history(vec![ChatMessage::user(shown)]);
        let mut outcome: TurnOutcome = next.call(call).await?;
        outcome.media.push(ContentPart::image(image(6)));
        Ok(outcome)
    });
    let host = in_folder(&model, folder.path()).turn_layer(adds).build().unwrap();
    let outcome = host.agent().ask("s", "What is it?").await.unwrap();
    assert_eq!(digests(&outcome), [digest_of(6)]);
    let asked = model.requests()[0].clone();
    let shown: Vec<_> = asked
        .messages
        .iter()
        .flat_map(|message| message.content.media())
        .collect();
    assert_eq!(shown[0].source, image(5).source);
    assert_no_bytes(folder.path());
}

#[tokio::test]
async fn the_images_of_an_agent_that_was_called_as_a_tool_reach_its_caller() {
    let painter = AgentHost::in_memory()
        .chat(ScriptedModel::new().answers(drawn("A tree.", 8)))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .calls("paint", json!({"task": "a tree"}))
        .says("Done.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(painter.agent().as_tool("paint", "Paints."))
        .build()
        .unwrap();
    host.agent().ask("s", "Paint a tree.").await.unwrap();
    let asked = model.requests()[1].clone();
    let result = asked
        .messages
        .iter()
        .find(|message| message.tool_call_id.is_some())
        .unwrap();
    assert_eq!(result.content.text(), "A tree.");
    assert_eq!(result.content.media().next().unwrap().source, image(8).source);
}

#[tokio::test]
async fn a_message_that_joined_a_turn_gets_its_images() {
    let model = ScriptedModel::new().calls("wait", json!({})).answers(drawn("Here.", 9));
    let gate = Arc::new(tokio::sync::Notify::new());
    let open = gate.clone();
    let wait = rockbot::tool::tool("wait", move |_: crate::support::Anything| {
        let open = open.clone();
        async move {
            open.notified().await;
            "done"
        }
    });
    let host = AgentHost::in_memory().chat(model).tool(wait).build().unwrap();
    let agent = host.agent().clone();
    let first = agent.ask("s", "Draw.").stream();
    let running = tokio::spawn(collect(first));
    settle().await;
    let request = TurnRequest::new("s", "m2", "In blue.").with_busy(BusyPolicy::Steer);
    let joined = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    gate.notify_one();
    let outcome = joined.await.unwrap().unwrap();
    running.await.unwrap();
    assert!(matches!(outcome.status, TurnStatus::Joined(_)), "{outcome:?}");
    assert_eq!(digests(&outcome), [digest_of(9)]);
}
