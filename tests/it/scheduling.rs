//! Scheduled tasks: messages at set times, each run once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rockbot::prelude::FromConfig as _;
use rockbot::tools::scheduling::{Misfire, Overlap, ScheduleError, Schedules, Scheduling};
use rockbot_core::chat::ChatErrorKind;
use rockbot_core::config::Config;
use rockbot_core::files::FileLock;
use rockbot_core::store::InMemoryConversationMemory;
use rockbot_core::testing::{ManualClock, ScriptedModel};
use rockbot_core::tool::tool;
use rockbot_core::turn::{Budget, InMemoryTurnJournal, ResultMode, TurnError, TurnQuery, TurnRunner};
use rockbot_core::{Clock as _, Timestamp};
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AnnouncementStream, Stores};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{host_of, kill, results, settle, transcript};

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
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
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
    assert_eq!(again.len(), asked.len(), "without the run before");
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
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
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
    write(
        folder,
        &json!({"cronExpression": cron, "lastFiredAt": null, "runOnce": run_once}),
    );
}

/// Writes the file with one task, of these members and others.
fn write(folder: &Path, members: &Value) {
    let mut task = json!({
        "name": "check", "cronExpression": "0 * * * *", "description": "Check.", "createdAt": "2026-11-27T07:30:00Z"
    });
    task.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    std::fs::write(folder.join("scheduled-tasks.json"), json!([task]).to_string()).unwrap();
}

/// The member `last` of the only task in the file: its state, and the time.
fn last(folder: &Path) -> (String, String) {
    let last = &file(folder)[0]["last"];
    let member = |name: &str| last[name].as_str().unwrap_or("none").to_owned();
    (
        member("state"),
        member("due").replace("2026-11-27T", "").replace(":00.000Z", ""),
    )
}

