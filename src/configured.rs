//! A whole agent from a configuration, in one call: [`FromConfig`].

use std::path::Path;

use rockbot_core::BoxError;
use rockbot_core::config::{Config, ConfigError};
#[cfg(any(
    feature = "a2a",
    feature = "web",
    feature = "rest",
    feature = "files",
    feature = "scheduling",
    feature = "scripts",
    feature = "subagents",
    feature = "wisps",
    feature = "mcp-server",
    feature = "web-server"
))]
use rockbot_core::subsystem::Subsystem;
use rockbot_host::answer::SafeLinks;
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_llm::{KeywordTierSelector, LlmConfigError, LlmSettings, ModelGateway, OpenAiEmbeddings, PriceTable};
use rockbot_memory::{Dreaming, FeedbackSignals, Memory, SessionEvaluation};
use rockbot_remote::ServiceSearch;

/// The data folder of [`FromConfig::from_config`], unless `AgentProfile.BasePath` names one.
const DATA_FOLDER: &str = "data";

/// The file with the rules of the tier selector, below the data folder.
const TIER_RULES: &str = "tier-selector.json";

/// Building [`AgentHost`]s from a configuration: every part that it names, with its store, tools,
/// recall and background work.
///
/// | part | is there |
/// |---|---|
/// | models, behind the [gateway](ModelGateway), and their prices | always: `LLM`; without any model there the [offline model](rockbot_llm::OfflineModel), as with `LLM.Provider = "offline"` |
/// | the choice of a tier for each message, with its log; rules in `tier-selector.json` | with `LLM.Low` or `LLM.High` |
/// | profile, journal, conversations, limits, [behaviors](rockbot_host::behavior) | always: [`HostSettings`] |
/// | long-term memory, working memory, skills and rules | always: `Memory`, `Skills` |
/// | recall by meaning | with `LLM.Embeddings` |
/// | the log of conversations | with `ConversationLog.Enabled` |
/// | feedback from corrections and failing tools, and a judgement of each ended session | with `Feedback.Enabled`, or any other setting there; a model call a session |
/// | dreams: care for memories and skills while users are silent, in plans that can be undone | with `Dream.Enabled` or any other setting there; at most 20 model calls a cycle; `Dream.CronSchedule` with the feature `scheduling` |
/// | one search over agents, MCP servers, tools, guides and skills | with `ServiceSearch.Enabled` or any other setting there |
/// | tools of MCP servers, with the feature `mcp` | with any setting in `Mcp` |
/// | tools of the MCP servers of bridges on the bus that the builder is given, with the feature `mcp` | with `McpProxy.Enabled` or any other setting there |
/// | the agent for other agents, by A2A over HTTP, with the feature `a2a-server` | with `A2aServer.Enabled` or any other setting there |
/// | the agent for people and their programs over HTTP: a page, events, OpenAI's interfaces, AG-UI; with the feature `web-server` | with `WebServer.Enabled` or any other setting there |
/// | the agent's own tools as an MCP server, with the feature `mcp-server` | with `McpServer.Enabled` or any other setting there |
/// | `web_search` and `web_browse`, in a group that the model activates; the text of PDF documents with the feature `pdf` | with the feature `web`, and `WebTools.Enabled` or any other setting there |
/// | tools of HTTP interfaces: `RestTools.Endpoints`, `RestTools.OpenApi` | with the feature `rest`, and any setting there |
/// | text files in the folder `FileTools.BasePath` (`files`) | with the feature `files`, and `FileTools.Enabled` or any other setting there |
/// | tasks at set times, in a group that the model activates | with the feature `scheduling`, and `Scheduling.Enabled` |
/// | the heartbeat patrol, a scheduled task | with the feature `scheduling`, and `HeartbeatPatrol.Enabled` or any other setting there |
/// | subagents, which work in the background, in a group that the model activates | with the feature `subagents`, and `Subagents.Enabled` or any other setting there |
/// | tasks for other agents on the bus that the builder is given, in a group that the model activates | with the feature `a2a`, and `A2A.Enabled` or any other setting there |
/// | tasks of other agents on that bus | with the feature `a2a`, and `A2AReceiver.Enabled` or any other setting there |
/// | Python scripts, in a sandbox or with `Scripts.Runner = "remote"` at a scripts manager on the bus that the builder is given, in a group that the model activates | with the feature `scripts`, and `Scripts.Enabled` or any other setting there |
/// | wisps: pipelines of steps in one call, in a group that the model activates | with the feature `wisps`, and `Wisps.Enabled` or any other setting there |
/// | workers: batches of small tasks on the low tier, in a group that the model activates | with the feature `wisps`, and `Workers.Enabled` or any other setting there |
/// | [`SafeLinks`]: only links that the user named | unless `AgentHost.SafeLinks` is `false` |
///
/// The builder takes more: tools, a bus, layers, subsystems. Parts that it is given later take
/// precedence.
///
/// Every setting has a reader: a name that no part reads keeps the host from being built, and so
/// does a section whose part the program has to add. The parts that need a connection are such:
/// `RabbitMq` and `Pulsar` (a bus), `Postgres` (stores that processes share), `RemoteTools` and `ToolServices` (subsystems on a bus). A
/// part that `Enabled = false` turns off keeps its other settings.
///
/// # Examples
///
/// ```
/// use rockbot::config::Config;
/// use rockbot::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let data = folder.path();
/// // With a file: `AgentHost::from_config("agent.toml")?`.
/// let config = Config::new().with_text("agent.toml", r#"
///     [AgentHost]
///     Name = "butler"
///     MaxToolIterations = 20
///     [ConversationLog]
///     Enabled = true
/// "#)?;
/// let host = AgentHost::configured(&config, data)?.build()?;
/// assert_eq!(host.parts().identity().name().as_ref(), "butler");
/// # Ok(())
/// # }
/// ```
pub trait FromConfig: sealed::Sealed {
    /// Returns a builder of the agent that a file (TOML or JSON) and the environment describe.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, and for the first invalid setting, with its name
    /// and its source.
    fn from_config(file: impl AsRef<Path>) -> Result<AgentHostBuilder, BoxError> {
        Self::configured(&Config::load(Some(file.as_ref()))?, Path::new(DATA_FOLDER))
    }

