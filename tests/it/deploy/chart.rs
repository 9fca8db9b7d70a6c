//! The chart, as the engine of Helm renders it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rockbot_core::testing::outside_part;
use serde_json::{Value, json};

use super::{check, check_pods, documents, folder, kind, read};

/// Renders the chart with the values of its standard input; the second argument is its folder.
const RENDER: &str = "
import json, sys
import helm_python
with helm_python.Chart.load(sys.argv[1]) as chart:
    try:
        rendered = chart.render(json.load(sys.stdin), name='rockbot', namespace='rockbot')
    except helm_python.HelmError as error:
        sys.exit(str(error))
print('\\n---\\n'.join(rendered[name] for name in sorted(rendered, reverse=True)))
";

/// Prints what Helm finds in the chart, except that an icon is recommended.
const LINT: &str = "
import sys
import helm_python
found = helm_python.lint(sys.argv[1])
for message in found['messages']:
    if message['severity'] > 1:
        print(message['path'], message['error'])
print(*found['errors'], sep='\\n', end='')
";

fn helm() -> Option<PathBuf> {
    outside_part("ROCKBOT_TEST_HELM", "set it to what `.ci/helm` prints")
}

/// Runs a script with the engine, which is in the folder `helm`.
fn run(helm: &PathBuf, script: &str, input: &str) -> Result<String, String> {
    let mut python = Command::new("python3")
        .args(["-c", script])
        .arg(folder().join("helm/rockbot"))
        .env("PYTHONPATH", helm)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

/// Renders the chart with these values over its own.
fn chart(helm: &PathBuf, values: &Value) -> Vec<Value> {
    let text = run(helm, RENDER, &values.to_string()).unwrap();
    let documents = documents(&text).into_iter();
    documents.filter(|document| !document.is_null()).collect()
}

#[test]
fn helm_accepts_the_chart() {
    let Some(helm) = helm() else { return };
    assert_eq!(run(&helm, LINT, "").as_deref(), Ok(""));
}

#[test]
fn the_chart_says_what_the_manifests_say() {
    let Some(helm) = helm() else { return };
    let chart = chart(&helm, &json!({}));
    check(&chart);
    let mut manifests = documents(&read("kubernetes/scripts-manager.yaml"));
    // Helm creates the namespace of the release, and the chart names more settings.
    manifests.remove(0);
    let without_env = |documents: &[Value]| -> Vec<Value> {
        let mut documents = documents.to_vec();
        for document in &mut documents {
            if let Some(env) = document.pointer_mut("/spec/template/spec/containers/0/env") {
                env.take();
            }
        }
        documents
    };
    assert_eq!(without_env(&chart), without_env(&manifests));
}

#[test]
fn the_values_of_the_chart_have_effects() {
    let Some(helm) = helm() else { return };
    let with_packages = chart(&helm, &json!({"scriptsManager": {"packageClaim": "wheels"}}));
    check(&with_packages);
    assert_eq!(kind(&with_packages, "NetworkPolicy").len(), 2);
    assert!(
        json!(with_packages)
            .to_string()
            .contains(r#"{"name":"ROCKBOT_KUBERNETES__PACKAGECLAIM","value":"wheels"}"#)
    );
    let values = json!({
        "openrouterMcp": {"enabled": true},
        "secrets": {"openRouter": {"apiKey": "key: 'quoted'", "token": "token"}},
    });
    let both = chart(&helm, &values);
    check(&both);
    let secrets = kind(&both, "Secret");
    assert_eq!(
        secrets[0]["stringData"],
        json!({"apiKey": "key: 'quoted'", "token": "token"})
    );
    assert_eq!(kind(&both, "Deployment").len(), 2);
    let neither = chart(&helm, &json!({"scriptsManager": {"enabled": false}}));
    assert_eq!(neither, Vec::<Value>::new());
}

/// The values of a chart that is an agent alone.
fn agent(more: &Value) -> Value {
    let mut agent = json!({"enabled": true});
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"scriptsManager": {"enabled": false}, "agent": agent})
}

#[test]
fn an_agent_is_a_process_with_a_volume_and_without_rights() {
    let Some(helm) = helm() else { return };
    let one = chart(&helm, &agent(&json!({"secret": "keys"})));
    let kinds: Vec<_> = one.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["ConfigMap", "Service", "StatefulSet"]);
    let process = &one[2];
    check_pods(process);
    let container = &process["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "keys"}}]));
    assert_eq!(process["spec"]["volumeClaimTemplates"][0]["metadata"]["name"], "data");

    let public = json!({"replicas": 3, "ingress": {"host": "agent.example.com", "tlsSecret": "certificate"}});
    let three = chart(&helm, &agent(&public));
    assert_eq!(kind(&three, "PodDisruptionBudget").len(), 1);
    let ingress = &kind(&three, "Ingress")[0]["spec"];
    assert_eq!(
        ingress["tls"],
        json!([{"hosts": ["agent.example.com"], "secretName": "certificate"}])
    );
    let container = &kind(&three, "StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0];
    let names = json!([{"name": "ROCKBOT_WEBSERVER__ALLOWEDHOSTS", "value": "rockbot-agent,agent.example.com"}]);
    assert_eq!(container["env"], names);

    let bare = agent(&json!({"ingress": {"host": "agent.example.com"}}));
    let refused = run(&helm, RENDER, &bare.to_string()).unwrap_err();
    assert!(refused.contains("set agent.ingress.tlsSecret"), "{refused}");
}

/// The settings and the arguments of the chart are those of the program.
#[cfg(feature = "web-server")]
#[tokio::test]
async fn the_program_takes_the_settings_of_the_chart() {
    let Some(helm) = helm() else { return };
    let one = chart(&helm, &agent(&json!({})));
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("agent.toml");
    std::fs::write(&settings, one[0]["data"]["agent.toml"].as_str().unwrap()).unwrap();
    let variables = [
        ("ROCKBOT_WEBSERVER__ALLOWEDHOSTS", "rockbot-agent"),
        ("ROCKBOT_WEBSERVER__USERS__0__NAME", "ann"),
        ("ROCKBOT_WEBSERVER__USERS__0__TOKEN", "a token"),
    ];
    super::check_with_doctor(&settings, &variables).await;
}

#[test]
fn services_on_the_broker_are_deployments_without_rights() {
    let Some(helm) = helm() else { return };
    let servers = json!({"mcpServers": {"time": {"url": "https://time.example.com/mcp"}}});
    let values = json!({
        "scriptsManager": {"enabled": false},
        "mcpBridge": {"enabled": true, "servers": servers},
        "workers": [{"name": "orders", "image": "orders:1", "replicas": 2, "secret": "orders"}],
    });
    let services = chart(&helm, &values);
    let deployments = kind(&services, "Deployment");
    deployments.iter().for_each(|deployment| check_pods(deployment));
    let names: Vec<_> = deployments
        .iter()
        .map(|deployment| (&deployment["metadata"]["name"], &deployment["spec"]["replicas"]))
        .collect();
    assert_eq!(json!(names), json!([["rockbot-mcp-bridge", 1], ["orders", 2]]));
    let files = &kind(&services, "ConfigMap")[0]["data"];
    let written: Value = serde_json::from_str(files["mcp.json"].as_str().unwrap()).unwrap();
    assert_eq!(written, servers);
}
