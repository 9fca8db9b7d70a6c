//! Following a pod to its end.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use rockbot_tools::scripts::ScriptError;
use tokio::time::{sleep, timeout};

use super::api::{call, is_not_found, unavailable};

/// Reasons of a container that waits and will never run.
const FATAL: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// Maximum number of calls in a row that fail before a pod is given up.
const MAX_FAILURES: u32 = 5;

/// Time between two looks at a pod that cannot be watched, times the number of failures.
const PAUSE: Duration = Duration::from_millis(250);

/// Duration of one watch, in seconds. Afterwards the pod is looked at, and watched again.
const WATCH_SECONDS: u32 = 30;

/// Maximum length of a reason, in characters.
const MAX_REASON: usize = 500;

/// The end of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodEnd {
    /// The script ended with this code and the end of its standard error.
    Exited(i32, String),
    /// The time of the script is over.
    TimedOut,
    /// The cluster ended the pod for what its script took, such as files, in its words.
    Evicted(String),
}

/// The state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PodState {
    /// It does not run yet, for this reason if one is known.
    Waiting(Option<String>),
    Running,
    Ended(PodEnd),
    /// It will never run to its end, for this reason.
    Broken(String),
}

/// A pod that is followed.
pub(super) struct Followed<'a> {
    pub(super) pods: &'a Api<Pod>,
    pub(super) name: &'a str,
}

impl Followed<'_> {
    /// Waits until the pod has ended: up to `start_limit` until it runs, then up to `limit`.
    pub(super) async fn ended(&self, start_limit: Duration, limit: Duration) -> Result<PodEnd, ScriptError> {
        let mut reason = None;
        let starting = self.follow(|state| match state {
            PodState::Waiting(why) => {
                reason = why.or(reason.take());
                None
            }
            state => Some(state),
        });
        let Ok(started) = timeout(start_limit, starting).await else {
            let why = reason.map(|why| format!(": {why}")).unwrap_or_default();
            let seconds = start_limit.as_secs();
            return Err(ScriptError::Unavailable(format!(
                "the pod did not start within {seconds} s{why}"
            )));
        };
        let state = match started? {
            PodState::Running => {
                let running = self.follow(|state| match state {
                    PodState::Waiting(_) | PodState::Running => None,
                    state => Some(state),
                });
                match timeout(limit, running).await {
                    Ok(state) => state?,
                    Err(_) => return Ok(PodEnd::TimedOut),
                }
            }
            state => state,
        };
        match state {
            PodState::Ended(end) => Ok(end),
            PodState::Broken(reason) => Err(ScriptError::Unavailable(format!("the pod cannot run: {reason}"))),
            PodState::Waiting(_) | PodState::Running => Err(ScriptError::Unavailable("the pod was lost".to_owned())),
        }
    }

    /// Looks at each state of the pod until `see` returns one. A watch that is cut begins again.
    async fn follow(&self, mut see: impl FnMut(PodState) -> Option<PodState>) -> Result<PodState, ScriptError> {
        let mut failures = 0;
        loop {
            let pod = match call(self.pods.get(self.name)).await {
                Ok(pod) => pod,
                Err(error) if is_not_found(&error) => return Err(deleted()),
                Err(error) if failures >= MAX_FAILURES => return Err(unavailable(&error)),
                Err(error) => {
                    failures += 1;
                    tracing::debug!(%error, "a pod cannot be looked at; trying again");
                    sleep(PAUSE * failures).await;
                    continue;
                }
            };
            failures = 0;
            if let Some(state) = see(state(&pod)) {
                return Ok(state);
            }
            if let Some(state) = self.watch(&pod, &mut see).await? {
                return Ok(state);
            }
            // A server that ends each watch at once is not asked without a pause.
            sleep(PAUSE).await;
        }
    }

    /// Watches the pod until `see` returns a state, or `None` when the watch has ended.
    async fn watch(
        &self,
        pod: &Pod,
        see: &mut impl FnMut(PodState) -> Option<PodState>,
    ) -> Result<Option<PodState>, ScriptError> {
        let version = pod.metadata.resource_version.as_deref().unwrap_or_default();
        let only = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let Ok(events) = call(self.pods.watch(&only.timeout(WATCH_SECONDS), version)).await else {
            return Ok(None);
        };
        let mut events = std::pin::pin!(events);
        // The server ends a watch in time, and a connection that is dead does not.
        let patience = Duration::from_secs(u64::from(WATCH_SECONDS) + 5);
        while let Ok(Some(Ok(event))) = timeout(patience, events.next()).await {
            let state = match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => see(state(&pod)),
                WatchEvent::Deleted(_) => return Err(deleted()),
                WatchEvent::Bookmark(_) => None,
                WatchEvent::Error(_) => return Ok(None),
            };
            if state.is_some() {
                return Ok(state);
            }
        }
        Ok(None)
    }
}

