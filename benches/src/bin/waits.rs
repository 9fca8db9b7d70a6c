//! Measures the waits that people feel: after a quiet time, and at the start of a host with much
//! to load.
//!
//! Usage: `waits quiet MEMORIES [ROUNDS]`, `waits start MEMORIES SESSIONS` or `waits journal
//! TURNS`. The model answers at once. Prints one JSON line; times are in milliseconds.

use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rockbot_benches::talk::Talk;
use rockbot_benches::{process_usage, whole};
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_host::AgentHost;
use rockbot_memory::Memory;
use rockbot_store::file::FileConversationMemory;
use serde_json::{Value, json};

/// The answer to a request that shows memories.
const RECALLED: &str = "I remember.";

/// Quiet time before a message: longer than the interval of rescans.
const QUIET: Duration = Duration::from_secs(3);

/// A model that answers at once, and tells whether it was shown a memory.
#[derive(Debug)]
struct Instantly;

#[async_trait]
impl ChatClient for Instantly {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = &call.request.messages;
        let is_recalled = messages
            .iter()
            .any(|message| message.content.text().contains("Memories"));
        Ok(ChatResponse::text(if is_recalled { RECALLED } else { "Yes." }))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse().ok());
    let data = tempfile::tempdir()?;
    let line = match (arguments.first().map(String::as_str), number(1)) {
        (Some("quiet"), Some(memories)) => quiet(data.path(), memories, number(2).unwrap_or(30)).await?,
        (Some("start"), Some(memories)) => start(data.path(), memories, number(2).unwrap_or(0)).await?,
        (Some("journal"), Some(turns)) => journal(data.path(), turns).await?,
        _ => return Err("usage: waits quiet MEMORIES [ROUNDS] | start MEMORIES SESSIONS | journal TURNS".into()),
    };
    println!("{line}");
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

fn remembering(data: &Path) -> Result<AgentHost, BoxError> {
    let builder = AgentHost::builder("waits").chat(Instantly).data_dir(data);
    Ok(builder.add(Memory::default()).build()?)
}

/// Measures messages that come after a quiet time.
async fn quiet(data: &Path, memories: usize, rounds: usize) -> Result<Value, BoxError> {
    whole::remember(&data.join("memory"), &Talk::load(), memories)?;
    let host = remembering(data)?;
    host.start().await?;
    let messages = whole::messages();
    host.agent().ask("s", &*messages[0]).await?;
    let mut times = Vec::with_capacity(rounds);
    let mut recalled = 0;
    for round in 1..=rounds {
        tokio::time::sleep(QUIET).await;
        let began = Instant::now();
        let answer = host.agent().ask("s", &*messages[round % messages.len()]).await?;
        times.push(began.elapsed());
        recalled += usize::from(answer.text == RECALLED);
    }
    times.sort_unstable();
    let at = |part: f64| times.get(((times.len().max(1) - 1) as f64 * part) as usize).copied();
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|part| milliseconds(at(part).unwrap_or_default()));
    Ok(json!({
        "memories": memories, "rounds": rounds, "recalled": recalled, "median": median, "p99": p99, "max": max,
    }))
}

/// Measures the first answer of a host with memories and sessions on disk.
async fn start(data: &Path, memories: usize, sessions: usize) -> Result<Value, BoxError> {
    let talk = Talk::load();
    whole::remember(&data.join("memory"), &talk, memories)?;
    let names = (0..sessions).map(|session| format!("s{session}"));
    whole::begin(
        &FileConversationMemory::open(data.join("conversations"))?,
        &talk.texts,
        names,
    )
    .await?;
    let began = Instant::now();
    let host = remembering(data)?;
    host.start().await?;
    let started = began.elapsed();
    let answer = host.agent().ask("s0", &*whole::messages()[0]).await?;
    let answered = began.elapsed();
    Ok(json!({
        "memories": memories, "sessions": sessions, "recalled": answer.text == RECALLED,
        "started": milliseconds(started), "first_answer": milliseconds(answered),
    }))
}

/// Measures the start of a host whose journal has `turns` finished turns of the day.
async fn journal(data: &Path, turns: usize) -> Result<Value, BoxError> {
    let open = || AgentHost::builder("waits").chat(Instantly).data_dir(data).build();
    let host = open()?;
    host.start().await?;
    for turn in 0..turns {
        let session = format!("s{}", turn % 100);
        host.agent().ask(session, "Is it there?").await?;
    }
    host.shutdown(Duration::from_secs(60)).await;
    drop(host);
    let (_, before) = process_usage();
    let began = Instant::now();
    let host = open()?;
    host.start().await?;
    let started = began.elapsed();
    host.agent().ask("s0", "Is it there?").await?;
    let answered = began.elapsed();
    let (_, after) = process_usage();
    Ok(json!({
        "turns": turns, "started": milliseconds(started), "first_answer": milliseconds(answered),
        "peak_rss_grew_mib": after - before,
    }))
}
