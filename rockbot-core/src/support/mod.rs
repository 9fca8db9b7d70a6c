//! Small helpers that the crates of the framework share and that belong to no single contract.
//!
//! * [`run_until_stopped`] races a future against a rare stop signal without polling the signal every time.
//! * [`deadline_after`] adds a time limit, `Duration::MAX` included, to an instant.
//! * [`loggable`] and [`redact`] make untrusted text safe for a log line: the first escapes and truncates, the
//!   second removes credentials.
//! * [`Digest`] is the SHA-256 digest that journals and approvals are bound to.
//! * [`nearest_names`] suggests known names for a misspelled one.

mod cancellable;
mod deadline;
mod digest;
mod loggable;
mod redact;
mod suggestions;

pub use cancellable::run_until_stopped;
pub use deadline::deadline_after;
pub use digest::Digest;
pub use loggable::loggable;
pub use redact::redact;
pub(crate) use suggestions::did_you_mean;
pub use suggestions::nearest_names;
