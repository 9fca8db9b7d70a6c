//! Long-term memory on disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, Remembered, StorePath};
use rockbot_core::testing::{ManualClock, conformance};
use rockbot_core::{Clock, Principal, SystemClock, Timestamp};
use rockbot_memory::{FileLongTermMemory, FileOptions};
use serde_json::{Value, json};

use crate::support::files::{files, names, write};
use crate::support::kill;

fn me() -> Principal {
    Principal::default()
}

fn open(folder: &Path) -> (FileLongTermMemory, ManualClock) {
    let clock = ManualClock::default();
    let options = FileOptions::default().with_clock(Arc::new(clock.clone()));
    (FileLongTermMemory::open_with(folder, options).unwrap(), clock)
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, ManualClock::default().now(), Provenance::USER)
}

fn filed(id: &str, category: &str) -> MemoryEntry {
    fact(id, "likes tea").with_category(StorePath::new(category).unwrap())
}

/// The ids and facts of all entries.
async fn facts(memory: &FileLongTermMemory) -> BTreeMap<String, String> {
    let entries = memory.list(&me()).await.unwrap();
    let fact = |entry: &Arc<MemoryEntry>| (entry.id.to_string(), entry.content.clone());
    entries.iter().map(fact).collect()
}

async fn check(memory: &FileLongTermMemory, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(id, fact)| ((*id).to_owned(), (*fact).to_owned()));
    assert_eq!(facts(memory).await, expected.collect());
}

async fn found(memory: &FileLongTermMemory, text: &str) -> Vec<String> {
    let found = memory.search(&me(), &MemoryQuery::new(text)).await.unwrap();
    found.iter().map(|hit| hit.item.id.to_string()).collect()
}

/// After that long, changes by others are looked for.
fn look(clock: &ManualClock) {
    clock.advance(Duration::from_secs(3600));
}

#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory() {
    let folders = Mutex::new(Vec::new());
    conformance::long_term_memory(async || {
        let folder = tempfile::tempdir().unwrap();
        let (memory, _) = open(folder.path());
        folders.lock().unwrap().push(folder);
        memory
    })
    .await;
}

#[tokio::test]
async fn what_was_archived_long_ago_goes_unless_a_person_changed_it_since() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, clock) = open(folder.path());
    let now = SystemClock.now();
    let day = 24 * 60 * 60 * 1000;
    let ago = |days: u64| Timestamp::from_millis(now.as_millis() - days * day);
    let archived = |id: &str, days| fact(id, id).with_archived_at(Some(ago(days)));
    for (id, days) in [
        ("old", 100),
        ("new", 80),
        ("edited", 100),
        ("restored", 100),
        ("copied", 100),
    ] {
        memory.save(&me(), archived(id, days)).await.unwrap();
        let file = File::options()
            .write(true)
            .open(folder.path().join(format!("{id}.json")));
        let at = UNIX_EPOCH + Duration::from_millis(ago(days).as_millis());
        file.unwrap().set_modified(at).unwrap();
    }
    check(
        &memory,
        &["copied", "edited", "new", "old", "restored"].map(|id| (id, id)),
    )
    .await;
    let json = |id: &str| std::fs::read_to_string(folder.path().join(format!("{id}.json"))).unwrap();
    write(
        folder.path(),
        "edited.json",
        json("edited").replace("content\": \"edited", "content\": \"mine"),
    );
    write(folder.path(), "restored.json", r#"{"content": "here again"}"#);
    write(folder.path(), "sub/copied.json", json("copied"));
    write(folder.path(), "broken.json", "{");
    // The rescan has not run yet. Of the copied files only our own is purged.
    assert_eq!(memory.purge(ago(90)).await.unwrap(), 2);
    look(&clock);
    let left = [
        ("copied", "copied"),
        ("edited", "mine"),
        ("new", "new"),
        ("restored", "here again"),
    ];
    check(&memory, &left).await;
    assert_eq!(memory.purge(ago(90)).await.unwrap(), 0);
    let expected = [
        "broken.json",
        "edited.json",
        "new.json",
        "restored.json",
        "sub/copied.json",
    ];
    assert_eq!(names(folder.path()), expected);
}

