//! Scheduled tasks: messages at set times, each run once.

use std::path::Path;
use std::time::Duration;

use rockbot::tools::scheduling::Scheduling;
use rockbot_core::chat::ChatErrorKind;
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::{Clock as _, Timestamp};
use rockbot_host::{AgentHost, AnnouncementStream};
use serde_json::{Value, json};

use crate::support::{host_of, results, settle, transcript};

/// Friday 2026-11-27, 07:30 UTC.
const MORNING: Timestamp = Timestamp::from_millis(1_795_764_600_000);

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

async fn started(model: &ScriptedModel, clock: &ManualClock, folder: &Path) -> AgentHost {
    let host = host_of(model).clock(clock.clone()).data_dir(folder);
    let host = host.add(Scheduling::new().with_time_zone("UTC"));
    let host = host.build().unwrap();
    host.start().await.unwrap();
    settle().await;
    host
}

fn activated(model: ScriptedModel) -> ScriptedModel {
    model.calls("activate_tools", json!({"group": "scheduling"}))
}

fn task(name: &str, cron: &str) -> Value {
    json!({"name": name, "cron": cron, "description": format!("Do {name}.")})
}

/// Lets the clock run, in steps that a scheduler can follow.
async fn pass(clock: &ManualClock, time: Duration) {
    clock.advance(time);
    settle().await;
}

async fn said(stream: &mut AnnouncementStream) -> String {
    stream.next().await.unwrap().content.words().into_owned()
}

async fn told(host: &AgentHost, model: &ScriptedModel) -> Vec<String> {
    host.agent().ask("main", "Begin.").await.unwrap();
    results(model.requests().last().unwrap())
}

fn file(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("scheduled-tasks.json")).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_at_its_times_and_the_answers_are_announced() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(MORNING));
    let model = activated(ScriptedModel::new())
        .calls("schedule_task", task("plants", "0 8 * * MON-FRI"))
        .says("scheduled");
    let host = started(&model, &clock, folder.path()).await;
    let done = told(&host, &model).await;
    assert_eq!(
        done[1],
        "call_2: `plants` is scheduled; it runs next at Fri 2026-11-27 08:00 (UTC). Now it is Fri 2026-11-27 07:30 (UTC)."
    );
    let model = model.says("Water the plants.").says("Water the plants again.");
    pass(&clock, 29 * MINUTE).await;
    assert_eq!(model.requests().len(), 3, "not yet");
    pass(&clock, MINUTE).await;
    let mut stream = host.agent().announcements();
    let first = stream.next().await.unwrap();
    assert_eq!(
        (first.session.as_str(), first.content.as_text()),
        ("patrol/plants", Some("Water the plants."))
    );
    let asked = transcript(model.requests().last().unwrap());
    assert_eq!(asked.last().unwrap(), "user: Do plants.");
    // Not at the weekend.
    pass(&clock, 48 * HOUR).await;
    assert_eq!(model.requests().len(), 4);
    pass(&clock, 24 * HOUR).await;
    assert_eq!(said(&mut stream).await, "Water the plants again.");
    let again = transcript(model.requests().last().unwrap());
    assert_eq!(again, asked, "without the run before");
    settle().await;

    let model = model.calls("list_scheduled_tasks", json!({})).says("listed");
    let listed = told(&host, &model).await;
    assert_eq!(
        listed[0],
        "call_3: Now: Mon 2026-11-30 08:00 (UTC)\n\n| name | when | next | last | task |\n|---|---|---|---|---|\n\
         | plants | `0 8 * * MON-FRI` | Tue 2026-12-01 08:00 (UTC) | Mon 2026-11-30 08:00 (UTC): done | Do plants. |\n"
    );
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_reminder_runs_once_and_is_gone() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(MORNING));
    let mut reminder = task("tea", "in 20 minutes");
    reminder["runOnce"] = json!(true);
    let model = activated(ScriptedModel::new())
        .calls("schedule_task", reminder)
        .says("scheduled")
        .says("Your tea!");
    let host = started(&model, &clock, folder.path()).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    assert_eq!(file(folder.path())[0]["cronExpression"], "2026-11-27T07:50:00Z");
    pass(&clock, 20 * MINUTE).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "Your tea!");
    settle().await;
    assert_eq!(file(folder.path()), json!([]));
    pass(&clock, 24 * HOUR).await;
    model.assert_complete();
}

/// A folder with a task of every hour, which was created at 07:30 and has not run.
fn hourly(folder: &Path, run_once: bool, cron: &str) {
    let task = json!([{
        "name": "check", "cronExpression": cron, "description": "Check.", "createdAt": "2026-11-27T07:30:00Z",
        "lastFiredAt": null, "runOnce": run_once
    }]);
    std::fs::write(folder.join("scheduled-tasks.json"), task.to_string()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_time_that_passed_while_the_host_was_down_is_made_up_for_once() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "0 * * * *");
    // 12:40: five times passed, of which the last one is 40 minutes ago.
    let clock = ManualClock::new(MORNING.after(5 * HOUR + 10 * MINUTE));
    let model = ScriptedModel::new().says("late").says("in time");
    let host = started(&model, &clock, folder.path()).await;
    let mut stream = host.agent().announcements();
    assert_eq!(said(&mut stream).await, "late");
    let asked = transcript(&model.requests()[0]);
    let expected = "user: Check.\n\n(This run is 40 minutes late: the agent was not running when it was due.)";
    assert_eq!(asked.last().unwrap(), expected);
    pass(&clock, 20 * MINUTE).await;
    assert_eq!(said(&mut stream).await, "in time");
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_long_past_is_missed_but_for_a_reminder() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "0 8 * * *");
    let clock = ManualClock::new(MORNING.after(5 * HOUR));
    let model = ScriptedModel::new();
    let host = started(&model, &clock, folder.path()).await;
    assert!(model.requests().is_empty());
    assert_eq!(file(folder.path())[0]["last"]["state"], "missed");
    drop(host);

    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), true, "2026-11-27T08:00:00Z");
    let clock = ManualClock::new(MORNING.after(5 * 24 * HOUR));
    let model = ScriptedModel::new().says("Five days late.");
    let host = started(&model, &clock, folder.path()).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "Five days late.");
}

