//! Processes that are killed while they write.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Runs the ignored test `child` as a process of its own in `folder`, kills it at some moment of
/// round `round`, and returns what it [acknowledged](acknowledge), in order.
pub(crate) fn kill(child: &str, folder: &Path, round: usize) -> Vec<String> {
    kill_within(Duration::from_millis(30), child, folder, round)
}

/// Kills a child as [`kill`] does, at some moment `within` this time.
pub(crate) fn kill_within(within: Duration, child: &str, folder: &Path, round: usize) -> Vec<String> {
    let mut process = spawn(child, folder, round);
    let mut lines = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "ready"), "the child ended by itself");
    // Not a moment that any test relies on: wherever it falls is right.
    let within = u64::try_from(within.as_micros()).unwrap();
    std::thread::sleep(Duration::from_micros((round as u64 * 7919) % within));
    // SIGKILL on Unix.
    process.kill().unwrap();
    let acknowledged = lines.filter_map(|line| Some(line.strip_prefix("acknowledged ")?.to_owned()));
    let acknowledged = acknowledged.collect();
    process.wait().unwrap();
    acknowledged
}

/// Runs the ignored test `child` as [`kill`] does, and lets it end.
pub(crate) fn finish(child: &str, folder: &Path, round: usize) {
    let ended = spawn(child, folder, round).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "the child failed: {said}");
}

fn spawn(child: &str, folder: &Path, round: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("FOLDER", folder)
        .env("ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the folder and the round of a child process.
pub(crate) fn begin() -> (PathBuf, String) {
    (std::env::var("FOLDER").unwrap().into(), std::env::var("ROUND").unwrap())
}

/// Reports from a child process that it is about to write, on a line of its own, after that of
/// the test harness.
pub(crate) fn ready() {
    println!("\nready");
}

/// Reports from a child process that `what` is written.
pub(crate) fn acknowledge(what: &str) {
    println!("acknowledged {what}");
}