#[tokio::test]
async fn an_entry_is_a_document_that_people_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, _) = open(folder.path());
    let mut entry = filed("0123456789ab", "user/taste");
    entry.tags = vec!["tea".into()];
    memory.save(&me(), entry).await.unwrap();
    let document = r#"{
  "id": "0123456789ab",
  "content": "likes tea",
  "category": "user/taste",
  "tags": [
    "tea"
  ],
  "createdAt": "2026-01-01T00:00:00.000Z",
  "importanceScore": 0.5,
  "reinforcementCount": 1,
  "provenance": {
    "source": "user",
    "trust": "user"
  }
}"#;
    let expected = [("user/taste/0123456789ab.json".to_owned(), document.to_owned())];
    assert_eq!(files(folder.path()), expected.into());
}

#[tokio::test]
async fn everything_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = BTreeMap::new();
    for round in 0..3 {
        let (memory, _) = open(folder.path());
        assert_eq!(facts(&memory).await, expected);
        for id in [format!("m{round}"), format!("../M{round}")] {
            memory.save(&me(), fact(&id, &id)).await.unwrap();
            expected.insert(id.clone(), id);
        }
        memory.save(&"other".into(), fact("theirs", "theirs")).await.unwrap();
    }
    let (memory, _) = open(folder.path());
    assert_eq!(facts(&memory).await, expected);
    assert_eq!(
        memory.list(&"other".into()).await.unwrap(),
        [Arc::new(fact("theirs", "theirs"))]
    );
    let expected = [
        "%2e.%2f%4d0.json",
        "%2e.%2f%4d1.json",
        "%2e.%2f%4d2.json",
        "@other/theirs.json",
        "m0.json",
        "m1.json",
        "m2.json",
    ];
    assert_eq!(names(folder.path()), expected);
}

#[tokio::test]
async fn a_second_one_is_refused_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, _) = open(folder.path());
    let refused = FileLongTermMemory::open(folder.path()).unwrap_err().to_string();
    let expected = format!(
        "the memory folder cannot be opened: the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder",
        folder.path().display()
    );
    assert_eq!(refused, expected);
    drop(memory);
    open(folder.path());
}

/// A document as the original writes it.
fn theirs(id: &str, content: &str) -> Value {
    json!({
        "id": id, "content": content, "category": "User-Notes/Taste", "tags": ["Tea"], "createdAt": "2025-01-01T00:00:00.1234567+00:00",
        "updatedAt": null, "metadata": null, "verify": {"kind": "capability"}, "$type": "System.Diagnostics.Process",
    })
}

#[tokio::test]
async fn documents_of_the_original_open_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = "User-Notes/Taste/0123456789ab.json";
    write(
        folder.path(),
        name,
        serde_json::to_string_pretty(&theirs("0123456789ab", "likes tea")).unwrap(),
    );
    let (memory, _) = open(folder.path());
    let entry = memory.get(&me(), &"0123456789ab".into()).await.unwrap().unwrap();
    let expected = MemoryEntry::new(
        "0123456789ab",
        "likes tea",
        Timestamp::from_millis(1_735_689_600_123),
        Provenance::USER,
    )
    .with_category(StorePath::new("User-Notes/Taste").unwrap())
    .with_tags(vec!["Tea".into()])
    .with_provenance(entry.provenance.clone());
    assert_eq!((&*entry, entry.provenance.trust), (&expected, Default::default()));

    memory
        .update(&me(), &entry.id, |entry| entry.content.push('!'))
        .await
        .unwrap();
    assert_eq!(names(folder.path()), [name], "it stays where it was found");
    let mut document: Value = serde_json::from_str(&files(folder.path())[name]).unwrap();
    let original = theirs("0123456789ab", "likes tea!");
    for member in ["content", "category", "tags", "verify", "$type"] {
        assert_eq!(document[member].take(), original[member], "{member}");
    }
    assert_eq!(memory.damaged(), 0);
}

#[tokio::test]
async fn what_people_change_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, clock) = open(folder.path());
    memory.save(&me(), fact("a", "the gate is of iron")).await.unwrap();
    check(&memory, &[("a", "the gate is of iron")]).await;

    write(
        folder.path(),
        "user/Taste/b.json",
        r#"{"content": "likes tea", "id": "another"}"#,
    );
    look(&clock);
    assert_eq!(found(&memory, "tea").await, ["b"]);
    let entry = memory.get(&me(), &"b".into()).await.unwrap().unwrap();
    assert_eq!(entry.category.as_ref().map(StorePath::as_str), Some("user/Taste"));
    assert!(
        entry.created_at > Timestamp::from_millis(1_700_000_000_000),
        "the time of the file"
    );

    write(
        folder.path(),
        "a.json",
        files(folder.path())["a.json"].replace("iron", "solid wood"),
    );
    look(&clock);
    assert_eq!(
        (found(&memory, "iron").await, found(&memory, "wood").await),
        (vec![], vec!["a".into()])
    );

    std::fs::remove_file(folder.path().join("a.json")).unwrap();
    look(&clock);
    check(&memory, &[("b", "likes tea")]).await;
    assert_eq!(found(&memory, "wood").await, [""; 0]);
    assert_eq!(memory.damaged(), 0);
}

