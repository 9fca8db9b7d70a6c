//! Bounds of content that comes from outside.

use super::{Content, ContentPart, MediaSource};

/// The maximum size of an image or file: 20 MiB.
pub const MAX_MEDIA_BYTES: usize = 20 * 1024 * 1024;

/// The maximum size of the images and files of one message or tool result together: 50 MiB.
pub const MAX_CONTENT_BYTES: usize = 50 * 1024 * 1024;

/// The maximum length of the URL of an image or a file, in bytes.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// The maximum number of parts of a message or a tool result.
pub const MAX_PARTS: usize = 32;

/// The error for content that is too large or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// An image or file is larger than [`MAX_MEDIA_BYTES`].
    #[error("an image or file of {size} bytes is too large: send at most {MAX_MEDIA_BYTES} bytes, or a URL")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The images and files together are larger than [`MAX_CONTENT_BYTES`].
    #[error(
        "images and files of {size} bytes together are too large: send at most {MAX_CONTENT_BYTES} bytes in a message"
    )]
    TooLargeTogether {
        /// Their size in bytes.
        size: usize,
    },
    /// A URL is longer than [`MAX_URL_BYTES`], such as a URL that holds the bytes.
    #[error(
        "a URL of {length} bytes is too long: send at most {MAX_URL_BYTES} bytes, or the bytes of the image or file as `data`"
    )]
    UrlTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// There are more than [`MAX_PARTS`] parts.
    #[error("{count} parts are too many: send at most {MAX_PARTS} in a message")]
    TooManyParts {
        /// The number of parts.
        count: usize,
    },
    /// The data of an image or file is not Base64.
    #[error("the data of an image or file is not standard Base64 with padding")]
    NotBase64,
    /// An image or file has no source, or several.
    #[error("an image or file needs exactly one of `url`, `data`, or `digest` with `size`")]
    NoSource,
}

impl Content {
    /// Checks the bounds of content that comes from outside.
    ///
    /// The host calls it for messages and tool results before it accepts them.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many parts, or if one is too large.
    #[inline]
    pub fn check_bounds(&self) -> Result<(), ContentError> {
        match self.parts() {
            // Most content is one text.
            [ContentPart::Text(_)] => Ok(()),
            _ => self.check_parts(),
        }
    }

    fn check_parts(&self) -> Result<(), ContentError> {
        let count = self.parts().len();
        if count > MAX_PARTS {
            return Err(ContentError::TooManyParts { count });
        }
        let mut size = 0_usize;
        for media in self.media() {
            match &media.source {
                MediaSource::Bytes(bytes) if bytes.len() > MAX_MEDIA_BYTES => {
                    return Err(ContentError::TooLarge { size: bytes.len() });
                }
                MediaSource::Bytes(bytes) => size = size.saturating_add(bytes.len()),
                MediaSource::Url(url) if url.len() > MAX_URL_BYTES => {
                    return Err(ContentError::UrlTooLong { length: url.len() });
                }
                _ => {}
            }
        }
        if size > MAX_CONTENT_BYTES {
            Err(ContentError::TooLargeTogether { size })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{ContentPart, MediaPart};

    #[test]
    fn content_beyond_the_bounds_is_refused() {
        let image = |size: usize| Content::from("").with_image(MediaPart::bytes("image/png", vec![0; size]));
        assert_eq!(image(MAX_MEDIA_BYTES).check_bounds(), Ok(()));
        let size = MAX_MEDIA_BYTES + 1;
        assert_eq!(image(size).check_bounds(), Err(ContentError::TooLarge { size }));
        let shared = bytes::Bytes::from(vec![0; MAX_MEDIA_BYTES]);
        let three = ContentPart::image(MediaPart::bytes("image/png", shared));
        let size = 3 * MAX_MEDIA_BYTES;
        let together = Content::from(vec![three; 3]).check_bounds();
        assert_eq!(together, Err(ContentError::TooLargeTogether { size }));
        let url = Content::from("").with_image(MediaPart::url("image/*", "x".repeat(MAX_URL_BYTES + 1)));
        let length = MAX_URL_BYTES + 1;
        assert_eq!(url.check_bounds(), Err(ContentError::UrlTooLong { length }));
        let texts = |count| Content::from(vec![ContentPart::text("a"); count]);
        assert_eq!(texts(MAX_PARTS).check_bounds(), Ok(()));
        let count = MAX_PARTS + 1;
        assert_eq!(texts(count).check_bounds(), Err(ContentError::TooManyParts { count }));
    }
}
