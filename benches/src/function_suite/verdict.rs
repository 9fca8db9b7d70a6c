//! The verdict on the calls of a model, by the rules of the suite.

use serde_json::{Map, Value};

use super::Called;
use super::sample::Expected;

/// Checks that `calls`, each counted once, are exactly the `expected` ones, in any order.
///
/// # Errors
///
/// Returns the reason, in words, if they are not.
pub fn check(expected: &[Expected], calls: &[Called]) -> Result<(), String> {
    let mut open: Vec<&Expected> = expected.iter().collect();
    let mut seen: Vec<&Called> = Vec::new();
    for call in calls {
        if seen.contains(&call) {
            continue;
        }
        seen.push(call);
        match open.iter().position(|expected| is_right(expected, call)) {
            Some(at) => drop(open.remove(at)),
            None => {
                return Err(format!(
                    "wrong: {}({})",
                    call.name,
                    Value::Object(call.arguments.clone())
                ));
            }
        }
    }
    match open.first() {
        None => Ok(()),
        Some(missing) => Err(format!(
            "{} of {} calls missing, such as {}",
            open.len(),
            expected.len(),
            missing.name
        )),
    }
}

fn is_right(expected: &Expected, call: &Called) -> bool {
    expected.name == call.name && are_right(&expected.arguments, &call.arguments)
}

fn are_right(expected: &Map<String, Value>, given: &Map<String, Value>) -> bool {
    given.keys().all(|name| expected.contains_key(name))
        && expected.iter().all(|(name, accepted)| match given.get(name) {
            Some(value) => options(accepted).any(|option| is_same(option, value)),
            None => options(accepted).any(|option| option.as_str() == Some("")),
        })
}

/// Returns the accepted values of an argument.
fn options(accepted: &Value) -> impl Iterator<Item = &Value> {
    let listed = accepted
        .as_array()
        .map_or(std::slice::from_ref(accepted), Vec::as_slice);
    listed.iter()
}

fn is_same(accepted: &Value, value: &Value) -> bool {
    match (accepted, value) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => plain(a) == plain(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        // Of an object each member has its own list of accepted values.
        (Value::Object(a), Value::Object(b)) => are_right(a, b),
        (a, b) => a == b,
    }
}

/// Returns a text without what the suite ignores: case, spaces and some punctuation.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !" ,./-_*^'\"".contains(*c));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn called(name: &str, arguments: Value) -> Called {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Called {
            name: name.to_owned(),
            arguments,
        }
    }

    fn expected() -> Vec<Expected> {
        let of = |city: &str| Expected {
            name: "weather".to_owned(),
            arguments: json!({"city": [city], "unit": ["celsius", ""], "days": [3]})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        };
        vec![of("Paris"), of("New York")]
    }

    #[test]
    fn calls_are_right_in_any_order_and_once_more() {
        let calls = [
            called("weather", json!({"city": "new york", "days": 3.0, "unit": "Celsius"})),
            called("weather", json!({"city": "Paris", "days": 3})),
            called("weather", json!({"city": "Paris", "days": 3})),
        ];
        assert_eq!(check(&expected(), &calls), Ok(()));
    }

    #[test]
    fn a_missing_a_wrong_and_an_unknown_argument_are_told() {
        let paris = called("weather", json!({"city": "Paris", "days": 3}));
        let missing = check(&expected(), std::slice::from_ref(&paris));
        assert_eq!(missing, Err("1 of 2 calls missing, such as weather".to_owned()));
        for arguments in [
            json!({"city": "Rome", "days": 3}),
            json!({"city": "New York"}),
            json!({"city": "New York", "days": 3, "hours": 1}),
        ] {
            let told = check(&expected(), &[paris.clone(), called("weather", arguments.clone())]);
            assert_eq!(told, Err(format!("wrong: weather({arguments})")));
        }
    }
}
