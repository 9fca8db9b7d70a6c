//! Folders, documents and lines on a real disk.

use std::path::Path;

use super::*;

fn folder() -> (tempfile::TempDir, DataFolder) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(scratch.path().join("data")).unwrap();
    (scratch, folder)
}

fn names(folder: &DataFolder, under: &str) -> Vec<String> {
    let mut names: Vec<_> = folder
        .list(under)
        .unwrap()
        .into_iter()
        .map(|found| found.name)
        .collect();
    names.sort();
    names
}

fn lines(folder: &DataFolder, name: &str, limit: u64) -> (Vec<String>, Option<u64>) {
    let mut lines = Vec::new();
    let each = |line: &[u8]| lines.push(String::from_utf8_lossy(line).into_owned());
    let overlong = folder.read_lines(name, limit, each).unwrap();
    (lines, overlong)
}

#[test]
fn a_folder_is_held_by_one() {
    let (_scratch, folder) = folder();
    let refused = DataFolder::open(folder.path()).unwrap_err();
    let path = folder.path().to_owned();
    let expected = format!(
        "the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder",
        path.display()
    );
    assert_eq!(refused.to_string(), expected);
    drop(folder);
    DataFolder::open(path).unwrap();
}

#[test]
fn a_document_is_replaced_whole() {
    let (_scratch, folder) = folder();
    assert_eq!(folder.read("a/b.json", 10).unwrap(), None);
    folder.replace("a/b.json", b"one").unwrap();
    // What a crash left of another try.
    std::fs::write(folder.path().join("a/b.json.tmp"), "half").unwrap();
    folder.replace("a/b.json", b"two").unwrap();
    assert_eq!(folder.read("a/b.json", 3).unwrap().as_deref(), Some(&b"two"[..]));
    drop(folder.draft("a/b.json", b"three").unwrap());
    assert_eq!(names(&folder, ""), ["a/b.json", "lock"]);
    assert_eq!(
        (folder.remove("a/b.json").unwrap(), folder.remove("a/b.json").unwrap()),
        (true, false)
    );
}

#[test]
fn what_is_too_large_is_not_read() {
    let (_scratch, folder) = folder();
    folder.replace("a", b"four").unwrap();
    let refused = folder.read("a", 3).unwrap_err();
    assert!(
        matches!(refused, FileError::TooLarge { limit: 3, .. }) && refused.is_damage(),
        "{refused}"
    );
}

#[test]
fn names_never_lead_out_of_the_folder() {
    let (scratch, folder) = folder();
    std::fs::write(scratch.path().join("outside"), "secret").unwrap();
    for name in ["", ".", "..", "../outside", "a/../../outside", "/etc/passwd", "a//b"] {
        assert!(folder.read(name, 100).is_err(), "{name}");
        assert!(folder.replace(name, b"x").is_err(), "{name}");
        assert!(folder.lines(name).is_err(), "{name}");
        assert!(folder.remove(name).is_err(), "{name}");
        assert!(folder.quarantine(name).is_err(), "{name}");
    }
    assert_eq!(
        std::fs::read_to_string(scratch.path().join("outside")).unwrap(),
        "secret"
    );
}

#[cfg(unix)]
#[test]
fn links_are_never_followed() {
    use std::os::unix::fs::symlink;

    let (scratch, folder) = folder();
    let file = scratch.path().join("file");
    let elsewhere = scratch.path().join("elsewhere");
    std::fs::write(&file, "secret").unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("x.json"), "secret").unwrap();
    let plant = |target: &Path, name: &str| symlink(target, folder.path().join(name)).unwrap();
    plant(&file, "a.json");
    plant(&file, "b.json.tmp");
    plant(&elsewhere, "nested");
    plant(&scratch.path().join("nowhere"), "dangling");

    assert!(folder.read("a.json", 100).unwrap_err().is_damage());
    assert!(folder.lines("a.json").is_err());
    assert!(folder.lines("dangling").is_err());
    assert!(folder.read("nested/x.json", 100).is_err());
    assert!(folder.replace("nested/y.json", b"x").is_err());
    assert!(folder.remove("nested/x.json").is_err());
    assert_eq!(names(&folder, ""), ["lock"]);
    assert_eq!(names(&folder, "nested"), [""; 0]);

    folder.replace("b.json", b"ours").unwrap();
    folder.replace("a.json", b"ours").unwrap();
    plant(&file, "c.json");
    assert_eq!(folder.quarantine("c.json").unwrap(), "c.json.damaged");
    assert!(folder.remove("c.json.damaged").unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    assert!(!scratch.path().join("nowhere").exists());
}

