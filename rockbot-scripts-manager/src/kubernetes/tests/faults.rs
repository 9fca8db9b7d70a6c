//! Faults: of the API, of the cluster, of the pods, and callers that give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_tools::scripts::{Script, ScriptError, ScriptOutput, ScriptRunner as _};
use serde_json::json;
use tokio::time::Instant;

use super::fake::{Cluster, ended, running, status};
use super::{context, run, runner, until};

const SECOND: Duration = Duration::from_secs(1);

fn unavailable(reason: &str) -> Result<ScriptOutput, ScriptError> {
    Err(ScriptError::Unavailable(reason.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn a_manager_without_the_role_learns_which() {
    let cluster = Cluster::new("", |_| vec![(SECOND, ended(0, ""))]);
    let runner = runner(&cluster, "").await;
    cluster.set_fault(|method, _| (method == "POST").then_some((403, "pods is forbidden")));
    let expected = unavailable(
        "Kubernetes forbids it: pods is forbidden; apply the role in `deploy/` to the service account of the manager",
    );
    assert_eq!(runner.run(Script::new("x"), &context()).await, expected);
    // The quota of the namespace is reached.
    cluster.set_fault(|method, _| (method == "POST").then_some((422, "exceeded quota")));
    assert_eq!(
        runner.run(Script::new("x"), &context()).await,
        unavailable("Kubernetes refuses it: exceeded quota")
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_can_never_start_fails_early_with_the_reason() {
    for (reason, message) in [
        ("ImagePullBackOff", "Back-off pulling image \"python:3.12-slim\""),
        ("InvalidImageName", "couldn't parse the name"),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root",
        ),
    ] {
        let waiting = status("Pending", &json!({"waiting": {"reason": reason, "message": message}}));
        let cluster = Cluster::new("", move |_| vec![(SECOND, waiting.clone())]);
        let began = Instant::now();
        let output = run(&cluster, Script::new("x")).await;
        assert_eq!(output, unavailable(&format!("the pod cannot run: {reason}: {message}")));
        assert!(began.elapsed() < 2 * SECOND, "{:?}", began.elapsed());
        assert_eq!(cluster.pods(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_start_in_time_says_what_it_waits_for() {
    let unscheduled = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
    ]});
    let cluster = Cluster::new("", move |_| vec![(SECOND, unscheduled.clone())]);
    let expected = "the pod did not start within 20 s: Unschedulable: 0/3 nodes are available";
    assert_eq!(run(&cluster, Script::new("x")).await, unavailable(expected));
    assert_eq!(cluster.pods(), Vec::<String>::new());
    let silent = Cluster::new("", |_| Vec::new());
    assert_eq!(
        run(&silent, Script::new("x")).await,
        unavailable("the pod did not start within 20 s")
    );
}

#[tokio::test(start_paused = true)]
async fn a_script_over_its_memory_is_killed_and_told_so() {
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let cluster = Cluster::new("half", move |_| {
        vec![(SECOND, running()), (SECOND, status("Failed", &killed))]
    });
    let expected = ScriptOutput::new(137, "half", "\nThe script needed more memory than it has.");
    assert_eq!(run(&cluster, Script::new("x")).await, Ok(expected));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_cluster_is_a_time_out_and_an_eviction_is_no_output() {
    let mut over = status("Failed", &json!({"terminated": {"exitCode": 137}}));
    over["reason"] = json!("DeadlineExceeded");
    let bare = json!({"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"});
    for status in [over, bare] {
        let cluster = Cluster::new("half", move |_| vec![(SECOND, running()), (SECOND, status.clone())]);
        assert_eq!(
            run(&cluster, Script::new("x")).await,
            Ok(ScriptOutput::timed_out("half", ""))
        );
    }
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"});
    let cluster = Cluster::new("", move |_| vec![(SECOND, running()), (SECOND, evicted.clone())]);
    let expected = "the pod cannot run: Evicted: The node was low on memory";
    assert_eq!(run(&cluster, Script::new("x")).await, unavailable(expected));
    assert_eq!(cluster.pods(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_script_that_writes_too_much_is_told_so() {
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 128Mi. ";
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": message});
    let cluster = Cluster::new("", move |_| vec![(SECOND, running()), (SECOND, evicted.clone())]);
    cluster.set_fault(|method, path| (method == "GET" && path == "log").then_some((404, "no log")));
    let expected = ScriptOutput::new(137, "", message.trim());
    assert_eq!(run(&cluster, Script::new("x")).await, Ok(expected));
    assert_eq!(cluster.pods(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_by_others_is_an_error_at_once() {
    let cluster = Cluster::new("", |_| vec![(SECOND, running())]);
    let deleting = cluster.clone();
    tokio::spawn(async move {
        tokio::time::sleep(3 * SECOND).await;
        deleting.remove(&deleting.pods()[0]);
    });
    let output = run(&cluster, Script::new("x")).await;
    assert_eq!(output, unavailable("the pod was deleted while the script ran"));
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_away_for_a_moment_is_waited_for() {
    let cluster = Cluster::new("42\n", |_| vec![(SECOND, running()), (SECOND, ended(0, ""))]);
    let failures = Arc::new(AtomicUsize::new(0));
    let runner = runner(&cluster, "").await;
    cluster.set_fault(move |method, last| {
        let is_looking = method == "GET" && last == "pod";
        (is_looking && failures.fetch_add(1, Ordering::SeqCst) < 4).then_some((0, "connection refused"))
    });
    assert_eq!(
        runner.run(Script::new("x"), &context()).await,
        Ok(ScriptOutput::new(0, "42\n", ""))
    );
    assert_eq!(cluster.pods(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_api_that_stays_away_is_one_clear_error() {
    let cluster = Cluster::new("", |_| vec![(SECOND, running())]);
    let runner = runner(&cluster, "").await;
    cluster.set_fault(|_, _| Some((0, "connection refused")));
    let error = runner.run(Script::new("x"), &context()).await.unwrap_err().to_string();
    let expected = "scripts cannot run here: the Kubernetes API cannot be reached: ";
    assert!(
        error.starts_with(expected) && error.contains("connection refused"),
        "{error}"
    );
    cluster.set_fault(|method, _| (method == "GET").then_some((0, "connection refused")));
    let error = runner.run(Script::new("x"), &context()).await.unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(cluster.pods(), Vec::<String>::new(), "the deletion went through");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_tried_again() {
    let cluster = Cluster::new("42\n", |_| vec![(SECOND, ended(0, ""))]);
    let failures = Arc::new(AtomicUsize::new(0));
    let runner = runner(&cluster, "").await;
    cluster.set_fault(move |method, _| {
        (method == "DELETE" && failures.fetch_add(1, Ordering::SeqCst) < 3).then_some((500, "try again"))
    });
    assert_eq!(
        runner.run(Script::new("x"), &context()).await,
        Ok(ScriptOutput::new(0, "42\n", ""))
    );
    assert_eq!(cluster.pods(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_creation_was_not_answered_is_deleted() {
    let cluster = Cluster::new("", |_| vec![(SECOND, running())]);
    let runner = runner(&cluster, "").await;
    // The answer to the creation is lost, and the pod is there.
    let cx = context();
    let creating = runner.run(Script::new("x"), &cx);
    assert!(tokio::time::timeout(Duration::from_millis(1), creating).await.is_err());
    until(|| cluster.created().len() == 1 && cluster.pods().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_script_whose_caller_gives_up_leaves_no_pod() {
    let cluster = Cluster::new("", |_| vec![(SECOND, running())]);
    let runner = runner(&cluster, "").await;
    let cx = context();
    let running = runner.run(Script::new("x"), &cx);
    assert!(tokio::time::timeout(5 * SECOND, running).await.is_err());
    assert_eq!(cluster.created().len(), 1);
    until(|| cluster.pods().is_empty()).await;
}
