//! `rockbot doctor`: checks the configuration, the folders, the keys and the model servers, asks
//! each model something, builds the agent, and lists its parts with what each costs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot::BoxError;
use rockbot::agent::profile::AgentProfile;
use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::chat::{ModelBehaviors, ModelTier, TextCallFallback, TextCallingClient, model_client, probe, probe_turn};
use rockbot::config::{
    AgentProfileSettings, Config, ConfigError, DataDir, FolderChoice, GatewaySettings, HostSettings, LlmConfigError,
    LlmSettings, Provider, TierSettings,
};

use crate::agent::Setup;
use crate::chat::terminal;
use crate::host::broker::Broker;

/// Maximum time to close the connection to a broker.
const CLOSING: Duration = Duration::from_secs(5);

/// A report with one line for each check.
#[derive(Debug, Default)]
pub struct Report {
    lines: Vec<(Level, String)>,
    /// `true` if a model is asked in strict mode.
    is_strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warning,
    Problem,
}

impl Report {
    /// Returns `true` if a line is a problem.
    pub fn has_problem(&self) -> bool {
        self.lines.iter().any(|(level, _)| *level == Level::Problem)
    }

    /// Builds the host that `builder` describes, and adds its reports: obstacles to building it,
    /// settings without an effect, and its parts, on or off, each with its cost.
    ///
    /// The host is built in an empty data folder, since another process may use its own. An error
    /// that was reported before is not repeated.
    pub fn list_parts(&mut self, builder: Result<AgentHostBuilder, BoxError>) {
        let folder = match tempfile::tempdir() {
            Ok(folder) => folder,
            Err(error) => return self.add(Level::Problem, "parts", error),
        };
        match builder.map(|builder| builder.data_dir(folder.path()).build()) {
            Ok(Ok(host)) => self.list_parts_of(&host),
            Ok(Err(error)) => error.problems.iter().for_each(|problem| self.add_problem(problem)),
            Err(error) => self.add_problem(&error),
        }
    }

    fn list_parts_of(&mut self, host: &AgentHost) {
        let config = host.parts().get::<Config>().unwrap_or_default();
        for key in config.unknown() {
            self.add(Level::Warning, "configuration", key);
        }
        #[cfg(feature = "mcp")]
        if let Some(servers) = host.parts().get::<rockbot::mcp::McpServers>() {
            for problem in servers.problems() {
                self.add(Level::Problem, "mcp", problem);
            }
        }
        host.costs().iter().for_each(|cost| self.add(Level::Ok, "part", cost));
        self.list_lenient_tools(host);
        self.list_trusted_effects(host);
    }

    /// Adds a problem of building the host, unless it was reported before.
    fn add_problem(&mut self, problem: &BoxError) {
        let text = problem.to_string();
        let is_known = |(level, line): &(Level, String)| *level == Level::Problem && line.ends_with(&text);
        if self.lines.iter().any(is_known) {
            return;
        }
        let topic = if problem.is::<ConfigError>() {
            "configuration"
        } else {
            "parts"
        };
        self.add(Level::Problem, topic, text);
    }

    /// Names the tools that a model in strict mode gets without it.
    fn list_lenient_tools(&mut self, host: &AgentHost) {
        if !self.is_strict {
            return;
        }
        for tool in host.tools().snapshot().entries() {
            if let Err(reason) = tool.strict_schema() {
                let name = &tool.registration().name;
                self.add(
                    Level::Warning,
                    "tool",
                    format!("`{name}` is sent without `StrictTools`: {reason}"),
                );
            }
        }
    }

    /// Names the tools whose calls outside text can bring about.
    fn list_trusted_effects(&mut self, host: &AgentHost) {
        for tool in host.tools().snapshot().entries() {
            let registration = tool.registration();
            if let Some(reason) = &registration.hints.trusted_effect {
                let text = format!("`{}` runs whatever its model has read: {reason}", registration.name);
                self.add(Level::Warning, "tool", text);
            }
        }
    }

    fn add(&mut self, level: Level, topic: &str, text: impl fmt::Display) {
        self.lines.push((level, format!("{topic}: {text}")));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, line) in &self.lines {
            let level = match level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Problem => "problem",
            };
            writeln!(f, "{level:<7}  {line}")?;
        }
        Ok(())
    }
}

