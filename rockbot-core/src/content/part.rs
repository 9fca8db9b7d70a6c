//! A part of content.

use std::fmt;

use super::{MediaPart, Provenance};

/// A part of a message or a tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentPart {
    /// A text.
    Text(TextPart),
    /// An image.
    Image(Box<MediaPart>),
    /// A file that is no image, such as a PDF document.
    File(Box<MediaPart>),
}

/// A text of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// The origin of the text.
    pub provenance: Provenance,
}

impl TextPart {
    /// Creates a text without an origin.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            provenance: Provenance::UNKNOWN,
        }
    }
}

impl ContentPart {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// Creates an image.
    ///
    /// ```
    /// # use rockbot_core::content::{ContentPart, MediaPart};
    /// let cat = ContentPart::image(MediaPart::bytes("image/png", vec![0; 900]).with_name("cat.png"));
    /// assert_eq!(cat.to_string(), r#"[image "cat.png", image/png, 900 bytes]"#);
    /// ```
    pub fn image(media: MediaPart) -> Self {
        Self::Image(Box::new(media))
    }

    /// Creates a file.
    pub fn file(media: MediaPart) -> Self {
        Self::File(Box::new(media))
    }

    /// Sets the origin. Without one, the message that takes the part sets it.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        *self.provenance_mut() = provenance;
        self
    }

    /// Returns the origin of the part.
    pub fn provenance(&self) -> &Provenance {
        match self {
            Self::Text(part) => &part.provenance,
            Self::Image(part) | Self::File(part) => &part.provenance,
        }
    }

    /// Returns the origin of the part, to change it.
    pub fn provenance_mut(&mut self) -> &mut Provenance {
        match self {
            Self::Text(part) => &mut part.provenance,
            Self::Image(part) | Self::File(part) => &mut part.provenance,
        }
    }

    /// Returns the text, if the part is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.text),
            Self::Image(_) | Self::File(_) => None,
        }
    }

    /// Returns the image or file, if the part is one.
    pub fn as_media(&self) -> Option<&MediaPart> {
        match self {
            Self::Text(_) => None,
            Self::Image(part) | Self::File(part) => Some(part),
        }
    }

    /// Returns the image or file, if the part is one, to change it.
    pub fn as_media_mut(&mut self) -> Option<&mut MediaPart> {
        match self {
            Self::Text(_) => None,
            Self::Image(part) | Self::File(part) => Some(part),
        }
    }

    /// Returns the description of an image or a file with the reason why it is not shown, as a text
    /// of the same origin.
    ///
    /// ```
    /// # use rockbot_core::content::{ContentPart, MediaPart};
    /// let cat = ContentPart::image(MediaPart::url("image/*", "https://a.example/[cat]"));
    /// assert_eq!(cat.describe("it is gone").to_string(), "[image image/*, https://a.example/[cat]: it is gone]");
    /// ```
    #[must_use]
    pub fn describe(&self, reason: &str) -> Self {
        let text = match self {
            Self::Text(part) => format!("[{}: {reason}]", part.text),
            Self::Image(part) | Self::File(part) => format!("[{} {part}: {reason}]", self.kind()),
        };
        Self::text(text).with_provenance(self.provenance().clone())
    }

    /// Returns the name of the kind on the wire: `text`, `image` or `file`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::File(_) => "file",
        }
    }
}

/// A text as it is; an image or a file as its description in brackets.
impl fmt::Display for ContentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(part) => f.write_str(&part.text),
            Self::Image(part) | Self::File(part) => write!(f, "[{} {part}]", self.kind()),
        }
    }
}
