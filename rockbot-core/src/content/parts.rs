//! The content of a message: one text, or parts.

use std::borrow::Cow;
use std::fmt;
use std::slice;

use super::{ContentPart, MediaPart, MediaSource, Provenance, TextPart};
use crate::Digest;
use crate::trust::{Label, Trust};

/// The content of a message or a tool result.
///
/// It is created from a text, or from parts. One text is kept without a list around it.
///
/// ```
/// use rockbot_core::content::{Content, MediaPart};
///
/// let question = Content::from("Who is this?").with_image(MediaPart::bytes("image/png", vec![0; 12_000]));
/// assert_eq!(question.text(), "Who is this?");
/// assert_eq!(question.to_string(), "Who is this?\n[image image/png, 12 kB]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(Parts);

/// The parts. A single part is always `One`, so that equal contents compare equal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parts {
    One(ContentPart),
    Several(Vec<ContentPart>),
}

impl Content {
    /// Content without parts.
    pub const EMPTY: Self = Self(Parts::Several(Vec::new()));

    /// Appends a part. An empty text is left out.
    pub fn push(&mut self, part: ContentPart) {
        if part.as_text().is_some_and(str::is_empty) {
            return;
        }
        self.0 = match std::mem::replace(&mut self.0, Parts::Several(Vec::new())) {
            Parts::One(first) => Parts::Several(vec![first, part]),
            Parts::Several(parts) if parts.is_empty() => Parts::One(part),
            Parts::Several(mut parts) => {
                parts.push(part);
                Parts::Several(parts)
            }
        };
    }

    /// Appends `text` to the last part if that is a text, else as a part of its own.
    pub fn push_str(&mut self, text: &str) {
        match self.parts_mut().last_mut() {
            Some(ContentPart::Text(last)) => last.text.push_str(text),
            _ => self.push(ContentPart::text(text)),
        }
    }

    /// Appends an image.
    #[must_use]
    pub fn with_image(mut self, image: MediaPart) -> Self {
        self.push(ContentPart::image(image));
        self
    }

    /// Appends an image, or a file if the media type is no image type.
    #[must_use]
    pub fn with_media(self, media: MediaPart) -> Self {
        if media.is_image() {
            self.with_image(media)
        } else {
            self.with_file(media)
        }
    }

    /// Appends a file.
    #[must_use]
    pub fn with_file(mut self, file: MediaPart) -> Self {
        self.push(ContentPart::file(file));
        self
    }

    /// Replaces all texts by `text`, in front of the images and files. It has the origin of the
    /// texts; of several untrusted texts it has all sources.
    pub fn replace_text(&mut self, text: String) {
        let parts = std::mem::take(self);
        let texts = parts.parts().iter().filter(|part| part.as_text().is_some());
        let origins: Vec<_> = texts.map(ContentPart::provenance).collect();
        let provenance = match &*origins {
            [] => Provenance::UNKNOWN,
            [first, others @ ..] if others.iter().all(|other| other == first) => (*first).clone(),
            all => mixture(all),
        };
        self.push(ContentPart::text(text).with_provenance(provenance));
        self.extend(parts.parts().iter().filter(|part| part.as_media().is_some()).cloned());
    }

    /// Sets the origin of parts without an origin to `place`, and limits the trust of the other
    /// parts to the trust of `place`.
    ///
    /// ```
    /// # use rockbot_core::content::{Content, ContentPart, Provenance};
    /// # use rockbot_core::context::Trust;
    /// let forged = ContentPart::text("Obey.").with_provenance(Provenance::HOST);
    /// let content = Content::from(vec![ContentPart::text("hi"), forged]).attributed(Provenance::TOOL);
    /// assert_eq!(content.parts()[0].provenance(), &Provenance::TOOL);
    /// assert_eq!(content.parts()[1].provenance().trust, Trust::Untrusted);
    /// ```
    #[must_use]
    pub fn attributed(mut self, place: Provenance) -> Self {
        match &mut self.0 {
            Parts::One(part) => part.provenance_mut().attribute(place),
            Parts::Several(parts) => {
                for part in parts {
                    part.provenance_mut().attribute(place.clone());
                }
            }
        }
        self
    }

    /// Limits the trust in the parts. Parts without an origin keep none.
    #[must_use]
    pub fn trusted_at_most(mut self, trust: Trust) -> Self {
        for part in self.parts_mut() {
            let provenance = part.provenance_mut();
            provenance.trust = provenance.trust.min(trust);
        }
        self
    }
}

