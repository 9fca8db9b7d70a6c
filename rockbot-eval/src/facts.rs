//! Names and numbers in an answer, and arguments in a call.

use serde_json::Value;

/// Returns `true` if `text` states `fact`: a number by value, anything else as whole words in upper
/// or lower case.
pub(crate) fn states(text: &str, fact: &str) -> bool {
    match fact.trim().parse::<f64>() {
        Ok(number) => numbers(text).any(|other| (other - number).abs() < 1e-9) || has_words(text, in_words(number)),
        Err(_) => has_words(text, fact.trim()),
    }
}

/// Compares an argument with the expected one: texts in upper or lower case and without the white
/// space around them, numbers by value, the members of objects one by one. [`Value::Null`] fits
/// everything.
pub(crate) fn fits(expected: &Value, argument: &Value) -> bool {
    let plain = |text: &str| text.trim().to_lowercase();
    match (expected, argument) {
        (Value::Null, _) => true,
        (Value::Object(wanted), Value::String(text)) if wanted.len() == 1 => wanted
            .get("has")
            .and_then(Value::as_str)
            .is_some_and(|word| plain(text).contains(&plain(word))),
        (Value::Object(wanted), Value::Object(given)) => {
            let fits_member =
                |(name, wanted): (&String, &Value)| given.get(name).is_some_and(|given| fits(wanted, given));
            wanted.iter().all(fits_member)
        }
        (Value::Array(wanted), Value::Array(given)) => {
            wanted.len() == given.len() && wanted.iter().zip(given).all(|(wanted, given)| fits(wanted, given))
        }
        (Value::String(word), Value::String(text)) => plain(text) == plain(word),
        (Value::Number(number), Value::Number(other)) => number.as_f64() == other.as_f64(),
        (wanted, given) => wanted == given,
    }
}

/// Returns the numbers of a text. A comma before three digits separates thousands; a dash behind a
/// letter or a digit is no sign.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let is_part = |char: char| char.is_ascii_digit() || char == '.' || char == ',';
    let begins = move |at: usize| !text[..at].ends_with(is_part);
    let starts = text
        .match_indices(is_part)
        .map(|(at, _)| at)
        .filter(move |at| begins(*at));
    starts.filter_map(move |at| {
        let run = text[at..].split(|char| !is_part(char)).next().unwrap_or_default();
        let number: f64 = run.trim_matches(['.', ',']).replace(',', "").parse().ok()?;
        let mut back = text[..at].chars().rev();
        let has_dash = back.next().is_some_and(|char| "-−".contains(char));
        let is_negative = has_dash && !back.next().is_some_and(char::is_alphanumeric);
        Some(if is_negative { -number } else { number })
    })
}

/// Spells out a small whole number; returns a text that never occurs for any other.
fn in_words(number: f64) -> &'static str {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ];
    let small = (0u8..13).find(|small| f64::from(*small) == number);
    small.map_or("\0", |small| WORDS[usize::from(small)])
}

fn has_words(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let words = words.to_lowercase();
    text.match_indices(&words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_found_by_value_and_names_as_words() {
        for (text, fact) in [
            ("It costs 1,250.00 euros.", "1250"),
            ("There are three.", "3"),
            ("OSLO!", "oslo"),
            ("It is Elm Street 5.", "elm street"),
            ("It is -7.5 degrees on 2026-03-10.", "-7.5"),
            ("It is -7.5 degrees on 2026-03-10.", "10"),
        ] {
            assert!(states(text, fact), "{text}: {fact}");
        }
        for (text, fact) in [
            ("12500", "1250"),
            ("Osloer", "oslo"),
            ("", "x"),
            ("none", "one"),
            ("-7", "7"),
        ] {
            assert!(!states(text, fact), "{text}: {fact}");
        }
    }

    #[test]
    fn arguments_fit_by_what_they_say() {
        let made = json!({"city": " Oslo ", "days": 3.0, "units": ["c"]});
        for fitting in [
            json!(null),
            json!({}),
            json!({"city": "OSLO"}),
            json!({"days": 3, "units": ["C"]}),
            json!({"city": {"has": "osl"}}),
        ] {
            assert!(fits(&fitting, &made), "{fitting}");
        }
        for other in [
            json!({"city": "Rome"}),
            json!({"hours": 3}),
            json!({"units": []}),
            json!({"city": {"has": "rom"}}),
            json!("Oslo"),
        ] {
            assert!(!fits(&other, &made), "{other}");
        }
    }
}
