//! Content: the texts, images and files of messages and tool results.
//!
//! A [`Content`] is made from a text, and takes images and files besides.
//! [`Agent::ask`](crate::agent::Agent::ask), a user's message over a bus, and the result of a
//! tool all accept one. Each [`ContentPart`] carries its
//! [`Provenance`]: where it is from, and how far it can be trusted.
//!
//! ```
//! use rockbot::content::{Content, MediaPart};
//!
//! let png: Vec<u8> = vec![0; 900];
//! let question = Content::from("What is this?").with_image(MediaPart::bytes("image/png", png).with_name("cat.png"));
//! assert_eq!(question.to_string(), "What is this?\n[image \"cat.png\", image/png, 900 bytes]");
//! ```

#[doc(inline)]
pub use rockbot_core::chat::{Content, ContentPart, Provenance};
#[doc(inline)]
pub use rockbot_core::content::{ContentError, MediaPart, MediaSource};
