//! Measures the end of a host whose sessions have changed.
//!
//! Usage: `ends [SESSIONS] [SECONDS]`. Appends to SESSIONS (default 10 000) conversations on
//! disk, stops the host within SECONDS (default 5), drops it and its runtime, and prints how long
//! each took, and how many conversations are there afterwards.

use std::time::{Duration, Instant};

use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{BoxError, Clock, Principal, SessionId, SystemClock};
use rockbot_host::AgentHost;
use rockbot_store::file::FileConversationMemory;

fn argument(index: usize, default: u64) -> u64 {
    let text = std::env::args().nth(index);
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn change(host: &AgentHost, sessions: u64) -> Result<(), BoxError> {
    let memory = host.parts().get::<dyn ConversationMemory>();
    let memory = memory.ok_or("a host has a conversation memory")?;
    for session in 0..sessions {
        let turns = ["What is due?", "Nothing is due."].map(|text| {
            let role = if text.ends_with('?') {
                Role::User
            } else {
                Role::Assistant
            };
            ConversationTurn::new(role, text, SystemClock.now(), session.to_string())
        });
        let session = SessionId::from(session.to_string());
        memory.append(&Principal::default(), &session, turns.into()).await?;
    }
    Ok(())
}

fn main() -> Result<(), BoxError> {
    let sessions = argument(1, 10_000);
    let deadline = argument(2, 5);
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let host = runtime.block_on(async {
        let host = AgentHost::in_memory()
            .chat(ScriptedModel::new())
            .data_dir(folder.path());
        let host = host.build()?;
        host.start().await?;
        change(&host, sessions).await?;
        Ok::<_, BoxError>(host)
    })?;
    let began = Instant::now();
    runtime.block_on(host.shutdown(Duration::from_secs(deadline)));
    let stopped = began.elapsed();
    drop(host);
    let dropped = began.elapsed();
    drop(runtime);
    let ended = began.elapsed();
    let memory = FileConversationMemory::open(folder.path().join("conversations"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kept = runtime.block_on(memory.sessions(&Principal::default()))?.len();
    println!(
        "{}",
        serde_json::json!({
            "sessions": sessions, "deadline_s": deadline, "shutdown_s": stopped.as_secs_f64(),
            "drop_s": (dropped - stopped).as_secs_f64(), "runtime_s": (ended - dropped).as_secs_f64(),
            "total_s": ended.as_secs_f64(), "kept": kept,
        })
    );
    Ok(())
}
