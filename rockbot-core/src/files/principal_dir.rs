//! The folders of principals: each principal's files are in a folder of their own.

use super::name::{IdTooLong, decode, encode};
use crate::Principal;

/// Returns the folder of `principal`, relative to the folder of a store: the empty name for
/// `local`, `@{principal}` for others.
///
/// [`encode`] never emits `@`, so no other file can have such a name.
///
/// # Errors
///
/// Returns an error if the principal is longer than [`MAX_ID_BYTES`](super::MAX_ID_BYTES).
pub fn folder_of(principal: &Principal) -> Result<String, IdTooLong> {
    Ok(if is_local(principal) {
        String::new()
    } else {
        format!("@{}", encode(principal.as_str())?)
    })
}

/// Returns the name of the file that is called `name` in the folder of `principal`.
///
/// ```
/// use rockbot_core::files::{name_of, owner_of};
///
/// assert_eq!(name_of(&"local".into(), "a.json")?, "a.json");
/// assert_eq!(name_of(&"Ann".into(), "a.json")?, "@%41nn/a.json");
/// assert_eq!(owner_of("@%41nn/a.json"), Some(("Ann".into(), "a.json")));
/// # Ok::<(), rockbot_core::files::IdTooLong>(())
/// ```
///
/// # Errors
///
/// Returns an error as [`folder_of`] does.
pub fn name_of(principal: &Principal, name: &str) -> Result<String, IdTooLong> {
    let folder = folder_of(principal)?;
    Ok(if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    })
}

/// Returns the principal that owns the file `name`, and the file's name in that principal's
/// folder: the inverse of [`name_of`]. `None` for a file in a folder of no principal.
pub fn owner_of(name: &str) -> Option<(Principal, &str)> {
    let Some(rest) = name.strip_prefix('@') else {
        return Some((Principal::default(), name));
    };
    // A long principal's name is itself cut into folders; all but the last end with `+`.
    let (end, _) = rest.match_indices('/').find(|(at, _)| !rest[..*at].ends_with('+'))?;
    let principal = Principal::from(decode(&rest[..end])?);
    (!is_local(&principal)).then(|| (principal, &rest[end + 1..]))
}

/// Returns `true` for the principal whose files are in the store's own folder.
pub(super) fn is_local(principal: &Principal) -> bool {
    *principal == Principal::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_with_their_owner() {
        for principal in ["local", "ann", "Ann", "", "@", "local/x", &"x".repeat(500)] {
            let principal = Principal::from(principal);
            let name = name_of(&principal, "a/b.json").unwrap();
            assert_eq!(owner_of(&name), Some((principal, "a/b.json")), "{name}");
        }
        for name in ["@local/a", "@/a", "@ann", "@Ann/a", "@a+/a"] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
