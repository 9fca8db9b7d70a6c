//! The chat at a pseudo-terminal: keys are sent, and the screen is read.

use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::example_programs::{PATIENCE, example, streamed};
use crate::support::model_server::ModelServer;

/// A chat whose terminal is made by `script`, which passes keys on and prints the screen.
struct Screen {
    running: Child,
    output: ChildStdout,
    shown: String,
}

impl Screen {
    fn open(folder: &std::path::Path) -> Self {
        Self::open_with(folder, &[])
    }

    fn open_with(folder: &std::path::Path, variables: &[(&str, &str)]) -> Self {
        let chat = example("chat", &[], folder);
        let program = chat.as_std().get_program().to_str().expect("a path").to_owned();
        let mut script = Command::new("script");
        script.args(["-qfec", &format!("'{program}'"), "/dev/null"]);
        script
            .current_dir(folder)
            .env_clear()
            .env("TERM", "xterm")
            .env("PATH", "/usr/bin:/bin")
            .envs(variables.iter().copied());
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut running = script.spawn().expect("`script` of util-linux is installed");
        let output = running.stdout.take().expect("a pipe");
        Self {
            running,
            output,
            shown: String::new(),
        }
    }

    async fn keys(&mut self, keys: &str) {
        let input = self.running.stdin.as_mut().expect("a pipe");
        input.write_all(keys.as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }

    /// Reads the screen until it shows `text`, and forgets what was before.
    async fn until(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return;
            }
            let read = timeout(PATIENCE, self.output.read(&mut bytes)).await;
            let read = read
                .unwrap_or_else(|_| panic!("no `{text}` in {}", self.shown))
                .unwrap();
            assert!(read > 0, "it ended without `{text}`: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }
}

/// Returns `true` if this machine has a program that makes pseudo-terminals.
fn has_terminals() -> bool {
    let found = std::process::Command::new("script").arg("--version").output().is_ok();
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(found || !is_required, "`script` of util-linux is not installed");
    if !found {
        println!("SKIPPED: `script` of util-linux is not installed");
    }
    found
}

#[tokio::test]
async fn lines_are_edited_completed_and_kept() {
    if !has_terminals() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::open(folder.path());
    screen.until("> ").await;
    // Ctrl-A goes to the beginning of the line.
    screen.keys("is 6 * 7?\u{1}What \r").await;
    screen.until("says:\r\n42\r\n").await;
    screen.until("> ").await;
    screen.keys("/modle\r").await;
    screen.until("did you mean `/model`?").await;
    screen.until("> ").await;
    screen.keys("/model low\r").await;
    screen.until("the Low tier answers from now on").await;
    screen.until("> ").await;
    screen.keys("/dr\t\r").await;
    screen.until("this agent does not dream").await;
    screen.until("> ").await;
    // A question taken back, and changed: the conversation before stays as it was.
    screen.keys("/edit\r").await;
    screen.until("this is `main~1` now").await;
    screen.until("What is 6 * 7?").await;
    screen.keys("\u{8}\u{8}8?\r").await;
    screen.until("says:\r\n48\r\n").await;
    screen.until("> ").await;
    screen.keys("/undo\r").await;
    screen.until("this is `main~2` now").await;
    screen.until("> ").await;
    screen.keys("/session main\r").await;
    screen.until("> ").await;
    // A typo is no decision, and a call that is refused does not run.
    screen.keys("Please read the file notes.txt\r").await;
    screen.until("Run it? [y/N/edit]").await;
    screen.keys("maybe\r").await;
    screen.until("answer one of y/N/edit").await;
    screen.until("Run it? [y/N/edit]").await;
    screen.keys("n\r").await;
    screen.until("the user refused this call").await;
    screen.until("> ").await;
    screen.keys("\u{4}").await;
    let ended = timeout(PATIENCE, screen.running.wait()).await.expect("it ends");
    assert!(ended.unwrap().success());

    let history = std::fs::read_to_string(folder.path().join("data/chat/history.txt")).unwrap();
    let lines: Vec<_> = history.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "What is 6 * 7?",
            "/modle",
            "/model low",
            "/dreams",
            "/edit",
            "What is 6 * 8?",
            "/undo",
            "/session main",
            "Please read the file notes.txt"
        ]
    );
    // The next run has them.
    let mut screen = Screen::open(folder.path());
    screen.until("> ").await;
    screen.keys(&("\u{1b}[A".repeat(9) + "\r")).await;
    screen.until("says:\r\n42\r\n").await;
}

/// A person sees what a slow model does, and answers in colours; without colours if they ask for
/// none.
#[tokio::test]
async fn silence_is_told_and_markdown_coloured() {
    if !has_terminals() {
        return;
    }
    for (no_color, expected) in [
        (
            "",
            "\u{1b}[1mTitle\u{1b}[22;39m\r\n• \u{1b}[1mbold\u{1b}[22m, \u{1b}[36mcode\u{1b}[39m\r\n",
        ),
        ("1", "# Title\r\n- **bold**, `code`\r\n"),
    ] {
        let (answer, waits) = std::sync::mpsc::channel::<()>();
        let server = ModelServer::start(move |_, _| {
            // An error means that the test is over.
            let _ = waits.recv();
            (200, streamed("# Title\n- **bold**, `code`"))
        });
        let folder = tempfile::tempdir().unwrap();
        let endpoint = format!("{}/v1", server.endpoint);
        let variables = [
            ("OPENAI_BASE_URL", endpoint.as_str()),
            ("OPENAI_MODEL", "any"),
            ("NO_COLOR", no_color),
        ];
        let mut screen = Screen::open_with(folder.path(), &variables);
        screen.until("> ").await;
        screen.keys("Hello\r").await;
        screen.until("… asking the model, ").await;
        answer.send(()).unwrap();
        screen.until(expected).await;
        screen.until("model calls: 1").await;
        screen.until("> ").await;
        screen.keys("\u{4}").await;
        let ended = timeout(PATIENCE, screen.running.wait()).await.expect("it ends");
        assert!(ended.unwrap().success());
    }
}