fn pair(state: &str, due: &str) -> (String, String) {
    (state.to_owned(), due.to_owned())
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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Each version of the file is what a crash right before the next write leaves.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_the_file_runs_a_time_once() {
    for run_once in [false, true] {
        let cron = if run_once { "2026-11-27T08:00:00Z" } else { "0 8 * * *" };
        let path = |folder: &Path| folder.join("scheduled-tasks.json");
        let run_to = async |versions: usize| {
            let folder = tempfile::tempdir().unwrap();
            hourly(folder.path(), run_once, cron);
            let mut seen = vec![std::fs::read(path(folder.path())).unwrap()];
            let clock = ManualClock::new(MORNING);
            let model = ScriptedModel::new().calls("look", json!({})).says("checked");
            let gate = Arc::new(Notify::new());
            let opened = gate.clone();
            let look = tool("look", move |_: Nothing| {
                let opened = opened.clone();
                async move {
                    opened.notified().await;
                    "all is well"
                }
            });
            let host = host_of(&model)
                .clock(clock.clone())
                .data_dir(folder.path())
                .tool(look.pure().description("Looks around."));
            let host = host.add(Scheduling::new().with_time_zone("UTC")).build().unwrap();
            host.start().await.unwrap();
            settle().await;
            pass(&clock, 30 * MINUTE).await;
            seen.push(std::fs::read(path(folder.path())).unwrap());
            assert_ne!(seen[0], seen[1], "the start of the turn is written");
            gate.notify_one();
            assert_eq!(said(&mut host.agent().announcements()).await, "checked");
            settle().await;
            seen.push(std::fs::read(path(folder.path())).unwrap());
            host.shutdown(Duration::from_secs(5)).await;
            drop(host);
            std::fs::write(path(folder.path()), &seen[versions]).unwrap();
            (folder, clock)
        };
        for version in 0..3 {
            let (folder, clock) = run_to(version).await;
            let again = ScriptedModel::new();
            let host = started(&again, &clock, folder.path()).await;
            pass(&clock, HOUR).await;
            assert!(
                again.requests().is_empty(),
                "{run_once}, {version}: the time has had its turn"
            );
            let left = file(folder.path());
            if run_once {
                assert_eq!(left, json!([]), "{version}");
            } else {
                assert_eq!(last(folder.path()), pair("done", "08:00"), "{version}");
            }
            drop(host);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_at_once_leave_one_task_of_each_name_and_one_run_of_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let model = ScriptedModel::new().says("one").says("two");
    let host = started(&model, &clock, folder.path()).await;
    let changes = (0..40).map(|index| {
        let schedules = schedules(&host);
        tokio::spawn(async move {
            let name = ["report", "REPORT", "Tea", "tea"][index % 4];
            if index % 3 == 0 {
                schedules.cancel(name).await.unwrap();
            }
            schedules.every(name, HOUR, "Do it.").await.unwrap();
        })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.unwrap();
    }
    let tasks = file(folder.path());
    let mut names: Vec<_> = tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].as_str().unwrap().to_lowercase())
        .collect();
    names.sort();
    assert_eq!(names, ["report", "tea"]);
    pass(&clock, HOUR).await;
    assert_eq!(model.requests().len(), 2);
    model.assert_complete();
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
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
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
        "call_4: a plain time is for tasks that run once: set `run_once`, in code `.once()`"
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

#[tokio::test(start_paused = true)]
async fn the_misfire_policy_says_which_of_the_times_that_passed_run() {
    // 12:40: the hours from 8 to 12 passed.
    let at = ManualClock::new(MORNING.after(5 * HOUR + 10 * MINUTE));
    let cases = [
        (json!("skip"), &[][..], pair("missed", "12:40")),
        (json!({"onceLate": {"withinMinutes": 30}}), &[], pair("missed", "12:40")),
        (json!({"onceLate": {"withinMinutes": 40}}), &[40], pair("done", "12:00")),
        (json!({"all": {"max": 3}}), &[160, 100, 40], pair("done", "12:00")),
    ];
    for (policy, late, last_time) in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &json!({"misfire": policy}));
        let model = (0..10).fold(ScriptedModel::new(), |model, _| model.says("checked"));
        let host = started(&model, &at, folder.path()).await;
        for _ in 0..10 {
            settle().await;
        }
        let said = model.requests();
        let said = said.iter().map(|request| transcript(request).pop().unwrap());
        let expected = late.iter().map(|minutes| {
            format!("user: Check.\n\n(This run is {minutes} minutes late: the agent was not running when it was due.)")
        });
        assert_eq!(said.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{policy}");
        assert_eq!(last(folder.path()), last_time, "{policy}");
        assert_eq!(file(folder.path())[0]["misfire"], policy, "kept as it was written");
        host.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_waits_for_the_run_before_and_runs_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(
        folder.path(),
        &json!({"cronExpression": "*/10 * * * *", "overlap": "queueOne"}),
    );
    let model = ScriptedModel::new().hangs().says("second").says("third");
    let host = started(&model, &clock, folder.path()).await;
    pass(&clock, 10 * MINUTE).await;
    pass(&clock, 10 * MINUTE).await;
    assert_eq!((last(folder.path()), model.requests().len()), (pair("due", "07:50"), 1));
    pass(&clock, 5 * MINUTE).await;
    cancel_runs(&host).await;
    assert_eq!(model.requests().len(), 2);
    let asked = transcript(&model.requests()[1]).pop().unwrap();
    assert_eq!(
        asked,
        "user: Check.\n\n(This run is 5 minutes late: the run before was not over when it was due.)"
    );
    assert_eq!(last(folder.path()), pair("done", "07:50"));
    pass(&clock, 5 * MINUTE).await;
    assert_eq!(last(folder.path()), pair("done", "08:00"));
    model.assert_complete();
}

/// Cancels the turns that work.
async fn cancel_runs(host: &AgentHost) {
    let turns = host.parts().require::<dyn TurnRunner>().unwrap();
    for live in turns.live(&TurnQuery::default()) {
        turns.cancel(&live.turn).await.unwrap();
    }
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_time_that_waits_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(
        folder.path(),
        &json!({"cronExpression": "*/10 * * * *", "overlap": "queueOne"}),
    );
    let host = started(&ScriptedModel::new().hangs(), &clock, folder.path()).await;
    pass(&clock, 10 * MINUTE).await;
    pass(&clock, 10 * MINUTE).await;
    assert_eq!(last(folder.path()), pair("due", "07:50"));
    host.shutdown(Duration::ZERO).await;
    drop(host);

    let model = ScriptedModel::new().says("first").says("second");
    let _host = started(&model, &clock, folder.path()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(last(folder.path()), pair("done", "07:50"));
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_for_the_next_one_and_that_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(
        folder.path(),
        &json!({"cronExpression": "*/10 * * * *", "overlap": "cancelRunning"}),
    );
    let model = ScriptedModel::new().hangs().says("second");
    let host = started(&model, &clock, folder.path()).await;
    pass(&clock, 10 * MINUTE).await;
    pass(&clock, 10 * MINUTE).await;
    settle().await;
    let mut stream = host.agent().announcements();
    assert!(said(&mut stream).await.contains("it was cancelled"));
    assert_eq!(said(&mut stream).await, "second");
    settle().await;
    assert_eq!(last(folder.path()), pair("done", "07:50"));
    assert_eq!(file(folder.path())[0]["failures"], Value::Null);
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn jitter_delays_a_task_always_by_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(folder.path(), &json!({"jitterSeconds": 600}));
    let model = ScriptedModel::new().says("8").says("9");
    let _host = started(&model, &clock, folder.path()).await;
    pass(&clock, 30 * MINUTE).await;
    let mut delays = Vec::new();
    for count in [0, 1] {
        assert_eq!(model.requests().len(), count, "not at once");
        let from = clock.now();
        while model.requests().len() == count {
            pass(&clock, Duration::from_secs(1)).await;
        }
        delays.push(clock.now().since(from));
        settle().await;
        // Its time is that of the expression.
        assert_eq!(last(folder.path()), pair("done", ["08:00", "09:00"][count]));
        clock.set(from.after(HOUR));
        settle().await;
    }
    assert!(delays[0] < 10 * MINUTE && delays[0] == delays[1], "{delays:?}");
}

fn schedules(host: &AgentHost) -> Arc<Schedules> {
    host.parts().require::<Schedules>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_program_schedules_tasks_of_its_own_which_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let plan = async |host: &AgentHost| {
        let schedules = schedules(host);
        let every = 90 * MINUTE;
        let first = schedules
            .every("stretch", every, "Stretch.")
            .misfire(Misfire::All { max: 2 })
            .await
            .unwrap();
        let report = schedules
            .schedule("report", "0 9 * * MON-FRI", "Report.")
            .overlap(Overlap::QueueOne);
        let report = report.jitter(Duration::from_secs(7)).await.unwrap();
        let tea = schedules
            .of("ann")
            .schedule("tea", "2026-12-24T18:00", "Tea!")
            .once()
            .await
            .unwrap();
        [first, report, tea].map(|time| time.since(MORNING).as_secs() / 60)
    };
    let model = ScriptedModel::new().says("stretched");
    let host = started(&model, &clock, folder.path()).await;
    assert_eq!(plan(&host).await, [90, 90, 27 * 24 * 60 + 630]);
    let stored = file(folder.path());
    assert_eq!(stored[1]["cronExpression"], "@every 5400s");
    assert_eq!(stored[1]["misfire"], json!({"all": {"max": 2}}));
    assert_eq!(
        (&stored[0]["overlap"], &stored[0]["jitterSeconds"]),
        (&json!("queueOne"), &json!(7))
    );
    assert_eq!(
        (&stored[2]["principal"], &stored[2]["runOnce"]),
        (&json!("ann"), &json!(true))
    );
    assert!(schedules(&host).cancel("REPORT").await.unwrap());
    pass(&clock, 90 * MINUTE).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "stretched");
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    clock.advance(HOUR);
    let host = started(&ScriptedModel::new(), &clock, folder.path()).await;
    // The interval is not begun anew, and the changed task is.
    assert_eq!(plan(&host).await[0], 180);
    let again = schedules(&host).every("stretch", HOUR, "Stretch.").await.unwrap();
    assert_eq!(again, clock.now().after(HOUR));
    let error = schedules(&host).schedule("x", "at noon", "Eat.").await.unwrap_err();
    assert!(matches!(error, ScheduleError::Invalid(_)), "{error:?}");
    assert!(!schedules(&host).cancel("tea").await.unwrap(), "it is Ann's");
}

#[tokio::test(start_paused = true)]
async fn runs_have_the_budget_and_the_result_mode_of_their_task() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(
        folder.path(),
        &json!({"budget": {"maxModelCalls": 1}, "resultMode": "verbatimOutput"}),
    );
    let model = ScriptedModel::new()
        .calls("list_scheduled_tasks", json!({}))
        .says("out of budget")
        .says("whole");
    let host = started(&model, &clock, folder.path()).await;
    let mut stream = host.agent().announcements();
    pass(&clock, 30 * MINUTE).await;
    said(&mut stream).await;
    let first = transcript(&model.requests()[0]).join("\n");
    assert!(first.contains("word for word and complete"), "{first}");
    assert!(model.requests()[1].tools.is_empty(), "one last answer, without tools");
    let whole = schedules(&host)
        .schedule("check", "0 9 * * *", "Check.")
        .budget(Budget::default());
    whole.result_mode(ResultMode::Summarize).await.unwrap();
    let task = &file(folder.path())[0];
    assert_eq!(
        (&task["budget"]["maxModelCalls"], &task["resultMode"]),
        (&json!(50), &json!("summarize"))
    );
    pass(&clock, HOUR).await;
    assert_eq!(said(&mut stream).await, "whole");
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_run_at_once_by_the_program_and_by_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    hourly(folder.path(), false, "0 * * * *");
    let model = ScriptedModel::new().says("now").hangs();
    let host = started(&model, &clock, folder.path()).await;
    let turn = schedules(&host).run_now("Check").await.unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "now");
    settle().await;
    assert_eq!(last(folder.path()), pair("done", "07:30"));
    let error = schedules(&host).run_now("chek").await.unwrap_err();
    assert!(
        matches!(error, ScheduleError::NotFound(_)) && !error.retry_helps(),
        "{error:?}"
    );
    // Its times go on.
    pass(&clock, 30 * MINUTE).await;
    assert_eq!(last(folder.path()), pair("accepted", "08:00"));
    let error = schedules(&host).run_now("check").await.unwrap_err();
    assert!(
        matches!(error, ScheduleError::Running(_)) && error.retry_helps(),
        "{error:?}"
    );
    cancel_runs(&host).await;

    let model = activated(model)
        .calls("run_scheduled_task", json!({"name": "check"}))
        .says("checked")
        .says("begun");
    let told = told(&host, &model).await;
    assert_eq!(
        told[1],
        "call_2: `check` has begun; the user reads its answer when it is there."
    );
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_file_counts_while_the_host_runs() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let look = Duration::from_secs(6);
    let model = ScriptedModel::new().says("as edited").says("brewed");
    let host = started(&model, &clock, folder.path()).await;
    // A task with the members alone that it needs; its beginning is now.
    let tea = json!([{"name": "tea", "cronExpression": "0 8 * * *", "description": "Brew tea."}]);
    std::fs::write(folder.path().join("scheduled-tasks.json"), tea.to_string()).unwrap();
    tokio::time::sleep(look).await;
    assert_eq!(file(folder.path())[0]["createdAt"], "2026-11-27T07:30:00.000Z");
    // Times before the edit are not missed.
    pass(&clock, 10 * MINUTE).await;
    write(
        folder.path(),
        &json!({"name": "tea", "cronExpression": "20,50 7 * * *"}),
    );
    tokio::time::sleep(look).await;
    assert_eq!(model.requests().len(), 0);
    pass(&clock, 10 * MINUTE).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "as edited");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_damaged_meanwhile_leaves_the_tasks_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    hourly(folder.path(), false, "0 * * * *");
    let model = ScriptedModel::new().says("checked");
    let host = started(&model, &clock, folder.path()).await;
    let path = folder.path().join("scheduled-tasks.json");
    std::fs::write(&path, "[{\"name\": \"ch").unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "[{\"name\": \"ch",
        "a person repairs it"
    );
    pass(&clock, 30 * MINUTE).await;
    assert_eq!(said(&mut host.agent().announcements()).await, "checked");
    settle().await;
    assert_eq!(last(folder.path()), pair("done", "08:00"));
    let aside = folder.path().join("scheduled-tasks.json.damaged");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "[{\"name\": \"ch");
}

