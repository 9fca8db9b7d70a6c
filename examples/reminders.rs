//! Reminders: a model schedules one, the program schedules tasks of its own, and each answer is
//! said when it is due.
//!
//! `cargo run --example reminders --features scheduling`. The answers are rehearsed, so that it
//! runs without a model. The tasks are in `data/reminders/scheduled-tasks.json`, where you can
//! change them while it runs.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelTier, Role, ToolCall};
use rockbot::prelude::*;
use rockbot::tools::scheduling::{Misfire, Overlap, Schedules, Scheduling};
use serde_json::json;
use tokio::time::timeout;

/// Time without news after which the program ends.
const QUIET: Duration = Duration::from_millis(200);

/// A stand-in for a model, with an answer to each message of this example.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = &call.request.messages;
        if messages.last().is_some_and(|message| message.role == Role::Tool) {
            return Ok(ChatResponse::text("I will remind you."));
        }
        let asked = messages.last().map(|message| message.text()).unwrap_or_default();
        Ok(match &*asked {
            text if text.starts_with("Tell me that") => ChatResponse::text("Your tea is ready!"),
            text if text.starts_with("Tell me to") => ChatResponse::text("Time to stretch."),
            text if text.starts_with("Write") => ChatResponse::text("Nothing has happened today."),
            _ => {
                // What a model makes of the question; it reads the guide to these tools first.
                let task = json!({
                    "name": "tea", "cron": "in 1 second", "run_once": true, "description": "Tell me that the tea is ready.",
                });
                ChatResponse::calls([ToolCall::new("1", "schedule_task", task.to_string())])
            }
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Schedules the tasks of the program. It may do so at each start: a task that is defined alike
/// goes on.
async fn plan(schedules: &Schedules) -> Result<(), BoxError> {
    schedules
        .schedule("report", "0 18 * * MON-FRI", "Write the report of the day.")
        // After a night off, yesterday's report is still wanted; two at once are not.
        .misfire(Misfire::OnceLate {
            within: Duration::from_secs(24 * 60 * 60),
        })
        .overlap(Overlap::QueueOne)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::builder("reminder")
        .chat(Rehearsed)
        .data_dir("data/reminders")
        .add(Scheduling::new().with_time_zone("Europe/Oslo"))
        .build()?;
    host.start().await?;
    let schedules: Arc<Schedules> = host.parts().require()?;
    plan(&schedules).await?;

    let agent = host.agent();
    let mut announcements = agent.announcements();
    let question = "Remind me of the tea in 1 second.";
    writeln!(stdout(), "> {question}\n{}", agent.ask("main", question).await?.text)?;
    // Now instead of at six, beside its times.
    schedules.run_now("report").await?;
    say(announcements.next().await)?;
    say(announcements.next().await)?;
    schedules
        .every("stretch", Duration::from_secs(1), "Tell me to stretch.")
        .await?;
    say(announcements.next().await)?;
    schedules.cancel("stretch").await?;
    // An announcement counts as taken once the next one is asked for.
    let _ = timeout(QUIET, announcements.next()).await;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Prints an answer that no caller waits for, with the session of its task.
fn say(said: Option<rockbot::turn::Announcement>) -> Result<(), BoxError> {
    let said = said.ok_or("the host has stopped")?;
    Ok(writeln!(stdout(), "[{}] {}", said.session, said.content.words())?)
}
