//! The reference of the settings, `docs/settings.md`: what an agent with every part reads.

use std::fmt::Write as _;
use std::path::Path;

use rockbot::config::Config;
use rockbot::message::InProcessBus;
use rockbot::message::pulsar::PulsarSettings;
use rockbot::message::rabbitmq::RabbitMqSettings;
use rockbot::prelude::*;
use rockbot::tool_services::ToolServices;
use rockbot_cli::host::database::Database;

/// The variable that makes the test write the reference instead of comparing it.
const UPDATE: &str = "UPDATE_SETTINGS";

const HEAD: &str = "\
# All settings

Written by `UPDATE_SETTINGS=1 cargo test --all-features --test it settings_reference` from what an agent with every part reads, and
checked by that test. A part of the agent is on once its section has a setting, and `Enabled = false` turns it off. `[]` is a position in a list, `<name>` a name of yours. A default that is not shown is computed, or there is none: the
page of the part says which.

";

/// Settings that turn every part on, with one item in each list.
const EVERYTHING: &str = r#"
[A2A]
Agents = [{ Url = "http://127.0.0.1:9/", OAuth = { Issuer = "https://accounts.example", ClientId = "me", ClientSecret = "s" } }]
[A2AReceiver]
AllowedCallers = ["*"]
[A2aServer]
Address = "127.0.0.1:0"
Callers = [{ Name = "ann", Key = "a-key-of-ann-of-32-characters-00" }]
Skills = [{ Id = "any" }]
[ConversationLog]
Enabled = true
[Dream]
Enabled = true
[Feedback]
Enabled = true
[FileTools]
Enabled = true
[HeartbeatPatrol]
Enabled = true
[LLM]
Provider = "offline"
[LLM.Prices.any]
Input = 1
Output = 2
[Mcp.Servers.any]
Command = "true"
[McpServer]
Address = "127.0.0.1:0"
Tools = ["*"]
[ModelBehaviors.Models.any]
MaxToolIterationsOverride = 3
[Postgres]
Url = "postgres://127.0.0.1/agents"
[Pulsar]
HostName = "127.0.0.1"
[RabbitMq]
HostName = "127.0.0.1"
[[RestTools.Endpoints]]
Name = "get_weather"
UrlTemplate = "https://api.weather.example/{city}"
ParametersSchema = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
[Scheduling]
Enabled = true
[Scripts]
Runner = "remote"
[ServiceSearch]
Enabled = true
[Subagents]
Enabled = true
[WebServer]
Address = "127.0.0.1:0"
Users = [{ Name = "ann", Token = "a-token-of-ann-of-32-characters" }]
[WebTools]
SearXngUrl = "https://search.example"
[Wisps]
Enabled = true
[Workers]
Enabled = true
"#;

/// Builds an agent with every part, and returns what it read.
fn read() -> Config {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new().with_text("agent.toml", EVERYTHING).unwrap();
    RabbitMqSettings::read(&config, folder.path()).unwrap();
    PulsarSettings::read(&config, folder.path()).unwrap();
    Database::unconnected(&config).unwrap();
    let builder = AgentHost::configured(&config, folder.path()).unwrap();
    let services = ToolServices::new().folder(folder.path());
    let built = builder.bus(InProcessBus::new()).add(services).build();
    drop(built.unwrap());
    config
}

/// Returns the name for readers: positions and names of the example stand for any.
fn general(name: &str) -> String {
    let part = |part: &str| match part {
        "any" => "<name>".to_owned(),
        part if part.parse::<u32>().is_ok() => "[]".to_owned(),
        part => part.to_owned(),
    };
    name.split('.')
        .map(part)
        .collect::<Vec<_>>()
        .join(".")
        .replace(".[]", "[]")
}

fn reference(config: &Config) -> String {
    let mut page = HEAD.to_owned();
    let mut section = String::new();
    for setting in config.known_settings() {
        let name = general(&setting.name);
        let (first, _) = name.split_once('.').unwrap_or((&name, ""));
        if first != section {
            first.clone_into(&mut section);
            let _ = write!(page, "## {section}\n\n| setting | takes | default |\n|---|---|---|\n");
        }
        // The page on settings has the whole form of a time span.
        let takes = setting.expected.unwrap_or_default().split(" (`[days").next();
        let default = setting
            .default
            .map(|default| format!("`{default}`"))
            .unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{name}` | {} | {default} |",
            takes.unwrap_or_default().replace('|', "\\|")
        );
    }
    page.replace("|\n## ", "|\n\n## ")
}

#[test]
fn the_reference_lists_what_is_read() {
    let page = reference(&read());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(page.lines().count() > 150, "the agent reads more settings than {page}");
    assert_eq!(
        written, page,
        "run `{UPDATE}=1 cargo test --all-features --test it settings_reference`"
    );
}