#[tokio::test(start_paused = true)]
async fn a_step_of_the_clock_neither_repeats_a_time_nor_loses_those_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    hourly(folder.path(), false, "0 * * * *");
    let model = ["8", "far ahead", "9"]
        .into_iter()
        .fold(ScriptedModel::new(), ScriptedModel::says);
    let _host = started(&model, &clock, folder.path()).await;
    pass(&clock, 30 * MINUTE).await;
    // The scheduler looks at the clock again within a minute.
    let step = async |time: Timestamp| {
        clock.set(time);
        tokio::time::sleep(Duration::from_secs(61)).await;
        settle().await;
    };
    step(MORNING.after(20 * MINUTE)).await;
    step(MORNING.after(30 * MINUTE)).await;
    assert_eq!(model.requests().len(), 1, "8:00 has had its turn");
    step(MORNING.after(30 * 24 * HOUR)).await;
    assert_eq!(model.requests().len(), 2, "one of 720 times runs");
    step(MORNING.after(31 * MINUTE)).await;
    step(MORNING.after(90 * MINUTE)).await;
    assert_eq!(last(folder.path()), pair("done", "09:00"));
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn members_that_others_wrote_stay_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(folder.path(), &json!({"isSystemTask": true, "note": {"by": "ann"}}));
    let model = ScriptedModel::new().says("checked");
    let _host = started(&model, &clock, folder.path()).await;
    pass(&clock, 30 * MINUTE).await;
    settle().await;
    let task = &file(folder.path())[0];
    assert_eq!(task["last"]["state"], "done");
    assert_eq!(
        (&task["isSystemTask"], &task["note"]),
        (&json!(true), &json!({"by": "ann"}))
    );
}

