//! Measures what delegation costs and saves: six tasks whose parts are independent, done in five
//! ways by a scripted model.
//!
//! Each part reads two pages of 4 000 bytes, and the answer states a fact of each page. The model
//! is no LLM: it does each way without a mistake, so the figures show the tokens of the ways and
//! nothing about what a real model would solve. A token is taken for four bytes of a request: its
//! messages, calls and definitions of tools. The seconds are those of a paused clock: a page takes
//! one, an answer half a second, one more for each 5 000 tokens that the model reads, and one for
//! each 50 tokens that it writes.
//!
//! Usage: `delegation`. Prints a table in Markdown.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier, Role, ToolCall,
};
use rockbot_core::tool::tool;
use rockbot_core::turn::{Budget, TurnRunner};
use rockbot_host::AgentHost;
use rockbot_tools::subagents::Subagents;
use rockbot_tools::wisps::Wisps;
use rockbot_tools::workers::Workers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// Numbers of parts of the six tasks.
const TASKS: [usize; 6] = [2, 3, 4, 6, 8, 12];

/// Number of subagents that work at once, by default.
const SUBAGENTS: usize = 3;

const QUESTION: &str = "State the facts of all pages.";

/// Length of a page, in bytes.
const PAGE: usize = 4_000;

/// A way to do a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    OneByOne,
    AllAtOnce,
    Workers,
    Wisps,
    Subagents,
}

impl Way {
    const ALL: [(Self, &'static str); 5] = [
        (Self::OneByOne, "one call an answer"),
        (Self::AllAtOnce, "all calls in one answer"),
        (Self::Workers, "workers"),
        (Self::Wisps, "wisps with a question each"),
        (Self::Subagents, "three subagents with a share each"),
    ];
}

/// The questions to the models of a task, in numbers.
#[derive(Debug, Default, Clone, Copy)]
struct Bill {
    calls: usize,
    tokens: usize,
    /// Tokens of the low tier among them.
    low: usize,
    time: Duration,
}

/// A model that does a task in one way.
#[derive(Debug, Clone)]
struct Planner {
    way: Way,
    parts: usize,
    bill: Arc<Mutex<Bill>>,
}

/// A page to read.
#[derive(Deserialize, JsonSchema)]
struct Page {
    /// The part.
    part: usize,
    /// The page of the part.
    page: usize,
}

#[async_trait]
impl ChatClient for Planner {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let request = &call.request;
        let is_low = request.tier == Some(ModelTier::Low);
        let tokens = self.enter(request, is_low);
        let results = request
            .messages
            .iter()
            .filter(|message| message.role == Role::Tool)
            .count();
        let asked = request.messages.iter().rev().find(|message| message.role == Role::User);
        let asked = asked.map(|message| message.text().into_owned()).unwrap_or_default();
        let part = asked
            .split("Part ")
            .nth(1)
            .and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        if call.cx.session().as_str().starts_with("subagent-") {
            return Ok(self.answer(self.share(request, results), request, tokens).await);
        }
        let reads = match (is_low, self.way) {
            (true, Way::Workers) => (results < 2).then(|| vec![read(part.unwrap_or_default(), results)]),
            (true, _) => None,
            (false, Way::OneByOne) => (results < 2 * self.parts).then(|| vec![read(results / 2, results % 2)]),
            (false, Way::AllAtOnce) => {
                (results == 0).then(|| (0..2 * self.parts).map(|at| read(at / 2, at % 2)).collect())
            }
            (false, Way::Workers) => (results == 0).then(|| vec![self.spawn("spawn_workers", worker)]),
            (false, Way::Wisps) => (results == 0).then(|| vec![self.spawn("spawn_wisps", wisp)]),
            (false, Way::Subagents) => (asked == QUESTION && results == 0).then(|| self.shares()),
        };
        Ok(self.answer(reads, request, tokens).await)
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

impl Planner {
    /// Returns the calls, or the facts of the request as the answer, after the time that it takes.
    async fn answer(&self, reads: Option<Vec<ToolCall>>, request: &ChatRequest, tokens: usize) -> ChatResponse {
        let answer = reads.map_or_else(|| ChatResponse::text(facts(request)), ChatResponse::calls);
        let calls: usize = answer.tool_calls.iter().map(|call| call.arguments.len()).sum();
        let written = (answer.text.len() + calls) / 4;
        sleep(Duration::from_millis(500 + tokens as u64 / 5 + written as u64 * 20)).await;
        answer
    }

    /// Adds a request to the bill, and returns its tokens.
    fn enter(&self, request: &ChatRequest, is_low: bool) -> usize {
        let messages = request.messages.iter();
        let messages: usize = messages
            .map(|message| {
                message.text().len()
                    + message
                        .tool_calls
                        .iter()
                        .map(|call| call.arguments.len())
                        .sum::<usize>()
            })
            .sum();
        let tools: usize = request.tools.iter().map(|tool| tool.definition().len()).sum();
        let tokens = (messages + tools) / 4;
        let mut bill = self.bill.lock().unwrap_or_else(PoisonError::into_inner);
        bill.calls += 1;
        bill.tokens += tokens;
        bill.low += if is_low { tokens } else { 0 };
        tokens
    }

