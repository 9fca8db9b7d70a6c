//! Images and files in requests, in the form that a model gets.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rockbot_core::chat::{ChatMessage, ChatRequest, ContentPart};
use rockbot_core::content::{MAX_MEDIA_BYTES, MediaPart, MediaSource};
use rockbot_core::support::json::push_text;

/// The form of a message's part in a request to the model.
pub(crate) enum PartForm<'a> {
    /// A text: of the part itself, of a text file, or the description of a part that the model cannot
    /// take.
    Text(Cow<'a, str>),
    /// An image, with bytes or a URL.
    Image(&'a MediaPart),
    /// A PDF document, with bytes or a URL.
    Document(&'a MediaPart),
}

/// Returns the form of `part` for a model that takes images and files if `takes_media`.
pub(crate) fn form_of(part: &ContentPart, takes_media: bool) -> PartForm<'_> {
    let media = match (part.as_text(), part.as_media()) {
        (Some(text), _) => return PartForm::Text(Cow::Borrowed(text)),
        (None, Some(media)) => media,
        (None, None) => return described(part, "it cannot be sent"),
    };
    let is_at_hand = !matches!(media.source, MediaSource::Stored(_));
    match part {
        _ if !is_at_hand => described(part, "it is not at hand"),
        _ if is_text(media) => text_file(part, media),
        _ if !takes_media => described(part, "this model does not take images and files"),
        ContentPart::Image(_) if !is_shown(media) => described(part, "this model does not take images of this type"),
        ContentPart::Image(_) => PartForm::Image(media),
        _ if media.media_type == "application/pdf" => PartForm::Document(media),
        _ => described(part, "models cannot read files of this type"),
    }
}

/// Returns the form of each part of a message that is not blank.
pub(crate) fn forms(message: &ChatMessage, takes_media: bool) -> impl Iterator<Item = PartForm<'_>> {
    let forms = message.content.parts().iter();
    let forms = forms.map(move |part| form_of(part, takes_media));
    forms.filter(|form| !matches!(form, PartForm::Text(text) if text.trim().is_empty()))
}

/// The types of images that models of all providers take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns `true` for an image that models take. The server reads the type of a URL itself.
fn is_shown(media: &MediaPart) -> bool {
    matches!(media.source, MediaSource::Url(_)) || IMAGE_TYPES.contains(&&*media.media_type)
}

/// Describes a part in words, with the reason why the model does not get it.
pub(crate) fn described<'a>(part: &ContentPart, reason: &str) -> PartForm<'a> {
    PartForm::Text(Cow::Owned(part.describe(reason).to_string()))
}

/// Returns `true` for a file that goes to every model as text.
pub(super) fn is_text(media: &MediaPart) -> bool {
    media.media_type.starts_with("text/") || media.media_type == "application/json"
}

fn text_file<'a>(part: &'a ContentPart, media: &'a MediaPart) -> PartForm<'a> {
    let MediaSource::Bytes(bytes) = &media.source else {
        return described(part, "models cannot read it from a URL");
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => PartForm::Text(Cow::Owned(format!("{part}\n{text}"))),
        Err(_) => described(part, "it is not UTF-8 text"),
    }
}

/// Reads an image of an answer from its URL, which may hold the bytes. Returns `None` if they
/// cannot be read.
pub(crate) fn image_of(url: &str) -> Option<ContentPart> {
    let Some(data) = url.strip_prefix("data:") else {
        return Some(ContentPart::image(MediaPart::url("image/*", url)));
    };
    let (media_type, data) = data.split_once(";base64,")?;
    match STANDARD.decode(data) {
        Ok(bytes) if bytes.len() <= MAX_MEDIA_BYTES => Some(ContentPart::image(MediaPart::bytes(media_type, bytes))),
        _ => {
            tracing::warn!("an image of an answer cannot be read; it is left out");
            None
        }
    }
}

/// Appends `bytes` as Base64.
pub(crate) fn push_base64(body: &mut Vec<u8>, bytes: &[u8]) {
    let start = body.len();
    // Room for every group of three bytes, then cut to the written length.
    body.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD
        .encode_slice(bytes, &mut body[start..])
        .expect("the room is exact");
    body.truncate(start + written);
}

/// Appends the URL of an image or a file: its own, or a `data:` URL with the bytes.
pub(crate) fn push_url(body: &mut Vec<u8>, media: &MediaPart) {
    match &media.source {
        MediaSource::Bytes(bytes) => {
            push_text(body, ["data:", &media.media_type, ";base64,"]);
            // The bytes go in front of the closing quotation mark.
            body.pop();
            push_base64(body, bytes);
            body.push(b'"');
        }
        MediaSource::Url(url) => push_text(body, [&**url]),
        _ => push_text(body, [""]),
    }
}

/// Returns the approximate size of the images and files of a message in a request, in bytes.
fn media_size(message: &ChatMessage) -> usize {
    let sizes = message.content.media().map(|media| match &media.source {
        MediaSource::Bytes(bytes) => 200 + bytes.len().div_ceil(3) * 4,
        _ => 400,
    });
    sizes.sum()
}

/// Returns the approximate size of the messages and tools of a request, in bytes.
pub(crate) fn expected_size(request: &ChatRequest) -> usize {
    let sizes = request.messages.iter().map(|message| {
        let text = message.content.text_len();
        text + text / 16 + media_size(message)
    });
    let text: usize = sizes.sum();
    512 + text + 160 * request.messages.len() + request.tools.json().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_appended_in_place() {
        for (bytes, expected) in [("", "x"), ("a", "xYQ=="), ("abc", "xYWJj"), ("abcd", "xYWJjZA==")] {
            let mut body = b"x".to_vec();
            push_base64(&mut body, bytes.as_bytes());
            assert_eq!(String::from_utf8(body).unwrap(), expected);
        }
    }

    fn text(part: &ContentPart, takes_media: bool) -> String {
        match form_of(part, takes_media) {
            PartForm::Text(text) => text.into_owned(),
            PartForm::Image(_) => "an image".to_owned(),
            PartForm::Document(_) => "a document".to_owned(),
        }
    }

    #[test]
    fn what_a_model_cannot_take_is_described() {
        let png = ContentPart::image(MediaPart::bytes("image/png", vec![0; 12_000]).with_name("cat.png"));
        assert_eq!(text(&png, true), "an image");
        let words = r#"[image "cat.png", image/png, 12 kB: this model does not take images and files]"#;
        assert_eq!(text(&png, false), words);
        let pdf = ContentPart::file(MediaPart::url("application/pdf", "https://a.example/b.pdf"));
        assert_eq!(text(&pdf, true), "a document");
        let zip = ContentPart::file(MediaPart::bytes("application/zip", vec![0; 9]));
        let words = "[file application/zip, 9 bytes: models cannot read files of this type]";
        assert_eq!(text(&zip, true), words);
        let photo = ContentPart::image(MediaPart::bytes("image/heic", vec![0; 9]));
        let words = "[image image/heic, 9 bytes: this model does not take images of this type]";
        assert_eq!(text(&photo, true), words);
        let csv = ContentPart::file(MediaPart::bytes("text/csv", "a,b").with_name("t.csv"));
        assert_eq!(text(&csv, false), "[file \"t.csv\", text/csv, 3 bytes]\na,b");
    }
}
