//! Measures how the cost of a turn, of a start and of what is kept grows with what a host has.
//!
//! Usage: `scaling [LAW]...`, where a law is `conversation`, `sessions`, `tools`, `memories`,
//! `journal`, `flight` or `parked`; all without a name. The model answers at once and costs
//! nothing. Prints one row for each size: CPU time of a turn in microseconds, the least of five
//! blocks; time of the start in milliseconds; resident bytes for each unit. For `parked` the
//! allocated bytes stand in front of the resident ones, which have the gaps between.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rockbot_benches::allocated::{self, Counting};
use rockbot_benches::talk::Talk;
use rockbot_benches::{Args, description, process_usage, whole, work};
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, Role, ToolCall};
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::tool::tool;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, Clock as _, Principal, SessionId, SystemClock};
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_memory::Memory;
use rockbot_store::file::FileConversationMemory;
use tokio::sync::Semaphore;

const MESSAGE: &str = "Is the cat of my sister there?";

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of turns of a block, of which the least of five counts.
const BLOCK: usize = 200;

/// A model that answers once the gate is open.
#[derive(Debug)]
struct Gated(Arc<Semaphore>);

#[async_trait]
impl ChatClient for Gated {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        let _passed = self.0.acquire().await;
        Ok(ChatResponse::text("Yes."))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let names: Vec<_> = std::env::args().skip(1).collect();
    let is_wanted = |law: &str| names.is_empty() || names.iter().any(|name| name == law);
    println!("| law | size | start, ms | turn, µs | bytes kept each |\n|---|---|---|---|---|");
    for size in [10, 100, 1_000, 10_000] {
        if is_wanted("conversation") {
            conversation(size).await?;
        }
        if is_wanted("sessions") {
            sessions(size).await?;
        }
        if is_wanted("tools") && size < 10_000 {
            tools(size).await?;
        }
        if is_wanted("memories") {
            memories(10 * size).await?;
        }
        if is_wanted("journal") {
            journal(10 * size).await?;
        }
        if is_wanted("flight") && size < 10_000 {
            flight(size).await?;
        }
        if is_wanted("parked") {
            parked(size).await?;
        }
    }
    Ok(())
}

fn gate(permits: usize) -> (Arc<Semaphore>, Gated) {
    let gate = Arc::new(Semaphore::new(permits));
    (gate.clone(), Gated(gate))
}

fn builder(data: &Path) -> AgentHostBuilder {
    AgentHost::builder("scaling").chat(gate(1_000).1).data_dir(data)
}

/// Starts the host and prints a row: the time of the start, and the cost of a turn in `session`,
/// or in a new session each.
async fn row(law: &str, size: usize, builder: AgentHostBuilder, session: Option<&str>) -> Result<AgentHost, BoxError> {
    let began = Instant::now();
    let host = builder.build()?;
    host.start().await?;
    let started = began.elapsed().as_secs_f64() * 1e3;
    let mut least = f64::INFINITY;
    for block in 0..=5 {
        let before = process_usage().0;
        for turn in 0..BLOCK {
            let session = session.map_or_else(|| format!("new-{block}-{turn}"), ToOwned::to_owned);
            host.agent().ask(session, MESSAGE).await?;
        }
        // The first block loads what later ones find.
        if block > 0 {
            least = least.min((process_usage().0 - before) * 1e6 / BLOCK as f64);
        }
    }
    println!("| {law} | {size} | {started:.0} | {least:.0} | |");
    Ok(host)
}

/// A conversation of `size` entries.
async fn conversation(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    {
        let memory = FileConversationMemory::open(data.path().join("conversations"))?;
        for at in 0..size {
            let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
            let entry = ConversationTurn::new(role, "Where is the cat?", SystemClock.now(), format!("t{}", at / 2));
            let session = SessionId::from("s");
            memory.append(&Principal::default(), &session, vec![entry]).await?;
        }
    }
    row("entries of the conversation", size, builder(data.path()), Some("s")).await?;
    Ok(())
}

/// A host with `size` sessions on disk.
async fn sessions(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    let talk = Talk::load();
    let names = (0..size).map(|session| format!("s{session}"));
    let memory = FileConversationMemory::open(data.path().join("conversations"))?;
    whole::begin(&memory, &talk.texts, names).await?;
    drop(memory);
    row("sessions on disk", size, builder(data.path()), None).await?;
    Ok(())
}