    /// Returns a subagent for each third of the parts, which is as many as work at once.
    fn shares(&self) -> Vec<ToolCall> {
        let share = self.parts.div_ceil(SUBAGENTS);
        let firsts = (0..self.parts).step_by(share);
        let spawn = |first: usize| {
            let description = format!(
                "Parts {first} to {}: state their facts.",
                (first + share).min(self.parts)
            );
            let arguments = json!({ "description": description });
            ToolCall::new(format!("spawn-{first}"), "spawn_subagent", arguments.to_string())
        };
        firsts.map(spawn).collect()
    }

    /// Returns the next page of the share of a subagent, which has read `results` pages.
    fn share(&self, request: &ChatRequest, results: usize) -> Option<Vec<ToolCall>> {
        let texts = request.messages.iter().map(|message| message.text().into_owned());
        let all = texts.collect::<Vec<_>>().join("\n");
        let share = all.rsplit("Parts ").next()?.split(':').next()?;
        let (first, end) = share.split_once(" to ")?;
        let first: usize = first.parse().ok()?;
        let pages = 2 * (end.parse::<usize>().ok()? - first);
        (results < pages).then(|| vec![read(first + results / 2, results % 2)])
    }

    fn spawn(&self, tool: &str, definition: fn(usize) -> Value) -> ToolCall {
        let definitions: Vec<_> = (0..self.parts).map(definition).collect();
        ToolCall::new("spawn", tool, json!({ "definitions": definitions }).to_string())
    }
}

fn read(part: usize, page: usize) -> ToolCall {
    ToolCall::new(
        format!("{part}-{page}"),
        "read",
        json!({"part": part, "page": page}).to_string(),
    )
}

fn worker(part: usize) -> Value {
    json!({"description": format!("Part {part}. Read both pages and state their facts.")})
}

fn wisp(part: usize) -> Value {
    let read = |page: usize| json!({"id": format!("p{page}"), "tool": "read", "params": {"part": part, "page": page}});
    let state = json!({"id": "state", "mode": "Llm", "prompt": "State the facts."});
    json!({"description": format!("Part {part}."), "steps": [read(0), read(1), state]})
}

/// Returns the facts that a request shows, or words about work that goes on in the background.
fn facts(request: &ChatRequest) -> String {
    let texts: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let found: BTreeSet<_> = words.filter(|word| word.starts_with("fact-")).collect();
    if found.is_empty() {
        return "It is begun.".to_owned();
    }
    found.into_iter().collect::<Vec<_>>().join(" ")
}

/// Does a task in one way. Returns the bill, and whether the answer states all facts.
async fn run(way: Way, parts: usize) -> Result<(Bill, bool), BoxError> {
    let bill = Arc::<Mutex<Bill>>::default();
    let model = Planner {
        way,
        parts,
        bill: bill.clone(),
    };
    let page = tool("read", |Page { part, page }: Page| async move {
        sleep(Duration::from_secs(1)).await;
        let fact = format!(" fact-{part:02}-{page} ");
        format!("{}{fact}{}", "word ".repeat(PAGE / 10), "word ".repeat(PAGE / 10))
    });
    let budget = Budget::default().with_max_model_calls(1_000).with_max_tool_calls(1_000);
    let builder = AgentHost::in_memory().chat(model).budget(budget);
    let builder = builder.tool(page.description("Reads a page of a part.").pure());
    let builder = match way {
        Way::OneByOne | Way::AllAtOnce => builder,
        Way::Workers => builder.add(Workers::new()),
        Way::Wisps => builder.add(Wisps::new()),
        Way::Subagents => builder.add(Subagents::new()),
    };
    let host = builder.build()?;
    host.start().await?;
    let begun = Instant::now();
    let agent = host.agent();
    let mut announcements = agent.announcements();
    let mut answer = agent.ask("main", QUESTION).await?.text;
    let mut time = begun.elapsed();
    let turns = host.parts().require::<dyn TurnRunner>()?;
    // Results of subagents come later, and are told by turns of their own.
    loop {
        match timeout(Duration::from_secs(1), announcements.next()).await {
            Ok(Some(told)) => {
                answer.push_str(&told.content.words());
                time = begun.elapsed();
            }
            _ if turns.is_idle() => break,
            _ => {}
        }
    }
    let expected = (0..2 * parts).map(|at| format!("fact-{:02}-{}", at / 2, at % 2));
    let is_solved = expected.into_iter().all(|fact| answer.contains(&fact));
    let mut bill = *bill.lock().unwrap_or_else(PoisonError::into_inner);
    bill.time = time;
    Ok((bill, is_solved))
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    println!("| way | solved | model calls | tokens | of the low tier | seconds | tokens, seconds with 12 parts |");
    println!("|---|---|---|---|---|---|---|");
    for (way, name) in Way::ALL {
        let mut all = Bill::default();
        let mut solved = 0;
        let mut last = Bill::default();
        for parts in TASKS {
            let (bill, is_solved) = run(way, parts).await?;
            solved += usize::from(is_solved);
            last = bill;
            all = Bill {
                calls: all.calls + bill.calls,
                tokens: all.tokens + bill.tokens,
                low: all.low + bill.low,
                time: all.time + bill.time,
            };
        }
        println!(
            "| {name} | {solved} of {} | {} | {} | {} | {:.0} | {}, {:.0} |",
            TASKS.len(),
            all.calls,
            all.tokens,
            all.low,
            all.time.as_secs_f64(),
            last.tokens,
            last.time.as_secs_f64()
        );
    }
    Ok(())
}
