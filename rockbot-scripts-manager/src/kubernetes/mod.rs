//! The backend that runs each script in a pod of its own.
//!
//! A pod gets source and input in its environment, prints to its log, and tells its standard error
//! in the message of its end. It is deleted when its script has ended, however that was. What is
//! left of a manager that died is swept by the next one (`sweep.rs`), and ends by its own deadline.
//! Packages are installed by a pod of their own, which may have the network, into a volume that the
//! pods of scripts only read (`packages.rs`).

mod api;
mod packages;
mod pod;
mod settings;
mod sweep;
#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{LogParams, PostParams};
use kube::{Api, Client};
use rockbot_core::config::Config;
use rockbot_core::{BoxError, CallContext, Clock as _, SystemClock};
use rockbot_tools::scripts::{Guarantees, Script, ScriptError, ScriptOutput, ScriptRunner};
use tokio_util::task::AbortOnDropHandle;

use api::{CreatedPod, call, unavailable};
use packages::InstalledSets;
use settings::KubernetesSettings;
use wait::{Followed, PodEnd};

/// Maximum size of source and input together, in bytes: both stand in the definition of the pod.
const MAX_SCRIPT: usize = 512 << 10;

/// Maximum length of the standard output that is kept, in bytes.
const MAX_STDOUT: usize = 256 << 10;

/// Exit code of a script that the cluster killed.
const KILLED: i32 = 137;

/// Tries to reach the API of the cluster, which is in its input.
const NETWORK_TRIAL: &str = include_str!("network.py");

/// A runner that creates a pod for each script.
#[derive(Debug)]
pub(crate) struct KubernetesScriptRunner {
    pods: Api<Pod>,
    settings: KubernetesSettings,
    /// Name of this manager in the labels of its pods.
    manager: String,
    installed: InstalledSets,
    _sweeper: AbortOnDropHandle<()>,
}

/// Connects to the cluster of the environment: of the pod of this program, or of a `kubeconfig`.
/// Returns the runner, and whether its pods have no network.
pub(crate) async fn open(config: &Config) -> Result<(KubernetesScriptRunner, bool), BoxError> {
    let settings = KubernetesSettings::from_config(config)?;
    let cluster = kube::Config::infer().await?;
    let host = cluster.cluster_url.host().unwrap_or_default().to_owned();
    let port = cluster.cluster_url.port_u16().unwrap_or(443);
    let client = Client::try_from(cluster)?;
    // A pod has its name as the name of its host, also when its process starts again.
    let manager = std::env::var("HOSTNAME").unwrap_or_else(|_| "rockbot-scripts-manager".to_owned());
    let runner = KubernetesScriptRunner::new(client, settings, label(&manager)).await?;
    let is_walled = runner.has_no_network(&host, port).await?;
    Ok((runner, is_walled))
}

impl KubernetesScriptRunner {
    /// Creates the runner, which deletes what an earlier process of this name left.
    async fn new(client: Client, settings: KubernetesSettings, manager: String) -> Result<Self, ScriptError> {
        let pods: Api<Pod> = Api::namespaced(client, &settings.namespace);
        let swept = sweep::sweep(&pods, Some(&manager), SystemClock.now()).await;
        let swept = swept.map_err(|error| unavailable(&error))?;
        if swept > 0 {
            tracing::warn!(pods = swept, "pods of an earlier process were deleted");
        }
        Ok(Self {
            _sweeper: AbortOnDropHandle::new(tokio::spawn(keep_swept(pods.clone()))),
            pods,
            settings,
            manager,
            installed: InstalledSets::default(),
        })
    }

