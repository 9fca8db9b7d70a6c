//! Replacing a part of a stored text: shared by all `edit_…` tools.

/// Replaces `old` by `new` in `text`: its only occurrence, or all of them.
///
/// # Errors
///
/// Returns an error if `old` is empty, does not occur, occurs more than once without `all`, or
/// equals `new`.
pub(super) fn edited(text: &str, old: &str, new: &str, all: bool) -> Result<String, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Same);
    }
    match text.matches(old).count() {
        0 => Err(EditError::Missing),
        1 => Ok(text.replacen(old, new, 1)),
        _ if all => Ok(text.replace(old, new)),
        times => Err(EditError::Ambiguous(times)),
    }
}

/// The reason why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("old_string is empty: give the text to replace, exactly as it is stored")]
    Empty,
    #[error("old_string and new_string are the same: nothing would change")]
    Same,
    #[error(
        "old_string does not occur in the text: read the text again and give a part of it exactly, blanks included"
    )]
    Missing,
    #[error("old_string occurs {0} times: give more of the text around the one to replace, or set replace_all")]
    Ambiguous(usize),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, all: bool, expected: Result<&str, EditError>) {
        assert_eq!(edited("a cat and a dog", old, new, all), expected.map(str::to_owned));
    }

    #[test]
    fn one_exact_place_is_changed() {
        check("cat", "bird", false, Ok("a bird and a dog"));
        check(" and a dog", "", false, Ok("a cat"));
        check("a ", "the ", true, Ok("the cat and the dog"));
        check("a ", "the ", false, Err(EditError::Ambiguous(2)));
        check("Cat", "bird", true, Err(EditError::Missing));
        check("", "bird", true, Err(EditError::Empty));
        check("cat", "cat", false, Err(EditError::Same));
    }

    proptest! {
        #[test]
        fn everything_around_the_place_stays(before in "[ab]{0,5}", after in "[ab]{0,5}", new in "[a-d]{0,3}") {
            let text = format!("{before}c{after}");
            prop_assume!(new != "c");
            prop_assert_eq!(edited(&text, "c", &new, false), Ok(format!("{before}{new}{after}")));
        }
    }
}
