//! Small helpers that the crates of the framework share and that belong to no single contract.
//!
//! * [`run_until_stopped`] races a future against a rare stop signal without polling the signal
//!   every time.
//! * [`caught`] converts a caught panic into its message, even if the destructor of its payload
//!   panics, too.
//! * [`deadline_after`] adds a time limit, `Duration::MAX` included, to an instant.
//! * [`loggable`] and [`redact`] make untrusted text safe for a log line: the first escapes and
//!   truncates, the second removes credentials.
//! * [`defused`], [`one_line`] and [`indented`] make text of others safe to show to a model.
//! * [`reference()`] takes the place of an error's text where that must not leave the host.
//! * [`Digest`] is the SHA-256 digest that journals and approvals are bound to.
//! * [`FoldMap`] is a map with a fast hash, for keys that no untrusted source chooses, and
//!   [`DigestMap`] one for digests.
//! * [`json`] writes JSON faster than `serde_json` does, byte for byte the same.
//! * [`nearest_names`] suggests known names for a misspelled one.

mod cancellable;
mod caught;
mod deadline;
mod defused;
mod digest;
mod digest_map;
mod fold;
mod loggable;
mod redact;
mod reference;

pub use cancellable::run_until_stopped;
pub use caught::caught;
pub use deadline::deadline_after;
pub use defused::{defused, defused_json, indented, one_line};
pub use digest::Digest;
pub use digest_map::{DigestHasher, DigestMap, DigestSet};
pub use fold::{FoldHasher, FoldMap};
pub use loggable::loggable;
pub use redact::redact;
pub use reference::reference;
#[doc(inline)]
pub use rockbot_json as json;
pub use rockbot_schema::nearest_names;
