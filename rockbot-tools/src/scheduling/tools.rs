//! The tools that schedule tasks, list them and cancel them.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::support::nearest_names;
use rockbot_core::tool::{Tool, ToolError, ToolGroup, ToolState, stateful_tool};
use rockbot_core::trust::Label;
use rockbot_core::{CallContext, Principal, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::cron::instant;
use super::define::Definition;
use super::directive;
use super::error::ScheduleError;
use super::scheduler::{Scheduler, Shared, started};
use super::task::{Due, OccurrenceState, ScheduledTask};

/// Returns the tools of all turns, and the tools that only the runs of tasks have.
pub(super) fn tools(shared: &Shared) -> [Tool; 6] {
    let group = ToolGroup::new("scheduling", "reminders and tasks at set times")
        .with_guide(include_str!("guides/scheduling.md"));
    let [update, edit] = directive::tools(shared);
    let of_check = shared.clone();
    let schedule = stateful_tool("schedule_task", shared.clone(), schedule)
        .idempotent()
        .endorsed_when(move |call, cx| {
            let shared = of_check.clone();
            async move { may_schedule(shared, &call.arguments, &cx).await }
        });
    let list = stateful_tool("list_scheduled_tasks", shared.clone(), list).pure();
    let cancel = stateful_tool("cancel_scheduled_task", shared.clone(), cancel).idempotent();
    let run = stateful_tool("run_scheduled_task", shared.clone(), run).needs_endorsement();
    let [schedule, list, cancel, run] = [schedule, list, cancel, run].map(|tool| tool.on_demand(&group));
    [schedule, list, cancel, run, update, edit].map(|tool| tool.source("scheduling").own_output())
}

/// Schedules a task: at each time of `cron` you get `description` as a message, work on it, and
/// the user reads your answer. A task of the same name is replaced.
#[derive(Debug, Deserialize, JsonSchema)]
struct ScheduleTask {
    /// A short name, such as `water-plants`.
    name: String,
    /// Cron expression in the user's time zone, such as `0 8 * * MON-FRI`; for a run-once task also a
    /// time, such as `2026-12-24T18:00` or `in 2 hours`.
    cron: String,
    /// The message that you get at that time: the task, described completely.
    description: String,
    /// `true` for a task that runs once, such as a reminder.
    #[serde(default, alias = "runOnce")]
    run_once: bool,
}

async fn schedule(shared: ToolState<Shared>, args: ScheduleTask, cx: CallContext) -> Result<String, ToolError> {
    let scheduler = started(&shared)?;
    let zone = scheduler.zone_of(cx.principal()).await;
    let name = args.name.trim().to_owned();
    let definition = definition(args, &cx);
    let next = scheduler.define(definition).await.map_err(refused)?;
    let next = shown(next, &zone);
    let now = shown(scheduler.clock.now(), &zone);
    Ok(format!(
        "`{name}` is scheduled; it runs next at {next}. Now it is {now}."
    ))
}

fn definition(args: ScheduleTask, cx: &CallContext) -> Definition {
    Definition {
        name: args.name,
        when: args.cron,
        description: args.description,
        run_once: args.run_once,
        principal: cx.principal().clone(),
        label: Some(cx.label()).filter(Label::is_untrusted),
        policies: None,
    }
}

/// Returns `false` for a call that is refused anyway: no person is asked about it.
async fn may_schedule(shared: Shared, arguments: &str, cx: &CallContext) -> bool {
    let (Ok(args), Some(scheduler)) = (serde_json::from_str(arguments), shared.get()) else {
        return true;
    };
    let prepared = scheduler.prepare(definition(args, cx), scheduler.clock.now()).await;
    !matches!(prepared, Err(ScheduleError::Invalid(_)))
}

fn refused(error: ScheduleError) -> ToolError {
    match error {
        ScheduleError::Invalid(problem) => ToolError::invalid_arguments(problem),
        error => ToolError::execution_failed(error.to_string()),
    }
}

/// Lists the scheduled tasks, with the current time.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListScheduledTasks {}

async fn list(shared: ToolState<Shared>, _: ListScheduledTasks, cx: CallContext) -> Result<Content, ToolError> {
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
        return Ok(text.into());
    }
    text.push_str("\n| name | when | next | last | task |\n|---|---|---|---|---|\n");
    let mut label = Label::HOST;
    for task in own {
        task.label.iter().for_each(|of_task| label.join(of_task));
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
    Ok(if label.is_untrusted() {
        ContentPart::text(text)
            .with_provenance(Provenance::labelled("scheduling", &label))
            .into()
    } else {
        text.into()
    })
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
        Due::Now(..) | Due::Missed(_) | Due::SetBack(_) => "now".to_owned(),
        Due::Never => "never".to_owned(),
    }
}

fn last(task: &ScheduledTask, zone: &TimeZone) -> String {
    let Some(last) = &task.last else {
        return "–".to_owned();
    };
    let state = match last.state {
        OccurrenceState::Due => "waits for the end of the run before",
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
    let name = args.name.trim();
    if scheduler.cancel(cx.principal(), name).await.map_err(refused)? {
        Ok(format!("`{name}` is cancelled."))
    } else {
        Ok(unknown(scheduler, cx.principal(), name).await)
    }
}

/// Runs a scheduled task now, beside its times; its answer is told to the user as usual.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunScheduledTask {
    /// The name of the task.
    name: String,
}

async fn run(shared: ToolState<Shared>, args: RunScheduledTask, cx: CallContext) -> Result<String, ToolError> {
    let scheduler = started(&shared)?;
    let name = args.name.trim();
    match scheduler.run_now(cx.principal(), name).await {
        Ok(_) => Ok(format!(
            "`{name}` has begun; the user reads its answer when it is there."
        )),
        Err(ScheduleError::NotFound(_)) => Ok(unknown(scheduler, cx.principal(), name).await),
        Err(error) => Err(refused(error)),
    }
}

/// Returns the answer about a task that does not exist.
async fn unknown(scheduler: &Scheduler, principal: &Principal, name: &str) -> String {
    let store = scheduler.store.lock().await;
    let own = store.all().iter().filter(|task| task.principal == *principal);
    match &*nearest_names(name, own.map(|task| task.name.as_str()), 3) {
        [] => format!("There is no scheduled task `{name}`."),
        near => format!(
            "There is no scheduled task `{name}`; did you mean `{}`?",
            near.join("`, `")
        ),
    }
}

fn shown(time: Timestamp, zone: &TimeZone) -> String {
    zoned(instant(time), zone)
}

fn zoned(time: jiff::Timestamp, zone: &TimeZone) -> String {
    let time = time.to_zoned(zone.clone());
    let zone = zone.iana_name().unwrap_or("local time");
    format!("{} ({zone})", time.strftime("%a %Y-%m-%d %H:%M"))
}