    /// Returns `true` if a script cannot reach the API of the cluster at this address.
    async fn has_no_network(&self, host: &str, port: u16) -> Result<bool, ScriptError> {
        let trial = Script::new(NETWORK_TRIAL).with_input(format!("{host} {port}"));
        let output = self.run(trial, &CallContext::new("scripts")).await?;
        match output.stdout.trim() {
            "closed" => Ok(true),
            "open" => {
                tracing::warn!(
                    "scripts have a network: apply the policy in `deploy/`, and use a network plugin that keeps it"
                );
                Ok(false)
            }
            _ => Err(ScriptError::Unavailable(format!(
                "the trial of the network failed: {}",
                output.stderr.trim()
            ))),
        }
    }

    /// Runs a pod to its end and deletes it, however it ends. Returns its end and its log.
    async fn run_pod(&self, pod: &Pod, limit: Duration) -> Result<(PodEnd, String), ScriptError> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let created = CreatedPod::new(self.pods.clone(), name.clone());
        // Cancel point, as every await below: dropping `created` deletes the pod.
        let ran = self.follow(pod, &name, limit).await;
        created.delete().await;
        ran
    }

    async fn follow(&self, pod: &Pod, name: &str, limit: Duration) -> Result<(PodEnd, String), ScriptError> {
        let creating = call(self.pods.create(&PostParams::default(), pod)).await;
        creating.map_err(|error| unavailable(&error))?;
        let followed = Followed { pods: &self.pods, name };
        let end = followed.ended(self.settings.start_limit, limit).await?;
        let only = LogParams {
            container: Some(pod::CONTAINER.to_owned()),
            limit_bytes: i64::try_from(MAX_STDOUT + 1).ok(),
            ..LogParams::default()
        };
        let log = match call(self.pods.logs(name, &only)).await {
            // A pod that the cluster ended may have none.
            Err(_) if !matches!(end, PodEnd::Exited(..)) => String::new(),
            log => log.map_err(|error| unavailable(&error))?,
        };
        Ok((end, bounded(log)))
    }
}

#[async_trait]
impl ScriptRunner for KubernetesScriptRunner {
    fn name(&self) -> &str {
        "kubernetes"
    }

    /// The network is not among them: the policy of the cluster keeps it away, which
    /// [`open`] tries out.
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = Guarantees::ALL;
        guarantees.no_network = false;
        guarantees
    }

    async fn run(&self, script: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        let size = script.source.len() + script.input.len();
        if size > MAX_SCRIPT {
            let reason = format!("source and input have {size} bytes, of {MAX_SCRIPT}: pass less input");
            return Err(ScriptError::Refused(reason));
        }
        let packages = self.folder_of(&script.packages).await?;
        let pod = pod::of_script(&self.settings, &self.manager, &script, packages.as_deref())?;
        Ok(match self.run_pod(&pod, script.timeout).await? {
            (PodEnd::Exited(code, stderr), stdout) => ScriptOutput::new(code, stdout, stderr),
            (PodEnd::TimedOut, stdout) => ScriptOutput::timed_out(stdout, ""),
            (PodEnd::Evicted(why), stdout) => ScriptOutput::new(KILLED, stdout, why),
        })
    }
}

/// Deletes pods that outlived their managers, as long as it is not dropped.
async fn keep_swept(pods: Api<Pod>) {
    loop {
        tokio::time::sleep(sweep::INTERVAL).await;
        match sweep::sweep(&pods, None, SystemClock.now()).await {
            Ok(0) => {}
            Ok(swept) => tracing::warn!(pods = swept, "pods that outlived their managers were deleted"),
            Err(error) => tracing::warn!(%error, "pods that outlived their managers cannot be looked for"),
        }
    }
}

/// Cuts a log off after its maximum length.
fn bounded(mut log: String) -> String {
    if log.len() > MAX_STDOUT {
        log.truncate(log.floor_char_boundary(MAX_STDOUT));
        log.push_str(&format!("\n[cut off after {} KiB: print less]", MAX_STDOUT >> 10));
    }
    log
}

/// Returns the name as a label can have it.
fn label(name: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let label: String = name.chars().filter(|c| is_legal(*c)).take(63).collect();
    label.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}
