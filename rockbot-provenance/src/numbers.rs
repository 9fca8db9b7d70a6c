//! Numbers: the same amount in another notation.

use crate::evidence::Known;

/// Number words of small amounts.
const WORDS: [(&str, u32); 25] = [
    ("zero", 0),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("thousand", 1_000),
    ("dozen", 12),
];

/// Words before a number that make it the name of a thing, and no amount.
const NAMING: [&str; 14] = [
    "id", "no", "nr", "number", "nummer", "file", "page", "room", "chapter", "version", "event", "mail", "email",
    "line",
];

/// Parses a value that is nothing but a number, with an optional sign of a currency.
pub(crate) fn parse(value: &str) -> Option<f64> {
    let value = value.trim().trim_matches(['$', '€', '£', '¥', '%']).trim();
    let is_number = value.starts_with(|char: char| char.is_ascii_digit() || char == '-')
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".,-".contains(&byte));
    if !is_number {
        return None;
    }
    readings(value.trim_start_matches('-'))
        .next()
        .map(|number| if value.starts_with('-') { -number } else { number })
}

/// Returns `true` if the user's text names the amount.
pub(crate) fn names(amount: f64, known: &Known<'_>) -> bool {
    let text = known.folded.as_str();
    let mut at = 0;
    let mut before = "";
    while let Some(start) = text[at..]
        .find(|char: char| char.is_ascii_alphanumeric())
        .map(|found| found + at)
    {
        let end = end_of(text, start);
        let token = &text[start..end];
        at = end.max(start + 1);
        let is_amount = token.starts_with(|char: char| char.is_ascii_digit());
        if is_amount && !known.is_temporal(start, end) && !is_inner(text, start, end) && !NAMING.contains(&before) {
            let is_negative = text[..start].ends_with('-');
            let sign = if is_negative { -1.0 } else { 1.0 };
            if readings(token).any(|number| is_equal(number * sign, amount)) {
                return true;
            }
        }
        let word = WORDS.iter().find(|(word, _)| *word == token);
        if word.is_some_and(|(_, number)| is_equal(f64::from(*number), amount)) {
            return true;
        }
        before = token;
    }
    false
}

fn is_equal(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// Returns the end of the word or number that begins at `start`.
fn end_of(text: &str, start: usize) -> usize {
    let is_number = text[start..].starts_with(|char: char| char.is_ascii_digit());
    let rest = &text[start..];
    let length = rest
        .find(|char: char| !(char.is_ascii_alphanumeric() || is_number && ".,'".contains(char)))
        .unwrap_or(rest.len());
    start + rest[..length].trim_end_matches(['.', ',', '\'']).len()
}

/// Returns `true` if the digits are part of a longer code, a path or an address.
fn is_inner(text: &str, start: usize, end: usize) -> bool {
    let mut back = text[..start].chars().rev();
    let follows = match back.next() {
        Some('-') => back.next().is_some_and(|char| !char.is_whitespace()),
        Some(char) => char.is_alphanumeric() || "/@_:=#".contains(char),
        None => false,
    };
    let mut ahead = text[end..].chars();
    let goes_on = match ahead.next() {
        Some(':' | '-') => ahead.next().is_some_and(char::is_alphanumeric),
        Some(char) => char.is_alphanumeric() || "/@_=".contains(char),
        None => false,
    };
    follows || goes_on
}

/// Returns the numbers that digits with points and commas may stand for: `1.250` is 1250 here and
/// 1.25 there.
fn readings(digits: &str) -> impl Iterator<Item = f64> {
    let english = digits.replace([',', '\''], "");
    let continental = digits.replace(['.', '\''], "").replace(',', ".");
    [english, continental].into_iter().filter_map(|text| text.parse().ok())
}
