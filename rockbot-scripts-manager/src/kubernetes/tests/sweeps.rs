//! Pods that outlive their managers.

use std::time::Duration;

use rockbot_core::{Clock as _, SystemClock, Timestamp};
use serde_json::json;

use super::super::KubernetesScriptRunner;
use super::fake::Cluster;
use super::{MANAGER, runner, settings, until};

fn seconds_ago(seconds: u64) -> Timestamp {
    Timestamp::from_millis(SystemClock.now().as_millis() - seconds * 1_000)
}

/// A cluster with pods of this manager, of another one, and of neither.
fn cluster() -> Cluster {
    let cluster = Cluster::new("", |_| Vec::new());
    let labels = |manager: &str| json!({"app": "rockbot-script", "rockbot.dev/manager": manager});
    cluster.add("own", &labels(MANAGER), seconds_ago(1));
    cluster.add("other", &labels("manager-2"), seconds_ago(110));
    cluster.add("over", &labels("manager-2"), seconds_ago(130));
    cluster.add("foreign", &json!({"app": "database"}), seconds_ago(9_000));
    cluster
}

#[tokio::test]
async fn a_manager_that_starts_deletes_what_it_left_and_what_is_over() {
    let cluster = cluster();
    let _runner = runner(&cluster, "").await;
    assert_eq!(cluster.pods(), ["foreign", "other"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_dead_managers_are_swept_from_time_to_time() {
    let cluster = cluster();
    let running = runner(&cluster, "").await;
    let labels = |manager: &str| json!({"app": "rockbot-script", "rockbot.dev/manager": manager});
    cluster.add("late", &labels("manager-3"), seconds_ago(9_000));
    cluster.add("busy", &labels(MANAGER), seconds_ago(1));
    until(|| !cluster.pods().contains(&"late".to_owned())).await;
    assert_eq!(
        cluster.pods(),
        ["busy", "foreign", "other"],
        "a pod of a script that runs stays"
    );
    drop(running);
    let requests = cluster.requests().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.requests().len(), requests, "the sweeper ends with the runner");
}

#[tokio::test]
async fn a_manager_that_may_not_look_for_its_pods_does_not_start() {
    let cluster = cluster();
    cluster.set_fault(|_, _| Some((403, "pods is forbidden")));
    let started = KubernetesScriptRunner::new(cluster.client(), settings(""), MANAGER.to_owned()).await;
    let error = started.unwrap_err().to_string();
    assert!(
        error.starts_with("scripts cannot run here: Kubernetes forbids it: "),
        "{error}"
    );
}
