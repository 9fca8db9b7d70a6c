//! The first difference between two requests, in words.

use serde_json::Value;

use crate::cut::cut;

/// Maximum length of a value in a difference, in characters.
const MAX_VALUE: usize = 200;

/// Returns where and how the request that is asked differs from the request that was expected.
pub(super) fn difference(expected: &Value, asked: &Value) -> String {
    let mut path = String::new();
    let (expected, asked) = first_difference(expected, asked, &mut path);
    let path = path.trim_start_matches('.');
    format!(
        "`{path}` was recorded as {}, and is now {}",
        shown(expected),
        shown(asked)
    )
}

/// Follows the first difference down to its values.
fn first_difference<'a>(
    expected: &'a Value,
    asked: &'a Value,
    path: &mut String,
) -> (Option<&'a Value>, Option<&'a Value>) {
    match (expected, asked) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys());
            for name in names {
                let (one, other) = (one.get(name), other.get(name));
                if one != other {
                    path.push('.');
                    path.push_str(name);
                    return deeper(one, other, path);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for at in 0..one.len().max(other.len()) {
                let (one, other) = (one.get(at), other.get(at));
                if one != other {
                    path.push_str(&format!("[{at}]"));
                    return deeper(one, other, path);
                }
            }
        }
        _ => {}
    }
    (Some(expected), Some(asked))
}

fn deeper<'a>(
    expected: Option<&'a Value>,
    asked: Option<&'a Value>,
    path: &mut String,
) -> (Option<&'a Value>, Option<&'a Value>) {
    match (expected, asked) {
        (Some(expected), Some(asked)) => first_difference(expected, asked, path),
        missing => missing,
    }
}

/// Returns the value as JSON; of a long value the beginning.
fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| cut(&value.to_string(), MAX_VALUE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        let recorded = json!({"messages": [{"role": "user", "content": "Hi"}], "tier": null});
        let asked = json!({"messages": [{"role": "user", "content": "Hello"}], "tier": "low"});
        assert_eq!(
            difference(&recorded, &asked),
            r#"`messages[0].content` was recorded as "Hi", and is now "Hello""#
        );
        let longer = json!({"messages": [{"role": "user", "content": "Hi"}, 1], "tier": null});
        assert_eq!(
            difference(&recorded, &longer),
            "`messages[1]` was recorded as nothing, and is now 1"
        );
    }
}
