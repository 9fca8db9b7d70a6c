//! Images and files.

use std::fmt;

use bytes::Bytes;

use super::Provenance;
use crate::Digest;

/// Maximum length of a name in descriptions, in characters.
const SHOWN_NAME: usize = 100;

/// An image or a file of a message.
///
/// ```
/// use rockbot_core::content::MediaPart;
///
/// let cat = MediaPart::bytes("image/png", vec![0; 12_000]).with_name("cat.png");
/// assert_eq!(cat.to_string(), r#""cat.png", image/png, 12 kB"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaPart {
    /// The bytes, or a reference to them.
    pub source: MediaSource,
    /// The media type, such as `image/png` or `application/pdf`.
    pub media_type: String,
    /// The file name, if it has one.
    pub name: Option<String>,
    /// The origin of the medium.
    pub provenance: Provenance,
}

/// The bytes of an image or a file, or a reference to them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaSource {
    /// A URL that the model's provider can read.
    Url(String),
    /// The bytes themselves. Clones share them.
    Bytes(Bytes),
    /// A medium in the host's store of media.
    Stored(StoredMedia),
}

/// A reference to stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StoredMedia {
    /// The digest of the bytes, the key of the store.
    pub digest: Digest,
    /// The number of bytes.
    pub size: u64,
}

impl MediaPart {
    /// Creates a part from a source.
    pub fn new(media_type: impl Into<String>, source: MediaSource) -> Self {
        Self {
            source,
            media_type: media_type.into(),
            name: None,
            provenance: Provenance::UNKNOWN,
        }
    }

    /// Creates a part with the bytes themselves.
    pub fn bytes(media_type: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self::new(media_type, MediaSource::Bytes(bytes.into()))
    }

    /// Creates a part with the bytes of a file. Its media type follows from the ending of `name`.
    ///
    /// ```
    /// # use rockbot_core::content::MediaPart;
    /// assert_eq!(MediaPart::of_file("Report.PDF", "%PDF-1.7").media_type, "application/pdf");
    /// ```
    pub fn of_file(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let name = name.into();
        Self::bytes(media_type_of(&name), bytes).with_name(name)
    }

    /// Returns `true` if the media type is an image type.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Creates a part that the model's provider reads from `url`. For an image of unknown type,
    /// `media_type` is `image/*`.
    pub fn url(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(media_type, MediaSource::Url(url.into()))
    }

    /// Sets the file name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the origin. Without one, the message that takes the part sets it.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }
}

impl MediaSource {
    /// Returns the digest of the bytes, whether they are here or stored; `None` for a URL.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Url(_) => None,
            Self::Bytes(bytes) => Some(StoredMedia::of(bytes).digest),
            Self::Stored(stored) => Some(stored.digest),
        }
    }

    /// Returns the number of bytes; `None` for a URL.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Url(_) => None,
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Stored(stored) => Some(stored.size),
        }
    }
}

impl StoredMedia {
    /// Creates a reference to `size` bytes with this digest.
    pub fn new(digest: Digest, size: u64) -> Self {
        Self { digest, size }
    }

    /// Computes the reference to `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::new(Digest::of([bytes]), bytes.len() as u64)
    }
}

/// Returns the media type of a file by the ending of its name.
fn media_type_of(name: &str) -> &'static str {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "txt" | "log" => "text/plain",
        _ => "application/octet-stream",
    }
}

/// Bytes are shown by their number.
impl fmt::Debug for MediaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Stored(stored) => f.debug_tuple("Stored").field(stored).finish(),
        }
    }
}

/// The description in words: name, media type and size, as far as they are known.
impl fmt::Display for MediaPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            let shown: String = name.chars().take(SHOWN_NAME).collect();
            write!(f, "{shown:?}, ")?;
        }
        f.write_str(&self.media_type)?;
        match &self.source {
            MediaSource::Url(url) => write!(f, ", {url}"),
            source => write_size(f, source.size().unwrap_or_default()),
        }
    }
}

fn write_size(f: &mut fmt::Formatter<'_>, size: u64) -> fmt::Result {
    match size {
        0..1_000 => write!(f, ", {size} bytes"),
        1_000..1_000_000 => write!(f, ", {} kB", size / 1_000),
        _ => write!(f, ", {} MB", size / 1_000_000),
    }
}
