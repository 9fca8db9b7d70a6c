//! The tools that schedule tasks, list them and cancel them.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use jiff::tz::TimeZone;
use rockbot_core::store::StorePath;
use rockbot_core::support::nearest_names;
use rockbot_core::tool::{Tool, ToolError, ToolGroup, ToolState, stateful_tool};
use rockbot_core::trust::Label;
use rockbot_core::{CallContext, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::cron::{CronExpr, parse_time};
use super::scheduler::Scheduler;
use super::task::{Due, OccurrenceState, ScheduledTask};

/// Maximum number of tasks of one principal.
const MAX_TASKS: usize = 1000;

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;

/// Maximum length of a description, in bytes.
const MAX_DESCRIPTION: usize = 16 << 10;

/// Set when the host starts.
pub(super) type Shared = Arc<OnceLock<Arc<Scheduler>>>;

pub(super) fn tools(shared: &Shared) -> [Tool; 3] {
    let group = ToolGroup::new("scheduling", "reminders and tasks at set times")
        .with_guide(include_str!("guides/scheduling.md"));
    [
        stateful_tool("schedule_task", shared.clone(), schedule)
            .idempotent()
            .needs_endorsement(),
        stateful_tool("list_scheduled_tasks", shared.clone(), list).pure(),
        stateful_tool("cancel_scheduled_task", shared.clone(), cancel).idempotent(),
    ]
    .map(|tool| tool.source("scheduling").on_demand(&group))
}

/// Schedules a task: at each time of `cron` you get `description` as a message, work on it, and the user reads your answer. A
/// task of the same name is replaced.
#[derive(Debug, Deserialize, JsonSchema)]
struct ScheduleTask {
    /// A short name, such as `water-plants`.
    name: String,
    /// Cron expression in the user's time zone, such as `0 8 * * MON-FRI`; for a run-once task also a time, such as
    /// `2026-12-24T18:00` or `in 2 hours`.
    cron: String,
    /// The message that you get at that time: the task, described completely.
    description: String,
    /// `true` for a task that runs once, such as a reminder.
    #[serde(default, alias = "runOnce")]
    run_once: bool,
}

async fn schedule(shared: ToolState<Shared>, args: ScheduleTask, cx: CallContext) -> Result<String, ToolError> {
    let scheduler = started(&shared)?;
    check(&args)?;
    let zone = scheduler.zone_of(cx.principal()).await;
    let now = scheduler.clock.now();
    let task = ScheduledTask {
        name: args.name.trim().to_owned(),
        cron_expression: expression(&args, now, &zone)?,
        description: args.description.trim().to_owned(),
        created_at: now,
        last_fired_at: None,
        run_once: args.run_once,
        principal: cx.principal().clone(),
        label: Some(cx.label()).filter(Label::is_untrusted),
        failures: 0,
        is_paused: false,
        last: None,
    };
    let Due::At(next) = task.due(now, &zone) else {
        return Err(ToolError::invalid_arguments(format!(
            "`{}` is never due again: name a later time",
            args.cron
        )));
    };
    let mut store = scheduler.store.lock().await;
    let own = store
        .all()
        .iter()
        .filter(|other| other.principal == task.principal)
        .count();
    if own >= MAX_TASKS && store.find(&task.principal, &task.name).is_none() {
        return Err(ToolError::execution_failed(format!(
            "{MAX_TASKS} tasks are scheduled already: cancel one of them"
        )));
    }
    let name = task.name.clone();
    store
        .put(task)
        .map_err(|error| ToolError::execution_failed(error.to_string()))?;
    drop(store);
    scheduler.changed.notify_one();
    let (next, now) = (shown(next, &zone), shown(now, &zone));
    Ok(format!(
        "`{name}` is scheduled; it runs next at {next}. Now it is {now}."
    ))
}

fn check(args: &ScheduleTask) -> Result<(), ToolError> {
    let name = args.name.trim();
    let is_name =
        !name.is_empty() && name.chars().count() <= MAX_NAME && StorePath::new(&format!("patrol/{name}")).is_ok();
    let problem = if !is_name || name.contains('/') {
        format!("`name` has 1 to {MAX_NAME} characters and no slash, such as `water-plants`")
    } else if args.description.trim().is_empty() {
        "`description` is empty: describe the task".to_owned()
    } else if args.description.len() > MAX_DESCRIPTION {
        format!("`description` has at most {MAX_DESCRIPTION} bytes")
    } else {
        return Ok(());
    };
    Err(ToolError::invalid_arguments(problem))
}

/// Returns the expression as the file keeps it: a plain time becomes an instant.
fn expression(args: &ScheduleTask, now: Timestamp, zone: &TimeZone) -> Result<String, ToolError> {
    let refused = |error: &dyn std::fmt::Display| ToolError::invalid_arguments(error.to_string());
    match CronExpr::parse(&args.cron) {
        Ok(cron) => Ok(cron.as_str().to_owned()),
        Err(_) if args.run_once => {
            let time = parse_time(&args.cron, now, zone).map_err(|error| refused(&error))?;
            Ok(instant(time).to_string())
        }
        Err(error) => match parse_time(&args.cron, now, zone) {
            Ok(_) => Err(refused(&"a plain time is for tasks that run once: set `run_once`")),
            Err(_) => Err(refused(&error)),
        },
    }
}

/// Lists the scheduled tasks, with the current time.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListScheduledTasks {}

async fn list(shared: ToolState<Shared>, _: ListScheduledTasks, cx: CallContext) -> Result<String, ToolError> {
    let scheduler = started(&shared)?;
    let zone = scheduler.zone_of(cx.principal()).await;
    let now = scheduler.clock.now();
    let mut text = format!("Now: {}\n", shown(now, &zone));
    let store = scheduler.store.lock().await;
    let own: Vec<_> = store
        .all()
        .iter()
        .filter(|task| task.principal == *cx.principal())
        .collect();
    if own.is_empty() {
        text.push_str("No task is scheduled.");
        return Ok(text);
    }
    text.push_str("\n| name | when | next | last | task |\n|---|---|---|---|---|\n");
    for task in own {
        let cells = [
            task.name.clone(),
            when(task, &zone),
            next(task, now, &zone),
            last(task, &zone),
            task.description.clone(),
        ];
        let cells = cells.map(|cell| rockbot_core::support::one_line(&cell).replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    Ok(text)
}

fn when(task: &ScheduledTask, zone: &TimeZone) -> String {
    let once = if task.run_once { " (once)" } else { "" };
    match task.cron_expression.parse::<jiff::Timestamp>() {
        Ok(time) => format!("{}{once}", zoned(time, zone)),
        Err(_) => format!("`{}`{once}", task.cron_expression),
    }
}

fn next(task: &ScheduledTask, now: Timestamp, zone: &TimeZone) -> String {
    match task.due(now, zone) {
        _ if task.is_paused => "paused after failures".to_owned(),
        _ if task.times().is_none() => "never: the expression cannot be read".to_owned(),
        Due::At(time) => shown(time, zone),
        Due::Now(..) | Due::Missed(_) => "now".to_owned(),
        Due::Never => "never".to_owned(),
    }
}

fn last(task: &ScheduledTask, zone: &TimeZone) -> String {
    let Some(last) = &task.last else {
        return "–".to_owned();
    };
    let state = match last.state {
        OccurrenceState::Accepted => "runs",
        OccurrenceState::Done => "done",
        OccurrenceState::Failed => "failed",
        OccurrenceState::Missed => "missed, the agent was not running",
        OccurrenceState::Skipped => "skipped, the run before was not over",
    };
    format!("{}: {state}", shown(last.due, zone))
}

/// Cancels a scheduled task.
#[derive(Debug, Deserialize, JsonSchema)]
struct CancelScheduledTask {
    /// The name of the task.
    name: String,
}

async fn cancel(shared: ToolState<Shared>, args: CancelScheduledTask, cx: CallContext) -> Result<String, ToolError> {
    let scheduler = started(&shared)?;
    let mut store = scheduler.store.lock().await;
    let name = args.name.trim();
    let removed = store.remove(cx.principal(), name);
    if removed.map_err(|error| ToolError::execution_failed(error.to_string()))? {
        drop(store);
        scheduler.changed.notify_one();
        return Ok(format!("`{name}` is cancelled."));
    }
    let own = store.all().iter().filter(|task| task.principal == *cx.principal());
    let near = nearest_names(name, own.map(|task| task.name.as_str()), 3);
    Ok(match &*near {
        [] => format!("There is no scheduled task `{name}`."),
        near => format!(
            "There is no scheduled task `{name}`; did you mean `{}`?",
            near.join("`, `")
        ),
    })
}

fn started(shared: &Shared) -> Result<&Arc<Scheduler>, ToolError> {
    let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
    shared.get().ok_or_else(starting)
}

fn instant(time: Timestamp) -> jiff::Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
}

fn shown(time: Timestamp, zone: &TimeZone) -> String {
    zoned(instant(time), zone)
}

fn zoned(time: jiff::Timestamp, zone: &TimeZone) -> String {
    let time = time.to_zoned(zone.clone());
    let zone = zone.iana_name().unwrap_or("local time");
    format!("{} ({zone})", time.strftime("%a %Y-%m-%d %H:%M"))
}