#[tokio::test]
async fn files_are_looked_over_every_other_second() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, clock) = open(folder.path());
    check(&memory, &[]).await;
    write(folder.path(), "a.json", r#"{"content": "likes tea"}"#);
    clock.advance(Duration::from_millis(1999));
    check(&memory, &[]).await;
    clock.set(Timestamp::from_millis(1));
    check(&memory, &[("a", "likes tea")]).await;
}

#[tokio::test]
async fn an_external_edit_is_never_overwritten_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, _) = open(folder.path());
    let known = fact("a", "old");
    memory.save(&me(), known.clone()).await.unwrap();
    check(&memory, &[("a", "old")]).await;
    let edited = files(folder.path())["a.json"].replace("old", "edited by hand");
    write(folder.path(), "a.json", edited.replacen('{', r#"{"mine": [1],"#, 1));
    assert!(!memory.replace(&me(), &known, fact("a", "new")).await.unwrap());
    memory
        .update(&me(), &"a".into(), |entry| entry.content.push('!'))
        .await
        .unwrap();
    check(&memory, &[("a", "edited by hand!")]).await;
    let document: Value = serde_json::from_str(&files(folder.path())["a.json"]).unwrap();
    assert_eq!(document["mine"], json!([1]));

    // Of one that was not even known.
    write(folder.path(), "b.json", r#"{"content": "by hand", "mine": 2}"#);
    memory.save(&me(), fact("b", "new")).await.unwrap();
    let document: Value = serde_json::from_str(&files(folder.path())["b.json"]).unwrap();
    assert_eq!((&document["mine"], &document["content"]), (&json!(2), &json!("new")));

    // What is gone stays gone.
    std::fs::remove_file(folder.path().join("b.json")).unwrap();
    let nothing = memory
        .update(&me(), &"b".into(), |entry| entry.content.push('!'))
        .await
        .unwrap();
    assert_eq!((nothing, names(folder.path())), (None, vec!["a.json".into()]));
}

#[tokio::test]
async fn an_entry_moves_with_its_category() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, clock) = open(folder.path());
    memory.save(&me(), filed("a", "User/taste")).await.unwrap();
    memory.save(&me(), filed("a", "work")).await.unwrap();
    assert_eq!(names(folder.path()), ["work/a.json"]);
    // A crash left the old one.
    write(folder.path(), "old/a.json", r#"{"content": "old"}"#);
    std::fs::File::open(folder.path().join("old/a.json"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    look(&clock);
    check(&memory, &[("a", "likes tea")]).await;
    memory.delete(&me(), &"a".into()).await.unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
    look(&clock);
    check(&memory, &[]).await;
}

#[tokio::test]
async fn of_copies_the_last_one_counts() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seconds) in [("one/a.json", 10), ("two/a.json", 30), ("three/a.json", 20)] {
        write(folder.path(), name, format!(r#"{{"content": "from {name}"}}"#));
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        std::fs::File::open(folder.path().join(name))
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let (memory, clock) = open(folder.path());
    check(&memory, &[("a", "from two/a.json")]).await;
    assert_eq!(found(&memory, "json").await, ["a"]);
    std::fs::remove_file(folder.path().join("two/a.json")).unwrap();
    look(&clock);
    check(&memory, &[("a", "from three/a.json")]).await;
    assert_eq!(found(&memory, "two").await, [""; 0]);
}

#[tokio::test]
async fn damaged_documents_are_quarantined_and_the_others_load() {
    let folder = tempfile::tempdir().unwrap();
    let whole = theirs("whole", "likes tea").to_string();
    let damaged: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("half", &whole.as_bytes()[..whole.len() / 2]),
        ("list", b"[]"),
        ("wrong", br#"{"content": 7}"#),
        ("path", br#"{"content": "x", "category": "../../etc"}"#),
        ("bytes", b"{\"content\": \"\xff\xfe\"}"),
    ];
    for (id, bytes) in damaged {
        write(folder.path(), &format!("{id}.json"), bytes);
    }
    write(folder.path(), "whole.json", format!("\u{feff}{whole}\r\n"));
    let huge = std::fs::File::create(folder.path().join("huge.json")).unwrap();
    huge.set_len(500 << 20).unwrap();
    write(folder.path(), "half.json.tmp", "left by a crash");
    let (memory, _) = open(folder.path());
    check(&memory, &[("whole", "likes tea")]).await;
    assert_eq!(memory.damaged(), 7);
    for (id, bytes) in damaged {
        let aside = folder.path().join(format!("{id}.json.damaged"));
        assert_eq!(std::fs::read(aside).unwrap(), bytes, "nothing of it is lost");
        memory.save(&me(), fact(id, "new")).await.unwrap();
    }
    assert!(!folder.path().join("half.json.tmp").exists());
    std::fs::create_dir_all(folder.path().join("folder.json/x")).unwrap();
    memory.save(&me(), fact("folder", "new")).await.unwrap();
    assert_eq!((facts(&memory).await.len(), memory.damaged()), (8, 8));
}

#[tokio::test]
async fn a_file_that_is_being_written_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, clock) = open(folder.path());
    memory.save(&me(), fact("a", "old")).await.unwrap();
    check(&memory, &[("a", "old")]).await;
    for half in [r#"{"conte"#, r#"{"content": "ne"#] {
        write(folder.path(), "a.json", half);
        look(&clock);
        check(&memory, &[("a", "old")]).await;
    }
    write(folder.path(), "a.json", r#"{"content": "new"}"#);
    look(&clock);
    check(&memory, &[("a", "new")]).await;
    assert_eq!(memory.damaged(), 0);
    write(folder.path(), "a.json", "{");
    look(&clock);
    check(&memory, &[("a", "new")]).await;
    look(&clock);
    check(&memory, &[]).await;
    assert_eq!(
        (names(folder.path()), memory.damaged()),
        (vec!["a.json.damaged".into()], 1)
    );
}

#[cfg(unix)]
#[tokio::test]
async fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write(
        elsewhere.path(),
        "secret.json",
        theirs("secret", "a secret").to_string(),
    );
    symlink(elsewhere.path().join("secret.json"), folder.path().join("a.json")).unwrap();
    for name in ["linked", "@other"] {
        symlink(elsewhere.path(), folder.path().join(name)).unwrap();
    }
    let (memory, clock) = open(folder.path());
    check(&memory, &[]).await;
    assert_eq!(memory.list(&"other".into()).await.unwrap(), []);
    memory.save(&me(), fact("a", "new")).await.unwrap();
    memory.save(&me(), filed("secret", "linked")).await.unwrap_err();
    memory.save(&"other".into(), fact("secret", "new")).await.unwrap_err();
    assert_eq!(memory.delete(&me(), &"secret".into()).await.unwrap(), None);
    look(&clock);
    check(&memory, &[("a", "new")]).await;
    let secret = [("secret.json".to_owned(), theirs("secret", "a secret").to_string())];
    assert_eq!(files(elsewhere.path()), secret.into());
}

#[tokio::test]
async fn hostile_names_stay_in_the_folder_and_apart() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("data/memory");
    let (memory, _) = open(&folder);
    let long = "x".repeat(400);
    let ids = [
        "a", "A", "a/b", "a_b", "a%2fb", "../a", ".", "..", "", "CON", "a.", "a ", "a\0b", "lock", "@other/a", "+",
        &long,
    ];
    let deep = ["d"; 200].join("/");
    let categories = [
        None,
        Some("c"),
        Some("C"),
        Some("@other"),
        Some("c.json"),
        Some("con"),
        Some("+"),
        Some(&*deep),
    ];
    let mut expected = BTreeMap::new();
    for category in categories {
        for id in ids {
            let id = format!("{id}{}", category.unwrap_or_default().len());
            let entry = match category {
                Some(category) => filed(&id, category),
                None => fact(&id, "likes tea"),
            };
            expected.insert(entry.id.clone(), entry.clone());
            memory.save(&me(), entry).await.unwrap();
        }
    }
    drop(memory);
    let (memory, _) = open(&folder);
    let entries = memory.list(&me()).await.unwrap();
    assert_eq!(
        entries
            .into_iter()
            .map(|entry| (entry.id.clone(), (*entry).clone()))
            .collect::<BTreeMap<_, _>>(),
        expected
    );
    assert_eq!(memory.list(&"other".into()).await.unwrap(), []);
    for id in expected.keys() {
        memory.delete(&me(), id).await.unwrap();
    }
    assert_eq!(names(outside.path()), ["data/memory/lock"]);
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, _) = open(folder.path());
    let refused = memory
        .save(&me(), fact("a", &"x".repeat(8 << 20)))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "a memory has at most 8388608 bytes; shorten it: 8388815 bytes");
    let refused = memory
        .save(&me(), fact(&"x".repeat(1025), "x"))
        .await
        .unwrap_err()
        .to_string();
    let expected =
        "the memory has no file: an id of 1025 bytes is too long to name a file: use one of at most 1024 bytes";
    assert_eq!(refused, expected);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_learn_the_same_learn_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(open(folder.path()).0);
    let tasks = (0..8).map(|task| {
        let memory = memory.clone();
        tokio::spawn(async move {
            let mut added = 0;
            for at in 0..20 {
                let remembered = memory
                    .remember(&me(), fact(&format!("{task}-{at}"), &format!("fact {at}")))
                    .await;
                added += usize::from(matches!(remembered.unwrap(), Remembered::Added(_)));
            }
            added
        })
    });
    let mut added = 0;
    for task in tasks.collect::<Vec<_>>() {
        added += task.await.unwrap();
    }
    let check = async |memory: &FileLongTermMemory| {
        let entries = memory.list(&me()).await.unwrap();
        let counts: Vec<_> = entries.iter().map(|entry| entry.reinforcement_count).collect();
        assert_eq!(counts, [8; 20]);
    };
    assert_eq!(added, 20);
    check(&memory).await;
    drop(memory);
    check(&open(folder.path()).0).await;
}

