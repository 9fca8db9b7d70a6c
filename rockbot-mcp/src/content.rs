//! The result of a call as content: texts, images and files, all of them untrusted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use rockbot_core::content::{Content, ContentPart, MediaPart};
use rockbot_core::support::one_line;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// Maximum number of blocks of a result. The others are left out, and the text says so.
const MAX_BLOCKS: usize = 256;

/// The kinds of blocks that are known.
const KINDS: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];

/// Maximum length of the reason why a block is left out, in bytes.
const MAX_PROBLEM: usize = 200;

/// Returns the content of a result. A result that has structured content only is shown as JSON.
pub(crate) fn content_of(result: &CallToolResult) -> Content {
    let mut content = Content::EMPTY;
    for block in result.content.iter().take(MAX_BLOCKS) {
        add(&mut content, block);
    }
    if let Some(more) = result.content.len().checked_sub(MAX_BLOCKS + 1) {
        text(&mut content, &format!("… and {} more parts", more + 1));
    }
    if content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        text(&mut content, &structured.to_string());
    }
    content
}

/// Reads the result of a call with an unreadable part: a text that names the part stands in its
/// place. Returns `None` if it is no result.
pub(crate) fn read_result(mut result: Value) -> Option<CallToolResult> {
    let parts = result.get_mut("content")?.as_array_mut()?;
    parts.iter_mut().for_each(replace_unreadable);
    serde_json::from_value(result).ok()
}

/// Puts a text in the place of a part that cannot be read.
fn replace_unreadable(part: &mut Value) {
    let Err(error) = ContentBlock::deserialize(&*part) else {
        return;
    };
    let text = match part.get("type").and_then(Value::as_str) {
        Some(kind) if KINDS.contains(&kind) => {
            let problem = error.to_string();
            let problem = &problem[..problem.floor_char_boundary(MAX_PROBLEM)];
            format!("[a part of the kind `{kind}` is left out: {}]", one_line(problem))
        }
        Some(kind) => {
            let kind = one_line(&kind[..kind.floor_char_boundary(MAX_PROBLEM)]);
            format!("[a part of the kind `{kind}`, which is not known here, is left out]")
        }
        None => "[a part without a kind is left out]".to_owned(),
    };
    *part = json!({"type": "text", "text": text});
}

pub(crate) fn add(content: &mut Content, block: &ContentBlock) {
    match block {
        ContentBlock::Text(block) => text(content, &block.text),
        ContentBlock::Image(image) => media(content, &image.mime_type, &image.data, None),
        ContentBlock::Audio(audio) => media(content, &audio.mime_type, &audio.data, None),
        ContentBlock::Resource(embedded) => resource(content, &embedded.resource),
        ContentBlock::ResourceLink(link) => {
            text(
                content,
                &format!("[resource {}: {}]", one_line(&link.uri), one_line(&link.name)),
            );
        }
        _ => text(content, "[a part of a kind that is not known here]"),
    }
}

/// Adds the content of a resource.
pub(crate) fn resource(content: &mut Content, resource: &ResourceContents) {
    match resource {
        ResourceContents::TextResourceContents { text: words, .. } => text(content, words),
        ResourceContents::BlobResourceContents {
            uri, mime_type, blob, ..
        } => {
            let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
            media(content, media_type, blob, uri.rsplit('/').next());
        }
        _ => text(content, "[a resource of a kind that is not known here]"),
    }
}

/// Adds a text on a line of its own.
pub(crate) fn text(content: &mut Content, words: &str) {
    if !content.is_empty() {
        content.push_str("\n");
    }
    content.push_str(words);
}

/// Returns the bytes of an image or a file.
pub(crate) fn decoded(data: &str) -> Option<Vec<u8>> {
    STANDARD.decode(data).ok()
}

fn media(content: &mut Content, media_type: &str, data: &str, name: Option<&str>) {
    let Some(bytes) = decoded(data) else {
        return text(content, "[an image or file that cannot be decoded]");
    };
    let media = MediaPart::bytes(media_type, bytes);
    let media = match name.filter(|name| !name.is_empty()) {
        Some(name) => media.with_name(one_line(name)),
        None => media,
    };
    content.push(if media.is_image() {
        ContentPart::image(media)
    } else {
        ContentPart::file(media)
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(result: serde_json::Value) -> String {
        content_of(&serde_json::from_value(result).unwrap()).to_string()
    }

    #[test]
    fn each_kind_of_block_is_shown() {
        let result = json!({"content": [
            {"type": "text", "text": "one"}, {"type": "text", "text": "two"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "%", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a/b.bin", "blob": "AAAA"}},
            {"type": "resource", "resource": {"uri": "file:///c", "text": "three"}},
            {"type": "resource_link", "uri": "x:y", "name": "n"},
        ], "structuredContent": {"a": 1}});
        assert_eq!(
            shown(result),
            "one\ntwo\n[image image/png, 3 bytes]\n\n[an image or file that cannot be decoded]\n\
             [file \"b.bin\", application/octet-stream, 3 bytes]\n\nthree\n[resource x:y: n]"
        );
    }

    #[test]
    fn structured_content_stands_in_for_none_and_many_parts_are_counted() {
        assert_eq!(
            shown(json!({"content": [], "structuredContent": [1, null]})),
            "[1,null]"
        );
        let many = vec![json!({"type": "text", "text": "x"}); MAX_BLOCKS + 3];
        assert!(shown(json!({"content": many})).ends_with("x\n… and 3 more parts"));
    }
}
