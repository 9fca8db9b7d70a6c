//! The tool that runs a script.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolError, ToolErrorCode, ToolGroup, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::guarantees::Guarantees;
use super::package::Package;
use super::packages::INSTALL_LIMIT;
use super::remote::{MARGIN, RemoteScriptRunner, walled};
use super::runner::{Script, ScriptOutput, ScriptRunner, WorkFile};

/// Name of the tool.
pub(super) const NAME: &str = "execute_python_script";

/// Maximum time of a script, in seconds.
pub(super) const MAX_SECONDS: u64 = 300;

/// Maximum number of packages of a script.
const MAX_PACKAGES: usize = 20;

/// Maximum number of scripts that run at once.
const MAX_CONCURRENT: u32 = 4;

/// Maximum number of files that an answer names, and of characters of a name.
const MAX_NAMED: usize = 20;
const MAX_NAME: usize = 100;

/// The guide of the tool, for all of Python.
const GUIDE: &str = include_str!("guides/scripts.md");

/// The part of the guide about the folder of a session.
const KEPT_FILES: &str = "- Files in `/work` are kept for later scripts of this conversation, within a quota. The answer names those that \
    the script wrote.\n";

/// The state of the tool.
#[derive(Debug)]
pub(super) struct ScriptState {
    runner: Arc<dyn ScriptRunner>,
    timeout: Duration,
}

/// Runs a Python script and returns what it prints.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExecutePythonScript {
    /// Source in Python 3. It prints its result, best as JSON.
    script: String,
    /// Text for the script: in the variable ROCKBOT_INPUT, and on the standard input.
    #[serde(default)]
    input_data: Option<String>,
    /// Time limit in seconds, 30 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    timeout_seconds: Option<u64>,
    /// Packages that the script imports: names such as `numpy`, or `name==version`.
    #[serde(default)]
    pip_packages: Option<Vec<String>>,
}

impl ScriptState {
    /// Creates the state with the time of a script whose call names none.
    pub(super) fn new(runner: Arc<dyn ScriptRunner>, timeout: Duration) -> Self {
        Self { runner, timeout }
    }

    /// Returns the tool of a runner that was tried out. An action that a runner does not wall off
    /// is a deed of the model: it never runs twice, and a model that has read untrusted text asks
    /// first.
    pub(super) fn into_tool(self, guarantees: Guarantees) -> Tool {
        let keeps_files = self.runner.keeps_files();
        let is_subset = self.runner.subset().is_some();
        let mut tool = self.with_guide(&format!("{guarantees}"));
        if is_subset {
            tool = of_subset(tool);
        }
        if !guarantees.are_walls() {
            tool.needs_endorsement()
        } else if keeps_files {
            tool
        } else {
            tool.pure()
        }
    }

    /// Returns the tool of scripts managers, whose guarantees are known later.
    pub(super) fn into_remote_tool(self, managers: Arc<RemoteScriptRunner>) -> Tool {
        walled(self.with_guide("each answer names its guarantees"), managers)
    }

    fn with_guide(self, guarantees: &str) -> Tool {
        let walls = format!("\nScripts run with `{}`: {guarantees}.\n", self.runner.name());
        let kept = if self.runner.keeps_files() { KEPT_FILES } else { "" };
        let group = ToolGroup::new("scripts", "run Python scripts: calculate, parse and convert data")
            .with_guide(self.runner.subset().unwrap_or(GUIDE).to_owned() + kept + &walls);
        stateful_tool(NAME, self, execute)
            .source("scripts")
            .time_limit(Duration::from_secs(MAX_SECONDS + 10) + INSTALL_LIMIT + MARGIN)
            .max_concurrency(MAX_CONCURRENT)
            .on_demand(&group)
    }

    /// Returns the line at the end of an answer.
    fn note(&self, declared: Option<Guarantees>) -> String {
        let guarantees = declared.unwrap_or_else(|| self.runner.guarantees());
        format!("[{}: {guarantees}]", self.runner.name())
    }
}