    /// Returns a builder of the agent that `config` describes, with its data in `data_folder` unless
    /// `AgentProfile.BasePath` names a folder.
    ///
    /// The program reads its own sections of `config` before it builds the host, which refuses names
    /// that were not read.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, with its name and its source.
    fn configured(config: &Config, data_folder: &Path) -> Result<AgentHostBuilder, BoxError>;
}

impl FromConfig for AgentHost {
    fn configured(config: &Config, data_folder: &Path) -> Result<AgentHostBuilder, BoxError> {
        let settings = HostSettings::read(config, data_folder)?.deny_unread();
        let builder = Self::builder(&settings.agent_host.name)
            .settings(&settings)
            .chat(ModelGateway::from_config_or_offline(config)?)
            .prices(PriceTable::from_config(config)?)
            .add(memory(config)?);
        let builder = if has_tiers(config)? {
            let rules = settings.agent_profile.base_path().join(TIER_RULES);
            builder.tier_selector(KeywordTierSelector::from_file(rules))
        } else {
            builder
        };
        let builder = if is_enabled(config, "Feedback")? {
            builder.add(FeedbackSignals::new()).add(SessionEvaluation::default())
        } else {
            builder
        };
        let builder = if is_enabled(config, "Dream")? {
            builder.add(dreaming(config)?)
        } else {
            builder
        };
        let builder = if is_enabled(config, "ServiceSearch")? {
            builder.add(ServiceSearch::new())
        } else {
            builder
        };
        let builder = mcp(builder, config)?;
        let builder = if settings.agent_host.safe_links {
            builder.answer_filter(SafeLinks::new())
        } else {
            builder
        };
        tools(builder, config)
    }
}

/// Adds the MCP servers that the settings ask for: servers of bridges on the host's bus, and the
/// host's own.
#[cfg(feature = "mcp")]
fn mcp(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    Ok(
        match (is_enabled(config, "McpProxy")?, config.section("Mcp")?.is_set()) {
            (true, _) => builder.add(rockbot_mcp::McpToolProxy::new()),
            (false, true) => builder.add(rockbot_mcp::McpTools::default()),
            (false, false) => builder,
        },
    )
}

