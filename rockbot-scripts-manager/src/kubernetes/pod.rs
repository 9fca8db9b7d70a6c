//! The pods of scripts and of their packages.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Pod;
use rockbot_tools::scripts::{Script, ScriptError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::settings::KubernetesSettings;

/// Name of the only container of a pod.
pub(super) const CONTAINER: &str = "script";

/// Selector of all pods of scripts managers.
pub(super) const SELECTOR: &str = "app=rockbot-script";

/// Label with the name of the manager that created a pod.
pub(super) const MANAGER: &str = "rockbot.dev/manager";

/// Time that the installation of packages has.
pub(super) const INSTALL_LIMIT: Duration = Duration::from_secs(120);

/// Time beyond the limits of a pod after which the cluster ends it, in case no manager does.
const SPARE: Duration = Duration::from_secs(10);

/// Reads script and input from the environment, and becomes the script.
const BOOTSTRAP: &str = include_str!("pod.py");

/// Installs packages, its arguments, into the folder that its first argument names. The folder is
/// there when it is complete.
const INSTALL: &str = "set -e; cd /packages; [ ! -d \"$1\" ] || exit 0; part=\"$1.$HOSTNAME\"; name=\"$1\"; shift\n\
    python3 -I -m pip install --quiet --disable-pip-version-check --no-input --no-cache-dir --only-binary :all: \
    --target \"$part\" -- \"$@\"\n\
    mv -T \"$part\" \"$name\" || { rm -rf \"$part\"; [ -d \"$name\" ]; }";

/// File of the standard error. Kubernetes tells the end of the file together with the exit code:
/// its logs mix both outputs.
const MESSAGE: &str = "/dev/termination-log";

/// Maximum length of a variable with a part of script and input, in bytes. Linux takes 128 KiB.
const MAX_PART: usize = 96 << 10;

/// Maximum size of a file that a script writes, and of all its files, in MiB.
const MAX_FILE_MEGABYTES: u64 = 64;

/// Maximum number of processes and threads of a script.
const MAX_PROCESSES: u64 = 64;

/// Group of all pods, to which the volume of packages belongs.
const GROUP: u32 = 65_534;

/// Returns the pod of a script, with the packages of this folder of the volume.
pub(super) fn of_script(
    settings: &KubernetesSettings,
    manager: &str,
    script: &Script,
    packages: Option<&str>,
) -> Result<Pod, ScriptError> {
    let data = STANDARD.encode([script.source.as_bytes(), script.input.as_bytes()].concat());
    let parts: Vec<_> = data.as_bytes().chunks(MAX_PART).map(String::from_utf8_lossy).collect();
    let named = parts.iter().enumerate();
    let env: Vec<_> = named
        .map(|(number, part)| json!({"name": format!("ROCKBOT_PART_{number}"), "value": part}))
        .collect();
    // Twice the memory that the pod has: libraries reserve more than they use.
    let address_space = (settings.memory_megabytes << 20) * 2;
    let cpu = 2 * script.timeout.as_secs() + 1;
    let file = MAX_FILE_MEGABYTES << 20;
    let numbers = [
        parts.len() as u64,
        script.source.len() as u64,
        address_space,
        cpu,
        file,
        MAX_PROCESSES,
    ];
    let mut command = ["python3", "-I", "-X", "utf8", "-c", BOOTSTRAP]
        .map(str::to_owned)
        .to_vec();
    command.extend(numbers.iter().map(u64::to_string));
    command.push(MESSAGE.to_owned());
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if let Some(folder) = packages {
        command.push("/packages".to_owned());
        mounts.push(json!({"name": "packages", "mountPath": "/packages", "subPath": folder, "readOnly": true}));
    }
    let container = json!({"command": command, "env": env, "volumeMounts": mounts});
    let limit = settings.start_limit + script.timeout;
    pod(settings, manager, "script", limit, container)
}

/// Returns the pod that installs packages into a folder of the volume.
pub(super) fn of_packages(
    settings: &KubernetesSettings,
    manager: &str,
    folder: &str,
    packages: &[String],
) -> Result<Pod, ScriptError> {
    // Names and versions alone, which were checked; they are arguments and no part of the script.
    let mut command = ["sh", "-c", INSTALL, "sh", folder].map(str::to_owned).to_vec();
    command.extend(packages.iter().cloned());
    let mut env = vec![json!({"name": "HOME", "value": "/tmp"})];
    if let Some(index) = &settings.package_index {
        env.push(json!({"name": "PIP_INDEX_URL", "value": index.replace("$(", "$$(")}));
    }
    let mounts = json!([{"name": "tmp", "mountPath": "/tmp"}, {"name": "packages", "mountPath": "/packages"}]);
    let container = json!({"command": command, "env": env, "volumeMounts": mounts});
    let limit = settings.start_limit + INSTALL_LIMIT;
    pod(settings, manager, "packages", limit, container)
}

/// Returns a pod without rights: of a user of its own, without a token and capabilities, with a
/// root that it only reads. It ends after `limit` even if no manager is left.
fn pod(
    settings: &KubernetesSettings,
    manager: &str,
    step: &str,
    limit: Duration,
    container: Value,
) -> Result<Pod, ScriptError> {
    let id = Uuid::new_v4();
    // A user of its own, since the number of processes is counted by user on a node.
    let user = 10_000 + id.as_u128() % 50_000;
    let mut container = container;
    container["name"] = json!(CONTAINER);
    container["image"] = json!(settings.image);
    container["imagePullPolicy"] = json!("IfNotPresent");
    container["resources"] = resources(settings);
    container["terminationMessagePath"] = json!(MESSAGE);
    container["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
    });
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {"sizeLimit": format!("{MAX_FILE_MEGABYTES}Mi")}})];
    if let Some(claim) = &settings.package_claim {
        volumes.push(json!({"name": "packages", "persistentVolumeClaim": {"claimName": claim}}));
    }
    let pod = json!({
        "metadata": {
            "name": format!("rockbot-script-{}", id.simple()),
            "namespace": settings.namespace,
            "labels": {"app": "rockbot-script", MANAGER: manager, "rockbot.dev/step": step},
        },
        "spec": {
            "activeDeadlineSeconds": (limit + SPARE).as_secs(),
            "automountServiceAccountToken": false,
            "containers": [container],
            "enableServiceLinks": false,
            "nodeName": settings.node_name,
            "restartPolicy": "Never",
            "securityContext": {
                "fsGroup": GROUP,
                "runAsGroup": GROUP,
                "runAsNonRoot": true,
                "runAsUser": u64::try_from(user).unwrap_or(10_000),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 0,
            "volumes": volumes,
        },
    });
    serde_json::from_value(pod).map_err(|error| ScriptError::Unavailable(format!("the pod cannot be written: {error}")))
}

fn resources(settings: &KubernetesSettings) -> Value {
    let limits = json!({
        "cpu": format!("{}m", settings.cpu_millis),
        "memory": format!("{}Mi", settings.memory_megabytes),
        "ephemeral-storage": format!("{}Mi", 2 * MAX_FILE_MEGABYTES),
    });
    json!({"limits": limits, "requests": limits})
}
