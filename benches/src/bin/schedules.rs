//! Measures scheduled tasks: the start of a host with many, its idleness, and the computation of
//! next times beside other libraries.
//!
//! Usage: `schedules tasks [TASKS] [SECONDS]` (10 000 and 60) or `schedules next`. `tasks` prints the
//! time until the first pass over all tasks is over, and the CPU time of the process in the idle
//! seconds after it. `next` prints the microseconds of a next time for some expressions: of the
//! bare `cron` crate, of `croner`, and of ours, the median of interleaved blocks; then the same for
//! parsing an expression and its first next time.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeZone as _, Utc};
use croner::parser::CronParser;
use jiff::Zoned;
use jiff::tz::TimeZone;
use rockbot_benches::{median, process_usage};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{BoxError, Clock as _, SystemClock, Timestamp};
use rockbot_host::AgentHost;
use rockbot_tools::scheduling::{CronTimes, Schedules, Scheduling};
use serde_json::{Value, json};

/// Monday 2026-11-02, 07:30 UTC, in milliseconds.
const START: u64 = 1_793_604_600_000;

/// Expressions of five fields that all three libraries read alike, each with `STEPS` times before
/// the year 2100, with which the bare crate ends.
const EXPRESSIONS: [&str; 6] = [
    "*/5 * * * *",
    "30 9 * * MON-FRI",
    "0 0 1 * *",
    "15 10,14,18 * * *",
    "0 12 29 1-3 *",
    "0 8-18/2 * 1-6 TUE",
];

/// Number of next times in a block, one after the other, and number of blocks.
const STEPS: usize = 100;
const BLOCKS: usize = 31;

fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |index: usize, default| {
        arguments
            .get(index)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    match arguments.first().map(String::as_str) {
        Some("tasks") => tasks(number(1, 10_000), number(2, 60)),
        Some("next") => next(),
        _ => Err("usage: schedules tasks [TASKS] [SECONDS] | schedules next".into()),
    }
}

/// Writes tasks of a hundred users, which are due once a month.
fn write(folder: &Path, count: u64) -> Result<(), BoxError> {
    #[derive(serde::Serialize)]
    struct Created(#[serde(with = "rockbot_core::rfc3339")] Timestamp);
    let created = Created(SystemClock.now());
    let tasks = (0..count).map(|index| {
        let cron = format!("{} {} 1 * *", index % 60, index / 60 % 24);
        json!({"name": format!("task-{index}"), "cronExpression": cron, "description": "Check.", "createdAt": created,
            "principal": format!("user-{}", index % 100)})
    });
    let tasks = Value::from_iter(tasks).to_string();
    std::fs::write(folder.join("scheduled-tasks.json"), tasks)?;
    Ok(())
}

#[tokio::main]
async fn tasks(count: u64, seconds: u64) -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), count)?;
    let begun = Instant::now();
    let host = AgentHost::builder("bench")
        .chat(ScriptedModel::new())
        .data_dir(folder.path());
    let host = host.add(Scheduling::new().with_time_zone("Europe/Oslo")).build()?;
    host.start().await?;
    let started = begun.elapsed();
    let schedules = host.parts().get::<Schedules>().ok_or("the host has schedules")?;
    // It waits for the first pass over all tasks.
    schedules.cancel("none").await?;
    let passed = begun.elapsed();
    let before = process_usage().0;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    println!(
        "{}",
        json!({
            "tasks": count, "started_ms": started.as_secs_f64() * 1e3, "all_armed_ms": passed.as_secs_f64() * 1e3,
            "idle_s": seconds, "idle_cpu_ms": (process_usage().0 - before) * 1e3,
        })
    );
    Ok(())
}

/// The next times of one expression by one library: `walk` finds `STEPS` of them, `first` reads the
/// expression and finds one.
struct Library<'a> {
    walk: Box<dyn Fn() -> i64 + 'a>,
    first: Box<dyn Fn() -> i64 + 'a>,
}

fn next() -> Result<(), BoxError> {
    println!(
        "| expression | cron, µs | croner, µs | ours, µs | first: cron | croner | ours |\n|---|---|---|---|---|---|---|"
    );
    let zone = TimeZone::get("Europe/Oslo")?;
    for expression in EXPRESSIONS {
        let libraries = [bare_cron(expression), croner(expression, &zone), ours(expression)];
        // The bare crate computes in UTC, so its times differ.
        assert_eq!((libraries[1].walk)(), (libraries[2].walk)(), "{expression}");
        let mut row = format!("| `{expression}` |");
        for (figure, units) in [(walk as fn(&Library<'_>) -> i64, STEPS as f64), (first, 1.0)] {
            let mut times = [const { Vec::new() }; 3];
            for _ in 0..BLOCKS {
                for (times, library) in times.iter_mut().zip(&libraries) {
                    let begun = Instant::now();
                    black_box(figure(library));
                    times.push(begun.elapsed().as_secs_f64() * 1e6 / units);
                }
            }
            times.into_iter().for_each(|times| {
                let _ = write!(row, " {:.2} |", median(times));
            });
        }
        println!("{row}");
    }
    Ok(())
}

fn walk(library: &Library<'_>) -> i64 {
    (library.walk)()
}

fn first(library: &Library<'_>) -> i64 {
    (library.first)()
}

/// The `cron` crate alone, in UTC. It counts Sunday as 1 and needs seconds.
fn bare_cron(expression: &str) -> Library<'_> {
    let text = format!("0 {expression}");
    let start: DateTime<Utc> = Utc.timestamp_millis_opt(START as i64).single().expect("a time");
    let schedule = cron::Schedule::from_str(&text).expect("an expression");
    Library {
        walk: Box::new(move || {
            let times = std::iter::successors(Some(start), |time| schedule.after(time).next());
            times.take(STEPS).last().map_or(0, |time| time.timestamp())
        }),
        first: Box::new(move || {
            let schedule = cron::Schedule::from_str(&text).expect("an expression");
            schedule.after(&start).next().map_or(0, |time| time.timestamp())
        }),
    }
}

fn croner<'a>(expression: &'a str, zone: &TimeZone) -> Library<'a> {
    let parser = || CronParser::builder().dom_and_dow(true).sloppy_ranges(true).build();
    let instant = jiff::Timestamp::from_millisecond(START as i64).expect("a time");
    let start = Zoned::new(instant, zone.clone());
    let again = start.clone();
    let cron = parser().parse(expression).expect("an expression");
    Library {
        walk: Box::new(move || {
            let times = std::iter::successors(Some(start.clone()), |time| cron.find_next_occurrence(time, false).ok());
            times.take(STEPS).last().map_or(0, |time| time.timestamp().as_second())
        }),
        first: Box::new(move || {
            let cron = parser().parse(expression).expect("an expression");
            let next = cron.find_next_occurrence(&again, false);
            next.map_or(0, |time| time.timestamp().as_second())
        }),
    }
}

fn ours(expression: &str) -> Library<'_> {
    let start = Timestamp::from_millis(START);
    let read = move || CronTimes::new(expression, Some("Europe/Oslo")).expect("an expression");
    let times = read();
    let seconds = |time: Timestamp| (time.as_millis() / 1000) as i64;
    Library {
        walk: Box::new(move || {
            let times = std::iter::successors(Some(start), |time| times.next_after(*time));
            times.take(STEPS).last().map_or(0, seconds)
        }),
        first: Box::new(move || read().next_after(start).map_or(0, seconds)),
    }
}