/// Refuses servers of bridges: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
fn mcp(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    if is_enabled(config, "McpProxy")? {
        Err("`McpProxy` is set, and it is not built in: turn the feature `mcp` on".into())
    } else {
        Ok(builder)
    }
}

fn memory(config: &Config) -> Result<Memory, BoxError> {
    let memory = match OpenAiEmbeddings::from_config(config)? {
        Some(client) => Memory::default().embeddings(client),
        None => Memory::default(),
    };
    Ok(if is_enabled(config, "ConversationLog")? {
        memory.with_conversation_log()
    } else {
        memory
    })
}

/// Returns dreams at the times of `Dream.CronSchedule` in the agent's time zone, or else at intervals.
fn dreaming(config: &Config) -> Result<Dreaming, BoxError> {
    let Some(cron) = config.section("Dream")?.get::<String>("CronSchedule")? else {
        return Ok(Dreaming::new());
    };
    #[cfg(feature = "scheduling")]
    {
        let zone: Option<String> = config.section("AgentHost")?.get("TimeZone")?;
        let times = rockbot_tools::scheduling::CronTimes::new(&cron, zone.as_deref());
        let times = times.map_err(|error| format!("`Dream.CronSchedule`: {error}"))?;
        Ok(Dreaming::new().with_times(move |after| times.next_after(after)))
    }
    #[cfg(not(feature = "scheduling"))]
    Err(
        format!("`Dream.CronSchedule` is `{cron}`, and times are not built in: turn the feature `scheduling` on")
            .into(),
    )
}

/// Adds the families of tools that the settings ask for, as far as their features are on. The
/// switches are known without the features, too.
fn tools(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    let builder = world(builder, config)?;
    let builder = later_work(builder, config)?;
    other_agents(builder, config)
}

/// Adds the tools for the web, HTTP interfaces, files and scripts.
fn world(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    // The policy stands, whether a part makes requests today or not.
    #[cfg(any(feature = "web", feature = "rest"))]
    rockbot_tools::egress::EgressPolicy::from_config(config)?;
    let web = is_enabled(config, "WebTools")?;
    let rest = is_enabled(config, "RestTools")?;
    let files = is_enabled(config, "FileTools")?;
    let scripts = is_enabled(config, "Scripts")?;
    #[cfg(feature = "web")]
    let builder = add_if(web, builder, rockbot_tools::web::WebTools::new);
    #[cfg(feature = "rest")]
    let builder = add_if(rest, builder, rockbot_tools::rest::RestTools::new);
    #[cfg(feature = "files")]
    let builder = add_if(files, builder, rockbot_tools::files::FileTools::from_settings);
    #[cfg(feature = "scripts")]
    let builder = add_if(scripts, builder, rockbot_tools::scripts::Scripts::new);
    built_in(&[
        ("WebTools", "web", web, cfg!(feature = "web")),
        ("RestTools", "rest", rest, cfg!(feature = "rest")),
        ("FileTools", "files", files, cfg!(feature = "files")),
        ("Scripts", "scripts", scripts, cfg!(feature = "scripts")),
    ])?;
    Ok(builder)
}

/// Adds the tools for tasks at set times and for delegation.
fn later_work(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    // Both are looked at: a patrol that is off leaves its other settings unread.
    let scheduling = is_enabled(config, "Scheduling")?;
    let patrol = is_enabled(config, "HeartbeatPatrol")?;
    let scheduling = scheduling || patrol;
    let subagents = is_enabled(config, "Subagents")?;
    let wisps = is_enabled(config, "Wisps")?;
    let workers = is_enabled(config, "Workers")?;
    #[cfg(feature = "scheduling")]
    let builder = add_if(scheduling, builder, rockbot_tools::scheduling::Scheduling::new);
    #[cfg(feature = "subagents")]
    let builder = add_if(subagents, builder, rockbot_tools::subagents::Subagents::new);
    #[cfg(feature = "wisps")]
    let builder = add_if(wisps, builder, rockbot_tools::wisps::Wisps::new);
    #[cfg(feature = "wisps")]
    let builder = add_if(workers, builder, rockbot_tools::workers::Workers::new);
    built_in(&[
        ("Scheduling", "scheduling", scheduling, cfg!(feature = "scheduling")),
        ("Subagents", "subagents", subagents, cfg!(feature = "subagents")),
        ("Wisps", "wisps", wisps, cfg!(feature = "wisps")),
        ("Workers", "wisps", workers, cfg!(feature = "wisps")),
    ])?;
    Ok(builder)
}