#[cfg(unix)]
#[test]
fn a_lock_that_is_a_link_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(scratch.path().join("nowhere"), scratch.path().join("lock")).unwrap();
    assert!(DataFolder::open(scratch.path()).is_err());
    assert!(!scratch.path().join("nowhere").exists());
}

#[cfg(unix)]
#[test]
fn only_the_owner_reads_what_is_made() {
    use std::os::unix::fs::PermissionsExt;

    let (_scratch, folder) = folder();
    folder.replace("nested/document", b"x").unwrap();
    folder.lines("lines").unwrap();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(folder.path().join(name)).unwrap();
        format!("{:o}", metadata.permissions().mode() & 0o777)
    };
    let modes = ["", "lock", "nested", "nested/document", "lines"].map(mode);
    assert_eq!(modes, ["700", "600", "700", "600", "600"]);
}

#[test]
fn what_is_damaged_is_kept_under_a_free_name() {
    let (_scratch, folder) = folder();
    let mut moved = Vec::new();
    for text in ["one", "two", "three"] {
        folder.replace("a.json", text.as_bytes()).unwrap();
        moved.push(folder.quarantine("a.json").unwrap());
    }
    assert_eq!(moved, ["a.json.damaged", "a.json.damaged-2", "a.json.damaged-3"]);
    assert_eq!(folder.read("a.json.damaged", 10).unwrap().as_deref(), Some(&b"one"[..]));
    folder.replace("a.json", b"four").unwrap();
    assert_eq!(folder.quarantine_copy("a.json").unwrap(), "a.json.damaged-4");
    assert_eq!(folder.read("a.json", 10).unwrap().as_deref(), Some(&b"four"[..]));
    std::fs::create_dir(folder.path().join("b.json")).unwrap();
    assert!(folder.read("b.json", 10).unwrap_err().is_damage());
    assert_eq!(folder.quarantine("b.json").unwrap(), "b.json.damaged");
}

#[test]
fn each_principal_has_its_files() {
    let (_scratch, folder) = folder();
    for name in ["a.json", "x/@/b.json", "@ann/a.json", "@ann/@bob/b.json"] {
        folder.replace(name, b"x").unwrap();
    }
    let names = |principal: &str| {
        let found = folder.list_of(&principal.into()).unwrap();
        let mut names: Vec<_> = found.into_iter().map(|found| found.name).collect();
        names.sort();
        names
    };
    assert_eq!(names("local"), ["a.json", "lock", "x/@/b.json"]);
    assert_eq!(names("ann"), ["@ann/@bob/b.json", "@ann/a.json"]);
    assert_eq!(names("bob"), [""; 0]);
    assert_eq!(names(&"x".repeat(2000)), [""; 0]);
}

#[test]
fn a_file_is_found_without_reading_it() {
    let (_scratch, folder) = folder();
    folder.replace("a/b.json", b"four").unwrap();
    let found = folder.find("a/b.json").unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.len), ("a/b.json", 4));
    assert_eq!(folder.list("a").unwrap(), [found]);
    assert_eq!(folder.find("a/c.json").unwrap(), None);
    assert!(folder.find("a").unwrap_err().is_damage());
}

#[test]
fn a_log_detects_external_changes() {
    let (_scratch, folder) = folder();
    let path = folder.path().join("log");
    let mut log = folder.lines("log").unwrap();
    log.append(b"one\n").unwrap();
    assert!(log.is_current());
    folder.replace("log", b"two\n").unwrap();
    assert!(cfg!(not(unix)) || !log.is_current(), "another file of the same length");
    let log = folder.lines("log").unwrap();
    std::fs::write(&path, "").unwrap();
    assert!(!log.is_current());
    std::fs::remove_file(&path).unwrap();
    assert!(!log.is_current());
}

#[test]
fn a_torn_line_is_never_glued_to_the_next_one() {
    let (_scratch, folder) = folder();
    std::fs::write(folder.path().join("log"), "\u{feff}one\r\n\r\n \ntwo\nto").unwrap();
    let mut log = folder.lines("log").unwrap();
    log.append(b"three\n").unwrap();
    log.append(b"four\nfive\n").unwrap();
    let expected = ["one", "two", "to", "three", "four", "five"].map(ToOwned::to_owned);
    assert_eq!(lines(&folder, "log", 100), (expected.into(), Some(0)));
    assert_eq!(log.len(), std::fs::metadata(folder.path().join("log")).unwrap().len());
}

