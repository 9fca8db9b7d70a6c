//! Tests of cron expressions and times.

mod clock_changes;
mod errors;
mod oracle;
mod properties;
mod second_opinion;
mod syntax;
mod table;
mod times;

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use super::CronExpr;

#[track_caller]
fn expr(text: &str) -> CronExpr {
    CronExpr::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn instant(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_millis(instant.as_millisecond().try_into().unwrap())
}

fn local(time: Timestamp, zone: &TimeZone) -> String {
    let instant = jiff::Timestamp::from_millisecond(time.as_millis().try_into().unwrap()).unwrap();
    instant
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// Checks that `expression` fires at the `expected` times after `after`, one after the other.
#[track_caller]
fn check(zone: &str, expression: &str, after: &str, expected: &[&str]) {
    let expression = expr(expression);
    let zone = TimeZone::get(zone).unwrap();
    let next = |time: &Timestamp| expression.next_after(*time, &zone);
    let times = std::iter::successors(next(&instant(after)), next).take(expected.len());
    let found: Vec<_> = times.map(|time| local(time, &zone)).collect();
    assert_eq!(found, expected, "{}", expression.as_str());
}
