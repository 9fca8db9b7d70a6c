//! The examples as a new user runs them: their output, their first start in an empty folder,
//! their end.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::model_server::ModelServer;
#[cfg(all(unix, feature = "rabbitmq"))]
use crate::support::networks::broker::Exchange;
use crate::{handlers, remote_tools_example};

/// Maximum duration of anything that a program does, so that one that hangs fails the test
/// instead of blocking it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Every example, and arguments with which it ends by itself.
const EXAMPLES: [(&str, &[&str]); 38] = [
    ("quickstart", &[]),
    ("agent_as_tool", &[]),
    ("approval", &[]),
    ("hooks", &[]),
    ("layers", &[]),
    ("memory", &[]),
    ("own_model", &[]),
    ("resume_after_crash", &[]),
    ("stream", &[]),
    ("typed_answer", &[]),
    ("tiers_and_fallback", &[]),
    ("two_principals", &[]),
    ("own_store", &[]),
    ("mcp_client", &[]),
    ("openapi_tools", &[]),
    ("search_documents", &[]),
    ("test_an_agent", &[]),
    ("check_answers", &[]),
    ("background_work", &[]),
    ("a2a", &[]),
    ("research_team", &[]),
    ("wisps", &[]),
    ("pipeline", &[]),
    ("reminders", &[]),
    ("dreams", &[]),
    ("chat", &["hello"]),
    ("handlers", &[]),
    ("remote_tools", &[]),
    ("remote_scripts", &[]),
    ("distributed", &["--ask", "What is 6 * 7?"]),
    ("cluster", &["--help"]),
    ("joke_service", &["--demo"]),
    ("mcp_server", &["--list"]),
    ("mcp_bridge", &[]),
    ("a2a_http", &[]),
    ("axum_sse", &[]),
    ("evaluate", &["--limit", "1"]),
    ("full_agent", &["--ask", "hello"]),
];

/// Returns the examples that these features build.
fn built() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let is_built = |name: &str| match name {
        "mcp_server" | "mcp_bridge" | "mcp_client" => cfg!(feature = "mcp-server"),
        "openapi_tools" => cfg!(feature = "rest"),
        "search_documents" => cfg!(feature = "files"),
        "check_answers" => cfg!(feature = "eval"),
        "a2a" => cfg!(feature = "a2a"),
        "reminders" => cfg!(feature = "scheduling"),
        "remote_scripts" => cfg!(all(feature = "scripts", unix)),
        "a2a_http" => cfg!(all(feature = "a2a", feature = "a2a-server")),
        "axum_sse" => cfg!(feature = "web-server"),
        "wisps" | "pipeline" => cfg!(feature = "wisps"),
        "cluster" => cfg!(all(feature = "postgres", feature = "rabbitmq")),
        _ => true,
    };
    EXAMPLES.into_iter().filter(move |(name, _)| is_built(name))
}

/// The variable by which a service has the offline model.
pub(crate) const OFFLINE: (&str, &str) = ("ROCKBOT_LLM__PROVIDER", "offline");

/// An example, to be run in `folder` with nothing in its environment.
pub(crate) fn example(name: &str, arguments: &[&str], folder: &Path) -> Command {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("examples");
    let program = built.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "{name} is not built: run `cargo build --examples` first"
    );
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) async fn run(name: &str, arguments: &[&str], folder: &Path) -> Output {
    let ended = timeout(PATIENCE, example(name, arguments, folder).output());
    ended.await.expect("it ends by itself").unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[tokio::test]
async fn handlers_tells_what_became_of_each_message() {
    let mut out = Vec::new();
    handlers::run(&mut out).await.unwrap();
    insta::assert_snapshot!(text(&out));
}

#[tokio::test]
async fn remote_tools_asks_the_other_host() {
    let mut out = Vec::new();
    remote_tools_example::run(&mut out).await.unwrap();
    insta::assert_snapshot!(text(&out));
}

#[cfg(all(feature = "scripts", target_os = "linux"))]
#[tokio::test]
async fn remote_scripts_run_where_the_manager_is() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("remote_scripts", &[], folder.path()).await;
    let said = text(&output.stdout);
    if let Some((_, reason)) = said.split_once("no scripts run on this machine: ") {
        let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
        assert!(!is_required, "{reason}");
        return println!("SKIPPED: {reason}");
    }
    insta::assert_snapshot!(said);
}

#[cfg(all(feature = "eval", feature = "files", feature = "mcp-server", feature = "rest"))]
/// The output of the short examples, word for word but for random ids.
#[tokio::test]
async fn the_short_examples_print_what_they_teach() {
    let names = [
        "typed_answer",
        "tiers_and_fallback",
        "two_principals",
        "own_store",
        "mcp_client",
        "mcp_bridge",
        "openapi_tools",
        "search_documents",
        "test_an_agent",
        "check_answers",
    ];
    let mut printed = String::new();
    for (name, arguments) in built().filter(|(name, _)| names.contains(name)) {
        let folder = tempfile::tempdir().unwrap();
        let output = run(name, arguments, folder.path()).await;
        printed += &format!("== {name}\n{}\n", text(&output.stdout));
    }
    // Ids of memories are random.
    let without_ids = |line: &str| match line.split_once("Saved as `") {
        Some((before, _)) => format!("{before}Saved as …"),
        None => match (line.find("- ["), line.find("] (")) {
            (Some(from), Some(to)) => format!("{}{}", &line[..from + 3], &line[to..]),
            _ => line.to_owned(),
        },
    };
    let printed: Vec<_> = printed.lines().map(without_ids).collect();
    insta::assert_snapshot!(printed.join("\n"));
}

#[cfg(feature = "web-server")]
#[tokio::test]
async fn axum_sse_prints_the_events_of_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("axum_sse", &[], folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    // How many deltas bring a text depends on the moment.
    let printed = text(&output.stdout);
    let (before, deltas) = printed.split_once("delta ").expect("the answer is streamed");
    let joined = format!("{before}delta {}", deltas.replace("\ndelta ", ""));
    insta::assert_snapshot!(joined);
}

#[cfg(all(feature = "a2a", feature = "a2a-server"))]
#[tokio::test]
async fn a2a_http_prints_the_card_and_the_answer_of_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("a2a_http", &[], folder.path()).await;
    let expected = "\"librarian\": \"Knows the books of the library.\"\n\"TASK_STATE_COMPLETED\"\n\"On the shelves: Emma by Jane \
                    Austen.\"\nThe librarian says: On the shelves: Emma by Jane Austen.\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

