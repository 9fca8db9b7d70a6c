//! Moments as other programs write them, for `#[serde(with)]`: RFC 3339 text, which standard libraries read.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserializer, Serializer, de};

use crate::Timestamp;

/// Writes a moment as text, to the millisecond, in UTC.
///
/// # Errors
///
/// Fails when the serializer does.
pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write(*at))
}

/// Reads a moment with any offset; what is finer than a millisecond is cut off.
///
/// # Errors
///
/// Fails when it is no moment since 1970.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Timestamp;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an RFC 3339 moment since 1970")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
            read(text).ok_or_else(|| E::custom(format_args!("`{text}` is no RFC 3339 moment since 1970")))
        }
    }

    deserializer.deserialize_str(Text)
}

/// A moment that may be missing.
pub(crate) mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Timestamp;

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Moment(#[serde(with = "super")] Timestamp);

    pub(crate) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Moment).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<Moment>::deserialize(deserializer)?.map(|moment| moment.0))
    }
}

const DAY: i64 = 86_400_000;

/// The end of the year 9999: later moments cannot be written, and are written as this one.
const LAST: i64 = 253_402_300_799_999;

/// By hand, since every entry of a conversation has one, and formatting would cost as much as the rest of it.
fn write(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX).min(LAST);
    let (year, month, day) = civil(millis.div_euclid(DAY));
    let time = millis.rem_euclid(DAY);
    let (hour, minute, second) = (time / 3_600_000, time / 60_000 % 60, time / 1000 % 60);
    let mut text = String::with_capacity(24);
    let parts = [
        (year, 1000, '-'),
        (month, 10, '-'),
        (day, 10, 'T'),
        (hour, 10, ':'),
        (minute, 10, ':'),
        (second, 10, '.'),
        (time % 1000, 100, 'Z'),
    ];
    for (number, mut unit, end) in parts {
        while unit > 0 {
            let digit = u8::try_from(number / unit % 10).expect("one digit of a number that is not negative");
            text.push(char::from(b'0' + digit));
            unit /= 10;
        }
        text.push(end);
    }
    text
}

/// Reads any fraction of a second, and cuts it to milliseconds, and any offset.
fn read(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, offset) = split_offset(time)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let days = days(year, month, day);
    let fits = civil(days) == (year, month, day) && hour < 24 && minute < 60 && second <= 60;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset * 60;
    let millis = seconds * 1000 + milliseconds(fraction)?;
    let millis = u64::try_from(millis).ok()?;
    fits.then(|| Timestamp::from_millis(millis))
}

/// The time, and its offset from UTC in minutes.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, offset) = time.split_at(at);
    let [hours, minutes] = numbers(&offset[1..], ':', [2, 2])?;
    let minutes = hours * 60 + minutes;
    Some((time, if offset.starts_with('-') { -minutes } else { minutes }))
}

fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && is_digits(part))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn milliseconds(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !is_digits(fraction) {
        return None;
    }
    format!("{fraction:0<3}")[..3].parse().ok()
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that the leap day
/// is the last one, and 400 years are always 146 097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that is `days` after 1970-01-01: the other way round.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, millis: u64) {
        assert_eq!(read(text), Some(Timestamp::from_millis(millis)), "{text}");
    }

    #[test]
    fn moments_as_other_programs_write_them() {
        check("1970-01-01T00:00:00Z", 0);
        check("2024-02-29T12:30:45.1234567+00:00", 1_709_209_845_123);
        check("2024-02-29T14:30:45.1+02:00", 1_709_209_845_100);
        check("2000-03-01T00:00:00.000Z", 951_868_800_000);
        assert_eq!(
            write(Timestamp::from_millis(1_709_209_845_123)),
            "2024-02-29T12:30:45.123Z"
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "1969-12-31T23:59:59Z",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "1704067200000",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_survives(millis in 0u64..253_402_300_800_000) {
            let at = Timestamp::from_millis(millis);
            prop_assert_eq!(read(&write(at)), Some(at));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:.+ -]{0,40}|.{0,40}") {
            let _ = read(&text);
        }
    }
}
