//! The result of a call in the protocol's form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use rockbot_core::Principal;
use rockbot_core::content::{ContentPart, MediaPart, MediaSource};
use rockbot_core::store::MediaStore;
use rockbot_core::tool::ToolInvokeResponse;

/// Maximum length of the images and files of a result together, in bytes; clients refuse longer
/// messages.
const MAX_MEDIA: usize = 4 << 20;

/// Converts a response into a result of at most `max_text` bytes of text.
pub(super) async fn result_of(
    response: ToolInvokeResponse,
    max_text: usize,
    principal: &Principal,
    media: Option<&dyn MediaStore>,
) -> CallToolResult {
    let mut blocks = Vec::new();
    let mut text_left = max_text;
    let mut media_left = MAX_MEDIA;
    for part in response.content.parts() {
        blocks.push(match part.as_media() {
            None => text(&part.to_string(), &mut text_left),
            Some(media_part) => match bytes_of(media_part, principal, media).await {
                Some(bytes) if bytes.len() <= media_left => {
                    media_left -= bytes.len();
                    block_of(media_part, &bytes)
                }
                Some(_) => ContentBlock::text(part.describe("too large to be sent").to_string()),
                None => without_bytes(part, media_part),
            },
        });
    }
    if response.is_error {
        CallToolResult::error(blocks)
    } else {
        CallToolResult::success(blocks)
    }
}

/// Returns the text as far as there is room. The note about a truncation comes first, where a
/// model cannot miss it.
fn text(text: &str, left: &mut usize) -> ContentBlock {
    let end = text.floor_char_boundary(*left);
    *left -= end;
    if end == text.len() {
        ContentBlock::text(text)
    } else {
        ContentBlock::text(format!("[truncated: {end} of {} bytes]\n{}", text.len(), &text[..end]))
    }
}

async fn bytes_of(part: &MediaPart, principal: &Principal, media: Option<&dyn MediaStore>) -> Option<bytes::Bytes> {
    match &part.source {
        MediaSource::Bytes(bytes) => Some(bytes.clone()),
        MediaSource::Stored(stored) => media?.get(principal, &stored.digest).await.ok().flatten(),
        _ => None,
    }
}

fn block_of(part: &MediaPart, bytes: &[u8]) -> ContentBlock {
    let data = STANDARD.encode(bytes);
    let kind = part.media_type.as_str();
    if part.is_image() {
        return ContentBlock::image(data, kind);
    }
    if kind.starts_with("audio/") {
        return ContentBlock::audio(data, kind);
    }
    let name = part.name.as_deref().unwrap_or("file");
    if let (true, Ok(text)) = (kind.starts_with("text/"), std::str::from_utf8(bytes)) {
        return ContentBlock::resource(ResourceContents::text(text, uri(name)).with_mime_type(kind));
    }
    ContentBlock::resource(ResourceContents::blob(data, uri(name)).with_mime_type(kind))
}

/// Returns the replacement of a part whose bytes are not here: a link, or words.
fn without_bytes(part: &ContentPart, media: &MediaPart) -> ContentBlock {
    match &media.source {
        MediaSource::Url(url) => {
            let name = media.name.as_deref().unwrap_or(url);
            ContentBlock::resource_link(Resource::new(url.as_str(), name).with_mime_type(media.media_type.as_str()))
        }
        _ => ContentBlock::text(part.describe("no longer stored").to_string()),
    }
}

/// Returns the URI of an embedded file: a name may hold characters that a URI may not.
fn uri(name: &str) -> String {
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("result:///{escaped}")
}
