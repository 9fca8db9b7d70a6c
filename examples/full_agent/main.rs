//! Everything in one host, as a service: a profile in files, memory, skills, rules, feedback,
//! tiers of models behind a gateway, tools with a guide, users and other programs on a bus, a
//! subsystem, metrics, probes, logs, and a graceful shutdown.
//!
//! `cargo run --example full_agent -- --ask "Take a note: \"buy milk\""` works without a key. As
//! a service it needs a model, or `ROCKBOT_LLM__PROVIDER=offline` to be tried without one. The
//! bus is in this process, unless `--bus` or the section `RabbitMq` or `Pulsar` names a broker; a
//! small terminal interface comes with it.

mod arguments;
mod hooks;
mod layers;
mod notes;
#[cfg_attr(not(feature = "otel"), path = "without_otlp.rs")]
mod otlp;
mod profile;
mod reviewer;
mod reviews;
mod sign_of_life;
mod status;
mod terminal;

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP};
use otlp::Otlp;
use profile::Folders;
use reviews::ReviewHandler;
use rockbot::agent::profile::DefaultSystemPromptBuilder;
use rockbot::chat::KeywordTierSelector;
use rockbot::config::{Config, LlmSettings};
use rockbot::layer::{RateLimitLayer, chat_fn, message_fn, tool_fn};
use rockbot::message::SubscribeOptions;
use rockbot::prelude::*;
use rockbot::tool::RemoteTools;
use rockbot_cli::host::database::Database;
use rockbot_cli::host::endpoint::Endpoint;
use rockbot_cli::host::stop_signals::StopSignals;
use rockbot_cli::host::{bridges, bus, serve_a2a, serve_mcp, service_bus, telemetry, words, world};
use sign_of_life::SignOfLife;
use status::StatusHandler;
use terminal::Terminal;
use world::World;

/// The settings that the example comes with.
const SETTINGS: &str = include_str!("agent.toml");

/// Time that a question waits until the agent is ready.
const READY_TIME: Duration = Duration::from_secs(10);

