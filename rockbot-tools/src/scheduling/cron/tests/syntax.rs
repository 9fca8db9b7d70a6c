//! The grammar of expressions, and what each of its parts means.

use jiff::tz::TimeZone;
use rockbot_core::Timestamp;

use super::{check, expr, instant};

/// Checks that two expressions fire at the same times.
#[track_caller]
fn same(expression: &str, other: &str) {
    let start = instant("2024-02-20T10:11:12Z");
    let times = |text| {
        let expression = expr(text);
        let next = move |time: &Timestamp| expression.next_after(*time, &TimeZone::UTC);
        std::iter::successors(Some(start), next).take(150).collect::<Vec<_>>()
    };
    assert_eq!(times(expression), times(other), "{expression} and {other}");
}

#[test]
fn macros_stand_for_expressions() {
    same("@yearly", "0 0 1 1 *");
    same("@Annually", "0 0 1 1 *");
    same("@monthly", "0 0 1 * *");
    same("@WEEKLY", "0 0 * * SUN");
    same("@daily", "0 0 * * *");
    same("@midnight", "0 0 * * *");
    same("@hourly", "0 * * * *");
    same("@every_minute", "* * * * *");
    same("@every_second", "* * * * * *");
}

#[test]
fn fields_have_names_ranges_steps_and_lists() {
    same("5 4 * * *", "0 5 4 * * *");
    same("0 0 ? * ?", "0 0 * * *");
    same("0 0 * * 7", "0 0 * * 0");
    same("0 0 * jan,Feb,MAR mon", "0 0 * 1-3 1");
    same("0 22-4 * * *", "0 0,1,2,3,4,22,23 * * *");
    same("0 22-4/2 * * *", "0 22,0,2,4 * * *");
    same("0 21-4/2 * * *", "0 21,23,1,3 * * *");
    same("50-10/15 * * * *", "50,5 * * * *");
    same("0 0 * 11-2/2 *", "0 0 * 11,1 *");
    same("0 0 30-2 * *", "0 0 30,31,1,2 * *");
    same("0 0 * * FRI-MON", "0 0 * * 0,1,5,6");
    same("0 0 * * SAT-SUN", "0 0 * * 6,7");
    same("0 0 * * 6-2/2", "0 0 * * 6,1");
    same("0 0 * * 5-7", "0 0 * * 0,5,6");
    same("0 0 * * 7-2", "0 0 * * 0-2");
    same("0 0 * * 0-7", "0 0 * * *");
    same("0 0 * * 3/2", "0 0 * * 3,5,7");
    same("0 0 * * */2", "0 0 * * 0,2,4,6");
    same("*/20 * * * *", "0,20,40 * * * *");
    same("5/20 * * * *", "5,25,45 * * * *");
    same("10-30/10 * * * *", "10,20,30 * * * *");
    same("0,5-9/2,50/5 * * * *", "0,5,7,9,50,55 * * * *");
    same("3,5-11/3,12 * * * *", "3,5,8,11,12 * * * *");
    same("07 09 * * *", "7 9 * * *");
    same("\t 0   9\t*  * * ", "0 9 * * *");
}

#[test]
fn days_count_from_both_ends_of_a_month() {
    check(
        "UTC",
        "0 0 l * *",
        "2024-01-31T00:00:00Z",
        &[
            "2024-02-29T00:00:00+00:00",
            "2024-03-31T00:00:00+00:00",
            "2024-04-30T00:00:00+00:00",
        ],
    );
    check(
        "UTC",
        "0 0 L-29 * *",
        "2024-01-31T00:00:00Z",
        // February is too short.
        &["2024-03-02T00:00:00+00:00", "2024-04-01T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 LW 8-11 *",
        "2024-08-01T00:00:00Z",
        // 31 August is a Saturday.
        &[
            "2024-08-30T00:00:00+00:00",
            "2024-09-30T00:00:00+00:00",
            "2024-10-31T00:00:00+00:00",
        ],
    );
    check(
        "UTC",
        "0 0 L-1W 6 *",
        "2024-01-01T00:00:00Z",
        // 29 June is a Saturday in 2024 and a Sunday in 2025.
        &["2024-06-28T00:00:00+00:00", "2025-06-30T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 1W 6,9 *",
        "2024-01-01T00:00:00Z",
        // 1 June is a Saturday, and 1 September a Sunday.
        &["2024-06-03T00:00:00+00:00", "2024-09-02T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 31W 3,6 *",
        "2024-03-29T00:00:00Z",
        // June has no 31st. 31 March 2024 is a Sunday, and it is a Monday the year after.
        &["2025-03-31T00:00:00+00:00"],
    );
}

#[test]
fn days_of_the_week_count_within_a_month() {
    check(
        "UTC",
        "0 0 * * TUE#5",
        "2024-01-01T00:00:00Z",
        &["2024-01-30T00:00:00+00:00", "2024-04-30T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 * * 7#1",
        "2024-08-31T00:00:00Z",
        &["2024-09-01T00:00:00+00:00", "2024-10-06T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 * * sunl",
        "2024-02-25T00:00:00Z",
        &["2024-03-31T00:00:00+00:00", "2024-04-28T00:00:00+00:00"],
    );
}

#[test]
fn both_day_fields_must_match() {
    check(
        "UTC",
        "0 0 13 * FRI",
        "2024-01-01T00:00:00Z",
        &[
            "2024-09-13T00:00:00+00:00",
            "2024-12-13T00:00:00+00:00",
            "2025-06-13T00:00:00+00:00",
        ],
    );
    check(
        "UTC",
        "0 0 L * FRI",
        "2024-01-01T00:00:00Z",
        &["2024-05-31T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 29 2 MON",
        "2024-03-01T00:00:00Z",
        &["2044-02-29T00:00:00+00:00"],
    );
    check(
        "UTC",
        "0 0 * 2 MON#5",
        "2024-03-01T00:00:00Z",
        &["2044-02-29T00:00:00+00:00"],
    );
}

#[test]
fn centuries_without_a_leap_year_are_crossed() {
    check(
        "UTC",
        "0 0 29 2 *",
        "2096-03-01T00:00:00Z",
        &["2104-02-29T00:00:00+00:00"],
    );
    // 40 years, the longest wait of all.
    check(
        "UTC",
        "0 0 29 2 MON",
        "2072-03-01T00:00:00Z",
        &["2112-02-29T00:00:00+00:00"],
    );
}

#[test]
fn nothing_fires_after_the_end_of_the_calendar() {
    let daily = expr("@daily");
    let leap = expr("0 0 29 2 *");
    let last = instant("9999-12-30T00:00:00Z");
    assert_eq!(daily.next_after(last, &TimeZone::UTC), None);
    assert_eq!(leap.next_after(instant("9996-03-01T00:00:00Z"), &TimeZone::UTC), None);
    for millis in [253_402_300_800_000, u64::MAX] {
        assert_eq!(daily.next_after(Timestamp::from_millis(millis), &TimeZone::UTC), None);
    }
    check("UTC", "@daily", "1970-01-01T00:00:00Z", &["1970-01-02T00:00:00+00:00"]);
}

#[test]
fn an_expression_is_kept_as_written() {
    assert_eq!(expr("  0 9 * * mon-FRI\t").as_str(), "0 9 * * mon-FRI");
    assert_eq!(expr("@daily").as_str(), "@daily");
    assert_eq!(expr("0 9 * * *"), expr(" 0 9 * * * "));
    assert_ne!(expr("0 9 * * *"), expr("0 10 * * *"));
}
