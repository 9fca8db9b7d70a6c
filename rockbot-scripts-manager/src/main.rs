//! The program: runs scripts until it is told to end.

mod probes;

use std::io::Write as _;
#[cfg(feature = "rabbitmq")]
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::Bus;
use rockbot_scripts_manager::{ScriptsManager, ScriptsManagerSettings};
use tokio::signal::unix::{SignalKind, signal};

use probes::Probes;

const HELP: &str = "\
Runs the Python scripts of agents, over their bus.

    rockbot-scripts-manager [--config FILE]

It takes requests from RabbitMQ, runs each script in a sandbox, and publishes the results. It ends at SIGTERM or Ctrl-C, when the
scripts that run have ended. Settings come from the file, .json or .toml, and from the environment, which goes before it:

    ROCKBOT_RABBITMQ__HOSTNAME                    the broker; also PORT, USERNAME, PASSWORD, VIRTUALHOST, TLS
    ROCKBOT_SCRIPTSMANAGER__BACKEND               sandbox (default: bubblewrap on this machine) or kubernetes (a pod for each script)
    ROCKBOT_SCRIPTSMANAGER__MAXCONCURRENTSCRIPTS  number of scripts that run at once (default 4)
    ROCKBOT_SCRIPTSMANAGER__SHUTDOWNSECONDS       time that scripts have to end when the program is told to end (default 25)
    ROCKBOT_SCRIPTSMANAGER__PROBEPORT             port of /livez and /readyz (default: none)
    ROCKBOT_SCRIPTS__MEMORYMEGABYTES              memory of a process in the sandbox (default 512); also PACKAGEINDEX, PACKAGEFOLDER
    ROCKBOT_KUBERNETES__NAMESPACE                 namespace of the pods (default rockbot-scripts); also IMAGE, NODENAME, PACKAGEINDEX

It prints one line when it is ready, and its log to the standard error. Exit codes: 0 when it was told to end, 1 if it cannot start.";

/// Maximum time for the end of the connection to the broker.
const GOODBYE_TIME: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A program that cannot report its error still fails.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    // The system gives any bytes; `std::env::args` panics where they are no text.
    let mut words = std::env::args_os().skip(1);
    let option = words.next().map(|word| word.to_string_lossy().into_owned());
    let file: Option<PathBuf> = match (option.as_deref(), words.next()) {
        (None, _) => None,
        (Some("--help" | "-h"), _) => return Ok(writeln!(std::io::stdout(), "{HELP}")?),
        (Some("--config"), Some(file)) => Some(file.into()),
        (Some("--config"), None) => return Err("`--config` needs a file; see --help".into()),
        (Some(other), _) => return Err(format!("there is no argument `{other}`; see --help").into()),
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    serve(&Config::load(file.as_deref())?).await
}

async fn serve(config: &Config) -> Result<(), BoxError> {
    // Both are asked for before the program is ready, so that no signal is missed.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let settings = ScriptsManagerSettings::from_config(config)?;
    let manager = ScriptsManager::from_config(config).await?;
    let bus = connect(config, settings.max_concurrent).await?;
    let running = Arc::new(manager.serve(bus.clone()).await?);
    let probes = match settings.probe_port {
        Some(port) => Some(Probes::open(port, running.clone()).await?),
        None => None,
    };
    tracing::info!(runner = running.description(), "the scripts manager is ready");
    let asked = probes
        .as_ref()
        .map(|probes| format!("; probes at port {}", probes.address.port()));
    writeln!(
        std::io::stdout(),
        "ready: {}{}",
        running.description(),
        asked.unwrap_or_default()
    )?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("the scripts manager ends");
    running.shutdown(settings.shutdown_time).await;
    let _ = bus.close(GOODBYE_TIME).await;
    Ok(())
}

/// Connects to the broker of the settings, and refuses settings that nothing has read.
#[cfg(feature = "rabbitmq")]
async fn connect(config: &Config, max_concurrent: usize) -> Result<Arc<dyn Bus>, BoxError> {
    use rockbot_bus::rabbitmq::{RabbitMqBus, RabbitMqSettings};

    let is_set = config.section("RabbitMq")?.setting("PrefetchCount").is_some();
    let mut settings = RabbitMqSettings::read(config, Path::new("."))?.unwrap_or_default();
    if !is_set {
        // A request that is taken in advance waits here while another manager may be free.
        settings.prefetch_count = u16::try_from(max_concurrent).unwrap_or(u16::MAX);
    }
    for unknown in config.check_unknown()? {
        tracing::warn!("{unknown}");
    }
    Ok(Arc::new(RabbitMqBus::connect(settings).await?))
}

/// Says that the program was built without a bus.
#[cfg(not(feature = "rabbitmq"))]
#[expect(clippy::unused_async, reason = "it is asynchronous with the feature `rabbitmq`")]
async fn connect(_: &Config, _: usize) -> Result<Arc<dyn Bus>, BoxError> {
    Err("this program was built without a bus: build it with `--features rabbitmq`".into())
}