/// Killed before its results are there, and started again: each of them is said once.
#[tokio::test]
async fn work_in_the_background_goes_on_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut killed = example("background_work", &[], folder.path()).spawn().unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let question = "> Which river is the longest, which mountain is the highest, and when is the tea ready?";
    for expected in [question, "I look into it, and tell you what I find."] {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        assert_eq!(line.as_deref(), Some(expected));
    }
    killed.kill().await.unwrap();
    let output = run("background_work", &[], folder.path()).await;
    let said = text(&output.stdout);
    let said: Vec<_> = said.lines().skip(2).collect();
    let (tea, places) = said.split_last().unwrap();
    assert_eq!(*tea, "The tea is ready. [$0.000050]");
    let places = places.join(" ");
    for place in ["The Nile, 6650 km.", "Mount Everest, 8849 m."] {
        assert_eq!(places.matches(place).count(), 1, "{said:?}");
    }
    assert_eq!(places.matches("$0.000050").count(), 2, "{said:?}");
    assert_eq!(
        text(&run("background_work", &[], folder.path()).await.stdout)
            .lines()
            .count(),
        2
    );
}

#[cfg(feature = "a2a")]
#[tokio::test]
async fn a2a_tells_the_answer_of_the_other_agent() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("a2a", &["--ask", "What is 17 * 4?"], folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let told: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("The mathematician"))
        .collect();
    // At once, as the answer to the question, or later; in any case once.
    assert_eq!(
        (said.lines().next(), told),
        (Some("> What is 17 * 4?"), vec!["The mathematician says: 68"])
    );
}

#[tokio::test]
async fn dreams_are_plans_that_a_person_applies_and_undoes() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("dreams", &[], folder.path()).await;
    let folded = "remembers: Lives in Bergen. Lives in Oslo. Likes green tea.";
    let all = "remembers: Lives in Bergen. likes green tea Lives in Oslo. Likes green tea.";
    let outdated =
        "  - [oslo] Lives in Oslo. (superseded by bergen); contradicts \"Lives in Bergen.\": nobody lives in two towns";
    let expected = [
        all,
        "duplicate-fold: fold 1 duplicates (applied)",
        "  = [tea] Likes green tea. (learned 2 times)",
        "  - [more-tea] likes green tea (superseded by tea); the same words",
        "contradiction-sweep: \"Lives in Oslo.\" is out of date (proposed)",
        outdated,
        folded,
        "contradiction-sweep: \"Lives in Oslo.\" is out of date (applied)",
        outdated,
        "remembers: Lives in Bergen. Likes green tea.",
        all,
    ];
    let said = text(&output.stdout);
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{}", text(&output.stderr));
    let plans = folder.path().join("data/dreams/dreams").read_dir().unwrap();
    let plans = plans.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("20"));
    assert_eq!(plans.count(), 2);
}

/// The chat shows the log of wisps of earlier runs.
#[cfg(feature = "wisps")]
#[tokio::test]
async fn the_chat_shows_the_wisps_that_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data/chat");
    std::fs::create_dir_all(&data).unwrap();
    let wisp = json!({
        "wispId": "w1", "batchId": "b", "principal": "local", "sessionId": "main", "timestamp": "2026-01-01T00:00:00Z",
        "description": "Read the mail.", "definitionHash": "h", "succeeded": true, "stepsCompleted": 2, "stepCount": 2,
        "durationMs": 30,
    });
    std::fs::write(data.join("wisp-executions.jsonl"), format!("{wisp}\n")).unwrap();
    let mut command = example("chat", &["--wisps"], folder.path());
    let mut chat = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(chat.stdout.take().unwrap()).lines();
    let mut input = chat.stdin.take().unwrap();
    let mut ask = async |words: &str, answer: usize| {
        input.write_all(format!("{words}\n").as_bytes()).await.unwrap();
        for _ in 1..answer {
            timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        }
        timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap()
    };
    let row = ask("/wisps", 3).await;
    assert!(
        row.starts_with("| w1 | ") && row.ends_with(" | Read the mail. | ok | 2 of 2 | 30 |"),
        "{row}"
    );
    assert_eq!(ask("/wisps failed", 1).await, "no wisp has failed yet");
    assert_eq!(ask("/wisps show w1", 2).await, "  \"wispId\": \"w1\",");
    drop(input);
    assert!(timeout(PATIENCE, chat.wait()).await.unwrap().unwrap().success());
}

/// The chat lists the plans of a cycle, shows one and takes it back.
#[tokio::test]
async fn the_chat_shows_and_undoes_dreams() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("data/chat/memory");
    std::fs::create_dir_all(&memory).unwrap();
    for (id, content) in [("0123456789ab", "Likes tea."), ("0123456789ac", "likes tea")] {
        let entry = json!({"id": id, "content": content, "createdAt": "2026-01-01T00:00:00Z"});
        std::fs::write(memory.join(format!("{id}.json")), entry.to_string()).unwrap();
    }
    let mut command = example("chat", &["--dreams"], folder.path());
    let mut chat = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(chat.stdout.take().unwrap()).lines();
    let mut input = chat.stdin.take().unwrap();
    let mut ask = async |words: &str| {
        input.write_all(format!("{words}\n").as_bytes()).await.unwrap();
        timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap()
    };
    assert_eq!(ask("/dreams").await, "there is no plan yet");
    let plan = ask("/dreams now").await;
    assert!(plan.ends_with("-duplicate-fold (applied): fold 1 duplicates"), "{plan}");
    let id = plan.split(' ').next().unwrap();
    let undone = ask(&format!("/dreams undo {id}")).await;
    assert_eq!(undone, format!("{id} (undone): fold 1 duplicates"));
    drop(input);
    assert!(timeout(PATIENCE, chat.wait()).await.unwrap().unwrap().success());
}

#[tokio::test]
async fn a_team_tells_its_results_in_one_answer_and_what_was_called_off() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("research_team", &[], folder.path()).await;
    assert_eq!(
        text(&output.stdout),
        "3 researchers work.\n3 results:\n- lake: Lake Baikal, 1642 m.\n- mountain: was called off\n\
         - river: The Nile, 6650 km.\n",
        "{}",
        text(&output.stderr)
    );
}

#[cfg(feature = "wisps")]
#[tokio::test]
async fn wisps_are_repaired_and_tell_what_failed_first() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("wisps", &[], folder.path()).await;
    assert_eq!(
        text(&output.stdout),
        "PARTIAL FAILURE: 1 of 2 wisps failed; do not run the others again.\n\
         [failed: External] Pay the printer. (2 of 3 steps)\n\
         Step `pay` failed (External): the bank is unavailable\n\
         Steps completed before: `find`, `name`\n\
         [ok] Pay the baker. (3 of 3 steps)\n\
         paid 20 euros to the baker\n",
        "{}",
        text(&output.stderr)
    );
}

