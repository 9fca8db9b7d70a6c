//! Images and files: their bytes are stored once, and everything else refers to them.
//!
//! The engine replaces the bytes of a message when it accepts the message, and the bytes of a
//! tool result before it records the result. So the journal, conversations and replies hold
//! references. Before a model is asked, the references in the request become bytes again, shared
//! by all requests of the turn.

use std::time::Duration;

mod file;
mod library;

pub use file::FileMediaStore;
/// Default retention of images and files: 30 days.
pub(crate) const MEDIA_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(crate) use library::{MediaLibrary, ResolvedMessages};
