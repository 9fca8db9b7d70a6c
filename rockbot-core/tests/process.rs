//! Child processes, tried with real ones.

#![cfg(all(target_os = "linux", feature = "process"))]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::time::{Duration, Instant};

use rockbot_core::process::{Child, Command, Output};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// A time limit that no test reaches.
const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

fn lines(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.take_stdout().unwrap()).lines()
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    lines.next_line().await.unwrap().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns `true` if the process runs. A killed one may wait for its parent to take note of it.
fn runs(id: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn assert_ends(id: &str) {
    let ended = timeout(10 * SECOND, async {
        while runs(id) {
            sleep(SECOND / 100).await;
        }
    });
    ended.await.expect("the process ends");
}

/// A process whose child has a child, and their ids.
async fn family() -> (Child, [String; 2]) {
    let grandchild = "sleep 300 & echo $!; wait";
    let mut child = shell(&format!("sh -c '{grandchild}' & echo $!; wait")).spawn().unwrap();
    let mut lines = lines(&mut child);
    let ids = [next(&mut lines).await, next(&mut lines).await];
    assert!(ids.iter().all(|id| runs(id)), "{ids:?}");
    (child, ids)
}

#[tokio::test]
async fn what_a_process_started_ends_when_it_is_dropped_or_killed() {
    let (child, ids) = family().await;
    let exit = child.exit().clone();
    assert_eq!(exit.status(), None);
    drop(child);
    for id in &ids {
        assert_ends(id).await;
    }
    let (child, ids) = family().await;
    child.kill();
    assert!(!child.exit().wait().await.unwrap().success());
    for id in &ids {
        assert_ends(id).await;
    }
}

#[tokio::test]
async fn what_a_process_started_ends_when_it_ends_by_itself() {
    let output = shell("sleep 300 & echo $!").output(LONG).await.unwrap();
    assert!(output.is_success(), "{output:?}");
    assert_ends(text(&output.stdout)).await;
}

#[tokio::test]
async fn a_process_is_stopped_by_the_end_of_its_input_by_a_signal_or_by_force() {
    assert!(Command::new("cat").spawn().unwrap().stop().await);
    let sleeping = Command::new("sleep").arg("300").spawn().unwrap();
    let exit = sleeping.exit().clone();
    assert!(sleeping.stop().await);
    assert_eq!(exit.status().unwrap().to_string(), "signal: 15 (SIGTERM)");

    let mut stubborn = shell("trap '' TERM; echo $$; while :; do sleep 1; done")
        .spawn()
        .unwrap();
    let id = next(&mut lines(&mut stubborn)).await;
    let began = Instant::now();
    assert!(!stubborn.stop().await);
    assert!(began.elapsed() < 8 * SECOND);
    assert_ends(&id).await;
}

#[tokio::test]
async fn a_process_sees_its_own_variables_and_not_those_of_its_parent() {
    let command = Command::new("env").env("KEY", "sesame").env("LANG", "C.UTF-8");
    let debug = format!("{command:?}");
    assert!(debug.contains("KEY") && !debug.contains("sesame"), "{debug}");
    let output = command.output(LONG).await.unwrap();
    let mut names: Vec<_> = text(&output.stdout).lines().collect();
    assert!(
        names.contains(&"KEY=sesame") && names.contains(&"LANG=C.UTF-8"),
        "{names:?}"
    );
    // Cargo sets `CARGO_MANIFEST_DIR` and more for this test.
    let known = [
        "PATH=", "HOME=", "USER=", "LOGNAME=", "LC_ALL=", "TZ=", "TMPDIR=", "TEMP=", "KEY=", "LANG=",
    ];
    names.retain(|name| !known.iter().any(|known| name.starts_with(known)));
    assert_eq!(names, [""; 0]);
}

#[tokio::test]
async fn a_process_runs_in_its_folder_with_its_arguments_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let script = r#"pwd; printf '%s\n' "$@""#;
    let command = shell(script).args(["name", "$HOME *", "; echo b"]);
    let output = command.current_dir(&path).output(LONG).await.unwrap();
    let expected = format!("{}\n$HOME *\n; echo b\n", path.display());
    assert_eq!(text(&output.stdout), expected);
}

