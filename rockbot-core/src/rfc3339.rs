//! Timestamps as RFC 3339 text, for `#[serde(with = "rockbot_core::rfc3339")]`.
//!
//! Other programs read and write the stored documents, and their standard libraries parse this
//! form. `jiff` does the parsing and printing; the two fallbacks below cover the last 26 hours of
//! the year 9999, which a UTC instant of `jiff` leaves out and which other programs write for
//! "never", such as .NET's `DateTimeOffset.MaxValue`.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter};
use serde::de::Visitor;
use serde::{Deserializer, Serializer, de};

use crate::Timestamp;

const PARSER: DateTimeParser = DateTimeParser::new();
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Serializes a timestamp as text in UTC with milliseconds, such as `2024-02-29T12:30:45.123Z`.
///
/// Timestamps after the year 9999 are written as its last millisecond.
///
/// # Errors
///
/// Returns an error if the serializer does.
pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write(*at))
}

/// Deserializes a timestamp with any offset from UTC. Fractions finer than a millisecond are
/// truncated.
///
/// # Errors
///
/// Returns an error if the text is no RFC 3339 timestamp, has no offset, or is before 1970.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Timestamp;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an RFC 3339 timestamp since 1970")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
            read(text).ok_or_else(|| E::custom(format_args!("`{text}` is no RFC 3339 timestamp since 1970")))
        }
    }

    deserializer.deserialize_str(Text)
}

/// The same for a timestamp that may be missing.
pub(crate) mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Timestamp;

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Text(#[serde(with = "super")] Timestamp);

    pub(crate) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0))
    }
}

fn write(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(instant) => PRINTER.timestamp_to_string(&instant),
        Err(_) => {
            let last = EPOCH.saturating_add(SignedDuration::from_millis(millis));
            PRINTER.datetime_to_string(&last) + "Z"
        }
    }
}

fn read(text: &str) -> Option<Timestamp> {
    let millis = match PARSER.parse_timestamp(text) {
        // `as_millisecond` rounds towards 1970, so the last fraction of 1969 must be rejected before it.
        Ok(instant) if instant < jiff::Timestamp::UNIX_EPOCH => return None,
        Ok(instant) => instant.as_millisecond(),
        Err(_) => read_civil(text)?,
    };
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}

/// Parses date, time and offset apart and returns milliseconds since 1970.
fn read_civil(text: &str) -> Option<i64> {
    let pieces = PARSER.parse_pieces(text).ok()?;
    let time: Time = pieces.time()?;
    let offset = pieces.to_numeric_offset()?;
    let since = pieces.date().to_datetime(time).duration_since(EPOCH);
    let millis = i64::try_from(since.as_millis()).ok()?;
    Some(millis - i64::from(offset.seconds()) * 1000)
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
    fn other_texts_are_rejected() {
        for text in [
            "",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.9999Z",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "1704067200000",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn moments_at_the_end_of_the_calendar() {
        check("9999-12-31T23:59:59.9999999+00:00", 253_402_300_799_999);
        check("9999-12-31T23:59:59.999-23:00", 253_402_383_599_999);
        let last = "9999-12-31T23:59:59.999Z";
        assert_eq!(write(Timestamp::from_millis(253_402_300_799_999)), last);
        assert_eq!(write(Timestamp::from_millis(u64::MAX)), last);
    }

    proptest! {
        #[test]
        fn a_moment_of_the_last_days_survives(millis in 253_402_000_000_000u64..253_402_300_800_000) {
            let at = Timestamp::from_millis(millis);
            prop_assert_eq!(read(&write(at)), Some(at));
        }

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
