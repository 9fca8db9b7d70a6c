//! Scripts as messages of a bus, between an agent and a scripts manager.

use rockbot_core::messaging::Message;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::guarantees::Guarantees;
use super::package::Package;
use super::runner::{Script, ScriptError, ScriptOutput};

/// Exit code on the wire of a script that did not run, or was killed at its time limit.
const NO_EXIT: i32 = -1;

// The names of the types are the original's, so that its agents and managers can share a bus with
// these.

impl Message for ScriptInvokeRequest {
    const TYPE: &'static str = "RockBot.Scripts.ScriptInvokeRequest";
    const TOPIC: Option<&'static str> = Some("script.invoke");
}

impl Message for ScriptInvokeResponse {
    const TYPE: &'static str = "RockBot.Scripts.ScriptInvokeResponse";
    const TOPIC: Option<&'static str> = Some("script.result");
}

impl Message for ScriptCancelled {
    const TYPE: &'static str = "rockbot.ScriptCancelled";
    const TOPIC: Option<&'static str> = Some("script.cancel");
}

impl Message for ScriptGuaranteesRequest {
    const TYPE: &'static str = "rockbot.ScriptGuaranteesRequest";
    const TOPIC: Option<&'static str> = Some("script.guarantees");
}

impl Message for ScriptGuaranteesResponse {
    const TYPE: &'static str = "rockbot.ScriptGuaranteesResponse";
}

/// A request to run a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptInvokeRequest {
    /// Id of the run, which the answer repeats. Our agents choose a random one.
    pub tool_call_id: String,
    /// Source in Python.
    pub script: String,
    /// Input of the script. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_data: Option<String>,
    /// Time after which the script is killed, in seconds. Default 30.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
    /// Packages that the script imports. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pip_packages: Option<Vec<String>>,
    /// Guarantees that the agent counts on: a manager that does not keep all of them refuses the
    /// script. The original's managers do not know the field. Default none.
    #[serde(default = "none", skip_serializing_if = "is_none")]
    pub required_guarantees: Guarantees,
}

impl ScriptInvokeRequest {
    /// Creates the request to run `script`. A time limit is rounded up to whole seconds.
    pub fn new(id: impl Into<String>, script: &Script, required: Guarantees) -> Self {
        let packages: Vec<_> = script.packages.iter().map(Package::to_string).collect();
        let seconds = script.timeout.as_millis().div_ceil(1_000);
        Self {
            tool_call_id: id.into(),
            script: script.source.clone(),
            input_data: (!script.input.is_empty()).then(|| script.input.clone()),
            timeout_seconds: u64::try_from(seconds).unwrap_or(u64::MAX),
            pip_packages: (!packages.is_empty()).then_some(packages),
            required_guarantees: required,
        }
    }

    /// Returns the script.
    ///
    /// # Errors
    ///
    /// Returns an error if a package is none.
    pub fn script(&self) -> Result<Script, ScriptError> {
        let names = self.pip_packages.iter().flatten();
        let packages: Result<Vec<Package>, _> = names.map(|name| name.parse()).collect();
        let packages = packages.map_err(|error| ScriptError::Refused(error.to_string()))?;
        let script = Script::new(&*self.script).with_input(self.input_data.as_deref().unwrap_or_default());
        let timeout = Duration::from_secs(self.timeout_seconds);
        Ok(script.with_timeout(timeout).with_packages(packages))
    }
}

/// The answer to a [`ScriptInvokeRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptInvokeResponse {
    /// Id of the run.
    pub tool_call_id: String,
    /// Standard output. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Standard error, and the reason of a script that did not run. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Exit code; -1 for a script that did not run, or was killed at its time limit.
    pub exit_code: i32,
    /// Duration of the run in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// Guarantees that the manager declares. Default none: the original's managers declare nothing.
    #[serde(default = "none", skip_serializing_if = "is_none")]
    pub guarantees: Guarantees,
    /// Reason why there is no exit code. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ScriptFailure>,
}

/// The reason why a script has no exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptFailure {
    /// The script was killed at its time limit.
    TimedOut,
    /// The packages of the script could not be installed.
    Packages,
    /// The manager does not run this script.
    Refused,
    /// The manager cannot run scripts now.
    #[serde(other)]
    Unavailable,
}

