//! Properties of random expressions, against the oracle.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;
use rockbot_core::Timestamp;

use super::oracle::Oracle;
use super::{CronExpr, local};
use crate::scheduling::cron::parse_time;

const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/Oslo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/St_Johns",
    "Pacific/Chatham",
    "Asia/Beirut",
];

/// Returns fields with numbers from `first` to `last`, which may wrap.
pub(super) fn field(first: u8, last: u8) -> impl Strategy<Value = String> {
    let number = first..=last;
    let item = prop_oneof![
        3 => number.clone().prop_map(|number| number.to_string()),
        2 => (number.clone(), number.clone()).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (number.clone(), number.clone(), 1..=last).prop_map(|(from, to, step)| format!("{from}-{to}/{step}")),
        1 => (number, 1..=last).prop_map(|(from, step)| format!("{from}/{step}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        1 => (1..=last).prop_map(|step| format!("*/{step}")),
        3 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

fn day() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("*".to_owned()),
        3 => field(1, 31),
        1 => Just("L".to_owned()),
        1 => (0..=28_u8).prop_map(|before| format!("L-{before}")),
        1 => Just("LW".to_owned()),
        1 => (0..=28_u8).prop_map(|before| format!("L-{before}W")),
        1 => (1..=31_u8).prop_map(|day| format!("{day}W")),
    ]
}

fn weekday() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("*".to_owned()),
        // The oracle walks over weeks that begin with 0.
        3 => field(0, 6).prop_filter("a step from a day to the end ends with 7", |field| !field.contains('/')),
        1 => (0..=7_u8).prop_map(|day| format!("{day}L")),
        1 => (0..=7_u8, 1..=5_u8).prop_map(|(day, nth)| format!("{day}#{nth}")),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let month = prop_oneof![3 => Just("*".to_owned()), 1 => field(1, 12)];
    let time = prop_oneof![
        4 => (field(0, 59), field(0, 23)).prop_map(|(minute, hour)| format!("{minute} {hour}")),
        1 => (field(0, 59), field(0, 59), field(0, 23)).prop_map(|(second, minute, hour)| format!("{second} {minute} {hour}")),
    ];
    (time, day(), month, weekday()).prop_map(|(time, day, month, weekday)| format!("{time} {day} {month} {weekday}"))
}

/// Returns instants of 2023 to 2025, of which half are within three hours around a change of
/// clocks in `zone`.
fn start(zone: &TimeZone) -> impl Strategy<Value = jiff::Timestamp> + use<> {
    let year_2023: jiff::Timestamp = "2023-01-01T00:00:00Z".parse().unwrap();
    let changes: Vec<i64> = zone
        .following(year_2023)
        .take(6)
        .map(|change| change.timestamp().as_second())
        .collect();
    let any = 0..94_000_000_i64;
    let any = any.prop_map(move |seconds| year_2023.as_second() + seconds);
    let seconds = if changes.is_empty() {
        any.boxed()
    } else {
        let around = (select(changes), -10_800..10_800_i64).prop_map(|(change, seconds)| change + seconds);
        prop_oneof![any, around].boxed()
    };
    seconds.prop_map(|seconds| jiff::Timestamp::from_second(seconds).unwrap())
}

fn zone_and_start() -> impl Strategy<Value = (TimeZone, jiff::Timestamp)> {
    select(&ZONES[..]).prop_flat_map(|name| {
        let zone = TimeZone::get(name).unwrap();
        (Just(zone.clone()), start(&zone))
    })
}

pub(super) fn to_timestamp(instant: jiff::Timestamp) -> Timestamp {
    Timestamp::from_millis(instant.as_millisecond().try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Three times, one after the other.
    #[test]
    fn expressions_fire_when_the_oracle_says(text in expression(), (zone, start) in zone_and_start()) {
        let Ok(expression) = CronExpr::parse(&text) else {
            prop_assert_eq!(Oracle::new(&text).next_within(400, start, &zone), None);
            return Ok(());
        };
        let oracle = Oracle::new(&text);
        let mut after = start;
        for _ in 0..3 {
            // The oracle gives up, while some dates are decades ahead.
            let Some(next) = oracle.next_within(400, after, &zone) else { break };
            let found = expression.next_after(to_timestamp(after), &zone).map(|found| local(found, &zone));
            prop_assert_eq!(found, Some(local(to_timestamp(next), &zone)));
            after = next;
        }
    }

    #[test]
    fn times_are_later_and_no_time_is_between(text in expression(), (zone, start) in zone_and_start(), share in 0.0..1.0) {
        let Ok(expression) = CronExpr::parse(&text) else { return Ok(()) };
        let start = to_timestamp(start);
        let Some(next) = expression.next_after(start, &zone) else { return Ok(()) };
        prop_assert!(next > start);
        let between = start.after(next.since(start).mul_f64(share));
        prop_assert_eq!(expression.next_after(between.min(Timestamp::from_millis(next.as_millis() - 1)), &zone), Some(next));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-0-9*/,?#LWHa-zA-Z@: ]{0,40}|\\PC{0,300}", millis in any::<u64>()) {
        if let Ok(expression) = CronExpr::parse(&text) {
            expression.next_after(Timestamp::from_millis(millis), &TimeZone::UTC);
        }
        let _ = parse_time(&text, Timestamp::from_millis(millis), &TimeZone::UTC);
        let _ = parse_time(&format!("in {text}"), Timestamp::from_millis(1_700_000_000_000), &TimeZone::UTC);
    }
}