/// A host that shares the tasks in `folder` with others, and nothing else.
async fn sharing(model: &ScriptedModel, clock: &ManualClock, folder: &Path) -> AgentHost {
    let stores = Stores::new()
        .with_journal(InMemoryTurnJournal::default())
        .with_conversation_memory(InMemoryConversationMemory::default());
    let host = host_of(model).clock(clock.clone()).data_dir(folder).stores(stores);
    let host = host.add(Scheduling::new().with_time_zone("UTC")).build().unwrap();
    host.start().await.unwrap();
    settle().await;
    host
}

#[tokio::test(start_paused = true)]
async fn of_two_hosts_that_share_the_tasks_one_runs_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(folder.path(), &json!({"cronExpression": "*/10 * * * *"}));
    let models = [0, 1].map(|_| (0..10).fold(ScriptedModel::new(), |model, _| model.says("checked")));
    let mut hosts = Vec::new();
    for model in &models {
        hosts.push(sharing(model, &clock, folder.path()).await);
    }
    for _ in 0..10 {
        pass(&clock, 10 * MINUTE).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let counts = models.each_ref().map(|model| model.requests().len());
    assert_eq!(counts[0] + counts[1], 10, "{counts:?}");
    assert_eq!(last(folder.path()), pair("done", "09:10"));
}