/// Time for the shutdown: running turns end, and the next process resumes the others.
const DRAIN: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match words::words().and_then(Arguments::parse) {
        Ok(arguments) if arguments.help => terminal::print(HELP),
        Ok(arguments) => run(arguments).await,
        Err(problem) => Err(problem.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), BoxError> {
    let traces = arguments.otlp.as_deref();
    let traces = traces
        .map(|collector| Otlp::open(collector, "full_agent"))
        .transpose()?;
    telemetry::install(traces.as_ref().map(Otlp::layer))?;
    let ended = run_traced(arguments, traces.as_ref()).await;
    if let Some(traces) = traces {
        traces.close();
    }
    ended
}

async fn run_traced(arguments: Arguments, traces: Option<&Otlp>) -> Result<(), BoxError> {
    let config = settings(&arguments)?;
    if arguments.serves() {
        // The offline model answers a person who tries the program out. Users of a service must not take
        // its words for answers because a setting is missing, so a service has it by name alone:
        // `LLM.Provider = "offline"`.
        LlmSettings::from_config(&config)?;
    }
    let bus = bus::open(arguments.bus.as_deref(), &config).await?;
    // Services of other frameworks share it; without a broker, services in this process take the
    // agent's own bus.
    let services = service_bus::open(arguments.bus.as_deref(), &config).await?;
    let services = services.unwrap_or_else(|| bus.clone());
    // Its host has to live as long as its tool is to work.
    let reviewer = reviewer::host(&config)?;
    if let Some(text) = &arguments.review {
        return terminal::print(&reviewer::review(&reviewer, text).await?.to_string());
    }
    // The stores of the section `Postgres`, which several processes of this agent share.
    let database = Database::connect(&config).await?;
    let host = Arc::new(build(
        &arguments,
        &config,
        [&bus, &services],
        database,
        &reviewer,
        traces,
    )?);
    match &arguments.ask {
        Some(question) => ask(&host, question).await,
        None => serve(host, Terminal::new(&bus, traces), arguments.port).await,
    }
}

fn build(
    arguments: &Arguments,
    config: &Config,
    [bus, services]: [&Arc<dyn Bus>; 2],
    database: Database,
    reviewer: &AgentHost,
    traces: Option<&Otlp>,
) -> Result<AgentHost, BoxError> {
    let Folders {
        data,
        profile,
        briefing,
        policies,
    } = Folders::read(arguments.data.as_deref(), config)?;
    let folder = profile.base_path.clone();
    profile::seed(&profile)?;
    let [take_note, read_notes] = notes::tools(&data);
    // What the settings describe: models behind the gateway, prices, long-term and working memory,
    // skills, rules, the conversation log, feedback, evaluation of sessions, behaviors of models,
    // tools of MCP servers, and links that are safe to show.
    let host = AgentHost::configured(config, &data)?
        .data_dir(&data)
        .profile(profile, DefaultSystemPromptBuilder)
        .briefing(briefing)
        // The tier that a message deserves; decisions are logged in `tier-routing-log.jsonl`.
        .tier_selector(KeywordTierSelector::from_file(folder.join("tier-selector.json")))
        .tool(take_note)
        .tool(read_notes)
        // Another agent as a tool: its turns are parts of this agent's turns.
        .tool(reviewer::as_tool(reviewer))
        .guide(notes::guide())
        .context_source(notes::NoteCount::new(&data))
        // At most 60 messages a minute from all users together; the others wait, up to a minute.
        .turn_layer(RateLimitLayer::new(60, Duration::from_secs(60)))
        .layer(message_fn(layers::report_refusals))
        .chat_layer(chat_fn(layers::report_slow))
        .tool_layer(tool_fn(layers::audit))
        // What the settings leave open: calls wait a day for an approval, of their own user or of the
        // operator.
        .policies(policies)
        .approver("operator")
        // A guardrail of messages, a policy of the loop, a processor of what models read, and a check of
        // each answer.
        .input_guardrail(hooks::readable())
        .loop_policy(hooks::come_to_an_end())
        .history_processor(hooks::short_past())
        .output_validator(hooks::no_secrets())
        .add(SignOfLife::new(Duration::from_secs(5)))
        // Workers on the bus add their tools while they live; see the example `distributed`.
        .add(RemoteTools::new())
        // Tools that other processes run: their descriptors are put into this folder while the agent runs.
        .add(profile::tool_services(services.clone(), &folder, config)?)
        // Users write to the agent, and other programs call its tools, over the bus.
        .bus(bus.clone())
        .serve_users()
        .serve_tools()
        .handle(StatusHandler::new())
        // Reviews take long, so several are made at a time.
        .subscribe_with(
            "full_agent.review",
            SubscribeOptions::new().with_concurrency(reviews::CONCURRENT),
        )
        .handle(ReviewHandler::new(reviewer));
    let host = database.add_to(host);
    // The ids of spans are those of the collector, where there is one.
    let host = match traces {
        Some(traces) => traces.bridged(host),
        None => host,
    };
    // The web, HTTP interfaces, files, schedules and subagents, as far as this build has them.
    let world = World {
        web: cfg!(feature = "web"),
        openapi: arguments.openapi.clone(),
        files: cfg!(feature = "files").then(|| data.join("files")),
        scheduling: cfg!(feature = "scheduling"),
        patrol: true,
        subagents: cfg!(feature = "subagents"),
    };
    Ok(world.add_to(host, config)?.build()?)
}

/// Reads the settings: those of the example, then the file's, then the environment's.
fn settings(arguments: &Arguments) -> Result<Config, BoxError> {
    let mut config = Config::new().with_text("agent.toml", SETTINGS)?;
    // What this build has; a file of settings turns it off again.
    let families = [
        ("A2A", cfg!(feature = "a2a")),
        ("Wisps", cfg!(feature = "wisps")),
        ("Workers", cfg!(feature = "wisps")),
        ("Scripts", cfg!(feature = "scripts")),
    ];
    for (name, _) in families.into_iter().filter(|(_, is_built)| *is_built) {
        config = config.with_text("families.toml", &format!("[{name}]\nEnabled = true\n"))?;
    }
    let config = match &arguments.config {
        Some(file) => config.with_file(file)?,
        None => config,
    };
    let config = bridges::configured(config.with_env(), arguments.mcp_bridges)?;
    let config = serve_a2a::configured(config, arguments.serve_a2a.as_deref())?;
    serve_mcp::configured(config, arguments.serve_mcp.as_deref())
}

/// Asks once, without the bus, as a program that embeds an agent does.
async fn ask(host: &AgentHost, question: &str) -> Result<(), BoxError> {
    host.start().await?;
    // Workers and servers that the settings expect are announced soon after the start.
    let ready = tokio::time::timeout(READY_TIME, async {
        while host.readiness().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    if ready.await.is_err() {
        tracing::warn!(reason = ?host.readiness().err(), "the agent is asked though it is not ready");
    }
    let answered = host.agent().ask(terminal::SESSION, question).await;
    host.shutdown(DRAIN).await;
    terminal::print(&answered?.to_string())
}

/// Serves until the process is told to stop, and then until running turns have ended or it is told
/// so again.
async fn serve(host: Arc<AgentHost>, mut terminal: Terminal, port: u16) -> Result<(), BoxError> {
    // Installed before any slow start-up work: meanwhile the host reports that it is not ready, and
    // can be stopped.
    let mut stop = StopSignals::install()?;
    let endpoint = Endpoint::open((Ipv4Addr::LOCALHOST, port).into()).await?;
    terminal.note(&format!("metrics and probes at http://{}/metrics", endpoint.address()?));
    let serving = tokio::spawn(endpoint.serve(host.clone(), telemetry::metrics()?));

    let resumed = host.start().await?;
    if let Some(url) = serve_mcp::url(&host) {
        terminal.note(&format!("tools for MCP clients at {url}"));
    }
    if let Some(url) = serve_a2a::url(&host) {
        terminal.note(&format!("the agent for other agents at {url}"));
    }
    tracing::info!(interrupted_turns = resumed.running.len(), "ready");
    // A task of its own, so that the person still sees the answer that is being written.
    let mut talking = tokio::spawn(async move { terminal.talk().await });
    tokio::select! {
        () = stop.next() => tracing::info!("told to stop; running turns end first"),
        _ = &mut talking => tracing::info!("the person at the terminal has left"),
    }
    tokio::select! {
        () = host.shutdown(DRAIN) => tracing::info!("stopped"),
        () = stop.next() => tracing::warn!("stopped at once; interrupted turns go on at the next start"),
    }
    talking.abort();
    serving.abort();
    Ok(())
}
