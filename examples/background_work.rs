//! Work in the background: a turn begins three pieces of work and answers at once; each result is
//! said when it is there, also by a process that is started again after this one was killed.
//!
//! `cargo run --example background_work`. The answers are rehearsed, so that it runs without a
//! model.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, MicroUsd, ModelInfo, ModelTier, Role, ToolCall, Usage};
use rockbot::prelude::*;
use rockbot::tool::ToolFilter;
use rockbot::turn::{Recipient, TurnRequest, TurnRunner};
use tokio::time::{sleep, timeout};

/// Time without news after which the program ends, if the agent has nothing to do.
const QUIET: Duration = Duration::from_millis(200);

/// Begins a piece of work in the background and returns at once.
#[derive(Deserialize, JsonSchema)]
struct BeginWork {
    /// A short name of the work.
    name: String,
    /// The work, described completely.
    task: String,
}

async fn begin_work(
    turns: ToolState<Arc<dyn TurnRunner>>,
    work: BeginWork,
    cx: CallContext,
) -> Result<String, ToolError> {
    let turn = cx
        .turn()
        .ok_or_else(|| ToolError::execution_failed("only a turn begins work"))?;
    // The same turn and name are the same work, so a call that is repeated after a crash begins
    // nothing twice.
    let request = TurnRequest::new(format!("work/{}", work.name), turn.as_str(), work.task)
        .with_caller(&cx)
        .with_tools(ToolFilter::all().without(["begin_work"]))
        .with_recipient(Recipient::new(cx.session().clone(), work.name.clone()));
    turns
        .start(request)
        .await
        .map_err(|error| ToolError::execution_failed(error.to_string()))?;
    Ok(format!("`{}` has begun; its result will be told here.", work.name))
}

/// A stand-in for a model, with an answer to each message of this example.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call
            .request
            .messages
            .last()
            .map(|message| message.text())
            .unwrap_or_default();
        let work = |name: &str| {
            let arguments = serde_json::json!({ "name": name, "task": format!("Work: {name}.") });
            ToolCall::new(name, "begin_work", arguments.to_string())
        };
        let answer = match &*last {
            "Work: tea." => after(5000, "The tea is ready.").await,
            "Work: river." => after(200, "The Nile, 6650 km.").await,
            "Work: mountain." => after(200, "Mount Everest, 8849 m.").await,
            text if text.starts_with("Which") => ChatResponse::calls(["river", "mountain", "tea"].map(work)),
            text if text.starts_with("The background work") => ChatResponse::text(news(&call.request)),
            _ => ChatResponse::text("I look into it, and tell you what I find."),
        };
        Ok(answer.with_usage(Usage::new(100, 20)).with_cost(MicroUsd(50)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

async fn after(milliseconds: u64, text: &str) -> ChatResponse {
    sleep(Duration::from_millis(milliseconds)).await;
    ChatResponse::text(text)
}

/// Returns the results that came since the last answer.
fn news(request: &ChatRequest) -> String {
    let told = request
        .messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let new = request.messages.iter().skip(told.map_or(0, |told| told + 1));
    let results = new.filter_map(|message| Some(message.text().split_once(":\n")?.1.lines().next()?.to_owned()));
    results.collect::<Vec<_>>().join(" ")
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::builder("helper")
        .chat(Rehearsed)
        .data_dir("data/background_work")
        .build()?;
    let turns: Arc<dyn TurnRunner> = host.parts().require()?;
    host.add_tool(stateful_tool("begin_work", turns, begin_work))?;
    // What an earlier process left goes on.
    host.start().await?;

    let agent = host.agent();
    let question = "Which river is the longest, which mountain is the highest, and when is the tea ready?";
    // Under the same id it is the same message: a second start does not ask again.
    let answer = agent.ask("main", question).message_id("question-1").await?;
    writeln!(stdout(), "> {question}\n{}", answer.text)?;
    let mut announcements = agent.announcements();
    loop {
        match timeout(QUIET, announcements.next()).await {
            Ok(Some(said)) => {
                let mut costs = Vec::new();
                for turn in &said.results {
                    costs.push(agent.outcome(turn).await?.spent().cost.to_string());
                }
                writeln!(stdout(), "{} [{}]", said.content.words(), costs.join(" + "))?;
            }
            Err(_) if !agent.is_idle() => {}
            _ => break,
        }
    }
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