#[test]
fn the_settings_of_the_patrol_bring_schedules_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let has_schedules = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap().build().unwrap();
        host.parts().get::<Schedules>().is_some()
    };
    assert!(has_schedules("[HeartbeatPatrol]\nCronExpression = \"0 */6 * * *\""));
    assert!(!has_schedules(
        "[HeartbeatPatrol]\nEnabled = false\nCronExpression = \"0 */6 * * *\""
    ));
    assert!(has_schedules(
        "[Scheduling]\nEnabled = true\n[HeartbeatPatrol]\nEnabled = false"
    ));
}

/// Schedules tasks until it is killed.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let clock = ManualClock::new(MORNING);
    let host = sharing(&ScriptedModel::new(), &clock, &folder).await;
    kill::ready();
    for index in 0..100 {
        let name = format!("{round}-{index}");
        schedules(&host).schedule(&*name, "0 8 * * *", "Check.").await.unwrap();
        kill::acknowledge(&name);
    }
    std::future::pending().await
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_has_the_lock_loses_no_task_of_its_own_or_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let host = sharing(&ScriptedModel::new(), &clock, folder.path()).await;
    let mut expected = Vec::new();
    for round in 0..8 {
        expected.extend(kill::kill_within(
            Duration::from_millis(100),
            "scheduling::child",
            folder.path(),
            round,
        ));
        let name = format!("own-{round}");
        schedules(&host).schedule(&*name, "0 8 * * *", "Check.").await.unwrap();
        expected.push(name);
    }
    let tasks = file(folder.path());
    let names: Vec<_> = tasks.as_array().unwrap().iter().map(|task| &task["name"]).collect();
    expected.retain(|name| !names.contains(&&json!(name)));
    assert_eq!(expected, [""; 0], "lost");
}

