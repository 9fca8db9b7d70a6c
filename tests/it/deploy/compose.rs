//! The compose file: what is open, what is mounted, and settings that the program reads.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{documents, folder, read};

/// Returns the services of the file, with what an agent takes from the anchor.
fn services() -> Vec<(String, Value)> {
    let file = documents(&read("compose/compose.yaml")).remove(0);
    let services = file["services"].as_object().unwrap().clone().into_iter();
    services
        .map(|(name, mut service)| {
            if let Some(Value::Object(shared)) = service.as_object_mut().unwrap().remove("<<") {
                for (key, value) in shared {
                    service.as_object_mut().unwrap().entry(key).or_insert(value);
                }
            }
            (name, service)
        })
        .collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// Returns the names of the agents' services.
fn agents(services: &[(String, Value)]) -> Vec<&str> {
    let agents = services
        .iter()
        .filter(|(_, service)| service["image"] == "rockbot:0.1.0");
    agents.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_proxy_alone_is_open_to_others() {
    for (name, service) in services() {
        for port in texts(&service["ports"]) {
            assert!(name == "caddy" || port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
        let image = service["image"].as_str().unwrap();
        let tag = image.split_once(':').map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag != "latest"), "{name}: {image} has a version");
    }
}

#[test]
fn the_agents_have_no_rights_and_each_a_volume_of_its_own() {
    let services = services();
    let agents = agents(&services);
    assert_eq!(agents, ["agent-1", "agent-2", "agent-3"]);
    for (name, agent) in services.iter().filter(|(name, _)| agents.contains(&name.as_str())) {
        assert_eq!(
            (&agent["read_only"], &agent["cap_drop"]),
            (&json!(true), &json!(["ALL"])),
            "{name}"
        );
        assert_eq!(agent["security_opt"], json!(["no-new-privileges:true"]), "{name}");
        assert!(texts(&agent["volumes"]).contains(&&*format!("{name}:/data")), "{name}");
    }
    let proxy = read("compose/Caddyfile");
    let monitor = read("prometheus/prometheus.yml");
    for agent in agents {
        assert!(proxy.contains(&format!(" {agent}:8950")), "{agent}");
        assert!(monitor.contains(&format!("\"{agent}:9464\"")), "{agent}");
    }
}

#[test]
fn what_is_mounted_and_asked_for_is_there() {
    let compose = read("compose/compose.yaml");
    for (name, service) in services() {
        let files = texts(&service["volumes"])
            .into_iter()
            .filter(|volume| volume.starts_with('.'));
        for file in files.map(|volume| volume.split(':').next().unwrap()) {
            assert!(folder().join("compose").join(file).exists(), "{name}: {file}");
        }
    }
    let asked: BTreeSet<&str> = compose
        .split("${")
        .skip(1)
        .map(|rest| rest.split(":?").next().unwrap())
        .collect();
    let example = read("compose/env.example");
    let given: BTreeSet<&str> = variables(&example).map(|(name, _)| name).collect();
    assert_eq!(asked, given);
}

fn variables(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
}

/// The settings of the agents, with variables that have values, are settings of the program.
#[cfg(all(feature = "postgres", feature = "rabbitmq", feature = "web-server"))]
#[tokio::test]
async fn the_program_takes_the_settings_of_the_agents() {
    let services = services();
    let environment = services[0].1["environment"].as_object().unwrap();
    let example = read("compose/agent.env.example");
    let named = environment.keys().map(|name| (name.as_str(), ""));
    let all: Vec<_> = named
        .chain(variables(&example))
        .map(|(name, value)| match name {
            "ROCKBOT_POSTGRES__URL" => (name, "postgres://rockbot:secret@127.0.0.1:1/rockbot"),
            _ if value.is_empty() => (name, "agent.example.com"),
            _ => (name, value),
        })
        .collect();
    super::check_with_doctor(&folder().join("compose/agent.toml"), &all).await;
}