#[tokio::test]
async fn output_is_bounded_however_much_there_is() {
    let much = "head -c 5000000 /dev/zero | tr '\\0' x";
    let script = format!("echo begin; {much}; {much} >&2; echo the end >&2; exit 3");
    let output = shell(&script).max_stdout(8).max_stderr(10).output(LONG).await.unwrap();
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("begin\nxx", "xxthe end\n")
    );
    assert_eq!((output.status.unwrap().code(), output.is_truncated), (Some(3), true));
    assert!(!output.is_success());

    let exact = shell("printf 1234; printf 12 >&2").max_stdout(4).max_stderr(2);
    let exact = exact.output(LONG).await.unwrap();
    assert_eq!((text(&exact.stdout), text(&exact.stderr)), ("1234", "12"));
    assert!(!exact.is_truncated);
}

#[tokio::test]
async fn the_last_of_the_errors_are_kept_while_a_process_runs() {
    let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; echo done; cat";
    let mut child = shell(script).max_stderr(100).spawn().unwrap();
    assert_eq!(next(&mut lines(&mut child)).await, "done");
    let exit = child.exit().clone();
    while !exit.stderr().ends_with(b"the end\n") {
        sleep(SECOND / 100).await;
    }
    assert_eq!(exit.stderr().len(), 100);
    let described = exit.describe().await.unwrap();
    assert!(
        described.starts_with("it wrote: xxx") && described.ends_with("the end"),
        "{described}"
    );
    assert!(child.stop().await);
    let described = exit.describe().await.unwrap();
    assert!(
        described.starts_with("its process ended (exit status: 0); it wrote: xxx"),
        "{described}"
    );
}

#[tokio::test]
async fn a_process_is_killed_at_its_time_limit_with_what_it_started() {
    let began = Instant::now();
    let script = "sleep 300 & echo $!; echo why >&2; wait";
    let output = shell(script).output(SECOND).await.unwrap();
    assert!(began.elapsed() < 10 * SECOND);
    assert_eq!((output.status, text(&output.stderr)), (None, "why\n"));
    assert_ends(text(&output.stdout)).await;

    // The future that runs it is dropped.
    let folder = tempfile::tempdir().unwrap();
    let running = shell("echo $$ > id; sleep 300").current_dir(folder.path());
    timeout(SECOND, running.output(LONG)).await.unwrap_err();
    assert_ends(&std::fs::read_to_string(folder.path().join("id")).unwrap()).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_holds_up_no_output() {
    let began = Instant::now();
    let output = shell("setsid sleep 20 & echo $!").output(LONG).await.unwrap();
    assert!(output.is_success() && began.elapsed() < 10 * SECOND, "{output:?}");
}

#[tokio::test]
async fn input_is_written_while_output_is_read() {
    let input = "purr\n".repeat(100_000);
    let output = Command::new("cat").input(input.as_str()).output(LONG).await.unwrap();
    assert_eq!(text(&output.stdout), input);
    // A program that does not read its input.
    let deaf = Command::new("true").input(input).output(LONG).await.unwrap();
    assert!(deaf.is_success());
}

#[tokio::test]
async fn a_process_is_spoken_to_through_its_pipes() {
    let mut child = Command::new("cat").spawn().unwrap();
    let mut stdin = child.take_stdin().unwrap();
    let mut lines = lines(&mut child);
    for word in ["one", "two"] {
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(next(&mut lines).await, word);
    }
    assert!(child.take_stdin().is_none() && child.take_stdout().is_none());
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert!(child.exit().wait().await.unwrap().success());
}

#[tokio::test]
async fn output_is_heard_as_far_as_it_is_kept() {
    let (said, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let command = Command::new("sh")
        .args(["-c", "echo one; read line; echo two; echo three"])
        .max_stdout(9);
    let output = command.output_heard(LONG, |part| said.send(text(part).to_owned()).unwrap());
    assert_eq!(output.await.unwrap().stdout, b"one\ntwo\nt");
    let mut heard = String::new();
    while let Ok(part) = hears.try_recv() {
        heard.push_str(&part);
    }
    assert_eq!(heard, "one\ntwo\nt");
}

#[tokio::test]
async fn a_process_of_root_runs_as_another_user() {
    let script = "id -u; id -g; id -G";
    let own = shell(script).output(LONG).await.unwrap();
    let other = shell(script).user(65_534).output(LONG).await;
    if text(&own.stdout).starts_with("0\n") {
        assert_eq!(text(&other.unwrap().stdout), "65534\n65534\n65534\n")
    } else {
        assert_eq!(other.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied)
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let missing = Command::new("/no/such/program");
    let error: std::io::Result<Output> = missing.output(LONG).await;
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}
