//! References to the log, for texts that leave the host.

use std::fmt::Display;

use super::Digest;

/// Length of a reference, in hexadecimal digits.
const LEN: usize = 8;

/// Returns the reference of `error` in a log, for a text that leaves the host.
///
/// The text of an error may name files, servers and other details of the machine, which are the
/// operator's to know. So the sender of a message, and the model, read the reference alone, and
/// the log has it beside the error. The same error has the same reference.
///
/// ```
/// use rockbot_core::support::reference;
///
/// let error = std::io::Error::other("/srv/agent/turns: no space left");
/// assert_eq!(reference(&error), reference(&error));
/// assert!(!reference(&error).contains("srv"));
/// ```
pub fn reference(error: &impl Display) -> String {
    let mut digest = Digest::of([error.to_string()]).short();
    digest.truncate(LEN);
    digest
}
