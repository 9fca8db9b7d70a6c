//! The names of a server's tools for models: `{server}__{tool}`, legal, stable and pairwise
//! different.
//!
//! Model providers accept 64 characters of `A-Z a-z 0-9 _ -`; names of the protocol are longer
//! and have other characters. A name that has to be changed ends in a digest of both original
//! names, so that two different tools never share a name, whatever order servers connect in.

use rockbot_core::{Digest, ToolName};

/// Number of hexadecimal digits of the digest in a name that was changed.
const DIGITS: usize = 10;

/// Separates the name of the server from the tool's.
const SEPARATOR: &str = "__";

/// Returns the name of a server's tool for models.
pub(crate) fn tool_name(server: &str, tool: &str) -> ToolName {
    let plain = format!("{server}{SEPARATOR}{tool}");
    // The first separator must be the separator between both names: otherwise another pair could
    // have the same name.
    let is_readable = !server.contains(SEPARATOR) && !server.ends_with('_') && !server.is_empty() && !tool.is_empty();
    let name = ToolName::from(&*plain);
    if is_readable && name.is_valid() {
        return name;
    }
    let digest = Digest::of([server, tool]).to_string();
    let end = format!("_{}", &digest[..DIGITS]);
    let mut name: String = plain.chars().map(legal).collect();
    name.truncate(ToolName::MAX_LEN - end.len());
    (name + &end).into()
}

/// Returns the name of the group of a server's tools.
pub(crate) fn group_name(server: &str) -> ToolName {
    let name = ToolName::from(format!("mcp-{server}"));
    if name.is_valid() {
        name
    } else {
        tool_name("mcp", server)
    }
}

/// Returns the name of the tool that searches a large server's tools.
pub(crate) fn search_name(server: &str) -> ToolName {
    tool_name("mcp_find", server)
}

/// Returns the character, or `_` for a character that no provider accepts. All results take one
/// byte.
fn legal(character: char) -> char {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '_',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_legal_name_stays_readable() {
        assert_eq!(tool_name("weather", "get_forecast"), *"weather__get_forecast");
        assert_eq!(group_name("weather"), *"mcp-weather");
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        let long = "x".repeat(128);
        let pairs = [
            ("s", "a.b"),
            ("s", "a_b"),
            ("s", "a-b"),
            ("s", &long),
            ("s", "äb"),
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "b"),
            ("a", "_b"),
            ("Foo", "a"),
            ("foo", "a"),
            ("", "x"),
            ("x", ""),
        ];
        let names: HashSet<_> = pairs.iter().map(|(server, tool)| tool_name(server, tool)).collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
        assert!(names.iter().all(ToolName::is_valid), "{names:?}");
    }

    proptest! {
        #[test]
        fn different_tools_have_different_legal_names(
            a in ("[ab_.]{0,6}|.{0,80}", "[ab_.]{0,6}|.{0,130}"), b in ("[ab_.]{0,6}", "[ab_.]{0,6}|.{0,130}")
        ) {
            let names = (tool_name(&a.0, &a.1), tool_name(&b.0, &b.1));
            prop_assert!(names.0.is_valid() && names.1.is_valid());
            prop_assert_eq!(names.0 == names.1, a == b);
            prop_assert!(group_name(&a.0).is_valid());
        }
    }
}