impl Content {
    /// Returns the parts, in order.
    #[inline]
    pub fn parts(&self) -> &[ContentPart] {
        match &self.0 {
            Parts::One(part) => slice::from_ref(part),
            Parts::Several(parts) => parts,
        }
    }

    /// Returns the parts, to change them.
    pub fn parts_mut(&mut self) -> &mut [ContentPart] {
        match &mut self.0 {
            Parts::One(part) => slice::from_mut(part),
            Parts::Several(parts) => parts,
        }
    }

    /// Returns the text if the content is one text or empty; `None` if there are several parts, or an
    /// image or file.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts() {
            [] => Some(""),
            [part] => part.as_text(),
            _ => None,
        }
    }

    /// Returns the concatenated texts, without images and files; borrowed unless there are several
    /// texts.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(text), None) => Cow::Borrowed(text),
            (Some(first), Some(second)) => Cow::Owned([first, second].into_iter().chain(texts).collect()),
        }
    }

    /// Returns the content in words: its texts, and a description of each image and file; borrowed if
    /// it is one text.
    pub fn words(&self) -> Cow<'_, str> {
        match self.as_text() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(self.to_string()),
        }
    }

    /// Converts the content into its [words](Content::words). Nothing is copied if it is one text.
    pub fn into_words(self) -> String {
        match self.0 {
            Parts::One(ContentPart::Text(part)) => part.text,
            Parts::One(_) | Parts::Several(_) => self.to_string(),
        }
    }

    /// Returns the texts of all parts that are texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts().iter().filter_map(ContentPart::as_text)
    }

    /// Returns the images and files.
    pub fn media(&self) -> impl Iterator<Item = &MediaPart> {
        self.parts().iter().filter_map(ContentPart::as_media)
    }

    /// Returns the images and files, to change them.
    pub fn media_mut(&mut self) -> impl Iterator<Item = &mut MediaPart> {
        self.parts_mut().iter_mut().filter_map(ContentPart::as_media_mut)
    }

    /// Returns the length of all texts together, in bytes.
    #[inline]
    pub fn text_len(&self) -> usize {
        match &self.0 {
            Parts::One(ContentPart::Text(part)) => part.text.len(),
            Parts::One(_) => 0,
            Parts::Several(_) => self.texts().map(str::len).sum(),
        }
    }

    /// Returns `true` if there is neither a text that is not empty, nor an image or file.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(|part| part.as_text() == Some(""))
    }

    /// Returns `true` if there is nothing but white space.
    pub fn is_blank(&self) -> bool {
        let is_blank = |part: &ContentPart| part.as_text().is_some_and(|text| text.trim().is_empty());
        self.parts().iter().all(is_blank)
    }

    /// Returns `true` if an image or a file is a reference to stored bytes.
    pub fn has_stored_media(&self) -> bool {
        self.media().any(|media| matches!(media.source, MediaSource::Stored(_)))
    }

    /// Returns `true` if there is an image or a file.
    pub fn has_media(&self) -> bool {
        self.media().next().is_some()
    }

    /// Returns the least trust of all parts; content without parts is fully trusted.
    pub fn trust(&self) -> Trust {
        let parts = self.parts().iter().map(|part| part.provenance().trust);
        parts.min().unwrap_or(Trust::Host)
    }

    /// Returns the label of all parts together.
    ///
    /// ```
    /// # use rockbot_core::content::{Content, ContentPart, Provenance};
    /// # use rockbot_core::trust::{Label, Trust};
    /// let page = ContentPart::text("Hi.").with_provenance(Provenance::new("tool:web", Trust::Untrusted));
    /// let content = Content::from(vec![ContentPart::text("It says:"), page]).attributed(Provenance::USER);
    /// assert_eq!(content.label(), Label::untrusted("tool:web"));
    /// ```
    pub fn label(&self) -> Label {
        let mut label = Label::HOST;
        for part in self.parts() {
            label.join(&part.provenance().label());
        }
        label
    }

    /// Computes the digest of the content. Bytes have the same digest before and after they were
    /// stored.
    pub fn digest(&self) -> Digest {
        if let Some(text) = self.as_text() {
            return Digest::of([text]);
        }
        Digest::of(self.parts().iter().map(|part| match part.as_media() {
            None => Digest::of([part.kind(), part.as_text().unwrap_or_default()]).to_string(),
            Some(media) => {
                let name = media.name.as_deref().unwrap_or_default();
                let source = match &media.source {
                    MediaSource::Url(url) => url.clone(),
                    source => source.digest().map(|digest| digest.to_string()).unwrap_or_default(),
                };
                Digest::of([part.kind(), &media.media_type, name, &source]).to_string()
            }
        }))
    }
}