#[test]
fn an_overlong_line_is_skipped_and_counted() {
    let (_scratch, folder) = folder();
    let text = format!("one\n{}\ntwo\n{}", "x".repeat(300_000), "y".repeat(100));
    std::fs::write(folder.path().join("log"), text).unwrap();
    assert_eq!(lines(&folder, "log", 50), (vec!["one".into(), "two".into()], Some(2)));
    assert_eq!(lines(&folder, "nothing", 50), (vec![], None));
}

#[test]
fn a_log_is_shortened_to_its_end() {
    let (_scratch, folder) = folder();
    let mut log = folder.lines("log").unwrap();
    log.append(b"one\n").unwrap();
    let offset = log.append(b"two\n").unwrap();
    log.append(b"three\n").unwrap();
    log.keep_from(offset, true).unwrap();
    log.append(b"four\n").unwrap();
    assert_eq!(lines(&folder, "log", 50).0, ["two", "three", "four"]);
    log.keep_from(log.len(), false).unwrap();
    assert!(log.is_empty());
    log.append(b"five\n").unwrap();
    assert_eq!(lines(&folder, "log", 50).0, ["five"]);
}

#[test]
fn errors_say_what_was_tried_and_where() {
    let (_scratch, folder) = folder();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = folder.replace("file/document", b"x").unwrap_err();
    assert!(refused.to_string().contains("is no plain file or folder"), "{refused}");
    std::fs::create_dir_all(folder.path().join("document/nested")).unwrap();
    let refused = folder.replace("document", b"x").unwrap_err();
    assert!(
        refused.to_string().contains("document` cannot be replaced; check"),
        "{refused}"
    );
    assert_eq!(names(&folder, ""), ["file", "lock"]);
}

#[test]
fn a_replacement_that_the_disk_does_not_confirm_is_visible_and_says_so() {
    let (_scratch, folder) = folder();
    folder.replace("a/b.json", b"one").unwrap();
    let failing = FailingSyncs::of(folder.path().join("a"));
    let error = folder.replace("a/b.json", b"two").unwrap_err();
    assert!(matches!(error, FileError::NotDurable { .. }), "{error}");
    assert_eq!(folder.read("a/b.json", 3).unwrap().as_deref(), Some(&b"two"[..]));
    drop(failing);
    let failing = FailingSyncs::of(folder.path().join("a/b.json.tmp"));
    let error = folder.replace("a/b.json", b"six").unwrap_err();
    assert!(matches!(error, FileError::Io { tried: "written", .. }), "{error}");
    assert_eq!(folder.read("a/b.json", 3).unwrap().as_deref(), Some(&b"two"[..]));
    drop(failing);
    folder.replace("a/b.json", b"ten").unwrap();
}

#[test]
fn a_shortened_log_whose_name_is_not_durable_goes_on() {
    let (_scratch, folder) = folder();
    let mut log = folder.lines("log").unwrap();
    let offset = log.append(b"one\n").and_then(|_| log.append(b"two\n")).unwrap();
    let failing = FailingSyncs::of(folder.path());
    assert!(matches!(log.keep_from(offset, true), Err(FileError::NotDurable { .. })));
    drop(failing);
    log.append(b"three\n").unwrap();
    assert_eq!(lines(&folder, "log", 50).0, ["two", "three"]);
}

#[test]
fn only_old_drafts_of_the_stores_own_files_are_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = scratch.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "half").unwrap();
    };
    for name in [
        "a.json.tmp",
        "@ann/b.json.tmp",
        "notes.tmp",
        "a.json",
        "other/c.json.tmp",
    ] {
        write(name);
    }
    let folder = DataFolder::open(scratch.path()).unwrap();
    // Written since: by a program that knows nothing of the lock.
    write("late.json.tmp");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    let late = std::fs::File::options()
        .write(true)
        .open(scratch.path().join("late.json.tmp"));
    late.unwrap().set_modified(later).unwrap();
    let removed = folder.remove_drafts(|nested| nested != "other", |name| name.ends_with(".json"));
    assert_eq!(removed, 2);
    let expected = ["a.json", "late.json.tmp", "lock", "notes.tmp", "other/c.json.tmp"];
    assert_eq!(names(&folder, ""), expected);
}