/// Adds the parts that call other agents and programs, and that serve them.
fn other_agents(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    let calls_agents = is_enabled(config, "A2A")?;
    let is_called = is_enabled(config, "A2AReceiver")?;
    let serves_agent = is_enabled(config, "A2aServer")?;
    let serves_tools = is_enabled(config, "McpServer")?;
    let serves_people = is_enabled(config, "WebServer")?;
    #[cfg(feature = "a2a")]
    let builder = add_if(calls_agents, builder, rockbot_tools::a2a::A2aCaller::new);
    #[cfg(feature = "a2a")]
    let builder = add_if(is_called, builder, rockbot_tools::a2a::A2aReceiver::new);
    #[cfg(feature = "mcp-server")]
    let builder = add_if(serves_tools, builder, rockbot_mcp::McpToolServer::new);
    #[cfg(feature = "web-server")]
    let builder = add_if(serves_people, builder, rockbot_web::WebServer::new);
    #[cfg(feature = "a2a-server")]
    let builder = if serves_agent {
        a2a_server(builder, config)?
    } else {
        builder
    };
    built_in(&[
        ("A2A", "a2a", calls_agents, cfg!(feature = "a2a")),
        ("A2AReceiver", "a2a", is_called, cfg!(feature = "a2a")),
        ("A2aServer", "a2a-server", serves_agent, cfg!(feature = "a2a-server")),
        ("McpServer", "mcp-server", serves_tools, cfg!(feature = "mcp-server")),
        ("WebServer", "web-server", serves_people, cfg!(feature = "web-server")),
    ])?;
    Ok(builder)
}

/// Adds the server of the agent, whose operator decides about calls of other agents.
#[cfg(feature = "a2a-server")]
fn a2a_server(builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
    use rockbot_tools::a2a_server::{A2aServer, settings::A2aServerSettings};

    let operator = A2aServerSettings::from_config(config)?.operator;
    Ok(builder
        .approver(operator.unwrap_or_else(|| "local".to_owned()))
        .add(A2aServer::new()))
}

/// Checks that each family of tools that is wanted is built in: its section, its feature, whether
/// it is wanted and built in.
fn built_in(families: &[(&str, &str, bool, bool)]) -> Result<(), BoxError> {
    let mut missing = families
        .iter()
        .filter(|(.., is_wanted, is_built)| *is_wanted && !is_built);
    match missing.next() {
        Some((name, feature, ..)) => {
            Err(format!("`{name}` is set, and it is not built in: turn the feature `{feature}` on").into())
        }
        None => Ok(()),
    }
}

/// Adds a part if it is wanted.
#[cfg(any(
    feature = "a2a",
    feature = "web",
    feature = "rest",
    feature = "files",
    feature = "scheduling",
    feature = "scripts",
    feature = "subagents",
    feature = "wisps",
    feature = "mcp-server",
    feature = "web-server"
))]
fn add_if<S: Subsystem>(is_wanted: bool, builder: AgentHostBuilder, part: impl FnOnce() -> S) -> AgentHostBuilder {
    if is_wanted { builder.add(part()) } else { builder }
}

/// Returns `true` if the part of a section is wanted: `Enabled` says so, else anything that is
/// set there. The settings of a part that is off stay for later.
fn is_enabled(config: &Config, name: &str) -> Result<bool, ConfigError> {
    let section = config.section(name)?;
    let is_enabled = section.get_or("Enabled", section.is_set())?;
    if !is_enabled {
        section.ignore();
    }
    Ok(is_enabled)
}

fn has_tiers(config: &Config) -> Result<bool, LlmConfigError> {
    match LlmSettings::from_config(config) {
        Ok(settings) => Ok(settings.low.is_some() || settings.high.is_some()),
        Err(LlmConfigError::NothingConfigured) => Ok(false),
        Err(error) => Err(error),
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for rockbot_host::AgentHost {}
}
