//! A copy of the data folder that is made while the service works, as `docs/operations.md` says, is
//! a backup.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::kill::{answering, ended, post, serve};
use crate::example_programs::PATIENCE;

/// Copies a folder but for the entry `without`, as rsync does: file by file, while others write.
fn copy(from: &Path, to: &Path, without: Option<&str>) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if without.is_some_and(|without| name == without) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(&name), None);
            continue;
        }
        match std::fs::copy(entry.path(), to.join(&name)) {
            // Replaced or removed since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}

#[tokio::test]
async fn a_copy_that_is_made_under_load_has_every_message_that_was_accepted_before() {
    let operations = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md")).unwrap();
    assert!(operations.contains("`rsync -a DATA/turns COPY/; rsync -a --exclude=turns DATA/ COPY/`"));

    let model = answering();
    let folder = tempfile::tempdir().unwrap();
    let (mut service, user) = serve(&model, folder.path()).await;
    let accepted = Arc::default();
    let posting = (0..6).map(|number| post(user.clone(), format!("s{number}"), Arc::clone(&accepted)));
    let posting = tokio::spawn(futures_util::future::join_all(posting));
    sleep(Duration::from_millis(700)).await;

    let backup = tempfile::tempdir().unwrap();
    let data = folder.path().join("data/chat");
    let copied = backup.path().join("data/chat");
    let before = accepted.lock().unwrap().clone();
    copy(&data.join("turns"), &copied.join("turns"), None);
    sleep(Duration::from_millis(200)).await;
    copy(&data, &copied, Some("turns"));
    service.kill().await.unwrap();
    posting.await.unwrap();

    let (mut restored, user) = serve(&model, backup.path()).await;
    assert!(before.len() > 10, "{} messages are no load", before.len());
    let accepted = accepted.lock().unwrap().clone();
    for (session, turn) in &accepted {
        // Of what was accepted after the copy had begun, the copy has some.
        if user.get(&format!("/api/turns/{turn}")).await.status == 404 {
            assert!(!before.iter().any(|(_, earlier)| earlier == turn), "{turn}");
            continue;
        }
        let read = timeout(PATIENCE, ended(&user, turn)).await.expect("it is answered");
        assert_eq!(read, "Here.", "{turn}");
        let history = user
            .get(&format!("/api/sessions/{session}/history?limit=500"))
            .await
            .json();
        let entries = history["entries"].as_array().unwrap();
        let roles: Vec<_> = entries
            .iter()
            .filter(|entry| entry["turn"] == turn.as_str())
            .map(|entry| &entry["role"])
            .collect();
        assert_eq!(roles, ["user", "assistant"], "{turn}");
    }
    restored.kill().await.unwrap();
}