fn deleted() -> ScriptError {
    ScriptError::Unavailable("the pod was deleted while the script ran".to_owned())
}

fn state(pod: &Pod) -> PodState {
    let Some(status) = &pod.status else {
        return PodState::Waiting(None);
    };
    if let Some(end) = ended_by_cluster(status) {
        return PodState::Ended(end);
    }
    let container = status.container_statuses.iter().flatten().next();
    if let Some(ended) = container.and_then(terminated) {
        return PodState::Ended(end_of(ended));
    }
    match status.phase.as_deref() {
        Some("Failed" | "Succeeded") => PodState::Broken(reason(status.reason.as_deref(), status.message.as_deref())),
        _ => container.map_or_else(|| unscheduled(status), waiting),
    }
}

fn terminated(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    container.state.as_ref()?.terminated.as_ref()
}

/// Returns the end of a pod that the cluster ended for its script. A node that is low on resources
/// ends pods, too, through no fault of theirs.
fn ended_by_cluster(status: &PodStatus) -> Option<PodEnd> {
    let message = status.message.as_deref().unwrap_or_default();
    match status.reason.as_deref()? {
        "DeadlineExceeded" => Some(PodEnd::TimedOut),
        "Evicted" if !message.starts_with("The node ") => Some(PodEnd::Evicted(reason(None, Some(message.trim())))),
        _ => None,
    }
}

fn end_of(ended: &ContainerStateTerminated) -> PodEnd {
    let mut stderr = ended.message.clone().unwrap_or_default();
    if ended.reason.as_deref() == Some("OOMKilled") {
        stderr.push_str("\nThe script needed more memory than it has.");
    }
    PodEnd::Exited(ended.exit_code, stderr)
}

fn waiting(container: &ContainerStatus) -> PodState {
    let state = container.state.as_ref();
    if state.is_some_and(|state| state.running.is_some()) {
        return PodState::Running;
    }
    let Some(waiting) = state.and_then(|state| state.waiting.as_ref()) else {
        return PodState::Waiting(None);
    };
    let reason = reason(waiting.reason.as_deref(), waiting.message.as_deref());
    if waiting.reason.as_deref().is_some_and(|reason| FATAL.contains(&reason)) {
        PodState::Broken(reason)
    } else {
        PodState::Waiting(Some(reason))
    }
}

/// Returns the state of a pod that has no container yet.
fn unscheduled(status: &PodStatus) -> PodState {
    let mut conditions = status.conditions.iter().flatten();
    let refused = conditions.find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    PodState::Waiting(refused.map(|condition| reason(condition.reason.as_deref(), condition.message.as_deref())))
}

fn reason(reason: Option<&str>, message: Option<&str>) -> String {
    let words = [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let words = if words.is_empty() {
        "it tells no reason".to_owned()
    } else {
        words
    };
    words.chars().take(MAX_REASON).collect()
}
