//! Dates and times: the same day in another notation.

/// A day as a text writes it; the year may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    year: Option<u32>,
    month: u32,
    day: u32,
}

/// The place of a date or a time in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The first three letters of the months, in English and German.
const MONTHS: [&[&str]; 12] = [
    &["jan"],
    &["feb"],
    &["mar", "mär"],
    &["apr"],
    &["may", "mai"],
    &["jun"],
    &["jul"],
    &["aug"],
    &["sep"],
    &["oct", "okt"],
    &["nov"],
    &["dec", "dez"],
];

/// The full names and longer short forms, so that "marvellous" is no month.
const MONTH_NAMES: [&str; 21] = [
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "sept",
    "october",
    "november",
    "december",
    "januar",
    "februar",
    "märz",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "may",
    "mai",
];

impl Date {
    fn new(year: Option<u32>, month: u32, day: u32) -> Option<Self> {
        let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
        is_date.then_some(Self { year, month, day })
    }

    /// Returns `true` if both may be the same day.
    pub(crate) fn may_be(self, other: Self) -> bool {
        let same_year = match (self.year, other.year) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        same_year && (self.month, self.day) == (other.month, other.day)
    }
}

/// Returns the date of a value that is nothing but a date, a date with a time, or a time; `None`
/// if it is anything else. The inner `None` is a time alone.
pub(crate) fn of_value(value: &str) -> Option<Option<Date>> {
    let value = value.trim();
    if let Some(date) = value.get(..10).and_then(iso) {
        let rest = value[10..].trim_start_matches(['T', 't', ' ']);
        return (rest.is_empty() || is_time(rest)).then_some(Some(date));
    }
    is_time(value).then_some(None)
}

fn iso(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let is_shape = bytes.len() == 10 && bytes[4] == bytes[7] && (bytes[4] == b'-' || bytes[4] == b'/');
    let number = |from: usize, to: usize| text.get(from..to).and_then(digits);
    if !is_shape {
        return None;
    }
    Date::new(Some(number(0, 4)?), number(5, 7)?, number(8, 10)?)
}

fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns `true` for a time of day, such as `12:00`, `09:30:15.5Z` or `10:00+02:00`.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_digits =
        |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let begins = has_digits(0) && bytes.get(2) == Some(&b':') && has_digits(3);
    begins
        && text.len() <= 30
        && bytes[5..]
            .iter()
            .all(|byte| byte.is_ascii_digit() || b":.+-Zz".contains(byte))
}

/// Returns the dates of a text in lower case, and the places of its dates and times.
pub(crate) fn in_text(text: &str) -> (Vec<Date>, Vec<Span>) {
    let mut dates = Vec::new();
    let mut spans = Vec::new();
    let tokens = tokens(text);
    for (index, token) in tokens.iter().enumerate() {
        let written = &text[token.start..token.end];
        if let Some(found) = numeric(written) {
            dates.extend(found);
            spans.push(*token);
        } else if is_clock(written, tokens.get(index + 1).map(|next| &text[next.start..next.end])) {
            spans.push(*token);
        } else if let Some(month) = month(written) {
            let day_at = |at: Option<usize>| {
                at.and_then(|at| tokens.get(at))
                    .and_then(|near| Some((day(&text[near.start..near.end])?, *near)))
            };
            let before = day_at(index.checked_sub(1)).or_else(|| day_at(index.checked_sub(2)));
            for (number, place) in [before, day_at(Some(index + 1))].into_iter().flatten() {
                dates.extend(Date::new(year_near(text, &tokens, index), month, number));
                spans.push(place);
            }
        }
    }
    (dates, spans)
}

/// Returns the words and numbers of a text with the signs that dates and times have.
fn tokens(text: &str) -> Vec<Span> {
    let mut tokens = Vec::new();
    let mut start = None;
    for (at, char) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_in = char.is_alphanumeric() || ".:/-+".contains(char);
        match (start, is_in) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                let end = from + text[from..at].trim_end_matches(['.', ':', '/', '-', '+']).len();
                tokens.push(Span {
                    start: from,
                    end: end.max(from),
                });
                start = None;
            }
            _ => {}
        }
    }
    tokens.retain(|token| token.start < token.end);
    tokens
}

/// Returns the days that a date of digits may be: 5/6/2024 has two readings. `None` if it is no date.
fn numeric(token: &str) -> Option<Vec<Date>> {
    if let Some(date) = token.get(..10).and_then(iso) {
        return Some(vec![date]);
    }
    let separator = ['.', '/', '-']
        .into_iter()
        .find(|separator| token.matches(*separator).count() == 2)?;
    let parts: Option<Vec<u32>> = token.split(separator).map(digits).collect();
    let parts = parts?;
    let &[first, second, year] = parts.as_slice() else {
        return None;
    };
    let year = if year < 100 { year + 2000 } else { year };
    let found: Vec<Date> = [(second, first), (first, second)]
        .into_iter()
        .filter_map(|(month, day)| Date::new(Some(year), month, day))
        .collect();
    (!found.is_empty()).then_some(found)
}

/// Returns `true` for a time of day: `12:00`, `9am`, or `9` before `am`.
fn is_clock(token: &str, next: Option<&str>) -> bool {
    let hour = token.trim_end_matches(['a', 'p', 'm']);
    let is_half = |text: &str| matches!(text, "am" | "pm" | "a.m" | "p.m" | "uhr" | "o'clock");
    let has_colon = token.contains(':') && token.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let is_hour = |text: &str| digits(text).is_some_and(|hour| hour <= 24);
    has_colon || (hour.len() + 2 == token.len() && is_hour(hour)) || (is_hour(token) && next.is_some_and(is_half))
}

fn month(word: &str) -> Option<u32> {
    let is_name = word.chars().count() == 3 || MONTH_NAMES.contains(&word);
    let index = MONTHS
        .iter()
        .position(|short| short.iter().any(|short| word.starts_with(short)))?;
    is_name.then(|| u32::try_from(index + 1).ok()).flatten()
}

/// Returns the day of `16`, `16th` or `1st`.
fn day(token: &str) -> Option<u32> {
    let number = token
        .trim_end_matches("th")
        .trim_end_matches("st")
        .trim_end_matches("nd")
        .trim_end_matches("rd");
    digits(number).filter(|day| (1..=31).contains(day))
}

/// Returns the year that stands within two words after the month.
fn year_near(text: &str, tokens: &[Span], index: usize) -> Option<u32> {
    let near = tokens.iter().skip(index + 1).take(2);
    near.filter_map(|token| digits(&text[token.start..token.end]))
        .find(|year| (1900..2200).contains(year))
}
