//! One schedule of an agent that runs as two processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rockbot::tools::scheduling::{Schedules, Scheduling};
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::together::{until, working_with};
use super::{Schema, with_schema};
use crate::support::Notes;

/// A process with a schedule, and the tool `work` that waits for a permission.
async fn scheduling(schema: &Schema, model: &ScriptedModel) -> (AgentHost, Arc<Schedules>, Notes, Arc<Notify>) {
    let (builder, notes) = schema.process("clerk", model).await;
    let (host, notes, go) = working_with(builder.add(Scheduling::new()), notes).await;
    let schedules = host.parts().require::<Schedules>().unwrap();
    (host, schedules, notes, go)
}

fn ticking() -> ScriptedModel {
    (0..100).fold(ScriptedModel::new(), |model, _| model.says("Tick."))
}

#[tokio::test]
async fn each_time_of_a_task_is_run_by_one_of_two_processes() {
    with_schema(async |schema| {
        let models = [ticking(), ticking()];
        let (_first, tasks, ..) = scheduling(schema, &models[0]).await;
        let (_second, seen, ..) = scheduling(schema, &models[1]).await;
        let begun = Instant::now();
        tasks.every("tick", Duration::from_secs(1), "Tick?").await.unwrap();
        until(async || seen.tasks().await.unwrap().len() == 1).await;
        let runs = || models.iter().map(|model| model.requests().len()).sum::<usize>();
        until(async || runs() >= 8).await;
        assert!(seen.cancel("tick").await.unwrap());
        assert!(tasks.tasks().await.unwrap().len() <= 1, "the first process hears of it");
        until(async || tasks.tasks().await.unwrap().is_empty()).await;
        let times = begun.elapsed().as_secs() as usize + 1;
        sleep(Duration::from_secs(2)).await;
        assert!(runs() <= times, "{} runs at {times} times", runs());
    })
    .await;
}

#[tokio::test]
async fn a_run_that_another_process_went_on_with_is_noted() {
    with_schema(async |schema| {
        let model = ScriptedModel::new().calls("work", json!({"n": 1}));
        let (first, tasks, notes, _) = scheduling(schema, &model).await;
        let model = ScriptedModel::new().says("Done.");
        let (_second, seen, again, go) = scheduling(schema, &model).await;
        let once = tasks.schedule("report", "in 1 second", "Write it.").once();
        once.await.unwrap();
        // Either process may run it.
        until(async || !notes.all().is_empty() || !model.requests().is_empty()).await;
        if !notes.all().is_empty() {
            until(async || seen.tasks().await.unwrap().iter().any(|task| task.last.is_some())).await;
            first.shutdown(Duration::ZERO).await;
            until(async || !again.all().is_empty()).await;
            go.notify_one();
        }
        until(async || seen.tasks().await.unwrap().is_empty()).await;
    })
    .await;
}