/// Checks the needs of the agent and prints the report. Returns `false` if there is a problem.
pub(crate) async fn run(setup: &Setup<'_>) -> Result<bool, BoxError> {
    let options = setup.options;
    let file = options.config.as_deref();
    let data = options.data.as_deref();
    let mut report = examine(file, data, setup.data_folder, std::env::vars_os()).await;
    report.list_parts(setup.examined());
    terminal::print(&report.to_string());
    Ok(!report.has_problem())
}

/// Checks everything that the chat needs.
///
/// `data` is the folder named on the command line, `default_data` the fallback; `variables` stand
/// for the environment.
pub async fn examine(
    file: Option<&Path>,
    data: Option<&Path>,
    default_data: &Path,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Report {
    let mut report = Report::default();
    let config = file.map_or_else(|| Ok(Config::new()), |path| Config::new().with_file(path));
    let config = match config {
        Ok(config) => config.with_variables(variables),
        Err(error) => {
            report.add(Level::Problem, "configuration", error);
            return report;
        }
    };
    let host = HostSettings::read(&config, default_data);
    let models = LlmSettings::from_config(&config);
    let embeddings = TierSettings::of_embeddings(&config);
    match host {
        Err(error) => report.add(Level::Problem, "configuration", error),
        Ok(host) => {
            look_at_configuration(&mut report, file);
            look_at_data_folder(&mut report, &host, data);
            look_at_profile(&mut report, &host.agent_profile);
        }
    }
    // A problem with the whole section is reported with the models.
    let is_readable = matches!(models, Ok(_) | Err(LlmConfigError::NothingConfigured));
    // A problem with the behaviors is reported with the settings of the host.
    let behaviors = ModelBehaviors::read(&config).unwrap_or_default();
    look_at_models(&mut report, models, &behaviors).await;
    look_at_gateway(&mut report, &config);
    look_at_database(&mut report, &config).await;
    look_at_broker(&mut report, &config).await;
    match embeddings {
        Ok(Some(settings)) => {
            look_at_server(&mut report, "embeddings", &settings).await;
        }
        Err(error) if is_readable => report.add(Level::Problem, "embeddings", error),
        Ok(None) | Err(_) => {}
    }
    report
}

/// The settings that name a file of a part below the data folder, with the default of each.
const INPUTS: [(&str, &str, Option<&str>); 3] = [
    ("Mcp", "ConfigPath", None),
    ("ServiceSearch", "AgentsPath", Some("well-known-agents.json")),
    ("ToolServices", "Folder", None),
];

/// Returns variables with the absolute paths of what parts read below the data folder, for a host
/// in another one.
pub fn inputs(config: &Config, data: &Path) -> Result<Vec<(String, PathBuf)>, BoxError> {
    let data = std::path::absolute(data)?;
    let mut variables = Vec::new();
    for (name, setting, default) in INPUTS {
        let section = config.section(name)?;
        let is_read = |default: &&str| section.is_set() && data.join(default).exists();
        let default = default.filter(is_read).map(PathBuf::from);
        if let Some(path) = section.get(setting)?.or(default) {
            let variable = format!("ROCKBOT_{name}__{setting}").to_ascii_uppercase();
            variables.push((variable, data.join(path)));
        }
    }
    Ok(variables)
}

fn look_at_configuration(report: &mut Report, file: Option<&Path>) {
    match file {
        Some(file) => report.add(
            Level::Ok,
            "configuration",
            format!("`{}` and the environment", file.display()),
        ),
        None => report.add(Level::Ok, "configuration", "the environment; --config names a file"),
    }
}

fn look_at_data_folder(report: &mut Report, host: &HostSettings, data: Option<&Path>) {
    let folder = data.unwrap_or(host.agent_profile.base_path());
    match DataDir::check(folder) {
        Ok(DataDir::Ready) => report.add(Level::Ok, "data folder", format!("`{}`", folder.display())),
        Ok(DataDir::ToBeMade) => {
            let text = format!("`{}`, which is made at the first start", folder.display());
            report.add(Level::Ok, "data folder", text);
        }
        Err(error) => report.add(Level::Problem, "data folder", error),
    }
}

fn look_at_profile(report: &mut Report, profile: &AgentProfileSettings) {
    match AgentProfile::load(&profile.options) {
        Ok(_) => report.add(Level::Ok, "profile", format!("`{}`", profile.base_path().display())),
        Err(error) if profile.is_there() => report.add(Level::Problem, "profile", error),
        // The profile folder is optional unless the configuration names one.
        Err(_) if profile.chosen == FolderChoice::OfTheHost => {}
        Err(error) => report.add(
            Level::Warning,
            "profile",
            format!("{error}; until then the agent has no profile"),
        ),
    }
}

async fn look_at_models(
    report: &mut Report,
    settings: Result<LlmSettings, LlmConfigError>,
    behaviors: &ModelBehaviors,
) {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error @ LlmConfigError::NothingConfigured) => {
            let text = format!("{error}; until then the built-in offline model answers");
            return report.add(Level::Warning, "models", text);
        }
        Err(error) => return report.add(Level::Problem, "models", error),
    };
    look_at_model(report, ModelTier::Balanced.name(), &settings.balanced, behaviors).await;
    for (tier, settings) in [(ModelTier::Low, settings.low), (ModelTier::High, settings.high)] {
        match settings {
            Some(settings) => look_at_model(report, tier.name(), &settings, behaviors).await,
            None => report.add(Level::Ok, tier.name(), "not set; Balanced stands in"),
        }
    }
}

