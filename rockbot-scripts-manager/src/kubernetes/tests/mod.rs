//! Tests of the backend against a server that stands in for the Kubernetes API.

mod fake;
mod faults;
mod pods;
mod runs;
mod sweeps;

use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::config::Config;
use rockbot_tools::scripts::{Script, ScriptError, ScriptOutput, ScriptRunner as _};

use super::KubernetesScriptRunner;
use super::settings::KubernetesSettings;
use fake::Cluster;

/// Name of the manager of these tests.
const MANAGER: &str = "manager-1";

fn settings(text: &str) -> KubernetesSettings {
    let config = Config::new().with_text("manager.toml", text).unwrap();
    KubernetesSettings::from_config(&config).unwrap()
}

/// Starts a runner on the cluster.
async fn runner(cluster: &Cluster, text: &str) -> KubernetesScriptRunner {
    let runner = KubernetesScriptRunner::new(cluster.client(), settings(text), MANAGER.to_owned());
    runner.await.unwrap()
}

fn context() -> CallContext {
    CallContext::new("scripts")
}

async fn run(cluster: &Cluster, script: Script) -> Result<ScriptOutput, ScriptError> {
    runner(cluster, "").await.run(script, &context()).await
}

/// Waits until a check holds.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come to that");
}
