//! Measures conversations and working memory on disk, for a harness that compares stores.
//!
//! Usage: `stores append SECONDS`, or `stores reload SESSIONS TURNS FOLDER`, where the folder has
//! a JSON document for each session, `{sessionId, turns}`, as the harness writes them; or `stores
//! set SECONDS`, which needs no harness: working memory and its floors. Each prints JSON lines.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rockbot_benches::process_usage;
use rockbot_core::chat::{Provenance, Role};
use rockbot_core::store::{ConversationMemory, ConversationTurn, StorePath, WorkingMemory, WorkingNote};
use rockbot_core::{BoxError, Principal, SessionId, Timestamp};
use rockbot_memory::FileWorkingMemory;
use rockbot_store::file::{ConversationOptions, FileConversationMemory};
use serde_json::{Value, json};

/// Filler: 227 of these are the text of an entry of working memory.
const LOREM: &str = "lorem ipsum dolor ";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["append", seconds] => {
            let time = Duration::from_secs_f64(seconds.parse()?);
            append("rockbot", 1, time).await?;
            append("rockbot-100-sessions", 100, time).await?;
            set_among_many(time).await
        }
        ["set", seconds] => {
            let time = Duration::from_secs_f64(seconds.parse()?);
            set_by_hand(1_000, time).await?;
            set_among_many(time).await
        }
        ["reload", sessions, turns, folder] => reload(sessions.parse()?, turns.parse()?, Path::new(folder)).await,
        _ => Err("usage: stores append SECONDS | stores set SECONDS | stores reload SESSIONS TURNS FOLDER".into()),
    }
}

/// Returns the folder in which the harness keeps its files, so that all implementations write to
/// the same disk.
fn scratch() -> PathBuf {
    std::env::var_os("PB_TMP").map_or_else(std::env::temp_dir, PathBuf::from)
}

fn said(index: usize) -> ConversationTurn {
    let text = "the quick brown fox jumps over the lazy dog \"again\" ".repeat(6);
    let role = if index.is_multiple_of(2) {
        Role::User
    } else {
        Role::Assistant
    };
    let at = Timestamp::from_millis(1_795_292_029_123);
    // As different from each other as random ids.
    let turn = (index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    ConversationTurn::new(role, format!("message {index}: {text}"), at, format!("{turn:032x}"))
}

/// Appends one entry at a time to the sessions, round robin.
async fn append(name: &str, sessions: usize, time: Duration) -> Result<(), BoxError> {
    let folder = tempfile::tempdir_in(scratch())?;
    let memory = FileConversationMemory::open(folder.path().join("conversations"))?;
    let principal = Principal::default();
    let ids: Vec<_> = (0..sessions)
        .map(|at| SessionId::from(format!("session-{at}")))
        .collect();
    let append = async |at| Ok(memory.append(&principal, &ids[at % sessions], vec![said(at)]).await?);
    measure(name, time, append).await
}

async fn set_among_many(time: Duration) -> Result<(), BoxError> {
    for entries in [10, 1_000, 10_000] {
        set(entries, time).await?;
    }
    Ok(())
}

/// Replaces one entry of 4 KB of working memory at a time, among `entries` of them.
async fn set(entries: usize, time: Duration) -> Result<(), BoxError> {
    let folder = tempfile::tempdir_in(scratch())?;
    let memory = FileWorkingMemory::open(folder.path().join("working-memory"))?;
    let principal = Principal::default();
    let put = async |at: usize| {
        let key = StorePath::new(&format!("session/{}/chunk{}", at % entries / 100, at % 100))?;
        let note = WorkingNote::new(key, LOREM.repeat(227), Provenance::TOOL).with_ttl(Duration::from_secs(3600));
        Ok(memory.put(&principal, vec![note]).await?)
    };
    for at in 0..entries {
        put(at).await?;
    }
    measure(&format!("rockbot-set-{entries}"), time, put).await
}

/// Measures the floors of [`set`]: one line appended, and all entries rewritten.
async fn set_by_hand(entries: usize, time: Duration) -> Result<(), BoxError> {
    let folder = tempfile::tempdir_in(scratch())?;
    let entry = |at| json!({"key": format!("session/{at}/chunk"), "value": LOREM.repeat(227), "expires": "2026-11-21T20:13:49Z"});
    let mut log = File::options()
        .create(true)
        .append(true)
        .open(folder.path().join("lines.jsonl"))?;
    let append = async |at| {
        let mut line = serde_json::to_vec(&entry(at))?;
        line.push(b'\n');
        Ok(log.write_all(&line)?)
    };
    measure("by hand: append a line", time, append).await?;
    let mut all: Vec<_> = (0..entries).map(entry).collect();
    let rewrite = async |at: usize| {
        all[at % entries] = entry(at);
        Ok(std::fs::write(
            folder.path().join("session.json"),
            serde_json::to_vec(&all)?,
        )?)
    };
    measure(&format!("by hand: rewrite {entries}"), time, rewrite).await
}

/// Calls `each` for `time`, and prints the count and the rate.
async fn measure(
    name: &str,
    time: Duration,
    mut each: impl AsyncFnMut(usize) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let start = Instant::now();
    let mut took = Vec::new();
    let (cpu, _) = process_usage();
    while start.elapsed() < time {
        let began = Instant::now();
        each(took.len()).await?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let cpu = (process_usage().0 - cpu) * 1e6 / took.len() as f64;
    let per_second = took.len() as f64 / start.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    let quantile = |share: f64| tenths(took[((took.len() - 1) as f64 * share) as usize]);
    println!(
        "{}",
        json!({"append": name, "per_s": per_second.round(), "p50_us": quantile(0.5), "p99_us": quantile(0.99), "cpu_us": tenths(cpu)})
    );
    Ok(())
}

/// Opens the same sessions, each a document with an array of turns.
///
/// They are written once, as those of the harness are, so that the disk is at rest.
async fn reload(sessions: usize, turns: usize, folder: &Path) -> Result<(), BoxError> {
    let copies = copies(folder)?;
    let mut times = Vec::new();
    for _ in 0..3 {
        // The documents are dated long ago, and must not count as idle.
        let idle_timeout = Duration::from_secs(100 * 365 * 86_400);
        let options = ConversationOptions::default()
            .with_idle_timeout(idle_timeout)
            .with_max_cached_sessions(sessions);
        let start = Instant::now();
        let memory = FileConversationMemory::open_with(&copies, options)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let last = memory
            .recent(&Principal::default(), &"session-0".into(), usize::MAX)
            .await?;
        assert_eq!((memory.damaged(), last.len()), (0, turns), "everything is there");
    }
    let ms = (rockbot_benches::median(times) * 10.0).round() / 10.0;
    println!(
        "{}",
        json!({"reload": "rockbot", "sessions": sessions, "turns": sessions * turns, "ms": ms})
    );
    Ok(())
}

fn copies(folder: &Path) -> Result<PathBuf, BoxError> {
    let copies = folder.with_file_name("rockbot");
    let done = folder.with_file_name("rockbot-done");
    if done.exists() {
        return Ok(copies);
    }
    std::fs::create_dir_all(&copies)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let document: Value = serde_json::from_slice(&std::fs::read(entry.path())?)?;
        std::fs::write(
            copies.join(entry.file_name()),
            serde_json::to_vec_pretty(&document["turns"])?,
        )?;
    }
    std::fs::write(done, "")?;
    Ok(copies)
}