/// Killed while a model thinks, and started again: no step that ended runs once more.
#[cfg(feature = "wisps")]
#[tokio::test]
async fn a_pipeline_goes_on_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut killed = example("pipeline", &[], folder.path()).spawn().unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let mut before = Vec::new();
    while before.last().is_none_or(|line| line != "thinks about coffee") {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        before.push(line.expect("it thinks about coffee"));
    }
    killed.kill().await.unwrap();
    let counted = ["counts coffee", "counts sugar", "counts tea"];
    before[..3].sort();
    assert_eq!(before[..3], counted);
    assert_eq!(
        before[3..],
        ["thinks about tea", "orders 20 of tea", "thinks about coffee"]
    );
    let rest = text(&run("pipeline", &[], folder.path()).await.stdout);
    let done = "Done: 20 of tea are on their way, 20 of coffee are on their way.\n";
    assert_eq!(rest, format!("thinks about coffee\norders 20 of coffee\n{done}"));
    assert_eq!(text(&run("pipeline", &[], folder.path()).await.stdout), done);
}

#[cfg(feature = "scheduling")]
#[tokio::test]
async fn reminders_come_when_they_are_due() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("reminders", &[], folder.path()).await;
    assert_eq!(
        text(&output.stdout),
        "> Remind me of the tea in 1 second.\n\
         I will remind you.\n\
         [patrol/report] Nothing has happened today.\n\
         [patrol/tea] Your tea is ready!\n\
         [patrol/stretch] Time to stretch.\n",
        "{}",
        text(&output.stderr)
    );
    let tasks = std::fs::read(folder.path().join("data/reminders/scheduled-tasks.json")).unwrap();
    let tasks: Value = serde_json::from_slice(&tasks).unwrap();
    assert_eq!(
        (tasks.as_array().unwrap().len(), &tasks[0]["name"]),
        (1, &json!("report"))
    );
}

/// A task that a person wrote into the file runs while the chat waits for a question, and its
/// answer is shown.
#[cfg(feature = "scheduling")]
#[tokio::test]
async fn the_chat_says_what_its_tasks_say() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data/chat");
    std::fs::create_dir_all(&data).unwrap();
    let task = json!([{"name": "greeting", "cronExpression": "@every 1s", "description": "hello", "runOnce": true}]);
    std::fs::write(data.join("scheduled-tasks.json"), task.to_string()).unwrap();
    let mut command = example("chat", &["--schedule"], folder.path());
    let mut chat = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(chat.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.starts_with("[patrol/greeting] "), "{line}");
    drop(chat.stdin.take());
    assert!(timeout(PATIENCE, chat.wait()).await.unwrap().unwrap().success());
}

#[test]
fn every_example_is_run_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = names
        .filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut run = EXAMPLES.map(|(name, _)| name);
    found.sort();
    run.sort_unstable();
    assert_eq!(found, run);
}

/// No network, no key, nothing in the folder.
#[tokio::test]
async fn every_example_runs_in_an_empty_folder() {
    for (name, arguments) in built() {
        let folder = tempfile::tempdir().unwrap();
        let output = run(name, arguments, folder.path()).await;
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert!(!output.stdout.is_empty(), "{name} prints nothing");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_argument_that_is_no_text_is_an_error_in_words() {
    use std::os::unix::ffi::OsStrExt;

    for name in ["full_agent", "distributed", "joke_service", "evaluate"] {
        let folder = tempfile::tempdir().unwrap();
        let mut program = example(name, &[], folder.path());
        program.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        let output = timeout(PATIENCE, program.output()).await.unwrap().unwrap();
        let expected = "error: the argument \"caf\\xE9\" is not valid UTF-8\n";
        assert_eq!(
            (output.status.code(), &*text(&output.stderr)),
            (Some(1), expected),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_empty_question_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments, problem) in [
        (
            "chat",
            &[" "][..],
            "the question is empty: write one, or give none to talk line by line",
        ),
        (
            "chat",
            &["", ""],
            "the question is empty: write one, or give none to talk line by line",
        ),
        (
            "full_agent",
            &["--ask", ""],
            "the question of `--ask` is empty: write one",
        ),
    ] {
        let output = run(name, arguments, folder.path()).await;
        let expected = format!("error: {problem}\n");
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(1), expected),
            "{name}"
        );
    }
}

/// The examples with a data folder.
const KEEPING_DATA: [&str; 10] = [
    "background_work",
    "chat",
    "dreams",
    "full_agent",
    "memory",
    "pipeline",
    "reminders",
    "research_team",
    "resume_after_crash",
    "wisps",
];

/// A file takes the place of the data folder, which stops the superuser, too.
#[tokio::test]
async fn an_unusable_data_folder_is_one_line_and_no_success() {
    for (name, arguments) in built() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "").unwrap();
        let output = run(name, arguments, folder.path()).await;
        let keeps_data = KEEPING_DATA.contains(&name);
        assert_eq!(output.status.code(), Some(i32::from(keeps_data)), "{name}");
        assert_eq!(output.stdout.is_empty(), keeps_data, "{name}");
        let problem = text(&output.stderr);
        if keeps_data {
            assert!(
                problem.to_lowercase().starts_with("error: ") && problem.contains("data/"),
                "{name}: {problem}"
            );
            assert_eq!(problem.lines().count(), 1, "{name}: {problem}");
        }
    }
}

/// Runs examples whose output is closed, as `| head -0` does.
#[tokio::test]
async fn a_closed_output_is_no_panic() {
    for (name, arguments) in built() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = example(name, arguments, folder.path()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = timeout(PATIENCE, child.wait_with_output());
        let output = ended.await.expect("it ends by itself").unwrap();
        let problem = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {problem}");
        assert!(!problem.contains("panicked"), "{name}: {problem}");
    }
}

