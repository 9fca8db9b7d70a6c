//! The manifests and the chart in `deploy/`: rights, walls, and settings that the programs read.

#[cfg(all(
    feature = "eval",
    feature = "rest",
    feature = "scheduling",
    feature = "web",
    feature = "web-server"
))]
mod agents;
mod chart;
mod compose;
mod operations;

use std::path::{Path, PathBuf};

use rockbot_core::config::Config;
use rockbot_scripts_manager::{Backend, ScriptsManagerSettings};
use serde_json::{Value, json};

/// The namespace of the pods of scripts.
const SCRIPTS: &str = "rockbot-scripts";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Parses the documents of a file.
fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

/// Checks that the manager has the rights that it needs, in the namespace of scripts alone.
fn check_rights(documents: &[Value]) {
    for document in documents {
        let kind = document["kind"].as_str().unwrap();
        assert!(
            document["apiVersion"].is_string() && document["metadata"]["name"].is_string(),
            "{document}"
        );
        assert!(
            !kind.starts_with("Cluster"),
            "{kind}: rights in one namespace are enough"
        );
        let of_scripts = [
            "Role",
            "RoleBinding",
            "NetworkPolicy",
            "ResourceQuota",
            "PersistentVolumeClaim",
        ];
        let expected = if of_scripts.contains(&kind) { SCRIPTS } else { "rockbot" };
        if kind != "Namespace" {
            assert_eq!(document["metadata"]["namespace"], expected, "{kind}");
        }
    }
    let roles = kind(documents, "Role");
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "list", "watch", "delete"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]);
    assert_eq!(roles.len(), 1);
    assert_eq!(roles[0]["rules"], rules);
    let bindings = kind(documents, "RoleBinding");
    let manager = json!([{"kind": "ServiceAccount", "name": "rockbot-scripts-manager", "namespace": "rockbot"}]);
    assert_eq!((bindings.len(), &bindings[0]["subjects"]), (1, &manager));
    assert_eq!(bindings[0]["roleRef"]["kind"], "Role");
}

/// Checks that scripts have no network, and pods with rights cannot be created beside them.
fn check_walls(documents: &[Value]) {
    let namespaces = kind(documents, "Namespace");
    let scripts = namespaces
        .iter()
        .find(|namespace| namespace["metadata"]["name"] == SCRIPTS);
    let enforced = &scripts.unwrap()["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(enforced, "restricted");
    let policies = kind(documents, "NetworkPolicy");
    let deny_all = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    assert_eq!(policies.iter().filter(|policy| policy["spec"] == deny_all).count(), 1);
    for policy in policies.iter().filter(|policy| policy["spec"] != deny_all) {
        check_installers(policy);
    }
}

/// Checks that a policy gives a way to installers alone.
fn check_installers(policy: &Value) {
    let installers = json!({"matchLabels": {"app": "rockbot-script", "rockbot.dev/step": "packages"}});
    assert_eq!(policy["spec"]["podSelector"], installers);
    assert_eq!(policy["spec"]["policyTypes"], json!(["Egress"]));
}

/// Checks that pods run without rights.
fn check_pods(deployment: &Value) {
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(
        deployment["spec"]["selector"]["matchLabels"],
        deployment["spec"]["template"]["metadata"]["labels"]
    );
    let needs_token = deployment["metadata"]["name"] == "rockbot-scripts-manager";
    assert_eq!(pod["automountServiceAccountToken"], needs_token);
    // The variables of services begin like settings.
    assert_eq!(pod["enableServiceLinks"], false);
    for container in pod["containers"].as_array().unwrap() {
        let expected = json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container["securityContext"], expected);
        assert!(container["resources"]["limits"]["memory"].is_string());
        for variable in container["env"].as_array().into_iter().flatten() {
            let is_secret = ["PASSWORD", "APIKEY", "TOKEN"]
                .iter()
                .any(|end| variable["name"].as_str().unwrap().ends_with(end));
            assert_eq!(
                variable["valueFrom"]["secretKeyRef"].is_object(),
                is_secret,
                "{variable}"
            );
        }
    }
}

/// Checks that the variables of the manager are settings that it reads, as it reads them.
fn check_settings(documents: &[Value]) {
    let deployments = kind(documents, "Deployment");
    let manager = deployments
        .iter()
        .find(|deployment| deployment["metadata"]["name"] == "rockbot-scripts-manager");
    let pod = &manager.unwrap()["spec"]["template"]["spec"];
    let env = pod["containers"][0]["env"].as_array().unwrap();
    let text = |variable: &Value, key: &str| variable[key].as_str().unwrap_or("secret").to_owned();
    let config = Config::new().with_variables(
        env.iter()
            .map(|variable| (text(variable, "name"), text(variable, "value"))),
    );
    let settings = ScriptsManagerSettings::from_config(&config).unwrap();
    assert_eq!((settings.backend, settings.max_concurrent), (Backend::Kubernetes, 4));
    let port = pod["containers"][0]["ports"][0]["containerPort"].as_u64();
    assert_eq!(settings.probe_port.map(u64::from), port, "the probes find the program");
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(
        grace > settings.shutdown_time.as_secs() + 10,
        "killed scripts end before the manager is killed"
    );
    let namespace: Option<String> = config.section("Kubernetes").unwrap().get("Namespace").unwrap();
    assert_eq!(namespace.as_deref(), Some(SCRIPTS));
}

fn check(documents: &[Value]) {
    check_rights(documents);
    check_walls(documents);
    kind(documents, "Deployment").into_iter().for_each(check_pods);
    check_settings(documents);
}

#[test]
fn the_manifests_give_the_manager_its_role_and_scripts_nothing() {
    let manager = documents(&read("kubernetes/scripts-manager.yaml"));
    check(&manager);
    let packages = documents(&read("kubernetes/script-packages.yaml"));
    let policies = kind(&packages, "NetworkPolicy");
    assert_eq!(policies.len(), 1);
    check_installers(policies[0]);
}

/// Checks that the doctor knows the settings of a file and of variables. The servers that they name
/// are not there.
#[cfg(feature = "web-server")]
async fn check_with_doctor(settings: &Path, variables: &[(&str, &str)]) {
    use crate::example_programs::{OFFLINE, example, text};

    let data = tempfile::tempdir().unwrap();
    let doctor = ["--config", settings.to_str().unwrap(), "doctor"];
    let mut doctor = example("chat", &doctor, data.path());
    let output = doctor
        .env(OFFLINE.0, OFFLINE.1)
        .envs(variables.iter().copied())
        .output();
    let told = text(&output.await.unwrap().stdout);
    assert!(told.contains("part: a web server"), "{told}");
    let unknown: Vec<_> = told.lines().filter(|line| line.contains("not a setting")).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}
