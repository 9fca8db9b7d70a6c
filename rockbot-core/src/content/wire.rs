//! The JSON form of content: a string for one text without an origin, else an array of parts.
//! Parts have a type unless all of them are texts.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize, de};

use super::{
    Content, ContentError, ContentPart, MAX_MEDIA_BYTES, MediaPart, MediaSource, Provenance, StoredMedia, TextPart,
};
use crate::Digest;

/// A part as it is written. A part without a type is a text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, alias = "mimeType", skip_serializing_if = "Option::is_none")]
    media_type: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "is_unknown")]
    provenance: Cow<'a, Provenance>,
}

/// A text among texts, which is nearly all that a journal holds.
#[derive(Serialize)]
struct WireText<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "is_unknown")]
    provenance: &'a Provenance,
}

impl<'a> WireText<'a> {
    fn of(part: &'a ContentPart) -> Self {
        Self {
            text: part.as_text().unwrap_or_default(),
            provenance: part.provenance(),
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    Image,
    File,
}

fn is_unknown(provenance: &Provenance) -> bool {
    *provenance == Provenance::UNKNOWN
}

impl<'a> WirePart<'a> {
    fn of(part: &'a ContentPart) -> Self {
        let kind = match part {
            ContentPart::Text(_) => Kind::Text,
            ContentPart::Image(_) => Kind::Image,
            ContentPart::File(_) => Kind::File,
        };
        let media = part.as_media();
        let source = media.map(|media| &media.source);
        let mut url = None;
        let mut data = None;
        let mut stored = None;
        match source {
            None => {}
            Some(MediaSource::Url(text)) => url = Some(Cow::Borrowed(&**text)),
            Some(MediaSource::Bytes(bytes)) => data = Some(Cow::Owned(STANDARD.encode(bytes))),
            Some(MediaSource::Stored(reference)) => stored = Some(reference),
        }
        Self {
            kind: Some(kind),
            text: part.as_text().map(Cow::Borrowed),
            media_type: media.map(|media| Cow::Borrowed(&*media.media_type)),
            name: media.and_then(|media| media.name.as_deref()).map(Cow::Borrowed),
            url,
            data,
            digest: stored.map(|stored| stored.digest),
            size: stored.map(|stored| stored.size),
            provenance: Cow::Borrowed(part.provenance()),
        }
    }

    fn into_part<E: de::Error>(self) -> Result<ContentPart, E> {
        let kind = self.kind.unwrap_or(Kind::Text);
        if let Kind::Text = kind {
            let text = self.text.ok_or_else(|| E::missing_field("text"))?.into_owned();
            let provenance = self.provenance.into_owned();
            return Ok(ContentPart::Text(TextPart { text, provenance }));
        }
        let media = Box::new(MediaPart {
            source: source(self.url, self.data, self.digest.zip(self.size)).map_err(E::custom)?,
            media_type: self
                .media_type
                .ok_or_else(|| E::missing_field("mediaType"))?
                .into_owned(),
            name: self.name.map(Cow::into_owned),
            provenance: self.provenance.into_owned(),
        });
        Ok(match kind {
            Kind::Image => ContentPart::Image(media),
            Kind::Text | Kind::File => ContentPart::File(media),
        })
    }
}

fn source(
    url: Option<Cow<'_, str>>,
    data: Option<Cow<'_, str>>,
    stored: Option<(Digest, u64)>,
) -> Result<MediaSource, ContentError> {
    match (url, data, stored) {
        (Some(url), None, None) => Ok(MediaSource::Url(url.into_owned())),
        (None, Some(data), None) => decode(&data),
        (None, None, Some((digest, size))) => Ok(MediaSource::Stored(StoredMedia::new(digest, size))),
        _ => Err(ContentError::NoSource),
    }
}

fn decode(data: &str) -> Result<MediaSource, ContentError> {
    // The size is known before the bytes exist: four characters are three bytes.
    let size = data.len() / 4 * 3;
    if size > MAX_MEDIA_BYTES + 2 {
        return Err(ContentError::TooLarge { size });
    }
    let bytes = STANDARD.decode(data).map_err(|_| ContentError::NotBase64)?;
    Ok(MediaSource::Bytes(bytes.into()))
}

impl Serialize for ContentPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WirePart::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WirePart::deserialize(deserializer)?.into_part()
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.parts() {
            [] => serializer.serialize_str(""),
            [ContentPart::Text(part)] if is_unknown(&part.provenance) => serializer.serialize_str(&part.text),
            parts if self.has_media() => serializer.collect_seq(parts),
            // Texts alone need no types, and have no types in journals of older versions.
            texts => serializer.collect_seq(texts.iter().map(WireText::of)),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or an array of content parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Content::EMPTY;
        while let Some(part) = parts.next_element()? {
            content.push(part);
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn check(content: impl Into<Content>, expected: Value) {
        let content = content.into();
        assert_eq!(to_value(&content).unwrap(), expected);
        assert_eq!(from_value::<Content>(expected).unwrap(), content);
    }

    #[test]
    fn a_text_is_a_string_and_everything_else_an_array() {
        let bytes = MediaPart::bytes("image/png", vec![1, 2, 3]).with_name("a.png");
        let stored = StoredMedia::of(b"abc");
        let file = MediaPart::new("application/pdf", MediaSource::Stored(stored)).with_provenance(Provenance::TOOL);
        check("hi", json!("hi"));
        check(Content::default(), json!(""));
        check(
            Content::from("hi").with_image(bytes).with_file(file),
            json!([
                {"type": "text", "text": "hi"},
                {"type": "image", "mediaType": "image/png", "name": "a.png", "data": "AQID"},
                {"type": "file", "mediaType": "application/pdf", "digest": stored.digest.to_string(), "size": 3,
                    "provenance": {"source": "tool", "trust": "untrusted"}},
            ]),
        );
        check(
            Content::from("hi").attributed(Provenance::USER),
            json!([{"text": "hi", "provenance": {"source": "user", "trust": "user"}}]),
        );
    }

    #[test]
    fn parts_of_older_versions_and_of_other_programs_are_read() {
        let old = json!([{"text": "hi", "provenance": {"source": "user", "trust": "user"}}]);
        assert_eq!(
            from_value::<Content>(old).unwrap(),
            Content::from("hi").attributed(Provenance::USER)
        );
        let mcp = json!([{"type": "image", "mimeType": "image/png", "data": "AQID"}]);
        let image = Content::default().with_image(MediaPart::bytes("image/png", vec![1, 2, 3]));
        assert_eq!(from_value::<Content>(mcp).unwrap(), image);
    }

    #[test]
    fn malformed_parts_are_refused_with_a_reason() {
        let check = |part: Value, expected: &str| {
            let error = from_value::<Content>(json!([part])).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(json!({"type": "text"}), "missing field `text`");
        check(json!({"type": "song", "text": "la"}), "unknown variant `song`");
        check(
            json!({"type": "image", "url": "https://a.example"}),
            "missing field `mediaType`",
        );
        check(
            json!({"type": "image", "mediaType": "image/png"}),
            "exactly one of `url`",
        );
        check(
            json!({"type": "image", "mediaType": "image/png", "data": "A", "url": "b"}),
            "exactly one of `url`",
        );
        check(
            json!({"type": "image", "mediaType": "image/png", "data": "?"}),
            "not standard Base64",
        );
        let long = "A".repeat(MAX_MEDIA_BYTES / 3 * 4 + 8);
        check(
            json!({"type": "image", "mediaType": "image/png", "data": long}),
            "is too large",
        );
    }
}
