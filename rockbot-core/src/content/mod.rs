//! The content of messages and tool results: text, images and files, each part with its origin.
//!
//! A [`Content`] is usually one text, and then costs no more than a `String`. A [`ContentPart`]
//! carries its [`Provenance`]: the source of the part and the trust in it. Code that creates
//! content leaves the provenance open; the place that takes the content fills it in
//! ([`Content::attributed`]). A user's message makes it the user's, a tool result the tool's. A
//! part can state another origin, but never more trust than its place has.
//!
//! On the wire a plain text is a JSON string, everything else an array of parts:
//!
//! ```
//! use rockbot_core::content::{Content, MediaPart};
//!
//! let question = Content::from("Who is this?").with_image(MediaPart::url("image/png", "https://example.com/cat.png"));
//! assert_eq!(serde_json::to_string(&Content::from("hi"))?, r#""hi""#);
//! assert_eq!(
//!     serde_json::to_string(&question)?,
//!     r#"[{"type":"text","text":"Who is this?"},{"type":"image","mediaType":"image/png","url":"https://example.com/cat.png"}]"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```

mod bounds;
mod media;
mod part;
mod parts;
mod provenance;
mod wire;

pub use bounds::{ContentError, MAX_CONTENT_BYTES, MAX_MEDIA_BYTES, MAX_PARTS, MAX_URL_BYTES};
pub use media::{MediaPart, MediaSource, StoredMedia};
pub use part::{ContentPart, TextPart};
pub use parts::Content;
pub use provenance::Provenance;
