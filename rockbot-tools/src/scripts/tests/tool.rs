//! The tool: its arguments, its answers, and what they say about the runner.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::context::{CancellationToken, ProgressListener, ProgressReporter};
use rockbot_core::tool::{Effect, Tool, ToolErrorCode, ToolExposure, ToolInvokeRequest};
use serde_json::{Value, json};

use super::super::guarantees::Guarantees;
use super::super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner};
use super::super::tool::ScriptState;
use super::{context, sandbox};

/// A runner that answers with what it is told, and keeps the scripts.
#[derive(Debug, Clone)]
struct Fake {
    answer: Result<ScriptOutput, ScriptError>,
    guarantees: Guarantees,
    ran: Arc<Mutex<Vec<Script>>>,
}

#[async_trait]
impl ScriptRunner for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    async fn run(&self, script: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        self.ran.lock().unwrap().push(script);
        self.answer.clone()
    }
}

fn fake(answer: Result<ScriptOutput, ScriptError>) -> Fake {
    Fake {
        answer,
        guarantees: Guarantees::ALL,
        ran: Arc::default(),
    }
}

fn tool(runner: impl ScriptRunner) -> Tool {
    let guarantees = runner.guarantees();
    let runner = Arc::new(runner);
    let timeout = Duration::from_secs(30);
    ScriptState::new(runner, timeout).into_tool(guarantees)
}

async fn call(tool: &Tool, arguments: Value, cx: &CallContext) -> Result<String, (ToolErrorCode, String)> {
    let request = ToolInvokeRequest::new("c1", tool.registration.name.clone(), arguments.to_string());
    let answer = tool.executor.execute(request, cx).await;
    answer
        .map(|response| response.content.text().into_owned())
        .map_err(|error| (error.code(), error.message().to_owned()))
}

const WALLS: &str = "[fake: no network, no files of the host, no credentials of the host, limited resources, no process left \
    behind]";

#[tokio::test]
async fn the_answer_is_the_output_and_what_is_guaranteed() {
    for (stdout, shown) in [("42\n", "42\n"), ("42", "42\n"), ("", "(no output)\n")] {
        let tool = tool(fake(Ok(ScriptOutput::new(0, stdout, "a warning"))));
        let answer = call(&tool, json!({"script": "print(42)"}), &context()).await;
        assert_eq!(answer.unwrap(), format!("{shown}{WALLS}"));
    }
}

#[tokio::test]
async fn a_failure_has_the_exit_code_the_errors_and_the_output() {
    let timed_out = ScriptOutput::timed_out("half\n", "");
    let unavailable = ScriptError::Unavailable("no bwrap".to_owned());
    for (answer, expected) in [
        (
            Ok(ScriptOutput::new(2, "", "oh\n")),
            format!("Script failed (exit 2):\noh\n{WALLS}"),
        ),
        (
            Ok(ScriptOutput::new(1, "a\n", "oh\n")),
            format!("Script failed (exit 1):\noh\nstandard output:\na\n{WALLS}"),
        ),
        (
            Ok(ScriptOutput::new(137, "", "")),
            format!("Script failed (exit 137, killed):\n{WALLS}"),
        ),
        (
            Ok(timed_out),
            format!("Script timed out after 7 s:\nstandard output:\nhalf\n{WALLS}"),
        ),
        (Err(unavailable), "scripts cannot run here: no bwrap".to_owned()),
    ] {
        let tool = tool(fake(answer));
        let answer = call(&tool, json!({"script": "x", "timeout_seconds": 7}), &context()).await;
        assert_eq!(answer, Err((ToolErrorCode::ExecutionFailed, expected)));
    }
}

#[tokio::test]
async fn arguments_reach_the_runner() {
    let fake = fake(Ok(ScriptOutput::new(0, "", "")));
    let tool = tool(fake.clone());
    let all = json!({"script": "s", "input_data": "i", "timeout_seconds": 300, "pip_packages": ["B", "a==1"]});
    call(&tool, all, &context()).await.unwrap();
    call(&tool, json!({"script": "s"}), &context()).await.unwrap();
    let ran = fake.ran.lock().unwrap();
    let packages = ["b", "a==1"].map(|name| name.parse().unwrap());
    let first = Script::new("s")
        .with_input("i")
        .with_timeout(Duration::from_secs(300))
        .with_packages(packages);
    assert_eq!(*ran, [first, Script::new("s")]);
}

#[tokio::test]
async fn what_is_no_package_never_reaches_the_runner() {
    let fake = fake(Ok(ScriptOutput::new(0, "", "")));
    let tool = tool(fake.clone());
    let many: Vec<_> = (0..21).map(|number| format!("p{number}")).collect();
    for arguments in [
        json!({"script": " "}),
        json!({"script": "s", "pip_packages": ["numpy", "--index-url=http://evil.example"]}),
        json!({"script": "s", "pip_packages": ["numpy; id"]}),
        json!({"script": "s", "pip_packages": many}),
    ] {
        let (code, words) = call(&tool, arguments, &context()).await.unwrap_err();
        assert_eq!(code, ToolErrorCode::InvalidArguments, "{words}");
    }
    assert_eq!(*fake.ran.lock().unwrap(), []);
}

#[test]
fn walls_decide_what_a_call_needs() {
    let walled = tool(fake(Ok(ScriptOutput::new(0, "", ""))));
    assert_eq!(walled.registration.effect, Effect::Pure);
    assert!(!walled.registration.hints.needs_endorsement);
    let ToolExposure::OnDemand(group) = &walled.registration.hints.exposure else {
        panic!("it is shown on demand")
    };
    assert!(
        group.guide.ends_with(
            "\nScripts run with `fake`: no network, no files of the host, no credentials of the host, \
        limited resources, no process left behind.\n"
        ),
        "{}",
        group.guide
    );

    let mut open = fake(Ok(ScriptOutput::new(0, "", "")));
    open.guarantees.no_network = false;
    let open = tool(open);
    assert_eq!(open.registration.effect, Effect::Mutating);
    assert!(open.registration.hints.needs_endorsement);
    let guide = &open.registration.hints.exposure;
    assert!(format!("{guide:?}").contains("NOT guaranteed: no network"), "{guide:?}");
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl ProgressListener for Heard {
    fn tool_progress(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test]
async fn output_is_reported_while_the_script_runs() {
    let Some(sandbox) = sandbox().await else { return };
    let heard = Arc::new(Heard::default());
    let cx = context().with_progress(ProgressReporter::new(heard.clone()));
    let script = "import time\nprint('one')\ntime.sleep(1.5)\nprint('two')\nfor _ in range(9999): print('x' * 999)";
    let tool = tool(sandbox.runner);
    call(&tool, json!({"script": script}), &cx).await.unwrap();
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard[0], "one");
    assert!(
        heard.len() >= 2 && heard.iter().all(|line| line.len() <= 200),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_cancelled_turn_ends_its_script() {
    let Some(sandbox) = sandbox().await else { return };
    let cancellation = CancellationToken::new();
    let cx = context().with_cancellation(cancellation.clone());
    let marker = sandbox.marker.clone();
    let tool = tool(sandbox.runner);
    let running = call(&tool, json!({"script": "import time\ntime.sleep(300)"}), &cx);
    let cancelling = async {
        super::wait_for(|| super::is_running(&marker)).await;
        cancellation.cancel();
    };
    let (answer, ()) = tokio::join!(running, cancelling);
    assert_eq!(answer.unwrap_err().0, ToolErrorCode::Cancelled);
    super::wait_for(|| !super::is_running(&marker)).await;
}
