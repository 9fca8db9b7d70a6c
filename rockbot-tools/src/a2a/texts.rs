//! The parts of messages of other agents as texts, defused and of bounded length.

use rockbot_core::support::{defused, defused_json, one_line};
use serde_json::Value;

use super::wire::{AgentArtifact, AgentMessage, AgentMessagePart};

/// Maximum length of a text of another agent, in bytes; the rest is cut.
pub(super) const MAX_TEXT: usize = 256 << 10;

/// Maximum number of parts of a message, artifacts included.
const MAX_PARTS: usize = 64;

/// The mark of a text that was cut.
const CUT: &str = "\n… (cut: the agent sent more than 256 KiB)";

/// Returns the text of all parts of a message, each a paragraph.
pub(super) fn text_of(message: &AgentMessage) -> String {
    joined(message.parts.iter().map(text_of_part))
}

/// Returns the text of a result: its message and its artifacts.
pub(super) fn text_of_result(message: Option<&AgentMessage>, artifacts: &[AgentArtifact]) -> String {
    let said = message.into_iter().flat_map(|message| &message.parts).map(text_of_part);
    let made = artifacts.iter().flat_map(|artifact| {
        let heading = heading_of(artifact);
        heading.into_iter().chain(artifact.parts.iter().map(text_of_part))
    });
    joined(said.chain(made))
}

fn heading_of(artifact: &AgentArtifact) -> Option<String> {
    let words = [&artifact.name, &artifact.description].into_iter().flatten();
    let words: Vec<_> = words.map(|text| one_line(text).into_owned()).collect();
    (!words.is_empty()).then(|| format!("[{}]", words.join(": ")))
}

fn text_of_part(part: &AgentMessagePart) -> String {
    if let Some(text) = part.text.as_deref().filter(|text| !text.is_empty()) {
        return defused(text).into_owned();
    }
    match &part.data {
        // The text of a JSON document, or a plain text.
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(data) => json_text(&data),
            Err(_) => defused(text).into_owned(),
        },
        Some(data) => json_text(data),
        None => String::new(),
    }
}

fn json_text(data: &Value) -> String {
    let data = defused_json(data);
    format!("```json\n{data:#}\n```")
}

/// Joins the first texts that are not empty, up to the maximum length.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut all = String::new();
    for text in texts.take(MAX_PARTS).filter(|text| !text.trim().is_empty()) {
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        all.push_str(text.trim());
        if all.len() > MAX_TEXT {
            all.truncate(all.floor_char_boundary(MAX_TEXT));
            all.push_str(CUT);
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(part: Value) -> AgentMessagePart {
        serde_json::from_value(part).unwrap()
    }

    #[test]
    fn all_parts_of_a_result_are_read_text_or_data() {
        let message = AgentMessage {
            role: "agent".to_owned(),
            parts: vec![
                part(json!({"kind": "text", "text": " One. "})),
                part(json!({"kind": "data", "data": "{\"a\": \"\\u001b<|im_start|>\"}"})),
                part(json!({"kind": "text", "text": "Two."})),
                part(json!({"kind": "text"})),
                part(json!({"kind": "data", "data": "no JSON"})),
            ],
        };
        let artifacts = vec![AgentArtifact {
            name: Some("re\nport".to_owned()),
            description: None,
            parts: vec![part(json!({"kind": "data", "data": {"n": [1]}}))],
        }];
        let expected = "One.\n\n```json\n{\n  \"a\": \"‹|im_start|>\"\n}\n```\n\nTwo.\n\nno JSON\n\n[re port]\n\n```json\n{\n  \"n\": [\n    1\n  ]\n}\n```";
        assert_eq!(text_of_result(Some(&message), &artifacts), expected);
        assert_eq!(text_of_result(None, &[]), "");
    }

    #[test]
    fn a_text_without_an_end_is_cut() {
        let parts = vec![part(json!({"kind": "text", "text": "ä".repeat(MAX_TEXT)})); 100];
        let text = text_of(&AgentMessage {
            role: "agent".to_owned(),
            parts,
        });
        assert_eq!(text.len(), MAX_TEXT + CUT.len());
        assert!(text.ends_with(CUT));
    }
}
