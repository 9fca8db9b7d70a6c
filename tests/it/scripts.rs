//! Scripts in a whole host: a model runs them, and they end with their turn.

use std::time::Duration;

use async_trait::async_trait;
use rockbot::tools::scripts::{Guarantees, Script, ScriptError, ScriptOutput, ScriptRunner, Scripts};
use rockbot_core::CallContext;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use crate::support::{host_of, results};

/// Time in which a host ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host with a sandbox, or `None` with a reason on the output where there is none.
fn host_with_sandbox(model: &ScriptedModel) -> Option<AgentHost> {
    let host = host_of(model).add(Scripts::new()).build().unwrap();
    let part = host.costs().into_iter().find(|cost| cost.part.starts_with("scripts"));
    let part = part.unwrap();
    if part.part.starts_with("scripts (bubblewrap: ") {
        return Some(host);
    }
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{part}");
    println!("SKIPPED: {part}");
    None
}

fn activated() -> ScriptedModel {
    ScriptedModel::new().calls("activate_tools", json!({"group": "scripts"}))
}

fn script(source: &str) -> Value {
    json!({ "script": source })
}

/// Returns `true` if a process of this machine has the word in its command line.
fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(marker))
}

async fn wait_for(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_model_runs_a_script_and_reads_its_output_and_the_guarantees() {
    let arguments = json!({
        "script": "import json, os\nprint(sum(json.loads(os.environ['ROCKBOT_INPUT'])))",
        "input_data": "[1, 2, 39]",
    });
    let model = activated()
        .calls("execute_python_script", arguments)
        .calls("execute_python_script", script("import sys\nsys.exit('no luck')"))
        .says("42");
    let Some(host) = host_with_sandbox(&model) else { return };
    host.start().await.unwrap();
    assert_eq!(host.agent().ask("main", "Add them.").await.unwrap().text, "42");
    let told = results(model.requests().last().unwrap());
    let walls = "[bubblewrap: no network, no files of the host, no credentials of the host, limited resources, no process \
        left behind]";
    assert!(
        told[0].contains("Scripts run with `bubblewrap`: no network, "),
        "{told:?}"
    );
    assert!(told[1].contains(&format!("42\n{walls}")), "{told:?}");
    assert!(told[2].contains("Script failed (exit 1):\nno luck\n"), "{told:?}");
    host.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_script_ends_with_its_turn() {
    let marker = format!("rockbot-it-script-{}", std::process::id());
    let source = format!(
        "import os, subprocess, sys\nif os.fork() == 0:\n    os.setsid()\n    subprocess.run([sys.executable, '-c', 'import \
         time; time.sleep(300)', '{marker}'])\nimport time\ntime.sleep(300)"
    );
    let model = activated().calls("execute_python_script", script(&source));
    let Some(host) = host_with_sandbox(&model) else { return };
    host.start().await.unwrap();
    let agent = host.agent();
    let handle = agent.ask("main", "Wait.").start().await.unwrap();
    wait_for(|| is_running(&marker)).await;
    handle.cancel().await.unwrap();
    wait_for(|| !is_running(&marker)).await;
}

/// A runner of a machine that has none.
#[derive(Debug)]
struct Missing;

#[async_trait]
impl ScriptRunner for Missing {
    fn name(&self) -> &str {
        "missing"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL
    }

    async fn run(&self, _: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        Err(ScriptError::Unavailable("bubblewrap is not installed".to_owned()))
    }
}

#[tokio::test]
async fn a_host_without_a_runner_starts_without_the_tool_and_says_why() {
    let model = ScriptedModel::new().says("hello");
    let host = host_of(&model).add(Scripts::with_runner(Missing)).build().unwrap();
    host.start().await.unwrap();
    assert_eq!(host.agent().ask("main", "Hi.").await.unwrap().text, "hello");
    let names: Vec<_> = model.requests()[0].tools.names().map(ToString::to_string).collect();
    assert_eq!(names, Vec::<String>::new());
    let lines: Vec<_> = host.costs().iter().map(ToString::to_string).collect();
    let line = "scripts (unavailable: scripts cannot run here: bubblewrap is not installed): off";
    assert!(lines.iter().any(|known| known == line), "{lines:?}");
    host.shutdown(PATIENCE).await;
}