impl ScriptInvokeResponse {
    /// Creates the answer to the request `id` of a manager that declares `guarantees`.
    pub fn new(
        id: impl Into<String>,
        ran: Result<ScriptOutput, ScriptError>,
        elapsed: Duration,
        guarantees: Guarantees,
    ) -> Self {
        let answer = Self {
            tool_call_id: id.into(),
            output: None,
            stderr: None,
            exit_code: NO_EXIT,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            guarantees,
            failure: None,
        };
        let text = |text: String| (!text.is_empty()).then_some(text);
        match ran {
            Ok(output) => Self {
                output: text(output.stdout),
                stderr: output.exit_code.map_or_else(
                    || Some(format!("{}{}", output.stderr, timed_out(elapsed))),
                    |_| text(output.stderr.clone()),
                ),
                exit_code: output.exit_code.unwrap_or(NO_EXIT),
                failure: output.exit_code.is_none().then_some(ScriptFailure::TimedOut),
                ..answer
            },
            Err(error) => Self {
                stderr: Some(error.reason().to_owned()),
                failure: Some(match error {
                    ScriptError::Unavailable(_) => ScriptFailure::Unavailable,
                    ScriptError::Packages(_) => ScriptFailure::Packages,
                    ScriptError::Refused(_) => ScriptFailure::Refused,
                }),
                ..answer
            },
        }
    }

    /// Returns the output of the script, with the guarantees that the manager declares.
    ///
    /// # Errors
    ///
    /// Returns an error if the script did not run.
    pub fn into_output(self) -> Result<ScriptOutput, ScriptError> {
        let mut stderr = self.stderr.unwrap_or_default();
        let exit_code = match self.failure {
            Some(ScriptFailure::Unavailable) => return Err(ScriptError::Unavailable(stderr)),
            Some(ScriptFailure::Packages) => return Err(ScriptError::Packages(stderr)),
            Some(ScriptFailure::Refused) => return Err(ScriptError::Refused(stderr)),
            Some(ScriptFailure::TimedOut) => {
                let own = stderr.rfind(TIMED_OUT).unwrap_or(stderr.len());
                stderr.truncate(own);
                None
            }
            None => Some(self.exit_code),
        };
        Ok(ScriptOutput {
            stdout: self.output.unwrap_or_default(),
            stderr,
            exit_code,
            guarantees: Some(self.guarantees),
            files: Vec::new(),
        })
    }
}

/// A message that the answer to a request is no longer awaited. All managers get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptCancelled {
    /// Id of the run.
    pub tool_call_id: String,
}

impl ScriptCancelled {
    /// Creates the message about the request `id`.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            tool_call_id: id.into(),
        }
    }
}

/// A question for the guarantees of the managers on the bus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScriptGuaranteesRequest {}

/// The answer to a [`ScriptGuaranteesRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptGuaranteesResponse {
    /// Guarantees that the manager declares.
    #[serde(default = "none")]
    pub guarantees: Guarantees,
}

impl ScriptGuaranteesResponse {
    /// Creates the answer of a manager that declares `guarantees`.
    pub fn new(guarantees: Guarantees) -> Self {
        Self { guarantees }
    }
}

/// The guarantees are the list of their names on the wire. A name that this version does not know
/// counts for nothing.
impl Serialize for Guarantees {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.keys())
    }
}

impl<'de> Deserialize<'de> for Guarantees {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default();
        let has = |key: &str| keys.iter().any(|declared| declared == key);
        Ok(Self {
            no_network: has("no_network"),
            no_files: has("no_files"),
            no_credentials: has("no_credentials"),
            limits: has("limits"),
            cleanup: has("cleanup"),
        })
    }
}

/// Beginning of the line that tells agents of the original that a script was killed.
const TIMED_OUT: &str = "\nScript timed out after ";

fn timed_out(elapsed: Duration) -> String {
    format!("{TIMED_OUT}{} s", elapsed.as_secs())
}

fn default_timeout() -> u64 {
    30
}

fn none() -> Guarantees {
    Guarantees::NONE
}

fn is_none(guarantees: &Guarantees) -> bool {
    *guarantees == Guarantees::NONE
}
