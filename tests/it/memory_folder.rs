//! All stores of a data folder.

use std::process::Command;
use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::store::{LongTermMemory, MemoryEntry, Rule, RulesStore, StorePath, WorkingMemory, WorkingNote};
use rockbot_core::{Principal, Timestamp};
use rockbot_memory::FileMemory;

use crate::support::files::names;

#[tokio::test]
async fn every_store_has_its_place_in_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let me = Principal::default();
    let memory = FileMemory::open(folder.path()).unwrap();
    let entry = MemoryEntry::new("m1", "likes tea", Timestamp::default(), Provenance::USER);
    memory.long_term.save(&me, entry.clone()).await.unwrap();
    memory.rules.add(&me, Rule::new("Be brief.").unwrap()).await.unwrap();
    let key = StorePath::new("session/a/x").unwrap();
    memory
        .working
        .put(&me, vec![WorkingNote::new(key, "x", Provenance::TOOL)])
        .await
        .unwrap();
    memory.flush().await.unwrap();
    let mut found = names(folder.path());
    found.retain(|name| !name.ends_with("lock"));
    assert_eq!(found, ["memory/m1.json", "rules.md", "working-memory/session.json"]);
    drop(memory);
    let memory = FileMemory::open(folder.path()).unwrap();
    assert_eq!(memory.long_term.list(&me).await.unwrap(), [Arc::new(entry)]);
}

#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn second() {
    let refused = FileMemory::open(std::env::var("FOLDER").unwrap()).unwrap_err();
    println!("\nrefused: {refused}");
}

#[tokio::test]
async fn a_second_process_is_refused_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let _memory = FileMemory::open(folder.path()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["memory_folder::second", "--exact", "--ignored", "--nocapture"])
        .env("FOLDER", folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let refused = output.lines().find_map(|line| line.strip_prefix("refused: "));
    let expected = format!(
        "the rules cannot be opened: the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder",
        folder.path().display()
    );
    assert_eq!(refused, Some(&*expected));
}