#[tokio::test]
async fn the_full_agent_answers_and_keeps_what_is_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let soul = folder.path().join("data/full_agent/agent/soul.md");
    std::fs::create_dir_all(soul.parent().unwrap()).unwrap();
    std::fs::write(&soul, "You are mine.").unwrap();

    let ask = async |question| {
        let output = run("full_agent", &["--ask", question], folder.path()).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let says = "I am rockbot's offline model, not an LLM: I only match words to tools.\n";
    let taken = ask(r#"Take a note: "buy milk""#).await;
    assert_eq!(taken, format!("{says}`take_note` says:\nNoted.\n"));
    let read = ask("Read my notes.").await;
    assert_eq!(read, format!("{says}`read_notes` says:\nbuy milk\n\n"));

    let reviewed = ask(r#"Ask the reviewer: "Hi.""#).await;
    let told = format!("{says}`ask_reviewer` says:\n{}", says.trim_end());
    assert!(reviewed.starts_with(&told), "{reviewed}");

    assert_eq!(std::fs::read_to_string(&soul).unwrap(), "You are mine.");
    assert!(soul.with_file_name("directives.md").exists());
}

/// Users of a service must not be answered by a model that is none because a setting is missing
/// or misspelt.
#[tokio::test]
async fn the_full_agent_serves_nobody_by_a_model_that_was_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let told = async |settings: &str| {
        let config = folder.path().join("agent.toml");
        std::fs::write(&config, settings).unwrap();
        let arguments = ["--port", "0", "--config", config.to_str().unwrap()];
        let output = run("full_agent", &arguments, folder.path()).await;
        assert_eq!(output.status.code(), Some(1), "{settings}");
        let told = text(&output.stderr);
        told.lines().last().unwrap_or_default().to_owned()
    };
    let nothing = told("").await;
    assert!(
        nothing.starts_with("error: no model is configured: ") && nothing.contains("ROCKBOT_LLM__PROVIDER=offline"),
        "{nothing}"
    );
    let misspelt = told("[LMM.Balanced]\nModelId = \"m\"\n[LLM]\nProvider = \"offline\"").await;
    assert!(
        misspelt.contains("`LMM` in ") && misspelt.ends_with(" is not a setting; did you mean `LLM`?"),
        "{misspelt}"
    );
}

#[tokio::test]
async fn the_full_agent_keeps_everything_in_the_folder_of_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let config = folder.path().join("agent.toml");
    let settings = format!(
        "[AgentProfile]\nBasePath = \"{}\"\nSoulPath = \"who.md\"\n[ToolServices]\nFolder = \"tools\"\n",
        base.display()
    );
    std::fs::write(&config, settings).unwrap();
    std::fs::create_dir_all(base.join("tools")).unwrap();
    let arguments = [
        "--config",
        config.to_str().unwrap(),
        "--ask",
        "Take a note: \"buy milk\"",
    ];
    let output = run("full_agent", &arguments, folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let is_there = ["who.md", "directives.md", "turns", "conversations"].map(|name| base.join(name).exists());
    assert_eq!(is_there, [true; 4]);
    assert!(
        !folder.path().join("data").exists() && !base.join("agent").exists() && !base.join("tool-services").exists()
    );
}

/// The library only logs what it leaves out; a program without a subscriber says nothing of it.
#[cfg(feature = "mcp")]
#[tokio::test]
async fn the_chat_and_its_doctor_name_servers_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let servers = r#"{"mcpServers": {
        "typo": {"command": "x", "deniedTool": ["pay"]},
        "guarded": {"command": "x", "argGuards": [{"handler": "path-prefix"}]},
        "nowhere": {}
    }}"#;
    std::fs::write(folder.path().join("mcp.json"), servers).unwrap();
    let listed = "[[Mcp.Servers]]\nName = \"listed\"\nCommand = \"x\"\nDeniedTool = [\"pay\"]\n";
    std::fs::write(folder.path().join("agent.toml"), listed).unwrap();
    let arguments = ["--config", "agent.toml", "--mcp", "mcp.json"];
    let output = run("chat", &[&arguments[..], &["hello"]].concat(), folder.path()).await;
    let chat = text(&output.stderr);
    assert!(output.status.success(), "{chat}");
    let output = run("chat", &[&arguments[..], &["doctor"]].concat(), folder.path()).await;
    let doctor = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{doctor}");
    for problem in [
        "MCP server `typo` is not used: `deniedTool` is not a member of a server; did you mean `deniedTools`?",
        "MCP server `guarded` is not used: `argGuards` is not there: this host does not have guards of arguments",
        "MCP server `nowhere` is not used: it has neither `command` nor `url`: write how it is reached",
        "MCP server `listed` is not used: `Mcp.Servers.0.DeniedTool` in `agent.toml` is not a setting; did you mean \
         `DeniedTools`?",
    ] {
        assert!(chat.contains(&format!("WARN {problem}")), "{chat}");
        assert!(doctor.contains(&format!("problem  mcp: {problem}")), "{doctor}");
    }
}

/// Every section of a part that the chat has: the doctor reads what the host reads.
#[cfg(all(feature = "mcp-server", feature = "web", feature = "rest", feature = "files"))]
#[tokio::test]
async fn the_doctor_of_the_chat_says_the_same_as_the_chat() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data/chat");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("mcp.json"), r#"{"mcpServers": {}}"#).unwrap();
    let config = folder.path().join("agent.toml");
    let check = async |settings: &str, word: &str| {
        std::fs::write(&config, settings).unwrap();
        let output = run("chat", &["--config", "agent.toml", word], folder.path()).await;
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let all = "[Mcp]\nConfigPath = \"mcp.json\"\n[McpServer]\nAddress = \"127.0.0.1:0\"\nTools = \"*\"\n[WebTools]\nMaxSearchResults = 3\n\
        [[RestTools.Endpoints]]\nName = \"now\"\nUrlTemplate = \"https://api.example.org/now\"\n\
        [ServiceSearch]\nHints = true\n[FileTools]\nEnabled = true\n[Subagents]\nMaxConcurrentSubagents = 2\n[Scheduling]\nEnabled = true\n[Egress]\nAllowedHosts = [\"wiki.intern\"]\n";
    for word in ["hello", "doctor"] {
        let (is_well, told) = check(all, word).await;
        assert!(is_well, "{word}: {told}");
    }
    for (settings, problem) in [
        (
            "[LMM]\nModelId = \"m\"",
            "`LMM` in `agent.toml` is not a setting; did you mean `LLM`?",
        ),
        (
            "[Mcp]\nExposures = \"lazy\"",
            "`Mcp.Exposures` in `agent.toml` is not a setting; did you mean `Exposure`?",
        ),
        (
            "[Mcp]\nConfigPath = \"none.json\"",
            "data/chat/none.json` cannot be read",
        ),
        (
            "[RabbitMq]\nHostNam = \"b\"\n[Pulsar]\nHostName = \"b\"",
            "both `RabbitMq` and `Pulsar` are set",
        ),
    ] {
        for word in ["hello", "doctor"] {
            let (is_well, told) = check(settings, word).await;
            assert!(!is_well && told.contains(problem), "{word}: {told}");
        }
    }
}

