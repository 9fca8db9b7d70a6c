//! Pods that outlived the managers that created them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use rockbot_core::Timestamp;

use super::api::{call, delete};
use super::pod::{MANAGER, SELECTOR};

/// Time between two sweeps.
pub(super) const INTERVAL: Duration = Duration::from_secs(60);

/// Age beyond the deadline of a pod at which no manager waits for the pod.
const GRACE: Duration = Duration::from_secs(60);

/// Maximum number of pods of one sweep; the next one deletes more.
const MAX_PODS: u32 = 500;

/// Deletes the pods beyond their deadline. If a `manager` is named, which has just started, the
/// pods of an earlier process of its name are deleted, too. Returns the number of deleted pods.
pub(super) async fn sweep(pods: &Api<Pod>, manager: Option<&str>, now: Timestamp) -> Result<usize, kube::Error> {
    let all = call(pods.list(&ListParams::default().labels(SELECTOR).limit(MAX_PODS))).await?;
    let mut swept = 0;
    for pod in all.items {
        let is_own = manager.is_some()
            && pod
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(MANAGER))
                .map(String::as_str)
                == manager;
        let Some(name) = pod.metadata.name.as_deref().filter(|_| is_own || is_over(&pod, now)) else {
            continue;
        };
        delete(pods, name).await;
        swept += 1;
    }
    Ok(swept)
}

/// Returns `true` for a pod whose manager would have deleted it by now.
fn is_over(pod: &Pod, now: Timestamp) -> bool {
    let created = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0.as_millisecond());
    let deadline = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let (Some(created), Some(deadline)) = (created, deadline) else {
        // None of ours: each has a deadline.
        return false;
    };
    let grace = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
    let over = created
        .saturating_add(deadline.saturating_mul(1_000))
        .saturating_add(grace);
    i64::try_from(now.as_millis()).is_ok_and(|now| now > over)
}
