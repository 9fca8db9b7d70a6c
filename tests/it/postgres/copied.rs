//! `rockbot data copy`: a data folder into a database and back.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::time::timeout;

use super::{Schema, with_schema};
use crate::example_programs::{PATIENCE, example, text};
use crate::support::files::{copy, files};

const TASKS: &str = r#"[{"name": "tea", "cronExpression": "0 8 * * *", "description": "Drink tea.", "mood": "good",
    "createdAt": "2026-01-01T00:00:00Z"}]"#;

/// Runs the command, and returns its output if it succeeds, else its error.
async fn copied(schema: &Schema, from: &str, to: &str, folder: &Path) -> Result<String, String> {
    let mut command = example("chat", &["data", "copy", from, to], folder);
    let command = command
        .env("ROCKBOT_POSTGRES__URL", &schema.url)
        .env("ROCKBOT_POSTGRES__SCHEMA", &schema.name);
    let output = timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// The files that are copied.
fn known(folder: &Path) -> BTreeMap<String, String> {
    let mut files = files(folder);
    let stores = [
        "memory/",
        "skills/",
        "skill-usage/",
        "feedback/",
        "media/",
        "conversations/",
    ];
    files.retain(|name, _| {
        let is_copied = stores.iter().any(|store| name.starts_with(store));
        let is_beside = ["rules.md", "timezone", "scheduled-tasks.json"]
            .iter()
            .any(|end| name.ends_with(end));
        (is_copied || is_beside) && !name.ends_with("lock")
    });
    files
}

#[tokio::test]
async fn a_folder_goes_into_the_database_and_comes_out_the_same() {
    with_schema(async |schema| {
        let work = tempfile::tempdir().unwrap();
        let old = work.path().join("old");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/old_data_folder/files"), &old, Some("agent.db"));
        std::fs::write(old.join("scheduled-tasks.json"), TASKS).unwrap();
        let copy = async |from, to| copied(schema, from, to, work.path()).await;
        let expected = "@NAME: 1 memories, 1 skills, 1 new uses of skills, 1 new rules, 1 new entries of feedback, 1 new \
                        sessions, 0 images and files\n";
        let of_both = ["ann/é", "local"].map(|name| expected.replace("@NAME", name)).concat();
        // Into a folder first: old forms of files become today's.
        assert_eq!(copy("old", "first").await.unwrap(), format!("{of_both}scheduled tasks: 1\n"));
        assert_eq!(copy("first", "database").await.unwrap(), format!("{of_both}scheduled tasks: 1\n"));
        let again = copy("first", "database").await.unwrap();
        assert!(again.starts_with("ann/é: 1 memories, 1 skills, 0 new uses"), "{again}");
        assert_eq!(copy("database", "second").await.unwrap(), format!("{of_both}scheduled tasks: 1\n"));
        let (first, second) = (known(&work.path().join("first")), known(&work.path().join("second")));
        assert_eq!(first, second);
        assert!(first["scheduled-tasks.json"].contains("\"mood\": \"good\""), "{first:?}");
        let mut before = known(&old);
        before.retain(|name, _| !name.starts_with("conversations/") && !name.starts_with("media/"));
        before.remove("scheduled-tasks.json");
        for (name, content) in before {
            assert_eq!(second.get(&name), Some(&content), "{name}");
        }

        for (from, to, error) in [
            ("old", "old", "error: both places are the same: name another one to copy to\n"),
            ("none", "database", "error: there is no folder `none`\n"),
        ] {
            assert_eq!(copy(from, to).await.unwrap_err(), error);
        }
    })
    .await;
}