/// Tells how often the gateway asks when a call fails: each attempt is paid. A problem is
/// reported with the models.
fn look_at_gateway(report: &mut Report, config: &Config) {
    if let Ok(gateway) = GatewaySettings::from_config(config) {
        let text = format!(
            "up to {} attempts of each model call that fails",
            gateway.retry.max_attempts
        );
        report.add(Level::Ok, "gateway", text);
    }
}

/// Looks at the database that several processes share.
#[cfg(feature = "postgres")]
async fn look_at_database(report: &mut Report, config: &Config) {
    // A problem with the section is reported with the parts.
    let Ok(Some(settings)) = rockbot::store::PostgresSettings::from_config(config) else {
        return;
    };
    match settings.check().await {
        Ok(text) => report.add(Level::Ok, "database", text),
        Err(error) => report.add(Level::Problem, "database", error),
    }
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "there is no database")]
async fn look_at_database(_: &mut Report, _: &Config) {}

/// Connects to the broker of the settings, as the agent does.
async fn look_at_broker(report: &mut Report, config: &Config) {
    // A problem with the sections is reported with the parts.
    let Ok(Some(broker)) = Broker::read(None, config) else {
        return;
    };
    match broker.connect(false).await {
        Ok(bus) => {
            let _ = bus.close(CLOSING).await;
            report.add(Level::Ok, "broker", "it takes connections");
        }
        Err(error) => report.add(Level::Problem, "broker", error),
    }
}

/// Looks for a model at its server, and asks it in the shape of a turn's requests, as a host would.
async fn look_at_model(report: &mut Report, name: &'static str, settings: &TierSettings, behaviors: &ModelBehaviors) {
    let own = settings.model_settings.as_ref();
    report.is_strict |= own.is_some_and(|own| own.strict_tools == Some(true));
    if settings.provider == Provider::Offline {
        return report.add(Level::Warning, name, probe(settings).await);
    }
    if !look_at_server(report, name, settings).await {
        return;
    }
    let client = match model_client(settings) {
        Ok(client) => client,
        Err(error) => return report.add(Level::Problem, name, error),
    };
    let check = if behaviors.of(&settings.model).text_based_tool_calling {
        probe_turn(&TextCallingClient::new(client)).await
    } else {
        probe_turn(&TextCallFallback::new(client)).await
    };
    let level = level(check.is_problem(), check.is_warning());
    report.add(level, name, format!("model `{}`: {check}", settings.model));
}

/// Looks for a model at its server, and returns whether it can be asked.
async fn look_at_server(report: &mut Report, name: &'static str, settings: &TierSettings) -> bool {
    let key = &settings.names.api_key;
    let key = match settings.api_key {
        Some(_) => format!("the key is set by {key}"),
        None => format!("there is no key; if the server asks for one, set {key}"),
    };
    report.add(Level::Ok, name, key);
    let check = probe(settings).await;
    let level = level(check.is_problem(), check.is_warning());
    report.add(level, name, format!("model `{}`: {check}", settings.model));
    level != Level::Problem
}

fn level(is_problem: bool, is_warning: bool) -> Level {
    match (is_problem, is_warning) {
        (true, _) => Level::Problem,
        (false, true) => Level::Warning,
        (false, false) => Level::Ok,
    }
}
