//! The runner whose scripts a scripts manager runs: another program on the bus of the host.
//!
//! `link.rs` has the running side: requests, and the task that asks managers for their guarantees
//! and tells them of cancelled scripts. `walls.rs` decides about each call of the tool by the
//! guarantees that are known then.

mod link;
mod walls;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{Bus, BusError, RequestError};
use rockbot_core::subsystem::{Parts, RunningTask};
use rockbot_core::{BoxError, CallContext};

use super::guarantees::Guarantees;
use super::local::{MAX_STDERR, MAX_STDOUT};
use super::packages::INSTALL_LIMIT;
use super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner};
use super::wire::ScriptInvokeResponse;
use link::Link;
pub(super) use walls::walled;

/// Time beyond the script's own for the way of request and answer, and for the start of a pod.
pub(super) const MARGIN: Duration = Duration::from_secs(30);

/// A runner whose scripts a scripts manager runs.
///
/// Its guarantees are those of the managers on the bus: none until a manager has declared some.
#[derive(Debug, Default)]
pub(super) struct RemoteScriptRunner {
    /// Set when the host starts.
    link: OnceLock<Arc<Link>>,
}

impl RemoteScriptRunner {
    /// Connects the runner to the bus of the host.
    pub(super) fn start(&self, parts: &Parts) -> Result<RunningTask, BoxError> {
        let (link, cancelled) = Link::new(parts.require::<dyn Bus>()?, parts.identity());
        let link = Arc::new(link);
        // A subsystem starts once.
        let _ = self.link.set(link.clone());
        let (running, task) = RunningTask::new(|stop| link.run(cancelled, stop));
        tokio::spawn(task);
        Ok(running)
    }

    /// Returns the guarantees of the managers, which are asked for them if none has declared any.
    async fn asked_guarantees(&self) -> Guarantees {
        match self.link.get() {
            Some(link) => link.asked_guarantees().await,
            None => Guarantees::NONE,
        }
    }
}

#[async_trait]
impl ScriptRunner for RemoteScriptRunner {
    fn name(&self) -> &str {
        "scripts manager"
    }

    fn guarantees(&self) -> Guarantees {
        self.link.get().map_or(Guarantees::NONE, |link| link.guarantees())
    }

    async fn run(&self, script: Script, cx: &CallContext) -> Result<ScriptOutput, ScriptError> {
        let starting = || ScriptError::Unavailable("the host is not started yet: call `AgentHost::start`".to_owned());
        let link = self.link.get().ok_or_else(starting)?;
        let install = if script.packages.is_empty() {
            Duration::ZERO
        } else {
            INSTALL_LIMIT
        };
        let limit = script.timeout + install + MARGIN;
        let answer = link.ask(&script, limit, cx).await;
        bounded(answer.map_err(|error| unanswered(&error))?).into_output()
    }
}

/// Returns the error of a script without an answer.
fn unanswered(error: &RequestError) -> ScriptError {
    let advice = "start `rockbot-scripts-manager` on the bus of this host";
    match error {
        RequestError::NoSubscribers(_) => {
            ScriptError::Unavailable(format!("no scripts manager listens to `script.invoke`: {advice}"))
        }
        RequestError::TimedOut { after, .. } => ScriptError::Unavailable(format!(
            "timed out: no scripts manager answered within {} s; it is away or busy",
            after.as_secs()
        )),
        RequestError::Bus(BusError::TooLarge { size, limit }) => ScriptError::Refused(format!(
            "it has {size} bytes, and the bus takes {limit}: pass less input"
        )),
        error => ScriptError::Unavailable(format!("the scripts manager cannot be reached: {error}")),
    }
}

/// Cuts the output off where the local runner does: the manager is another program.
fn bounded(mut answer: ScriptInvokeResponse) -> ScriptInvokeResponse {
    if let Some(output) = answer.output.as_mut().filter(|output| output.len() > 2 * MAX_STDOUT) {
        output.truncate(output.floor_char_boundary(MAX_STDOUT));
        output.push_str(&super::local::cut_off());
    }
    if let Some(stderr) = answer.stderr.as_mut().filter(|stderr| stderr.len() > 2 * MAX_STDERR) {
        let begin = stderr.len() - MAX_STDERR;
        *stderr = stderr.split_off(stderr.ceil_char_boundary(begin));
    }
    answer
}
