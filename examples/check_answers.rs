//! An agent whose answers are checked: cases with what is expected, three runs each, and a
//! comparison of two versions that says how much is chance.
//!
//! `cargo run --example check_answers --features eval`

use std::io::{Write, stdout};

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ToolCall};
use rockbot::eval::{Dataset, Evaluation, Report};
use rockbot::prelude::*;

/// The cases; a program reads them from a file with `Dataset::read`.
const CASES: &str = r#"
{"id": "sum", "ask": "What is 17 + 4?", "expect": {"states": "21", "calls": "add"}}
{"id": "long", "ask": "What is 1200 + 34?", "expect": {"states": "1234", "max_calls": 1}}
"#;

/// Adds numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    numbers: Vec<i64>,
}

/// Answers with the result of the tool where there is one; a real agent has a real model here.
struct Clerk {
    has_tools: bool,
}

#[async_trait]
impl ChatClient for Clerk {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call.request.messages.last().map(|message| message.text().into_owned());
        let last = last.unwrap_or_default();
        if !self.has_tools {
            return Ok(ChatResponse::text("About 20."));
        }
        if !last.starts_with("What is") {
            return Ok(ChatResponse::text(format!("It is {last}.")));
        }
        let numbers: Vec<_> = last
            .split(|char: char| !char.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .collect();
        let arguments = format!("{{\"numbers\": [{}]}}", numbers.join(", "));
        Ok(ChatResponse::calls([ToolCall::new("call_1", "add", arguments)]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

async fn evaluated(model: Clerk) -> Result<Report, BoxError> {
    let add = tool("add", |Add { numbers }| async move {
        numbers.iter().sum::<i64>().to_string()
    });
    let host = AgentHost::in_memory().chat(model).tool(add.pure()).build()?;
    let evaluation = Evaluation::new(Dataset::parse(CASES)?).with_runs(3);
    Ok(evaluation.run(host.agent().clone()).await?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let before = evaluated(Clerk { has_tools: false }).await?;
    let after = evaluated(Clerk { has_tools: true }).await?;
    for result in before.results.iter().filter(|result| result.run == 1) {
        writeln!(stdout(), "before, {}: {}", result.case, result.failures.join("; "))?;
    }
    writeln!(
        stdout(),
        "passed: {} of {}, then {}",
        before.passed(),
        before.results.len(),
        after.passed()
    )?;
    writeln!(stdout(), "{}", after.compare(&before))?;
    Ok(())
}
