//! The manifests and the chart in `deploy/`: rights, walls, and settings that the programs read.

mod operations;

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Renders a template of the chart as far as it uses the language: conditions on values, `with`, the
/// functions `quote` and `required`. A value that `values.yaml` does not have is an error.
fn rendered(template: &str, values: &Value) -> String {
    let mut shown = vec![(true, Value::Null)];
    let mut text = String::new();
    for line in template.lines() {
        let (is_shown, dot) = shown.last().expect("as many ends as beginnings").clone();
        match line
            .trim()
            .strip_prefix("{{- ")
            .and_then(|line| line.strip_suffix(" }}"))
        {
            Some("end") => _ = shown.pop(),
            Some(block) => {
                let (word, path) = block.split_once(' ').expect(block);
                assert!(["if", "with"].contains(&word), "{block}");
                let value = value(path, values, &dot);
                let is_set = value != json!(false) && value != json!("");
                shown.push((is_shown && is_set, value));
            }
            None if is_shown => text.push_str(&(substituted(line, values, &dot) + "\n")),
            None => {}
        }
    }
    assert_eq!(shown.len(), 1, "as many ends as beginnings");
    text
}

fn substituted(line: &str, values: &Value, dot: &Value) -> String {
    let Some((before, rest)) = line.split_once("{{ ") else {
        return line.to_owned();
    };
    let (expression, after) = rest.split_once(" }}").expect(line);
    let (path, is_quoted) = match expression.strip_suffix(" | quote") {
        Some(path) => (path, true),
        None => (expression, false),
    };
    // The message of `required` stands before the value.
    let path = path.rsplit(' ').next().unwrap_or_default();
    let value = value(path, values, dot);
    let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let word = if is_quoted { json!(word).to_string() } else { word };
    format!("{before}{word}{}", substituted(after, values, dot))
}

fn value(path: &str, values: &Value, dot: &Value) -> Value {
    match path {
        "." => dot.clone(),
        ".Release.Namespace" => json!("rockbot"),
        path => {
            let path = path
                .strip_prefix(".Values.")
                .unwrap_or_else(|| panic!("{path}"))
                .replace('.', "/");
            values
                .pointer(&format!("/{path}"))
                .unwrap_or_else(|| panic!("no value {path}"))
                .clone()
        }
    }
}

