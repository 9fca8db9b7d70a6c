//! Tests of cron expressions and times.

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use super::CronExpr;

#[track_caller]
fn check(expression: &str, zone: &str, after: &str, expected: &[&str]) {
    let expr = CronExpr::parse(expression).unwrap_or_else(|error| panic!("{error}"));
    let zone = TimeZone::get(zone).unwrap();
    let mut time = instant(after);
    let mut found = Vec::new();
    for _ in expected {
        time = expr.next_after(time, &zone).unwrap();
        found.push(local(time, &zone));
    }
    assert_eq!(found, expected, "{expression}");
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

#[test]
fn basic() {
    check(
        "30 9 * * MON-FRI",
        "UTC",
        "2024-01-05T09:30:00Z",
        &["2024-01-08T09:30:00+00:00"],
    );
    check(
        "*/30 * * * *",
        "America/New_York",
        "2024-11-03T04:45:00Z",
        &["2024-11-03T01:00:00-04:00"],
    );
}
