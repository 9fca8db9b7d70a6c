//! Images and documents as parts of items.

use rockbot_core::support::json::push_text;

use crate::http::{PartForm, push_url};

/// Appends a part of a user's message or of the output of a call.
pub(super) fn push_part(body: &mut Vec<u8>, form: &PartForm<'_>) {
    match form {
        PartForm::Text(text) => {
            body.extend_from_slice(b"{\"type\":\"input_text\",\"text\":");
            push_text(body, [&**text]);
        }
        PartForm::Image(media) => {
            body.extend_from_slice(b"{\"type\":\"input_image\",\"image_url\":");
            push_url(body, media);
        }
        PartForm::Document(media) if media.source.size().is_none() => {
            body.extend_from_slice(b"{\"type\":\"input_file\",\"file_url\":");
            push_url(body, media);
        }
        PartForm::Document(media) => {
            body.extend_from_slice(b"{\"type\":\"input_file\",\"filename\":");
            push_text(body, [media.name.as_deref().unwrap_or("document.pdf")]);
            body.extend_from_slice(b",\"file_data\":");
            push_url(body, media);
        }
    }
    body.push(b'}');
}
