//! Times that tasks which run once name.

use jiff::tz::TimeZone;

use super::super::parse_time;
use super::{instant, local};

const NOW: &str = "2024-10-26T12:00:00+02:00";

fn parsed(zone: &str, text: &str) -> Result<String, String> {
    let zone = TimeZone::get(zone).unwrap();
    let time = parse_time(text, instant(NOW), &zone);
    time.map(|time| local(time, &zone)).map_err(|error| error.to_string())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(parsed("Europe/Oslo", text).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    let shown = text.trim();
    let expected =
        format!("time \"{shown}\": {reason}. Write a date and a time, such as \"2030-12-24T18:00\", or \"in 2 hours\"");
    assert_eq!(parsed("Europe/Oslo", text), Err(expected));
}

#[test]
fn dates_with_times_are_local_unless_they_have_an_offset() {
    check("2026-12-24T18:00", "2026-12-24T18:00:00+01:00");
    check("2026-12-24 18:00:30", "2026-12-24T18:00:30+01:00");
    check(" 2026-07-24t18:00 ", "2026-07-24T18:00:00+02:00");
    check("2026-12-24T18:00Z", "2026-12-24T19:00:00+01:00");
    check("2026-12-24 18:00:30-05:00", "2026-12-25T00:00:30+01:00");
    check("2024-10-26T10:00:01Z", "2024-10-26T12:00:01+02:00");
}

#[test]
fn local_times_follow_the_changes_of_clocks() {
    check("2025-03-30T02:30", "2025-03-30T03:00:00+02:00");
    check("2024-10-27T02:30", "2024-10-27T02:30:00+02:00");
    check("2024-10-27T02:30+01:00", "2024-10-27T02:30:00+01:00");
}

#[test]
fn durations_count_from_now_on() {
    check("in 2 hours", "2024-10-26T14:00:00+02:00");
    check("In 30 Minutes", "2024-10-26T12:30:00+02:00");
    check("in 90 seconds", "2024-10-26T12:01:30+02:00");
    check("in an hour and 5 minutes", "2024-10-26T13:05:00+02:00");
    check("in 2 hours, 30 min", "2024-10-26T14:30:00+02:00");
    // The same local time, over the night on which clocks change.
    check("in 1 day", "2024-10-27T12:00:00+01:00");
    check("in 24 hours", "2024-10-27T11:00:00+01:00");
    check("in 3 days", "2024-10-29T12:00:00+01:00");
    check("in a week", "2024-11-02T12:00:00+01:00");
}

#[test]
fn a_past_time_is_refused_with_the_current_one() {
    let past = |text: &str| {
        Err(format!(
            "time \"{text}\" is past: it is 2024-10-26T12:00+02:00. Write a later time, or one from now on, such as \
             \"in 2 hours\""
        ))
    };
    for text in [
        "2024-10-26T11:59",
        "2024-10-26T12:00",
        "1999-01-01 00:00Z",
        "in 0 minutes",
    ] {
        assert_eq!(parsed("Europe/Oslo", text), past(text));
    }
}

#[test]
fn other_texts_are_refused() {
    let neither = "it is neither a date with a time nor a duration from now on";
    refused("", "it is empty");
    refused("tomorrow", neither);
    refused("18:00", neither);
    refused("2026-13-24T18:00", neither);
    refused("2026-02-30T18:00", neither);
    refused("2026-12-24", "it has no time of day");
    refused(
        "2026-12-24T18:00[Europe/Oslo]",
        "the name of a zone in brackets is not supported; leave it out, or write an offset such as +01:00",
    );
    refused("in hours", "a duration is a number and a unit");
    refused("in 2", "a duration is a number and a unit");
    refused("in -2 hours", "\"-2\" is not a whole number of up to 9 digits");
    refused(
        "in 9999999999 hours",
        "\"9999999999\" is not a whole number of up to 9 digits",
    );
    refused(
        "in 2 moons",
        "the unit \"moons\" is not one of seconds, minutes, hours, days and weeks",
    );
    refused(
        "in 200 years",
        "the unit \"years\" is not one of seconds, minutes, hours, days and weeks",
    );
    refused("in 999999999 weeks", "it is out of range");
    refused("in 40000 days", "it is more than 100 years ahead");
    refused("9998-01-01T00:00", "it is more than 100 years ahead");
    let long = format!("in {} hours", "1".repeat(300));
    assert!(
        parsed("UTC", &long)
            .unwrap_err()
            .contains("…\": it is longer than 256 bytes.")
    );
}