/// Saves until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = kill::begin();
    let memory = FileLongTermMemory::open(folder).unwrap();
    memory.list(&me()).await.unwrap();
    kill::ready();
    for at in 0.. {
        let id = format!("{round}-{at}");
        let category = format!("c{}", at % 3);
        memory.save(&me(), filed(&id, &category)).await.unwrap();
        kill::acknowledge(&format!("{id} {category}"));
        // It moves to another file.
        memory.save(&me(), filed(&id, "moved")).await.unwrap();
        kill::acknowledge(&format!("{id} moved"));
        if at % 4 == 3 {
            memory.delete(&me(), &id.as_str().into()).await.unwrap();
            kill::acknowledge(&format!("{id} deleted"));
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    let mut total = 0;
    for first in (0..200).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = BTreeMap::new();
        for round in first..first + 20 {
            for acknowledged in kill::kill("long_term_memory::child", folder.path(), round) {
                let (id, state) = acknowledged.split_once(' ').unwrap();
                expected.insert(id.to_owned(), state.to_owned());
                total += 1;
            }
        }
        let (memory, _) = open(folder.path());
        let entries = memory.list(&me()).await.unwrap();
        let found: BTreeMap<_, _> = entries.iter().map(|entry| (entry.id.to_string(), entry)).collect();
        for (id, state) in &expected {
            let category = found
                .get(id)
                .and_then(|entry| entry.category.as_ref())
                .map(StorePath::as_str);
            // What was asked for and not acknowledged may have been done, too.
            let may_be: &[_] = match state.as_str() {
                "moved" => &[Some("moved"), None],
                "deleted" => &[None],
                state => &[Some(state), Some("moved")],
            };
            assert!(may_be.contains(&category), "{id} {state}: {category:?}");
        }
        assert_eq!(memory.damaged(), 0);
        assert!(
            names(folder.path()).iter().all(|name| name.ends_with(".json")),
            "half a file is left"
        );
    }
    // Fewer where the machine is busy, but some.
    assert!(total > 50, "{total} writes in 200 processes");
}

/// A message of megabytes must not keep the other turns of its thread waiting.
#[tokio::test]
async fn a_long_query_is_read_in_part_and_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path()).0;
    for animal in ["zebra", "parrot", "turtle"] {
        memory
            .save(&me(), fact(animal, &format!("the {animal} is ill")))
            .await
            .unwrap();
    }
    assert!(
        found(&memory, "zebra").now_or_never().is_some(),
        "a short one is searched at once"
    );
    let paste = "nothing but filler\n".repeat(10_000);
    let text = format!("zebra\n{paste}parrot\n{paste}turtle");
    // The other thread may be done before the first poll returns, but not each time.
    let mut polled = (0..20).map(|_| found(&memory, &text).now_or_never());
    assert!(polled.any(|found| found.is_none()), "the runtime's thread is free");
    let mut found = found(&memory, &text).await;
    found.sort();
    assert_eq!(found, ["turtle", "zebra"], "its beginning and its end are read");
}