/// Describes the tool of a runner that knows a part of Python.
fn of_subset(tool: Tool) -> Tool {
    let mut tool =
        tool.description("Runs a script in the part of Python that the guide names, and returns what it prints.");
    let arguments = &mut tool.registration.parameters_schema["properties"];
    arguments["script"]["description"] = json!("Source in this part of Python 3. It prints its result, best as JSON.");
    arguments["input_data"]["description"] = json!("Text for the script: in the variable ROCKBOT_INPUT.");
    arguments["pip_packages"]["description"] = json!("Not available: the script has the modules of the guide alone.");
    tool
}

async fn execute(
    state: ToolState<ScriptState>,
    args: ExecutePythonScript,
    cx: CallContext,
) -> Result<Content, ToolError> {
    let script = script(args, state.timeout)?;
    let timeout = script.timeout;
    let running = cx.cancellation().run_until_cancelled(state.runner.run(script, &cx));
    let Some(ran) = running.await else {
        return Err(ToolError::new(ToolErrorCode::Cancelled, "the script was cancelled"));
    };
    let output =
        ran.map_err(|error| ToolError::execution_failed(error.to_string()).with_retryable(error.retry_helps()))?;
    let note = state.note(output.guarantees);
    match output.exit_code {
        Some(0) => Ok(printed(output, &note)),
        code => Err(ToolError::execution_failed(failure(code, &output, timeout, &note))),
    }
}

/// Checks the arguments.
fn script(args: ExecutePythonScript, timeout: Duration) -> Result<Script, ToolError> {
    let names = args.pip_packages.unwrap_or_default();
    let seconds = args.timeout_seconds.map(|seconds| seconds.clamp(1, MAX_SECONDS));
    if args.script.trim().is_empty() {
        return Err(ToolError::invalid_arguments("`script` is empty: write the source"));
    }
    if names.len() > MAX_PACKAGES {
        let problem = format!("`pip_packages` has at most {MAX_PACKAGES} names");
        return Err(ToolError::invalid_arguments(problem));
    }
    let packages: Result<Vec<Package>, _> = names.iter().map(|name| name.parse()).collect();
    let packages = packages.map_err(|error| ToolError::invalid_arguments(format!("in `pip_packages`: {error}")))?;
    let script = Script::new(args.script).with_input(args.input_data.unwrap_or_default());
    let script = script.with_timeout(seconds.map_or(timeout, Duration::from_secs));
    Ok(script.with_packages(packages))
}

/// Returns the answer of a script that succeeded: its output, and the note in a part of its own.
fn printed(output: ScriptOutput, note: &str) -> Content {
    let stdout = if output.stdout.is_empty() {
        "(no output)".to_owned()
    } else {
        output.stdout
    };
    let stdout = stdout + &named(&output.files);
    let end = if stdout.ends_with('\n') { "" } else { "\n" };
    let mut content = Content::from(stdout);
    content.push(ContentPart::text(format!("{end}{note}")).with_provenance(Provenance::OWN_TOOL));
    content
}

/// Returns the line that names the files a script wrote. It is no word of the host: the script
/// chose the names.
fn named(files: &[WorkFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let shown = files.iter().take(MAX_NAMED).map(|file| {
        let path: String = one_line(&file.path).chars().take(MAX_NAME).collect();
        format!("{path} ({} bytes)", file.bytes)
    });
    let mut line = format!("\nWritten to /work: {}", shown.collect::<Vec<_>>().join(", "));
    if files.len() > MAX_NAMED {
        line.push_str(&format!(" and {} more", files.len() - MAX_NAMED));
    }
    line
}

fn failure(code: Option<i32>, output: &ScriptOutput, timeout: Duration, note: &str) -> String {
    let mut text = match code {
        Some(code) => format!("Script failed (exit {code}{}):", meaning(code)),
        None => format!("Script timed out after {} s:", timeout.as_secs_f64()),
    };
    for (name, words) in [
        ("", output.stderr.trim_end()),
        ("standard output:\n", output.stdout.trim_end()),
    ] {
        if !words.is_empty() {
            text.push_str(&format!("\n{name}{words}"));
        }
    }
    text.push_str(&format!("\n{note}"));
    text
}

/// Returns the meaning of an exit code beyond its number.
fn meaning(code: i32) -> &'static str {
    match code {
        137 => ", killed",
        139 => ", it crashed",
        152 => ", over its limit of CPU time",
        _ => "",
    }
}
