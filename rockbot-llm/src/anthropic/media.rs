//! Images and documents as blocks.

use rockbot_core::chat::{ChatMessage, ContentPart};
use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::support::json::push_text;

use crate::http::{PartForm, described, form_of, push_base64};

/// Maximum number of bytes of an image: the API refuses more than 5 MiB of Base64, and with it
/// the whole conversation.
const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024 / 4 * 3;

/// Returns the form of each part of a message that is not blank.
pub(super) fn forms(message: &ChatMessage, takes_media: bool) -> impl Iterator<Item = PartForm<'_>> {
    let forms = message.content.parts().iter().map(move |part| form(part, takes_media));
    forms.filter(|form| !matches!(form, PartForm::Text(text) if text.trim().is_empty()))
}

fn form(part: &ContentPart, takes_media: bool) -> PartForm<'_> {
    match form_of(part, takes_media) {
        PartForm::Image(media) if media.source.size().is_some_and(|size| size > MAX_IMAGE_BYTES) => {
            described(part, "this model does not take images of this size")
        }
        form => form,
    }
}

/// Appends a block without its closing brace.
pub(super) fn push_part(body: &mut Vec<u8>, form: &PartForm<'_>) {
    let (kind, media): (&[u8], _) = match form {
        PartForm::Text(text) => {
            body.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            return push_text(body, [&**text]);
        }
        PartForm::Image(media) => (b"image", media),
        PartForm::Document(media) => (b"document", media),
    };
    body.extend_from_slice(b"{\"type\":\"");
    body.extend_from_slice(kind);
    body.extend_from_slice(b"\",\"source\":");
    push_source(body, media);
}

fn push_source(body: &mut Vec<u8>, media: &MediaPart) {
    match &media.source {
        MediaSource::Bytes(bytes) => {
            body.extend_from_slice(b"{\"type\":\"base64\",\"media_type\":");
            push_text(body, [&*media.media_type]);
            body.extend_from_slice(b",\"data\":\"");
            push_base64(body, bytes);
            body.extend_from_slice(b"\"}");
        }
        MediaSource::Url(url) => {
            body.extend_from_slice(b"{\"type\":\"url\",\"url\":");
            push_text(body, [&**url]);
            body.push(b'}');
        }
        // Stored media have been described in words.
        _ => body.extend_from_slice(b"null"),
    }
}
