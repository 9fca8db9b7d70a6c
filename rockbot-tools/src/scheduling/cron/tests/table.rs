//! A table of next times, written by the oracle.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::oracle::Oracle;
use super::{expr, instant, local};

/// The rows: zone, time after which is looked, expression, next time.
const TABLE: &str = include_str!("next_times.txt");

/// Zones, each with instants: an ordinary one, one before the clocks go forward, two in the hours
/// that are shown twice.
const STARTS: [(&str, [&str; 4]); 7] = [
    (
        "UTC",
        [
            "2024-02-28T22:47:31Z",
            "2024-03-10T06:50:00Z",
            "2024-11-03T05:10:00Z",
            "2024-12-31T23:59:59Z",
        ],
    ),
    (
        "America/New_York",
        [
            "2024-02-28T22:47:31Z",
            "2024-03-10T06:50:00Z",
            "2024-11-03T05:10:00Z",
            "2024-11-03T06:05:00Z",
        ],
    ),
    (
        "Europe/Oslo",
        [
            "2024-02-28T22:47:31Z",
            "2024-03-31T00:50:00Z",
            "2024-10-27T00:10:00Z",
            "2024-10-27T01:05:00Z",
        ],
    ),
    (
        "Australia/Lord_Howe",
        [
            "2024-02-28T22:47:31Z",
            "2024-10-05T15:20:00Z",
            "2024-04-06T14:35:00Z",
            "2024-04-06T15:05:00Z",
        ],
    ),
    (
        "Asia/Kolkata",
        [
            "2024-02-28T22:47:31Z",
            "2024-03-31T00:50:00Z",
            "2024-10-27T00:10:00Z",
            "2024-12-31T18:29:59Z",
        ],
    ),
    (
        "America/St_Johns",
        [
            "2024-02-28T22:47:31Z",
            "2024-03-10T05:20:00Z",
            "2024-11-03T03:35:00Z",
            "2024-11-03T04:35:00Z",
        ],
    ),
    (
        "Pacific/Chatham",
        [
            "2024-02-28T22:47:31Z",
            "2024-09-28T13:50:00Z",
            "2024-04-06T13:10:00Z",
            "2024-04-06T14:05:00Z",
        ],
    ),
];

const EXPRESSIONS: [&str; 30] = [
    "* * * * *",
    "*/15 * * * *",
    "*/40 * * * *",
    "20 * * * *",
    "7/20 * * * *",
    "30 2 * * *",
    "0 3 * * *",
    "30 1 * * *",
    "15,45 1,2 * * *",
    "45-10/5 * * * *",
    "0 */6 * * *",
    "0 22-4 * * *",
    "0 22-4/3 * * *",
    "30 9 * * MON-FRI",
    "0 12 * * fri-mon",
    "0 8 * * 7",
    "0 8 * * 5-1/2",
    "0 0 1 * *",
    "0 0 29 2 *",
    "0 0 31 * *",
    "0 0 1-7 * 1",
    "0 9 13 * FRI",
    "0 18 L * *",
    "0 18 L-2 * *",
    "0 9 LW * ?",
    "0 9 15W * *",
    "0 17 * * FRIL",
    "0 10 * NOV-FEB 2#2",
    "*/10 30 1-3 * * *",
    "0 0 2 * * *",
];

#[test]
fn expressions_fire_when_the_table_says() {
    let rows: Vec<&str> = TABLE.lines().collect();
    assert!(rows.len() >= 400, "{} rows", rows.len());
    for row in rows {
        let [zone, after, expression, next] = row.split(" | ").map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let zone = TimeZone::get(zone).unwrap();
        let found = expr(expression).next_after(instant(after), &zone).unwrap();
        assert_eq!(local(found, &zone), next, "{row}");
    }
}

/// `UPDATE_NEXT_TIMES=1` writes the table.
#[test]
fn the_table_is_what_the_oracle_says() {
    let table = table();
    if std::env::var_os("UPDATE_NEXT_TIMES").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/scheduling/cron/tests/next_times.txt");
        return std::fs::write(file, table).unwrap();
    }
    assert!(table == TABLE, "the oracle and the table differ");
}

fn table() -> String {
    let mut table = String::new();
    for (zone_name, starts) in STARTS {
        let zone = TimeZone::get(zone_name).unwrap();
        for (start, expression) in starts
            .iter()
            .flat_map(|start| EXPRESSIONS.map(|expression| (start, expression)))
        {
            let after: Timestamp = start.parse().unwrap();
            let next = Oracle::new(expression).next_within(1_500, after, &zone);
            let Some(next) = next else { continue };
            let next = next.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z");
            let start = after.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z");
            writeln!(table, "{zone_name:<19} | {start} | {expression:<18} | {next}").unwrap();
        }
    }
    table
}
