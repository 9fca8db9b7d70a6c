//! Scripts of a model that another program runs: a scripts manager with a sandbox, an agent
//! without one, and a bus that connects them.
//!
//! `cargo run --example remote_scripts --features scripts`: no key needed, only `bwrap` and
//! `python3`. Both programs run in this one process. Over a broker the manager is the program
//! `rockbot-scripts-manager`, and the setting `Scripts.Runner = "remote"` is all that an agent
//! from a configuration needs.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::tools::scripts::{LocalScriptRunner, Scripts};
use rockbot_scripts_manager::ScriptsManager;

/// Time in which a program ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Builds the agent, which has no sandbox and no rights of its own to run scripts.
fn agent(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("clerk")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .add(Scripts::remote())
        .build()?;
    Ok(host)
}

async fn run(out: &mut impl Write) -> Result<(), BoxError> {
    // The line that changes: with a broker, each of the two programs would connect to it.
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());

    let agent = agent(bus.clone())?;
    agent.start().await?;
    let clerk = agent.agent();
    // The tools of a group are there once it is activated.
    clerk.ask("main", "activate_tools: the group \"scripts\"").await?;
    let question = "execute_python_script: \"print(sum(range(101)))\"";
    let answer = clerk.ask("main", question).await?;
    writeln!(out, "> without a manager\n{answer}\n")?;

    // The sandbox is tried out before the manager takes scripts.
    let runner = LocalScriptRunner::from_config(&Config::new(), None)?;
    let manager = match ScriptsManager::new(runner).serve(bus.clone()).await {
        Ok(manager) => manager,
        Err(reason) => return Ok(writeln!(out, "no scripts run on this machine: {reason}")?),
    };
    let answer = clerk.ask("main", question).await?;
    writeln!(out, "> with a manager\n{answer}")?;

    agent.shutdown(DRAIN).await;
    manager.shutdown(DRAIN).await;
    let _ = bus.close(DRAIN).await;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&mut io::stdout()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
