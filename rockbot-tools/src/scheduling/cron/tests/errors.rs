//! Refused expressions, with the whole text of the error.

use super::CronExpr;

const WRITE: &str =
    "Write minute, hour, day of month, month and day of week, such as \"30 9 * * MON-FRI\" for 9:30 on workdays";

#[track_caller]
fn refused(expression: &str, reason: &str) {
    let error = CronExpr::parse(expression).unwrap_err().to_string();
    let shown = expression.trim();
    assert_eq!(error, format!("cron expression \"{shown}\": {reason}. {WRITE}"));
}

#[track_caller]
fn never(expression: &str) {
    let error = CronExpr::parse(expression).unwrap_err().to_string();
    let expected = format!(
        "cron expression \"{expression}\" never fires: no date matches its day of month, month and day of week \
         together. Write a day that exists, such as \"0 9 L * *\" for 9:00 on the last day of each month"
    );
    assert_eq!(error, expected);
}

#[test]
fn the_number_of_fields_is_named() {
    refused("", "it is empty");
    refused("  \t ", "it is empty");
    refused("0 9 * *", "it has 4 fields instead of 5, or 6 with seconds first");
    refused(
        "0 0 9 * * * 2024",
        "it has 7 fields instead of 5, or 6 with seconds first",
    );
    refused("daily", "it has 1 field instead of 5, or 6 with seconds first");
}

#[test]
fn unknown_macros_are_refused_with_the_known_ones() {
    let known = "@every_second, @every_minute, @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually";
    refused("@reboot", &format!("it is none of {known}"));
    refused("@", &format!("it is none of {known}"));
    refused("@daily 5", &format!("it is none of {known}"));
}

#[test]
fn numbers_out_of_range_are_named() {
    refused("60 * * * *", "minute: \"60\" is not a number from 0 to 59");
    refused("60 0 0 * * *", "second: \"60\" is not a number from 0 to 59");
    refused("0 24 * * *", "hour: \"24\" is not a number from 0 to 23");
    refused("0 0 0 * *", "day of month: \"0\" is not a number from 1 to 31");
    refused(
        "0 0 * 13 *",
        "month: \"13\" is not a number from 1 to 12 or from JAN to DEC",
    );
    refused(
        "0 0 * * 8",
        "day of week: \"8\" is not a number from 0 to 7 or from SUN to SAT",
    );
    refused(
        "0 0 * * monday",
        "day of week: \"monday\" is not a number from 0 to 7 or from SUN to SAT",
    );
    refused(
        "0 0 * * H",
        "day of week: `H` is not supported; write a number from 0 to 7 or from SUN to SAT",
    );
    refused("007 * * * *", "minute: \"007\" is not a number from 0 to 59");
    refused("-1 * * * *", "minute: a number is missing");
    refused("+1 * * * *", "minute: \"+1\" is not a number from 0 to 59");
    refused("٣ * * * *", "minute: \"٣\" is not a number from 0 to 59");
    refused("1.5 * * * *", "minute: \"1.5\" is not a number from 0 to 59");
}

#[test]
fn broken_ranges_lists_and_steps_are_named() {
    refused("1, * * * *", "minute: a number is missing");
    refused(",1 * * * *", "minute: a number is missing");
    refused("1- * * * *", "minute: a number is missing");
    refused("1-2-3 * * * *", "minute: \"2-3\" is not a number from 0 to 59");
    refused(
        "*,5 * * * *",
        "minute: `*` stands for all numbers, so it is alone in its field",
    );
    refused(
        "*-5 * * * *",
        "minute: `*` stands for all numbers, so it is alone in its field",
    );
    refused("** * * * *", "minute: \"**\" is not a number from 0 to 59");
    refused("*/0 * * * *", "minute: \"0\" is not a step from 1 to 59");
    refused("*/60 * * * *", "minute: \"60\" is not a step from 1 to 59");
    refused("0 */24 * * *", "hour: \"24\" is not a step from 1 to 23");
    refused("*/ * * * *", "minute: \"\" is not a step from 1 to 59");
    refused("/5 * * * *", "minute: a number is missing");
    refused("*/5/5 * * * *", "minute: \"5/5\" is not a step from 1 to 59");
}

#[test]
fn days_counted_from_the_end_stand_alone() {
    let last = "is not one of `L` (the last day), `L-3` (three days before it), `LW` (the last workday) and `15W` (the \
                workday nearest to the 15th), which are alone in their field";
    for day in ["1,L", "L,1", "L-31", "L-", "L3", "W", "32W", "1-5W", "WL", "15W,L"] {
        refused(&format!("0 0 {day} * *"), &format!("day of month: \"{day}\" {last}"));
    }
    refused(
        "0 0 * * L",
        "day of week: `L` needs a day before it, such as `FRIL` for the last Friday",
    );
    refused(
        "0 0 * * 1,5L",
        "day of week: \"1,5\" is not a number from 0 to 7 or from SUN to SAT",
    );
    refused(
        "0 0 * * MON#6",
        "day of week: \"MON#6\" has no number from 1 to 5 after the `#`",
    );
    refused(
        "0 0 * * MON#",
        "day of week: \"MON#\" has no number from 1 to 5 after the `#`",
    );
    refused("0 0 * * #2", "day of week: a number is missing");
    refused(
        "0 0 * L *",
        "month: \"L\" is not a number from 1 to 12 or from JAN to DEC",
    );
}

#[test]
fn impossible_dates_are_refused() {
    for expression in [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "* * * 31 2 *",
        "0 0 L-30 2 *",
        "0 0 31W 2 *",
        "0 0 15W * SAT",
        "0 0 1-7 * MON#2",
        "0 0 1 * FRIL",
        "0 0 1,2 2 TUE#5",
    ] {
        never(expression);
    }
}

#[test]
fn hostile_texts_are_shortened_and_escaped() {
    let long = "1,".repeat(200);
    let error = CronExpr::parse(&long).unwrap_err().to_string();
    let shown = "1,".repeat(30);
    assert_eq!(
        error,
        format!("cron expression \"{shown}…\": it is longer than 256 bytes. {WRITE}")
    );
    let error = CronExpr::parse("0 0\n* \u{1b}[31m* * *").unwrap_err().to_string();
    let shown = r"0 0\n* \u{1b}[31m* * *";
    let reason = r#"hour: "0\n*" is not a number from 0 to 23"#;
    assert_eq!(error, format!("cron expression \"{shown}\": {reason}. {WRITE}"));
    // The longest list is no work.
    let list = format!("{} * * * *", "0-59,".repeat(49) + "1");
    assert!(CronExpr::parse(&list).is_ok());
}
