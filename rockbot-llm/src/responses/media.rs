//! Images and documents as parts of items.

use rockbot_core::chat::ChatMessage;

use crate::http::{PartForm, form_of, push_text, push_url};

/// Returns the form of each part of a message that is not blank.
pub(super) fn forms(message: &ChatMessage, takes_media: bool) -> impl Iterator<Item = PartForm<'_>> {
    let forms = message
        .content
        .parts()
        .iter()
        .map(move |part| form_of(part, takes_media));
    forms.filter(|form| !matches!(form, PartForm::Text(text) if text.trim().is_empty()))
}

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