#[tokio::test(start_paused = true)]
async fn a_time_runs_once_also_if_its_state_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "0 * * * *");
    let before = std::fs::read(folder.path().join("scheduled-tasks.json")).unwrap();
    let clock = ManualClock::new(MORNING);
    let model = ScriptedModel::new().says("checked");
    let host = started(&model, &clock, folder.path()).await;
    pass(&clock, 30 * MINUTE).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "checked");
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    // As after a crash between the start of the turn and the write of the state.
    std::fs::write(folder.path().join("scheduled-tasks.json"), before).unwrap();
    let again = ScriptedModel::new();
    let host = started(&again, &clock, folder.path()).await;
    pass(&clock, MINUTE).await;
    assert!(again.requests().is_empty(), "the time has had its turn");
    assert_eq!(file(folder.path())[0]["last"]["state"], "done");
    drop(host);
}

#[tokio::test(start_paused = true)]
async fn a_time_is_skipped_while_the_run_before_is_not_over() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "*/10 * * * *");
    let clock = ManualClock::new(MORNING);
    let model = ScriptedModel::new().hangs();
    let host = started(&model, &clock, folder.path()).await;
    pass(&clock, 10 * MINUTE).await;
    pass(&clock, 10 * MINUTE).await;
    assert_eq!(model.requests().len(), 1);
    let last = &file(folder.path())[0]["last"];
    assert_eq!(
        (&last["state"], &last["due"]),
        (&json!("skipped"), &json!("2026-11-27T07:50:00.000Z"))
    );
    drop(host);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_again_and_again_is_paused_and_the_user_is_told() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "* * * * *");
    let clock = ManualClock::new(MORNING);
    let model = (0..5).fold(ScriptedModel::new(), |model, _| model.fails(ChatErrorKind::Auth));
    let host = started(&model, &clock, folder.path()).await;
    let mut stream = host.agent().announcements();
    for _ in 0..5 {
        pass(&clock, MINUTE).await;
        assert!(said(&mut stream).await.contains("The model could not be asked"));
    }
    let paused = "The scheduled task \"check\" failed 5 times in a row, and is paused. Schedule it again to go on.";
    assert_eq!(said(&mut stream).await, paused);
    pass(&clock, 10 * MINUTE).await;
    assert_eq!(model.requests().len(), 5);
    assert_eq!(file(folder.path())[0]["isPaused"], true);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_refused_in_words() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(MORNING));
    let once = |cron: &str| json!({"name": "a", "cron": cron, "description": "x", "run_once": true});
    let calls = [
        task("", "* * * * *"),
        task("a/b", "* * * * *"),
        task("a", "in 20 minutes"),
        once("2020-01-01T08:00"),
        task("a", "0 0 30 2 *"),
        json!({"name": "a", "cron": "* * * * *", "description": " "}),
    ];
    let calls = calls.map(|arguments| ("schedule_task", arguments));
    let model = activated(ScriptedModel::new()).calls_all(calls).says("no");
    let host = started(&model, &clock, folder.path()).await;
    let told = told(&host, &model).await;
    let name = "`name` has 1 to 64 characters and no slash, such as `water-plants`";
    assert_eq!(
        [&*told[1], &*told[2]],
        [format!("call_2: {name}"), format!("call_3: {name}")]
    );
    assert_eq!(
        told[3],
        "call_4: a plain time is for tasks that run once: set `run_once`"
    );
    assert!(told[4].contains("2020-01-01"), "{told:?}");
    assert!(told[5].contains("0 0 30 2 *"), "{told:?}");
    assert_eq!(told[6], "call_7: `description` is empty: describe the task");
    assert!(!folder.path().join("scheduled-tasks.json").exists());
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_by_its_name_and_a_damaged_file_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    hourly(folder.path(), false, "0 * * * *");
    let clock = ManualClock::new(MORNING);
    let model = activated(ScriptedModel::new())
        .calls("cancel_scheduled_task", json!({"name": "chek"}))
        .calls("cancel_scheduled_task", json!({"name": "CHECK"}))
        .says("cancelled");
    let host = started(&model, &clock, folder.path()).await;
    let told = told(&host, &model).await;
    assert_eq!(
        told[1],
        "call_2: There is no scheduled task `chek`; did you mean `check`?"
    );
    assert_eq!(told[2], "call_3: `CHECK` is cancelled.");
    pass(&clock, 2 * HOUR).await;
    model.assert_complete();
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    std::fs::write(folder.path().join("scheduled-tasks.json"), "[{").unwrap();
    let host = started(&ScriptedModel::new(), &clock, folder.path()).await;
    assert!(!folder.path().join("scheduled-tasks.json").exists());
    assert!(clock.now() > MORNING);
    drop(host);
}