/// Renders the chart with these values over its own.
fn chart(changes: &[(&str, Value)]) -> Vec<Value> {
    let mut values = documents(&read("helm/rockbot/values.yaml")).remove(0);
    for (path, value) in changes {
        *values.pointer_mut(path).unwrap_or_else(|| panic!("no value {path}")) = value.clone();
    }
    let templates = ["scripts-manager", "openrouter-mcp"];
    let texts = templates.map(|name| rendered(&read(&format!("helm/rockbot/templates/{name}.yaml")), &values));
    let texts = texts.iter().filter(|text| !text.trim().is_empty());
    texts.flat_map(|text| documents(text)).collect()
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

/// Checks that a deployment runs without rights.
fn check_deployment(deployment: &Value) {
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(
        deployment["spec"]["selector"]["matchLabels"],
        deployment["spec"]["template"]["metadata"]["labels"]
    );
    let needs_token = deployment["metadata"]["name"] == "rockbot-scripts-manager";
    assert_eq!(pod["automountServiceAccountToken"], needs_token);
    for container in pod["containers"].as_array().unwrap() {
        let expected = json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container["securityContext"], expected);
        assert!(container["resources"]["limits"]["memory"].is_string());
        for variable in container["env"].as_array().unwrap() {
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
    kind(documents, "Deployment").into_iter().for_each(check_deployment);
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

#[test]
fn the_chart_says_what_the_manifests_say() {
    let chart = chart(&[]);
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
    let with_packages = chart(&[("/scriptsManager/packageClaim", json!("wheels"))]);
    check(&with_packages);
    assert_eq!(kind(&with_packages, "NetworkPolicy").len(), 2);
    assert!(
        json!(with_packages)
            .to_string()
            .contains(r#"{"name":"ROCKBOT_KUBERNETES__PACKAGECLAIM","value":"wheels"}"#)
    );
    let both = chart(&[
        ("/openrouterMcp/enabled", json!(true)),
        ("/secrets/openRouter/apiKey", json!("key: 'quoted'")),
        ("/secrets/openRouter/token", json!("token")),
    ]);
    check(&both);
    let secrets = kind(&both, "Secret");
    assert_eq!(
        secrets[0]["stringData"],
        json!({"apiKey": "key: 'quoted'", "token": "token"})
    );
    assert_eq!(kind(&both, "Deployment").len(), 2);
    let neither = chart(&[("/scriptsManager/enabled", json!(false))]);
    assert_eq!(neither, Vec::<Value>::new());
}

/// The judgement of Helm itself, where it is installed.
#[test]
fn helm_accepts_the_chart() {
    let lint = Command::new("helm")
        .arg("lint")
        .arg(folder().join("helm/rockbot"))
        .output();
    match lint {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("SKIPPED: helm cannot be run: {error}"),
    }
}

/// The agents of `deploy/agents`.
#[cfg(all(
    feature = "eval",
    feature = "rest",
    feature = "scheduling",
    feature = "web",
    feature = "web-server"
))]
mod agents {
    use std::process::Stdio;

    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;
    use crate::example_programs::{OFFLINE, PATIENCE, example, text};

    /// Copies one of the agents of `deploy/agents`.
    fn copied(agent: &str) -> tempfile::TempDir {
        fn copy(from: &Path, to: &Path) {
            std::fs::create_dir_all(to).unwrap();
            for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
                let to = to.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    copy(&entry.path(), &to);
                } else {
                    std::fs::copy(entry.path(), to).unwrap();
                }
            }
        }
        let copied = tempfile::tempdir().unwrap();
        copy(&folder().join("agents").join(agent), copied.path());
        copied
    }

    /// Each agent is sound as it stands in its folder, and has the parts that it is for.
    #[tokio::test]
    async fn the_agents_to_copy_are_sound() {
        for (agent, parts) in [
            ("research", ["web", "files", "subagents"]),
            ("patrol", ["rest", "scheduling", "web server"]),
            ("support", ["rest", "feedback", "web server"]),
        ] {
            let copied = copied(agent);
            let doctor = ["--config", "agent.toml", "doctor"];
            let output = example("chat", &doctor, copied.path())
                .env(OFFLINE.0, OFFLINE.1)
                .output()
                .await
                .unwrap();
            let told = text(&output.stdout);
            assert!(output.status.success(), "{agent}: {told}");
            let warnings: Vec<_> = told.lines().filter(|line| !line.starts_with("ok ")).collect();
            assert_eq!(
                warnings,
                ["warning  Balanced: it is the built-in offline model, which is not an LLM"],
                "{agent}"
            );
            for part in parts {
                let is_listed = told.lines().any(|line| line.contains("part: ") && line.contains(part));
                assert!(is_listed, "{agent} has {part}: {told}");
            }
            rockbot::eval::Dataset::read(copied.path().join("cases.jsonl")).unwrap();
        }
    }

    /// The desk answers a customer over HTTP who signs in with a token of the settings.
    #[tokio::test]
    async fn the_support_desk_answers_customers_over_http() {
        let copied = copied("support");
        let mut desk = example(
            "chat",
            &["serve", "--port", "0", "--config", "agent.toml"],
            copied.path(),
        )
        .envs([OFFLINE, ("ROCKBOT_WEBSERVER__ADDRESS", "127.0.0.1:0")])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
        let mut lines = BufReader::new(desk.stderr.take().unwrap()).lines();
        let url = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line())
                .await
                .unwrap()
                .unwrap()
                .expect("it runs");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["message"] == "the agent is served to people and their programs" {
                break line["url"].as_str().unwrap().to_owned();
            }
        };
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let ask = async |token: &str| {
            let url = format!("{}/api/sessions/main/messages", url.trim_end_matches('/'));
            let message = client
                .post(url)
                .bearer_auth(token)
                .header("content-type", "application/json");
            message
                .header("accept", "text/event-stream")
                .body(r#"{"content": "What is 6 * 7?"}"#)
                .send()
                .await
                .unwrap()
        };
        let events = ask("change-me-ann").await.text().await.unwrap();
        assert!(events.contains("42"), "{events}");
        assert_eq!(ask("guessed").await.status(), 401);
    }
}
