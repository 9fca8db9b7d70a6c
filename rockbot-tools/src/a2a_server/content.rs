//! The content of a turn from the parts that a client sent, and the parts of an outcome.

use rockbot_core::Principal;
use rockbot_core::content::{Content, ContentPart, MediaPart, MediaSource};
use rockbot_core::store::MediaStore;
use rockbot_core::turn::TurnOutcome;

use crate::a2a_wire::{A2aError, Artifact, ErrorKind, Part, PartContent, reference};

/// Maximum length of a file that stands in an answer itself, in bytes. A longer file is a
/// reference.
const MAX_INLINE: u64 = 256 << 10;

/// Maximum length of a name or a media type, in bytes.
const MAX_NAME: usize = 255;

/// Id of the artifact with the answer.
pub(super) const ANSWER: &str = "answer";

/// Media types of messages, for the card.
pub(super) const INPUT_MODES: [&str; 4] = ["text/plain", "application/json", "image/*", "application/pdf"];

/// Media types of answers, for the card.
pub(super) const OUTPUT_MODES: [&str; 2] = ["text/plain", "application/octet-stream"];

/// Converts the parts of a message.
///
/// A file by reference stays a reference, which a tool may read under its policy: neither this host
/// nor the server of the model goes to an address because another agent names it.
pub(super) fn content_of(parts: &[Part]) -> Result<Content, A2aError> {
    let mut content = Vec::with_capacity(parts.len());
    for part in parts {
        let name = bounded(part.filename.as_deref(), "filename")?;
        let kind = bounded(part.media_type.as_deref(), "mediaType")?;
        content.push(match part.content()? {
            PartContent::Text(text) => ContentPart::text(text),
            PartContent::Data(json) => ContentPart::text(format!("```json\n{json}\n```")),
            PartContent::Url(url) => ContentPart::text(reference(url, name, kind)),
            PartContent::Raw(bytes) => file(bytes, name, kind)?,
        });
    }
    let content = Content::from_iter(content);
    let is_empty = content
        .parts()
        .iter()
        .all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()));
    if is_empty {
        Err(A2aError::params("the message says nothing: its parts are empty"))
    } else {
        Ok(content)
    }
}

fn bounded<'a>(text: Option<&'a str>, name: &str) -> Result<Option<&'a str>, A2aError> {
    match text {
        Some(text) if text.len() > MAX_NAME => Err(A2aError::params(format!(
            "the `{name}` of a part has more than {MAX_NAME} bytes"
        ))),
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

fn file(bytes: Vec<u8>, name: Option<&str>, kind: Option<&str>) -> Result<ContentPart, A2aError> {
    let kind = kind.unwrap_or("application/octet-stream");
    let is_image = kind.starts_with("image/");
    if kind.starts_with("text/") || kind == "application/json" {
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| A2aError::params("the `raw` of a text part is not UTF-8"))?;
        return Ok(ContentPart::text(text));
    }
    if !is_image && kind != "application/pdf" {
        return Err(A2aError::new(
            ErrorKind::ContentType,
            format!(
                "files of this media type are not taken: send {}",
                INPUT_MODES.join(", ")
            ),
        ));
    }
    let media = MediaPart::bytes(kind, bytes);
    let media = match name {
        Some(name) => media.with_name(name),
        None => media,
    };
    Ok(if is_image {
        ContentPart::image(media)
    } else {
        ContentPart::file(media)
    })
}

/// Returns the artifact of an answer. `url` is the address of the file at an index.
pub(super) async fn artifact_of(
    outcome: &TurnOutcome,
    principal: &Principal,
    media: Option<&dyn MediaStore>,
    url: impl Fn(usize) -> String,
) -> Artifact {
    let mut parts = vec![Part::text(&*outcome.text)];
    for (index, part) in outcome.media.iter().enumerate() {
        let Some(found) = part.as_media() else { continue };
        parts.push(file_part(found, principal, media, url(index)).await);
    }
    Artifact::new(ANSWER, parts)
}

async fn file_part(part: &MediaPart, principal: &Principal, media: Option<&dyn MediaStore>, url: String) -> Part {
    let is_small = part.source.size().is_some_and(|size| size <= MAX_INLINE);
    let bytes = if is_small {
        bytes_of(part, principal, media).await
    } else {
        None
    };
    let content = match (bytes, &part.source) {
        (Some(bytes), _) => Part::raw(&bytes),
        (None, MediaSource::Url(url)) => by_reference(url.clone()),
        (None, _) => by_reference(url),
    };
    Part {
        filename: part.name.clone(),
        media_type: Some(part.media_type.clone()),
        ..content
    }
}

fn by_reference(url: String) -> Part {
    Part {
        url: Some(url),
        ..Part::default()
    }
}

/// Returns the bytes of a file, if they are here.
pub(super) async fn bytes_of(
    part: &MediaPart,
    principal: &Principal,
    media: Option<&dyn MediaStore>,
) -> Option<bytes::Bytes> {
    match &part.source {
        MediaSource::Bytes(bytes) => Some(bytes.clone()),
        MediaSource::Stored(stored) => media?.get(principal, &stored.digest).await.ok().flatten(),
        _ => None,
    }
}
