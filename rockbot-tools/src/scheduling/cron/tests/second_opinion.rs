//! The same times from the crate `croner`, where both mean the same.

use croner::parser::CronParser;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proptest::prelude::*;
use proptest::sample::select;

use super::properties::{field, to_timestamp};
use super::{CronExpr, local};

/// Returns fields without ranges that wrap, which `croner` refuses.
fn plain(first: u8, last: u8) -> impl Strategy<Value = String> {
    let is_plain = |field: &String| {
        let ranges = field
            .split(',')
            .filter_map(|item| item.split('/').next()?.split_once('-'));
        let number = |text: &str| text.parse::<u8>().unwrap();
        ranges.into_iter().all(|(from, to)| number(from) <= number(to))
    };
    field(first, last).prop_filter("a range that wraps", is_plain)
}

fn day() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => plain(1, 31),
        1 => Just("L".to_owned()),
        1 => Just("LW".to_owned()),
        1 => (1..=31_u8).prop_map(|day| format!("{day}W")),
    ]
}

fn weekday() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => plain(0, 7),
        1 => (0..=6_u8).prop_map(|day| format!("{day}L")),
        1 => (0..=6_u8, 1..=5_u8).prop_map(|(day, nth)| format!("{day}#{nth}")),
    ]
}

fn single(last: u8) -> impl Strategy<Value = String> {
    (0..=last).prop_map(|number| number.to_string())
}

/// Returns the next time from `croner`, with both day fields required.
fn opinion(expression: &str, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let parser = CronParser::builder().dom_and_dow(true).sloppy_ranges(true).build();
    let cron = parser.parse(expression).unwrap();
    let after = Zoned::new(after, zone.clone());
    cron.find_next_occurrence(&after, false)
        .ok()
        .map(|next| next.timestamp())
}

fn compare(text: &str, seconds: i64, zone: &TimeZone) -> Result<(), TestCaseError> {
    let Ok(expression) = CronExpr::parse(text) else {
        return Ok(());
    };
    let mut after = Timestamp::from_second(seconds).unwrap();
    for _ in 0..4 {
        let found = expression
            .next_after(to_timestamp(after), zone)
            .map(|found| local(found, zone));
        let Some(next) = opinion(text, after, zone) else { break };
        prop_assert_eq!(found, Some(local(to_timestamp(next), zone)));
        after = next;
    }
    Ok(())
}

proptest! {
    #[test]
    fn croner_agrees_in_utc(
        (second, minute, hour) in (plain(0, 59), plain(0, 59), plain(0, 23)),
        (day, month, weekday) in (day(), plain(1, 12), weekday()),
        seconds in 1_600_000_000..1_900_000_000_i64,
    ) {
        let text = format!("{second} {minute} {hour} {day} {month} {weekday}");
        compare(&text, seconds, &TimeZone::UTC)?;
    }

    /// For intervals it loses what falls into a gap.
    #[test]
    fn croner_agrees_on_fixed_times_in_zones(
        (minute, hour) in (single(59), single(3)),
        (day, month, weekday) in (day(), plain(1, 12), weekday()),
        zone in select(vec!["America/New_York", "Europe/Oslo", "Australia/Lord_Howe", "America/St_Johns"]),
        seconds in 1_600_000_000..1_900_000_000_i64,
    ) {
        let text = format!("{minute} {hour} {day} {month} {weekday}");
        compare(&text, seconds, &TimeZone::get(zone).unwrap())?;
    }
}