/// Returns the standard error of the chat.
async fn told_by_the_chat(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = run("chat", arguments, folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[tokio::test]
async fn the_chat_says_what_an_answer_took() {
    let told = told_by_the_chat(&["What is 6 * 7?"]).await;
    let expected = "[model calls: 2, tool calls: 1, tokens: unknown, cost: $0.000000, turn: ";
    assert!(told.lines().any(|line| line.starts_with(expected)), "{told}");
}

/// An answer as a server streams it, in one piece.
pub(crate) fn streamed(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
    format!("event: message\ndata: {chunk}\n\nevent: message\ndata: [DONE]\n\n")
}

/// Piped text is shown to the model as a text of others, and a program reads the events.
#[tokio::test]
async fn the_chat_reads_standard_input_and_prints_events() {
    let server = ModelServer::start(|_, _| (200, streamed("A cat.")));
    let folder = tempfile::tempdir().unwrap();
    let mut chat = example("chat", &["--stdin", "--json", "What is this about?"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let mut running = chat.stdin(Stdio::piped()).spawn().unwrap();
    running
        .stdin
        .take()
        .unwrap()
        .write_all(b"Miso sleeps.\n")
        .await
        .unwrap();
    let output = timeout(PATIENCE, running.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let events = text(&output.stdout);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0], json!({"delta": "A cat."}));
    let end = &events.last().unwrap()["final"];
    assert_eq!((&end["text"], &end["status"]), (&json!("A cat."), &json!("answered")));
    let request = server.requests().remove(0).to_string();
    assert!(request.contains("Standard input:\\nMiso sleeps."), "{request}");

    // A person sees which statements the piped text alone makes.
    let server = ModelServer::start(|_, _| (200, streamed("The cat Miso sleeps until 11:30. Shall I wake her?")));
    let mut chat = example("chat", &["--stdin", "What does the cat do?"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let mut running = chat.stdin(Stdio::piped()).spawn().unwrap();
    let input = b"Miso sleeps until 11:30.\n";
    running.stdin.take().unwrap().write_all(input).await.unwrap();
    let output = timeout(PATIENCE, running.wait_with_output()).await.unwrap().unwrap();
    let told = text(&output.stderr);
    let expected = "  only stdin says: The cat Miso sleeps until 11:30.";
    assert!(told.lines().any(|line| line == expected), "{told}");

    // More than the bound is refused before the model is asked.
    let mut chat = example("chat", &["--stdin", "What is this about?"], folder.path());
    let mut running = chat.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    tokio::spawn(async move { input.write_all(&vec![b'x'; (1 << 20) + 1]).await });
    let output = timeout(PATIENCE, running.wait_with_output()).await.unwrap().unwrap();
    let expected = "error: standard input has more than 1048576 bytes: show the part that matters\n";
    assert_eq!(text(&output.stderr), expected);
}

/// The exact request of a user's first question. Tokens are estimated: 4 bytes each.
#[tokio::test]
async fn the_first_request_of_the_chat_is_small() {
    let server = ModelServer::start(|_, _| (200, streamed("391")));
    let folder = tempfile::tempdir().unwrap();
    let mut chat = example("chat", &["What is 17 * 23?"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    assert_eq!(text(&output.stdout), "391\n", "{}", text(&output.stderr));
    let request = server.requests().remove(0);
    let tools = request["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    let own = ["calculate", "read_file"];
    let of_memory = ["save_memory", "search_memory", "change_rules", "activate_tools"];
    assert_eq!(names, [&own[..], &of_memory].concat());
    let messages = request["messages"].as_array().unwrap();
    let beginnings = messages.iter().map(|message| message["content"].as_str().unwrap());
    let beginnings: Vec<_> = beginnings
        .map(|text| text.chars().take(24).collect::<String>())
        .collect();
    assert_eq!(beginnings.len(), 2, "{beginnings:?}");
    let tokens = request.to_string().len() / 4;
    assert!(tokens <= 650, "{tokens} tokens: {request}");
    let asked = messages[1]["content"].as_str().unwrap();
    // The mark and the time differ from run to run.
    let (_, question) = asked.split_once("]\n").unwrap();
    assert!(asked.starts_with("[Note ") && asked.contains(": It is "), "{asked}");
    let mut exact = request.clone();
    exact["messages"][1]["content"] = format!("[Note MARK: It is TIME]\n{question}").into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&exact).unwrap());
}

/// An answer that calls the calculator, in a native call or in text, and costs this many tokens.
fn calling(number: usize, tokens: u64) -> Value {
    let arguments = format!("{{\"expression\":\"6 * {number}\"}}");
    let message = match number {
        1 => json!({"content": format!("{{\"name\": \"calculate\", \"arguments\": {arguments}}}")}),
        _ => {
            let call = json!({"index": 0, "id": "c", "function": {"name": "calculate", "arguments": arguments}});
            json!({"tool_calls": [call]})
        }
    };
    json!({
        "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 0},
    })
}

#[tokio::test]
async fn the_chat_ends_a_turn_at_its_default_budget_and_shows_calls_in_text() {
    let mut number = 0;
    let server = ModelServer::start(move |_, body| {
        let answer = if body["tools"].is_null() {
            json!({"choices": [{"index": 0, "delta": {"content": "Not done."}, "finish_reason": "stop"}]})
        } else {
            calling(number, 90_000)
        };
        number += 1;
        (200, format!("data: {answer}\n\ndata: [DONE]\n\n"))
    });
    let folder = tempfile::tempdir().unwrap();
    let mut chat = example("chat", &["--trace", "What is 6 * 7?"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    let told = text(&output.stderr);
    // 200 000 tokens are used up by the third answer; the fourth concludes without tools.
    assert_eq!(server.requests().len(), 4, "{told}");
    assert!(text(&output.stdout).contains("Not done."), "{told}");
    let wanted = r#"the model wants calculate {"expression":"6 * "#;
    assert!(told.contains(&format!("{wanted}0\"}} [")), "{told}");
    assert!(told.contains(&format!("{wanted}1\"}}, read from its text [")), "{told}");
}

#[tokio::test]
async fn the_chat_shows_files_to_the_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "a picture").unwrap();
    let output = run(
        "chat",
        &["--trace", "--image", "cat.png", "Who is this?"],
        folder.path(),
    )
    .await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(answer.contains("I cannot see images and files."), "{answer}");
    assert!(
        told.contains(r#"Who is this? [image "cat.png", image/png, 9 bytes]"#),
        "{told}"
    );
    let output = run("chat", &["--image", "dog.png", "Who?"], folder.path()).await;
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("`dog.png` cannot be read"),
        "{}",
        text(&output.stderr)
    );
}

#[tokio::test]
async fn the_chat_sends_the_bytes_of_files_and_saves_the_images_of_answers() {
    let server = ModelServer::start(|_, request| {
        let asked = &request["messages"].as_array().unwrap().last().unwrap()["content"];
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}});
        assert_eq!(asked[1], image);
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,Bwg="}});
        let delta = json!({"content": "Here.", "images": [image]});
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
        (200, format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), [1, 2, 3]).unwrap();
    let mut chat = example("chat", &["--image", "cat.png", "In green, please."], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, chat.output()).await.unwrap().unwrap();
    let told = text(&output.stderr);
    assert_eq!(text(&output.stdout), "Here.\n", "{told}");
    assert_eq!(server.requests().len(), 1);
    let saved = told.lines().find_map(|line| line.strip_prefix("[image saved as "));
    let saved = saved.unwrap_or_else(|| panic!("{told}")).trim_end_matches(']');
    assert!(
        saved.starts_with("data/chat/images/") && saved.ends_with(".png"),
        "{saved}"
    );
    assert_eq!(std::fs::read(folder.path().join(saved)).unwrap(), [7, 8]);
}

#[tokio::test]
async fn the_chat_forks_a_conversation_at_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--trace", "--export", "branch.json"];
    let mut chat = example("chat", &arguments, folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let typed = "What is 6 * 7?\nWhat is 2 * 2?\n/fork 9 no\n/fork 1 branch\nWhat is 5 * 5?\n/quit\n";
    chat.stdin.take().unwrap().write_all(typed.as_bytes()).await.unwrap();
    let output = timeout(PATIENCE, chat.wait_with_output()).await.unwrap().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("this conversation has no question 9"), "{told}");
    let branch: Value = serde_json::from_slice(&std::fs::read(folder.path().join("branch.json")).unwrap()).unwrap();
    let asked = branch["entries"].as_array().unwrap().iter().step_by(2);
    let asked: Vec<_> = asked.map(|entry| entry["content"].as_str().unwrap()).collect();
    assert_eq!(asked, ["What is 6 * 7?", "What is 5 * 5?"]);
}

/// Returns what the chat prints and tells, with `typed` piped into it.
async fn piped_chat(typed: &[u8], arguments: &[&str], folder: &Path) -> (String, String) {
    let mut chat = example("chat", arguments, folder)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    chat.stdin.take().unwrap().write_all(typed).await.unwrap();
    let output = timeout(PATIENCE, chat.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn the_chat_lists_its_conversations_and_goes_on_with_one() {
    let folder = tempfile::tempdir().unwrap();
    piped_chat(b"What is 6 * 7?\n/session two\nWhat is 2 * 2?\n", &[], folder.path()).await;
    let typed = b"/sessions\n/resume nine\n/resume two\n/sessions\n/resume\n";
    let (said, told) = piped_chat(typed, &[], folder.path()).await;
    assert!(
        told.contains("there is no conversation `nine`; /sessions lists them"),
        "{told}"
    );
    // Times differ from run to run.
    let lines: Vec<_> = said.lines().collect();
    let listed = |line: &str, name: &str, question: &str| {
        assert!(
            line.starts_with(name) && line.ends_with(&format!(" ago  {question}")),
            "{said}"
        );
    };
    listed(lines[0], "  two  ", "What is 2 * 2?");
    listed(lines[1], "* main  ", "What is 6 * 7?");
    assert_eq!(lines[2..4], ["this is `two` now", "> What is 2 * 2?"], "{said}");
    let again = lines.iter().rposition(|line| line.starts_with("* two  ")).unwrap();
    listed(lines[again], "* two  ", "What is 2 * 2?");
    assert!(
        said.contains("this is `main` now\n> What is 6 * 7?\n") && said.trim_end().ends_with("42"),
        "{said}"
    );
}

#[tokio::test]
async fn the_chat_goes_on_from_a_summary_and_keeps_what_was_before() {
    let folder = tempfile::tempdir().unwrap();
    let typed = b"/compact\nWhat is 6 * 7?\nWhat is 5 * 5?\n/compact the numbers\nWhat is 2 * 2?\n\
        /save small.json\n/session main\n/save all.json\n";
    let (said, told) = piped_chat(typed, &[], folder.path()).await;
    assert!(told.contains("nothing was said in this conversation yet"), "{told}");
    let gone_on = "this is `main~1` now, which begins with this summary; `/session main` has it all";
    assert!(told.contains(gone_on), "{told}");
    assert!(said.contains("not an LLM"), "the summary is shown: {said}");
    let entries = |file: &str| {
        let json = std::fs::read(folder.path().join(file)).unwrap();
        let document: Value = serde_json::from_slice(&json).unwrap();
        let entries = document["entries"].as_array().unwrap().iter();
        let texts = entries.map(|entry| entry["content"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    let small = entries("small.json");
    assert!(
        small[0].starts_with("Summarize our conversation")
            && small[0].ends_with("nothing else. Above all keep the numbers."),
        "{small:?}"
    );
    assert_eq!((small.len(), &*small[2]), (4, "What is 2 * 2?"));
    let all = entries("all.json");
    assert_eq!((all.len(), &*all[0], &*all[2]), (4, "What is 6 * 7?", "What is 5 * 5?"));
}

#[tokio::test]
async fn a_piped_question_is_never_taken_for_an_approval() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "buy milk").unwrap();
    let questions = b"Read notes.txt\nWhat is 6 * 7?\n";
    let (said, told) = piped_chat(questions, &[], folder.path()).await;
    assert!(
        told.contains("refused: there is no terminal to ask at; --yes"),
        "{told}"
    );
    assert!(
        said.contains("`calculate` says:\n42\n") && !said.contains("buy milk"),
        "{said}"
    );
    let (said, _) = piped_chat(questions, &["--yes"], folder.path()).await;
    assert!(said.contains("buy milk") && said.contains("42"), "{said}");
}

#[tokio::test]
async fn input_that_is_no_text_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (said, _) = piped_chat(
        b"What is 6 * 7?\nWhat is \xff 2 * 3?\nWhat is 5 * 5?\n",
        &[],
        folder.path(),
    )
    .await;
    for result in ["says:\n42\n", "says:\n6\n", "says:\n25\n"] {
        assert!(said.contains(result), "{said}");
    }
}

/// Each way to run an agent without its server: what is said of the error.
#[tokio::test]
async fn an_error_is_said_once() {
    for (name, arguments) in [
        ("chat", &["hello"][..]),
        ("quickstart", &[]),
        ("full_agent", &["--ask", "hello"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut program = example(name, arguments, folder.path());
        program
            .env("OPENAI_BASE_URL", "http://127.0.0.1:9")
            .env("OPENAI_MODEL", "m");
        let output = timeout(PATIENCE, program.output()).await.unwrap().unwrap();
        let told = text(&output.stderr);
        // The log of a service is for its operator, and has its own line.
        let lines = told.lines().filter(|line| !line.starts_with('{'));
        let said: Vec<_> = lines.filter(|line| line.contains("cannot reach")).collect();
        assert_eq!(said.len(), 1, "{name}: {told}");
        assert_eq!(said[0].matches("cannot reach").count(), 1, "{name}: {told}");
        assert!(!said[0].contains("TurnOutcome"), "{name}: {told}");
        let logged = told
            .lines()
            .filter(|line| line.starts_with('{') && line.contains("cannot reach"));
        assert!(logged.count() <= 1, "{name}: {told}");
    }
}

#[tokio::test]
async fn the_full_agent_reviews_a_text_by_an_answer_of_a_type() {
    let server = ModelServer::start(|_, request| {
        let asked = request["messages"].to_string();
        assert!(
            asked.contains("Send it NOW!!") && asked.contains("At most 3 changes."),
            "{asked}"
        );
        let review = json!({"is_ready": false, "changes": ["Ask politely."]}).to_string();
        let message = json!({"role": "assistant", "content": review});
        (
            200,
            json!({"choices": [{"finish_reason": "stop", "message": message}]}).to_string(),
        )
    });
    let folder = tempfile::tempdir().unwrap();
    let mut agent = example("full_agent", &["--review", "Send it NOW!!"], folder.path());
    agent.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let output = timeout(PATIENCE, agent.output()).await.unwrap().unwrap();
    assert_eq!(
        text(&output.stdout),
        "not ready\n- Ask politely.\n",
        "{}",
        text(&output.stderr)
    );
}

#[tokio::test]
async fn the_chat_takes_a_conversation_to_another_session() {
    let folder = tempfile::tempdir().unwrap();
    let chat = async |arguments: &[&str]| {
        let output = run("chat", arguments, folder.path()).await;
        (output.status.success(), text(&output.stderr))
    };
    let told = chat(&["--session", "one", "--export", "one.json", "What is 6 * 7?"]).await;
    assert!(told.0, "{}", told.1);
    let told = chat(&[
        "--session",
        "two",
        "--import",
        "one.json",
        "--export",
        "two.json",
        "hello",
    ])
    .await;
    assert!(told.0, "{}", told.1);
    let read = |name| serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap();
    let (one, two): (Value, Value) = (read("one.json"), read("two.json"));
    assert_eq!(one["entries"][0]["content"], "What is 6 * 7?");
    let call = &one["entries"][1]["rounds"][0]["calls"][0];
    assert_eq!(call["result"][0]["text"], "42", "{call}");
    assert_eq!(
        two["entries"].as_array().unwrap()[..2],
        one["entries"].as_array().unwrap()[..]
    );
    assert_eq!(two["entries"].as_array().unwrap().len(), 4);
    let (succeeded, told) = chat(&["--session", "two", "--import", "one.json", "hello"]).await;
    assert!(
        !succeeded && told.contains("`two` has a conversation already"),
        "{told}"
    );
}

#[tokio::test]
async fn the_trace_says_why_each_message_was_shown_to_the_model() {
    let told = told_by_the_chat(&["--trace", "What is 6 * 7?"]).await;
    let lines: Vec<_> = told.lines().map(str::trim).collect();
    let expected = [
        "a request with 3 messages:",
        "1 instructions (host): You are a helpful assistant in a terminal. Use your tools when they help. Answer briefly.",
        "2 date and time (host): It is ",
        "3 user's message (user): What is 6 * 7?",
        "a request with 5 messages:",
        "1 to 3 as before",
        r#"4 model's answer (model): calculate {"expression":"6 * 7"}"#,
        "5 tool result (tool): 42",
    ];
    let mut rest = lines.iter();
    for line in expected {
        assert!(
            rest.any(|told| told.starts_with(line)),
            "`{line}` is not where it should be in {told}"
        );
    }
}

/// The full agent as a service, and the person at its terminal.
pub(crate) struct Service {
    child: Child,
    input: ChildStdin,
    screen: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
    /// The log so far.
    logged: Vec<Value>,
    address: String,
}

impl Service {
    async fn start(data: &Path) -> Self {
        Self::start_with(data, &[OFFLINE]).await
    }

    /// Starts the service with these variables in its environment.
    pub(crate) async fn start_with(data: &Path, environment: &[(&str, &str)]) -> Self {
        let arguments = ["--port", "0", "--data", data.to_str().unwrap()];
        let mut child = example("full_agent", &arguments, data)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut service = Self {
            input: child.stdin.take().unwrap(),
            screen: BufReader::new(child.stdout.take().unwrap()).lines(),
            errors: BufReader::new(child.stderr.take().unwrap()).lines(),
            logged: Vec::new(),
            child,
            address: String::new(),
        };
        let line = service.line().await;
        let address = line.strip_prefix("metrics and probes at http://");
        service.address = address.unwrap().trim_end_matches("/metrics").to_owned();
        service
    }

    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.screen.next_line()).await;
        line.expect("it prints a line").unwrap().unwrap()
    }

    pub(crate) async fn type_line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Status and body of a page.
    async fn page(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(PATIENCE, stream.read_to_string(&mut answer));
        read.await.expect("the page ends").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Waits until a page says this.
    async fn until(&self, path: &str, status: &str, body: &str) {
        let expected = (status.to_owned(), body.to_owned());
        let says = async {
            while self.page(path).await != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, says).await.expect("the page says so one day");
    }

    /// Sends SIGTERM; the lines of the log.
    pub(crate) async fn stop(self) -> Vec<Value> {
        send_signal(&self.child, "-TERM").await;
        self.log().await
    }

    /// Waits for the end; the lines of the log.
    async fn log(mut self) -> Vec<Value> {
        // Its input stays open meanwhile: a service does not wait for it.
        let _input = self.input;
        let ended = async {
            while let Some(line) = self.errors.next_line().await.unwrap() {
                self.logged.extend(log_line(&line));
            }
            self.child.wait().await.unwrap()
        };
        let status = timeout(PATIENCE, ended).await.expect("it ends within its deadline");
        assert_eq!(status.code(), Some(0), "{:#?}", self.logged);
        self.logged
    }

    /// Waits until this is logged.
    async fn logged(&mut self, message: &str) {
        let logged = async {
            loop {
                let line = self.errors.next_line().await.unwrap().expect("it logs this");
                self.logged.extend(log_line(&line));
                if self.logged.last().is_some_and(|line| line["message"] == message) {
                    return;
                }
            }
        };
        timeout(PATIENCE, logged).await.expect("it logs this");
    }
}

/// Returns a line of a log; `None` for a report of progress beside it.
fn log_line(line: &str) -> Option<Value> {
    (!line.starts_with('…')).then(|| serde_json::from_str(line).unwrap())
}

pub(crate) async fn send_signal(child: &Child, signal: &str) {
    let pid = child.id().unwrap().to_string();
    let told = Command::new("kill").args([signal, &pid]).status().await;
    assert!(told.unwrap().success());
}

/// A model server that holds its answers back until the test drops the sender.
fn held_back(answer: &'static str) -> (ModelServer, std::sync::mpsc::Sender<()>) {
    let (release, held) = std::sync::mpsc::channel();
    let server = ModelServer::start(move |_, _| {
        let _ = held.recv();
        let choice = json!({"message": {"content": answer}, "finish_reason": "stop"});
        (200, json!({"choices": [choice]}).to_string())
    });
    (server, release)
}

async fn asked(server: &ModelServer) {
    let is_asked = async {
        while server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, is_asked).await.expect("the model is asked");
}

#[cfg(unix)]
#[tokio::test]
async fn the_full_agent_ends_a_running_answer_before_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (server, release) = held_back("Nearly there.");
    let environment = [("OPENAI_BASE_URL", &*server.endpoint), ("OPENAI_MODEL", "m")];
    let mut service = Service::start_with(folder.path(), &environment).await;
    service.type_line("hello").await;
    asked(&server).await;
    send_signal(&service.child, "-INT").await;
    service.logged("told to stop; running turns end first").await;
    drop(release);
    assert_eq!(service.line().await, "Nearly there.");
    assert_eq!(service.log().await.last().unwrap()["message"], "stopped");
}

#[cfg(unix)]
#[tokio::test]
async fn the_chat_says_that_the_model_is_busy_and_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = ModelServer::advising(30_000, |_, _| (429, r#"{"error": "slow down"}"#.to_owned()));
    let mut chat = example("chat", &["hello"], folder.path());
    chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
    let mut chat = chat.spawn().unwrap();
    let mut told = BufReader::new(chat.stderr.take().unwrap()).lines();
    let line = timeout(PATIENCE, told.next_line())
        .await
        .expect("it says what it waits for");
    let expected = "… the model is busy: asking again in 30 s (Ctrl-C stops)";
    assert_eq!(line.unwrap().as_deref(), Some(expected));

    send_signal(&chat, "-INT").await;
    let status = timeout(PATIENCE, chat.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(1));
    let mut rest = Vec::new();
    while let Some(line) = told.next_line().await.unwrap() {
        rest.push(line);
    }
    assert_eq!(rest, ["", "stopped"], "it was not asked again");
    assert_eq!(server.requests().len(), 1);
}

#[cfg(all(unix, feature = "rabbitmq"))]
#[tokio::test]
async fn the_full_agent_starts_and_ends_over_a_broker_without_a_warning() {
    let Some(exchange) = Exchange::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let name = &*exchange.settings.exchange_name;
    let port = exchange.settings.port.to_string();
    let environment = [
        OFFLINE,
        ("ROCKBOT_RABBITMQ__HOSTNAME", &*exchange.settings.host_name),
        ("ROCKBOT_RABBITMQ__PORT", &*port),
        ("ROCKBOT_RABBITMQ__EXCHANGENAME", name),
        (
            "ROCKBOT_RABBITMQ__DEADLETTEREXCHANGENAME",
            &*exchange.settings.dead_letter_exchange_name,
        ),
        ("ROCKBOT_RABBITMQ__QUEUEPREFIX", name),
    ];
    for _ in 0..3 {
        let mut service = Service::start_with(folder.path(), &environment).await;
        service.logged("ready").await;
        let log = service.stop().await;
        let told: Vec<_> = log.iter().filter(|line| line["level"] != "INFO").collect();
        assert!(told.is_empty(), "{told:#?}");
        assert_eq!(log.last().unwrap()["message"], "stopped");
    }
    let of_the_agent = [
        "approval-decision",
        "full_agent-review",
        "full_agent-status",
        "tool-invoke",
        "user-feedback",
        "user-history-request",
        "user-message",
    ];
    let subscriptions = of_the_agent.map(|name| format!("full-agent.{name}"));
    exchange.delete(&subscriptions.each_ref().map(String::as_str)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_signal_stops_the_full_agent_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _release) = held_back("Never.");
    let environment = [("OPENAI_BASE_URL", &*server.endpoint), ("OPENAI_MODEL", "m")];
    let mut service = Service::start_with(folder.path(), &environment).await;
    service.type_line("hello").await;
    asked(&server).await;
    send_signal(&service.child, "-INT").await;
    service.logged("told to stop; running turns end first").await;
    send_signal(&service.child, "-INT").await;
    let log = service.log().await;
    assert_eq!(
        log.last().unwrap()["message"],
        "stopped at once; interrupted turns go on at the next start"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_signal_stops_the_chat_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // A server answers one request at a time, and the killed chat's is never answered.
    let (server, _release) = held_back("Never.");
    let (next_server, _next_release) = held_back("Never.");
    let chat = |arguments: &[&str], server: &ModelServer| {
        let mut chat = example("chat", arguments, folder.path());
        chat.env("OPENAI_BASE_URL", &server.endpoint).env("OPENAI_MODEL", "m");
        chat.stdin(Stdio::piped()).spawn().unwrap()
    };
    let mut killed = chat(&["hello"], &server);
    asked(&server).await;
    killed.kill().await.unwrap();

    // Its input ends, so it ends at once, but for the turn that it went on with.
    let mut ending = chat(&[], &next_server);
    asked(&next_server).await;
    drop(ending.stdin.take());
    let mut told = BufReader::new(ending.stderr.take().unwrap()).lines();
    let ending_line = async {
        let mut lines = Vec::new();
        while let Some(line) = told.next_line().await.unwrap() {
            lines.push(line.clone());
            if line == "ending what still runs … Ctrl-C stops it at once" {
                return;
            }
        }
        panic!("it has ended by itself: {lines:?}");
    };
    timeout(PATIENCE, ending_line).await.expect("it says what it waits for");
    send_signal(&ending, "-INT").await;
    let ended = timeout(PATIENCE, ending.wait()).await.expect("it ends").unwrap();
    assert!(ended.success());
}

#[cfg(unix)]
#[tokio::test]
async fn the_full_agent_serves_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path()).await;
    service.until("/readyz", "HTTP/1.1 200 OK", "ready\n").await;
    service.type_line(r#"Take a note: "buy milk""#).await;
    while service.line().await != "Noted." {}
    service.type_line("/good").await;
    assert_eq!(service.line().await, "thank you");

    service.type_line("/status").await;
    let told = service.line().await;
    assert!(told.starts_with("full-agent runs for "), "{told}");
    std::fs::write(folder.path().join("cat.png"), "a picture").unwrap();
    let file = folder.path().join("cat.png");
    service.type_line(&format!("/show {}", file.display())).await;
    assert_eq!(service.line().await, "it is shown with your next message");
    service.type_line("/show nothing.png").await;
    let told = service.line().await;
    assert!(told.starts_with("`nothing.png` cannot be read: "), "{told}");

    let (status, metrics) = service.page("/metrics").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    let counted = r#"rockbot_tool_invocations{tool_name="take_note",status="success"} 1"#;
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");
    let told = "# HELP rockbot_tool_invocations tool calls of every origin";
    assert!(metrics.lines().any(|line| line == told), "{metrics}");
    let alive = ("HTTP/1.1 200 OK".to_owned(), "alive\n".to_owned());
    assert_eq!(service.page("/livez").await, alive);

    let sign = folder.path().join("sign_of_life");
    assert!(sign.exists());
    let log = service.stop().await;
    assert!(!sign.exists(), "the subsystem was not stopped");
    // What the agent logs about a message stands in the trace of its sender.
    let asked = log.iter().find(|line| line["message"] == "model call").unwrap();
    let traces: Vec<_> = asked["spans"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|span| span["trace_id"].as_str())
        .collect();
    assert_eq!(traces, [traces[0]; 2], "the message's and the turn's: {asked}");
    let sender = asked["spans"][0]["traceparent"].as_str().unwrap();
    assert!(sender.starts_with(&format!("00-{}-", traces[0])), "{asked}");
    assert_eq!(log.last().unwrap()["message"], "stopped");
}

#[cfg(unix)]
#[tokio::test]
async fn the_full_agent_says_why_it_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let sign: PathBuf = folder.path().join("sign_of_life");
    std::fs::create_dir(&sign).unwrap();
    let service = Service::start(folder.path()).await;
    let why = format!(
        "the host is not ready: `sign_of_life`: `{}` cannot be written: Is a directory (os error 21)\n",
        sign.display()
    );
    service.until("/readyz", "HTTP/1.1 503 Service Unavailable", &why).await;
    service.stop().await;
}
