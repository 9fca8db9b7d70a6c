//! The table of tasks: its bounds, its file, and what is forgotten when.

use std::time::Duration;

use rockbot_core::{Principal, Timestamp, TurnId};

use super::{TaskRecord, TaskTable, TaskTurn};
use crate::a2a_wire::TaskState;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn record(principal: &str, id: &str, state: TaskState, at: u64) -> TaskRecord {
    TaskRecord {
        id: id.to_owned(),
        principal: Principal::from(principal),
        context: "c".to_owned(),
        turns: vec![TaskTurn {
            turn: TurnId::from(id),
            message: None,
        }],
        state,
        updated: Timestamp::from_millis(at),
        pushes: Vec::new(),
    }
}

fn ids(table: &TaskTable) -> Vec<String> {
    table.all(|_| true).into_iter().map(|record| record.id).collect()
}

#[test]
fn tasks_are_in_the_file_until_a_day_after_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::from_millis(0);
    let table = TaskTable::open(Some(folder.path()), now).unwrap();
    for id in ["done", "open", "forgotten"] {
        table.add(record("a", id, TaskState::Working, 0), now).unwrap();
    }
    table.note("done", TaskState::Completed, now.after(HOUR));
    table.note("open", TaskState::AuthRequired, now.after(2 * HOUR));
    drop(table);
    // A line that a crash tore, and one of another program.
    let file = folder.path().join("a2a/tasks.jsonl");
    let mut lines = std::fs::read(&file).unwrap();
    lines.extend_from_slice(b"{\"id\": 7}\n{\"id\": \"torn");
    std::fs::write(&file, lines).unwrap();

    let table = TaskTable::open(Some(folder.path()), now.after(20 * HOUR)).unwrap();
    assert_eq!(ids(&table), ["open", "done", "forgotten"]);
    assert_eq!(
        table.find(&Principal::from("a"), "done").unwrap().state,
        TaskState::Completed
    );
    assert!(table.find(&Principal::from("b"), "done").is_err());
    drop(table);
    let table = TaskTable::open(Some(folder.path()), now.after(26 * HOUR)).unwrap();
    assert_eq!(ids(&table), ["open", "forgotten"]);
    // Each task once: the file was written anew.
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    drop(table);
    let table = TaskTable::open(Some(folder.path()), now.after(24 * 9 * HOUR)).unwrap();
    assert_eq!(ids(&table), <[String; 0]>::default());
}

#[test]
fn the_caller_with_the_most_tasks_makes_room_for_others() {
    let now = Timestamp::from_millis(10_000);
    let table = TaskTable::default();
    for number in 0..1_999 {
        let at = 1_000 + number;
        table
            .add(record("greedy", &format!("g{number}"), TaskState::Completed, at), now)
            .unwrap();
    }
    table.add(record("modest", "m0", TaskState::Completed, 1), now).unwrap();
    table.add(record("modest", "m1", TaskState::Working, 2), now).unwrap();
    let greedy = Principal::from("greedy");
    assert!(table.find(&greedy, "g0").is_err());
    assert!(table.find(&greedy, "g1").is_ok());
    assert!(table.find(&Principal::from("modest"), "m0").is_ok());
    assert_eq!(ids(&table).len(), 2_000);
}

#[test]
fn a_file_that_grew_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::from_millis(0);
    let table = TaskTable::open(Some(folder.path()), now).unwrap();
    table.add(record("a", "t", TaskState::Working, 0), now).unwrap();
    let file = folder.path().join("a2a/tasks.jsonl");
    let mut longest = 0;
    for number in 1..60_000 {
        let state = if number % 2 == 0 {
            TaskState::Working
        } else {
            TaskState::AuthRequired
        };
        table.note("t", state, Timestamp::from_millis(number));
        if number % 1_000 == 0 {
            longest = longest.max(std::fs::metadata(&file).unwrap().len());
        }
    }
    assert!((1 << 20..5 << 20).contains(&longest), "{longest}");
}
