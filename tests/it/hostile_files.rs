//! Files of a data folder that are no files, or far too large: the agent starts without them or says
//! which one is in the way, and never waits for one.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use rockbot::memory::{Dreaming, FeedbackSignals, Memory, SessionEvaluation};
use rockbot::tools::scheduling::Scheduling;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use tokio::time::timeout;

use crate::support::files::copy;

/// A file of each store, as the folder of an earlier version has it.
const FILES: [&str; 19] = [
    "memory/user/likes/m1.json",
    "memory/new.json",
    "skills/cooking/tea.json",
    "feedback/team%3a%20room%2f1.jsonl",
    "skill-usage/team%3a%20room%2f1.jsonl",
    "conversations/team%3a%20room%2f1.json",
    "conversations/s.jsonl",
    "conversation-log/turns.jsonl",
    "conversation-log/readers.json",
    "working-memory/session.json",
    "media/096815832268f9dec121124d5d4684579b5846e053a7dc936ed75a819b76e08d",
    "turns/turns-00000001.jsonl",
    "turns/turns-00000002.jsonl",
    "rules.md",
    "timezone",
    "soul.md",
    "directives.md",
    "scheduled-tasks.json",
    "tier-routing-log.jsonl",
];

/// Time for an agent to start, answer and stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A thing in the place of a file.
type Thing = (&'static str, fn(&Path));

const THINGS: [Thing; 5] = [
    ("a FIFO", |path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a folder", |path| fs::create_dir(path).unwrap()),
    ("a link out of the folder", |path| {
        let outside = path.ancestors().find(|folder| folder.join("outside").exists()).unwrap();
        symlink(outside.join("outside"), path).unwrap();
    }),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ("100 MB", |path| {
        File::create(path).unwrap().set_len(100 << 20).unwrap();
    }),
];

/// Starts an agent on the folder, has a message answered, and stops it. The error is that of the
/// start.
async fn answered(data: &Path) -> Result<String, String> {
    let model = ScriptedModel::new().says("Hello.");
    let host = AgentHost::builder("agent").chat(model).data_dir(data);
    let host = host
        .add(Memory::default().with_conversation_log())
        .add(FeedbackSignals::new())
        .add(SessionEvaluation::default())
        .add(Dreaming::default())
        .add(Scheduling::new());
    let host = host.build().map_err(|error| error.to_string())?;
    host.start().await.map_err(|error| error.to_string())?;
    let answer = host.agent().ask("s", "Hi").await.map_err(|error| error.to_string())?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(answer.text)
}

#[tokio::test(flavor = "multi_thread")]
async fn things_in_the_place_of_files_hold_no_agent_up() {
    let cases = FILES.into_iter().flat_map(|file| THINGS.map(|thing| (file, thing)));
    let tries = stream::iter(cases).map(|(file, thing)| tokio::spawn(tried(file, thing)));
    let ended = tries.buffer_unordered(8).collect::<Vec<_>>().await;
    ended.into_iter().for_each(|ended| ended.unwrap());
}

async fn tried(file: &str, (thing, make): Thing) {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    let data = folder.path().join("data");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/old_data_folder/files");
    copy(&source, &data, Some("lock"));
    let path = data.join(file);
    let _ = fs::remove_file(&path);
    make(&path);
    let ended = timeout(PATIENCE, answered(&data)).await;
    match ended.unwrap_or_else(|_| panic!("{thing} at {file} holds the agent up")) {
        Ok(text) => assert_eq!(text, "Hello.", "{thing} at {file}"),
        // Without its turns or its tasks the agent would do something twice, or not at all.
        Err(error) => {
            assert!(file.starts_with("turns/") || file == "scheduled-tasks.json", "{error}");
            assert!(error.contains(file) && error.contains("move it away"), "{error}");
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret", "{thing} at {file}");
}
