//! The ids of calls that were read from text.

use rockbot_core::CallId;

/// Returns the id of a call that was read from text.
pub(crate) fn id_from_text(number: usize) -> CallId {
    // Nine letters and digits: the templates of some models insist on that.
    CallId::from(format!("text{:05}", number % 100_000))
}

/// Reports whether a call has an id as [`id_from_text`] gives it, or as it becomes where several
/// rounds of a turn have it.
pub(crate) fn is_from_text(id: &CallId) -> bool {
    let number = id.as_str().strip_prefix("text");
    number.is_some_and(|number| number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit()))
}
