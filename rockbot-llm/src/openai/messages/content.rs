//! The content of a message: one string, or blocks if there are images or files.

use rockbot_core::chat::{ChatMessage, ContentPart};
use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::support::json::push_text;

use super::BETWEEN;
use crate::http::{PartForm, described, form_of, push_url};

/// Returns the form of each part of a message. Only a user's message may hold images and files:
/// elsewhere words refer to them.
pub(super) fn forms(message: &ChatMessage, takes_media: bool, is_user: bool) -> impl Iterator<Item = PartForm<'_>> {
    let parts = message.content.parts().iter().enumerate();
    parts.map(move |(index, part)| {
        let form = match form(part, takes_media) {
            PartForm::Image(_) | PartForm::Document(_) if !is_user => described(part, "it follows below"),
            form => form,
        };
        match form {
            // Words in place of an image stand on a line of their own.
            PartForm::Text(words) if index > 0 && part.as_media().is_some() => {
                PartForm::Text(format!("\n{words}").into())
            }
            form => form,
        }
    })
}

/// Returns `true` if a message has an image or a file that the model gets.
pub(super) fn has_media_for(message: &ChatMessage, takes_media: bool) -> bool {
    takes_media && message.content.has_media() && media_of(message).next().is_some()
}

/// Returns the images and files of a message that the model gets.
pub(super) fn media_of(message: &ChatMessage) -> impl Iterator<Item = PartForm<'_>> {
    let forms = message.content.parts().iter().map(|part| form(part, true));
    forms.filter(|form| !matches!(form, PartForm::Text(_)))
}

/// Returns the form of a part in this dialect, which takes documents as bytes only.
fn form(part: &ContentPart, takes_media: bool) -> PartForm<'_> {
    match form_of(part, takes_media) {
        PartForm::Document(media) if matches!(media.source, MediaSource::Url(_)) => {
            described(part, "models of this server cannot read it from a URL")
        }
        form => form,
    }
}

/// Appends content: as one string if it is text alone, else as blocks.
pub(super) fn push_forms(body: &mut Vec<u8>, forms: &[PartForm<'_>]) {
    if forms.iter().all(is_text) {
        return push_text(body, forms.iter().map(text_of));
    }
    body.push(b'[');
    let mut is_first = true;
    for run in forms.chunk_by(|one, next| is_text(one) && is_text(next)) {
        let run = without_space(run);
        let [first, ..] = run else { continue };
        if !std::mem::take(&mut is_first) {
            body.push(b',');
        }
        match first {
            PartForm::Text(_) => {
                body.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                push_text(body, run.iter().map(text_of));
                body.push(b'}');
            }
            PartForm::Image(media) => push_image(body, media),
            PartForm::Document(media) => push_document(body, media),
        }
    }
    body.push(b']');
}

/// Returns the texts of a block without the space that stands between joined messages: a block is
/// a piece of its own.
fn without_space<'f, 'a>(mut run: &'f [PartForm<'a>]) -> &'f [PartForm<'a>] {
    let is_space = |form: &PartForm<'_>| is_text(form) && matches!(text_of(form), "" | BETWEEN);
    while let [first, rest @ ..] = run
        && is_space(first)
    {
        run = rest;
    }
    while let [rest @ .., last] = run
        && is_space(last)
    {
        run = rest;
    }
    run
}

fn is_text(form: &PartForm<'_>) -> bool {
    matches!(form, PartForm::Text(_))
}

fn text_of<'f>(form: &'f PartForm<'_>) -> &'f str {
    match form {
        PartForm::Text(text) => text,
        PartForm::Image(_) | PartForm::Document(_) => "",
    }
}

fn push_image(body: &mut Vec<u8>, media: &MediaPart) {
    body.extend_from_slice(b"{\"type\":\"image_url\",\"image_url\":{\"url\":");
    push_url(body, media);
    body.extend_from_slice(b"}}");
}

fn push_document(body: &mut Vec<u8>, media: &MediaPart) {
    body.extend_from_slice(b"{\"type\":\"file\",\"file\":{\"filename\":");
    push_text(body, [media.name.as_deref().unwrap_or("document.pdf")]);
    body.extend_from_slice(b",\"file_data\":");
    push_url(body, media);
    body.extend_from_slice(b"}}");
}