async fn tools(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    let tools = (0..size).map(|index| {
        tool(&format!("tool_{index}"), |args: Args| async move { work(&args) })
            .pure()
            .description(description(index))
    });
    let builder = tools.fold(builder(data.path()), |builder, tool| builder.tool(tool));
    row("tools", size, builder, None).await?;
    Ok(())
}

async fn memories(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    whole::remember(&data.path().join("memory"), &Talk::load(), size)?;
    row("memories", size, builder(data.path()).add(Memory::default()), Some("s")).await?;
    Ok(())
}

/// A journal with `size` finished turns of the day.
async fn journal(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    let host = builder(data.path()).build()?;
    host.start().await?;
    let mut at_half = 0.0;
    for turn in 0..size {
        if turn == size / 2 {
            at_half = resident();
        }
        host.agent().ask(format!("s{}", turn % 10), MESSAGE).await?;
    }
    let kept = (resident() - at_half) / (size - size / 2) as f64;
    println!("| a day's turns in the journal, second half | {size} | | | {kept:.0} |");
    host.shutdown(std::time::Duration::from_secs(60)).await;
    drop(host);
    row("a day's turns in the journal", size, builder(data.path()), None).await?;
    Ok(())
}

/// `size` turns that wait for their model.
async fn flight(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    let (gate, model) = gate(0);
    let host = AgentHost::builder("scaling")
        .chat(model)
        .data_dir(data.path())
        .build()?;
    host.start().await?;
    let before = resident();
    let turns: Vec<_> = (0..size)
        .map(|turn| {
            let agent = host.agent().clone();
            tokio::spawn(async move { agent.ask(format!("s{turn}"), MESSAGE).await.map(drop) })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    println!(
        "| turns in flight | {size} | | | {:.0} |",
        (resident() - before) / size as f64
    );
    gate.add_permits(1_000);
    for turn in turns {
        turn.await??;
    }
    Ok(())
}

/// A model that calls the tool `send`, and answers a greeting.
#[derive(Debug)]
struct Sending;

const GREETING: &str = "Hello";

#[async_trait]
impl ChatClient for Sending {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call.request.messages.last();
        if last.is_some_and(|message| message.content.text() == GREETING) {
            return Ok(ChatResponse::text("Hello."));
        }
        Ok(ChatResponse::calls([ToolCall::new(
            "call_1",
            "send",
            r#"{"a": 1, "b": "x"}"#,
        )]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// `size` turns of a part of the host that wait for the approval of a call, with the feed of their
/// reports, each in a session that had a turn before: what a session keeps is not counted.
async fn parked(size: usize) -> Result<(), BoxError> {
    let data = tempfile::tempdir()?;
    let send = tool("send", |args: Args| async move { work(&args) }).needs_approval();
    let host = AgentHost::builder("scaling")
        .chat(Sending)
        .tool(send)
        .data_dir(data.path())
        .build()?;
    host.start().await?;
    let empty = Kept::now();
    for turn in 0..size {
        host.agent().ask(format!("s{turn}"), GREETING).await?;
    }
    let before = Kept::now();
    println!("| turns that ended | {size} | | | {} |", before.since(&empty, size));
    let turns = host.parts().require::<dyn TurnRunner>()?;
    for turn in 0..size {
        let request = host.agent().request(format!("s{turn}"), MESSAGE);
        let outcome = turns.run(request).await?;
        assert!(!outcome.is_final(), "the turn waits: {outcome:?}");
    }
    let kept = Kept::now().since(&before, size);
    println!("| turns that wait for an approval | {size} | | | {kept} |");
    Ok(())
}

/// The memory of this process.
struct Kept {
    allocated: f64,
    resident: f64,
}

impl Kept {
    fn now() -> Self {
        Self {
            allocated: allocated::bytes() as f64,
            resident: resident(),
        }
    }

    /// Returns the bytes for each of `size` units since `before`.
    fn since(&self, before: &Self, size: usize) -> String {
        let allocated = (self.allocated - before.allocated) / size as f64;
        let resident = (self.resident - before.resident) / size as f64;
        format!("{allocated:.0}; {resident:.0}")
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0.0) * 4096.0
}