#[tokio::test(start_paused = true)]
async fn a_time_waits_for_the_lock_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    hourly(folder.path(), false, "0 * * * *");
    let model = ScriptedModel::new().says("checked");
    let _host = started(&model, &clock, folder.path()).await;
    let held = FileLock::take(&folder.path().join("scheduled-tasks.lock")).unwrap();
    pass(&clock, 30 * MINUTE).await;
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(model.requests().len(), 0);
    // As when its holder is killed.
    drop(held);
    pass(&clock, MINUTE).await;
    settle().await;
    assert_eq!(last(folder.path()), pair("done", "08:00"));
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_is_written_when_the_lock_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    write(folder.path(), &json!({"overlap": "queueOne"}));
    let model = ScriptedModel::new().hangs().says("second");
    let host = started(&model, &clock, folder.path()).await;
    pass(&clock, 30 * MINUTE).await;
    pass(&clock, HOUR).await;
    let held = FileLock::take(&folder.path().join("scheduled-tasks.lock")).unwrap();
    cancel_runs(&host).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(last(folder.path()), pair("due", "09:00"));
    drop(held);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(last(folder.path()), pair("done", "09:00"));
    model.assert_complete();
}

/// Returns the instructions of the last request, which come after those of the agent.
fn instructions(model: &ScriptedModel) -> String {
    transcript(model.requests().last().unwrap())[1].clone()
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_instructions_for_the_next_ones() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    hourly(folder.path(), false, "0 * * * *");
    std::fs::write(folder.path().join("check.md"), "Check with care.\n").unwrap();
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let model = ScriptedModel::new()
        .calls("update_task_directive", json!({"content": "- the door\n- the oven"}))
        .says("1")
        .calls("edit_task_directive", edit("- the", "- a"))
        .calls("edit_task_directive", edit("oven", "stove"))
        .says("2")
        .calls("update_task_directive", json!({"content": ""}))
        .says("3");
    let host = started(&model, &clock, folder.path()).await;
    let mut stream = host.agent().announcements();
    pass(&clock, 30 * MINUTE).await;
    said(&mut stream).await;
    assert_eq!(instructions(&model), "system: Check with care.");
    pass(&clock, HOUR).await;
    said(&mut stream).await;
    let edits = results(model.requests().last().unwrap());
    assert!(edits[0].contains("old_string occurs 2 times"), "{edits:?}");
    assert!(edits[1].contains("The directive is changed"), "{edits:?}");
    assert_eq!(
        instructions(&model),
        "system: Check with care.\n\n- the door\n- the oven"
    );
    assert_eq!(file(folder.path())[0]["directive"], "- the door\n- the stove");
    pass(&clock, HOUR).await;
    said(&mut stream).await;
    assert_eq!(file(folder.path())[0]["directive"], Value::Null);
    model.assert_complete();

    // Users have no directives.
    let model = model.calls("update_task_directive", json!({"content": "x"})).says("no");
    let refused = told(&host, &model).await;
    assert!(refused[0].contains("only the run of a scheduled task"), "{refused:?}");
    assert_eq!(file(folder.path())[0]["directive"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_patrol_is_a_task_by_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let host = async |model: &ScriptedModel, text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let settings = HostSettings::read(&config, folder.path()).unwrap();
        let host = host_of(model)
            .settings(&settings)
            .clock(clock.clone())
            .data_dir(folder.path());
        let host = host
            .add(Scheduling::new().with_time_zone("UTC"))
            .build()
            .map_err(|error| error.to_string())?;
        host.start().await.unwrap();
        settle().await;
        Ok::<_, String>(host)
    };
    std::fs::write(folder.path().join("heartbeat-patrol.md"), "Be brief.").unwrap();
    let model = ScriptedModel::new().says("All is well.");
    let on = host(&model, "[HeartbeatPatrol]\nEnabled = true").await.unwrap();
    pass(&clock, 30 * MINUTE).await;
    let first = on.agent().announcements().next().await.unwrap();
    assert_eq!(first.session.as_str(), "patrol/heartbeat-patrol");
    assert_eq!(instructions(&model), "system: Be brief.");
    let expected = "user: Run the heartbeat patrol: check calendar, email, active plans, and scheduled task health.";
    assert_eq!(transcript(&model.requests()[0]).pop().unwrap(), expected);
    on.shutdown(Duration::from_secs(5)).await;
    drop(on);

    let changed = host(
        &ScriptedModel::new(),
        "[HeartbeatPatrol]\nCronExpression = \"0 */6 * * *\"",
    )
    .await
    .unwrap();
    assert_eq!(file(folder.path())[0]["cronExpression"], "0 */6 * * *");
    changed.shutdown(Duration::from_secs(5)).await;
    drop(changed);
    let off = host(&ScriptedModel::new(), "[HeartbeatPatrol]\nEnabled = false")
        .await
        .unwrap();
    assert_eq!(file(folder.path()), json!([]));
    off.shutdown(Duration::from_secs(5)).await;
    drop(off);
    let error = host(&ScriptedModel::new(), "[HeartbeatPatrol]\nCronExpression = \"often\"")
        .await
        .unwrap_err();
    assert!(error.contains("HeartbeatPatrol.CronExpression"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_changes_a_task_leaves_its_policies_and_its_directive() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let kept = json!({"misfire": "skip", "overlap": "queueOne", "jitterSeconds": 9, "directive": "the door"});
    write(folder.path(), &kept);
    let model = activated(ScriptedModel::new())
        .calls("schedule_task", task("check", "0 9 * * *"))
        .says("changed");
    let host = started(&model, &clock, folder.path()).await;
    told(&host, &model).await;
    let task = &file(folder.path())[0];
    assert_eq!(
        (&task["cronExpression"], &task["description"]),
        (&json!("0 9 * * *"), &json!("Do check."))
    );
    for (name, value) in kept.as_object().unwrap() {
        assert_eq!(&task[name], value, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_untrusted_turn_schedules_needs_an_endorsement_and_what_a_task_tells_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(MORNING);
    let label = json!({"trust": "untrusted", "sources": ["web"]});
    write(folder.path(), &json!({"label": label}));
    let model = activated(ScriptedModel::new())
        .calls("schedule_task", task("a", "0 8 * * *"))
        .calls("schedule_task", task("b", "0 8 * * *"))
        .calls("list_scheduled_tasks", json!({}))
        // Refused before a person is asked.
        .calls("schedule_task", task("c", "0 8 31 2 *"))
        .calls("schedule_task", task("c", "0 8 * * *"));
    let host = started(&model, &clock, folder.path()).await;
    let error = host.agent().ask("main", "Begin.").await.unwrap_err();
    assert!(matches!(error, TurnError::NeedsApproval(_)), "{error:?}");
    let names: Vec<_> = file(folder.path())
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b", "check"]);
    model.assert_complete();
}