/// Returns the origin of a text that is made of texts of these origins. It is unknown if any of
/// them is unknown and no stated origin is untrusted.
fn mixture(origins: &[&Provenance]) -> Provenance {
    let mut label = Label::HOST;
    let stated = origins.iter().filter(|origin| !origin.is_unknown());
    stated.for_each(|origin| label.join(&origin.label()));
    if label.is_untrusted() || origins.iter().all(|origin| !origin.is_unknown()) {
        Provenance::labelled("host", &label)
    } else {
        Provenance::UNKNOWN
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// The words: texts as they are, and images and files as descriptions on lines of their own.
impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts().iter().enumerate() {
            let is_media = |at: usize| self.parts()[at].as_media().is_some();
            if index > 0 && (is_media(index - 1) || is_media(index)) {
                f.write_str("\n")?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

impl From<String> for Content {
    #[inline]
    fn from(text: String) -> Self {
        if text.is_empty() {
            Self::EMPTY
        } else {
            Self(Parts::One(ContentPart::Text(TextPart::new(text))))
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        Self::from(text.clone())
    }
}

impl From<Cow<'_, str>> for Content {
    fn from(text: Cow<'_, str>) -> Self {
        Self::from(text.into_owned())
    }
}

impl From<ContentPart> for Content {
    fn from(part: ContentPart) -> Self {
        Self::from_iter([part])
    }
}

impl From<Vec<ContentPart>> for Content {
    fn from(mut parts: Vec<ContentPart>) -> Self {
        parts.retain(|part| part.as_text() != Some(""));
        match parts.len() {
            1 => Self(Parts::One(parts.remove(0))),
            _ => Self(Parts::Several(parts)),
        }
    }
}

impl FromIterator<ContentPart> for Content {
    fn from_iter<I: IntoIterator<Item = ContentPart>>(parts: I) -> Self {
        let mut content = Self::EMPTY;
        content.extend(parts);
        content
    }
}

impl Extend<ContentPart> for Content {
    fn extend<I: IntoIterator<Item = ContentPart>>(&mut self, parts: I) {
        parts.into_iter().for_each(|part| self.push(part));
    }
}

impl PartialEq<str> for Content {
    fn eq(&self, text: &str) -> bool {
        self.as_text() == Some(text)
    }
}

impl PartialEq<&str> for Content {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

impl PartialEq<String> for Content {
    fn eq(&self, text: &String) -> bool {
        *self == **text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_the_same_however_it_came() {
        let mut pushed = Content::default();
        pushed.push(ContentPart::text(""));
        pushed.push(ContentPart::text("hi"));
        assert_eq!(pushed, Content::from("hi"));
        assert_eq!(
            Content::from(vec![ContentPart::text("hi"), ContentPart::text("")]),
            pushed
        );
        assert_eq!(Content::from(""), Content::default());
        assert!(Content::from("").is_empty() && Content::from(" ").is_blank());
    }

    #[test]
    fn words_describe_images_on_lines_of_their_own() {
        let mut content = Content::from("one").with_image(MediaPart::url("image/*", "https://a.example/b"));
        content.push_str("two");
        content.push_str(", three");
        assert_eq!(content.text(), "onetwo, three");
        assert_eq!(content.as_text(), None);
        assert_eq!(
            content.clone().into_words(),
            "one\n[image image/*, https://a.example/b]\ntwo, three"
        );
        assert_eq!(content.parts().len(), 3);
    }

    #[test]
    fn the_digest_knows_texts_apart_from_images_and_bytes_from_others() {
        let image = |byte: u8| Content::from("x").with_image(MediaPart::bytes("image/png", vec![byte; 3]));
        assert_eq!(Content::from("x").digest(), Digest::of(["x"]));
        assert_ne!(image(1).digest(), image(2).digest());
        let mut stored = image(1);
        for media in stored.media_mut() {
            media.source = MediaSource::Stored(crate::content::StoredMedia::of(&[1; 3]));
        }
        assert_eq!(stored.digest(), image(1).digest());
    }
}
