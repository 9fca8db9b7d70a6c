//! Delegated work in processes that are killed: wisps, workers and pipelines have one result
//! each, and no step that changes something runs twice.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::tools::pipelines::{Pipeline, StepError, Steps};
use rockbot::tools::wisps::Wisps;
use rockbot::tools::workers::Workers;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot_core::tool::{Tool, tool};
use rockbot_host::AgentHost;
use serde_json::json;

use crate::crash::World;
use crate::support::{Anything, calls, kill, results, unguarded};

/// Numbers of the wisps and of the workers.
const WISPS: std::ops::Range<i64> = 1..5;
const WORKERS: std::ops::Range<i64> = 5..7;

/// Time in which a process is killed, about as long as its work.
const KILLED_WITHIN: Duration = Duration::from_millis(60);

/// A model that decides by the conversation alone, as it must after a kill: for the caller, and
/// for workers.
#[derive(Debug)]
struct Planner;

#[async_trait]
impl ChatClient for Planner {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = &call.request.messages;
        let asked = messages.iter().rev().find(|message| message.role == Role::User);
        let asked = asked.map(|message| message.text().into_owned()).unwrap_or_default();
        let is_first = messages.last().is_none_or(|message| message.role != Role::Tool);
        let worker = asked
            .rsplit("Task ")
            .next()
            .and_then(|number| number.trim_end_matches('.').parse::<i64>().ok());
        Ok(match (worker, is_first) {
            (Some(number), true) => calls([("1", "act", &*json!({"n": 10 * number}).to_string())]),
            (Some(number), false) => ChatResponse::text(format!("found {number}")),
            (None, true) => {
                let wisp = |number: i64| {
                    let step =
                        |at: i64| json!({"id": format!("s{at}"), "tool": "act", "params": {"n": 10 * number + at}});
                    json!({"description": format!("Wisp {number}."), "steps": [step(0), step(1)]})
                };
                let worker = |number: i64| json!({"description": format!("Task {number}.")});
                let wisps = json!({"definitions": WISPS.map(wisp).collect::<Vec<_>>()}).to_string();
                let workers = json!({"definitions": WORKERS.map(worker).collect::<Vec<_>>()}).to_string();
                calls([
                    ("1", "spawn_wisps", &*wisps),
                    ("2", "spawn_workers", &*workers),
                    ("3", "take_steps", r#"{"task": "70"}"#),
                ])
            }
            (None, false) => ChatResponse::text(results(&call.request).join("\n")),
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// A tool that changes the world, in which it leaves a line when it begins and one when it ends.
fn acting(folder: &Path) -> Tool {
    let world = World(folder.to_owned());
    tool("act", move |Anything { n }: Anything| {
        let world = world.clone();
        async move {
            world.append("effects", &format!("begins {n}"));
            tokio::time::sleep(Duration::from_millis(8)).await;
            world.append("effects", &format!("ends {n}"));
            n
        }
    })
}

/// Acts three times. An act whose outcome is unknown after a kill is told and not repeated.
async fn steps(steps: Steps, first: i64) -> Result<String, rockbot_core::BoxError> {
    let mut told = Vec::new();
    for n in first..first + 3 {
        let done: Result<i64, StepError> = steps.call("act", json!({ "n": n })).await;
        told.push(done.map_or_else(|error| format!("{n} unknown: {error}"), |n| format!("{n} done")));
    }
    Ok(told.join(", "))
}

/// Asks the one question, and returns the answer of its turn.
async fn answer(folder: &Path) -> String {
    let host = AgentHost::builder("lead")
        .policies(unguarded())
        .chat(Planner)
        .data_dir(folder)
        .tool(acting(folder));
    let host = host
        .add(Wisps::new())
        .add(Workers::new())
        .add(Pipeline::new("steps", steps));
    let host = host.build().unwrap();
    let take_steps = host
        .agent_called("steps")
        .unwrap()
        .as_tool("take_steps", "Takes three steps.");
    host.add_tool(take_steps).unwrap();
    host.start().await.unwrap();
    kill::ready();
    let answer = host.agent().ask("main", "Begin.").message_id("m").await.unwrap();
    let history = host.agent().history("main").await.unwrap();
    assert_eq!(history.len(), 2, "one message and one answer");
    host.shutdown(Duration::from_secs(5)).await;
    answer.text
}

#[tokio::test]
#[ignore = "a process of its own, which the test below kills"]
async fn child() {
    let (folder, _) = kill::begin();
    answer(&folder).await;
}

#[tokio::test]
async fn each_piece_of_work_has_one_result_and_no_act_runs_twice() {
    let mut interrupted = 0;
    for first in (1..60).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let world = World(folder.path().to_owned());
        // A turn is resumed three times at most.
        let mut begun = Vec::new();
        for round in first..first + 3 {
            kill::kill_within(KILLED_WITHIN, "delegation_kills::child", folder.path(), round);
            begun.push(world.lines("effects").len());
        }
        let told = answer(folder.path()).await;
        assert_eq!(
            answer(folder.path()).await,
            told,
            "the same message has the same answer"
        );
        let counts = world.counts("effects");
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        let has_ended = |n: i64| counts.contains_key(&format!("ends {n}"));
        for number in WISPS {
            let line = format!("Wisp {number}.");
            assert_eq!(told.matches(&line).count(), 1, "{told}");
            let is_done = told.contains(&format!("[ok] {line} (2 of 2 steps)"));
            assert!(
                !is_done || (has_ended(10 * number) && has_ended(10 * number + 1)),
                "{told}\n{counts:?}"
            );
            assert!(is_done || told.contains("may or may not have taken effect"), "{told}");
        }
        for number in WORKERS {
            assert_eq!(told.matches(&format!("found {number}")).count(), 1, "{told}");
        }
        for n in 70..73 {
            let is_done = told.contains(&format!("{n} done"));
            assert_eq!(
                told.matches(&format!("{n} unknown")).count(),
                usize::from(!is_done),
                "{told}"
            );
            assert!(!is_done || has_ended(n), "{told}\n{counts:?}");
        }
        let middle = 1..world.lines("effects").len();
        interrupted += usize::from(begun.iter().any(|lines| middle.contains(lines)));
        if interrupted == 3 {
            return;
        }
    }
    panic!("hardly a child was killed in the middle of its work: {interrupted}");
}
