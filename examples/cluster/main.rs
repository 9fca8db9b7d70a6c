//! One agent as several processes, which share RabbitMQ and PostgreSQL, under load and under fire.
//!
//! `cargo run --example cluster --features postgres,rabbitmq` starts three processes of the agent
//! and sends 1 000 messages of 100 conversations; `--kill-every 5 --pause --seconds 120` kills a
//! process every five seconds meanwhile, and stops one for longer than its lease. Each message
//! asks for a note in a file. The table at the end says whether each message had one answer, in
//! the order of its conversation, and whether a note was taken twice. No key is needed.

mod arguments;
mod fleet;
mod load;
mod report;

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP};
use fleet::Fleet;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use report::Report;
use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot::prelude::*;
use rockbot::store::{Postgres, PostgresOptions};
use rockbot::{IdSource as _, RandomIds};
use rockbot_cli::host::words;
use tokio::time::sleep;
use tokio_postgres::NoTls;

/// Time that a process may be silent before another one takes over its turns.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// Time that running turns have when a process ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Time that a user waits for an answer before the message is sent again.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match words::words().and_then(Arguments::parse) {
        Ok(arguments) if arguments.help => print(HELP).map(|()| true),
        Ok(arguments) if arguments.is_agent => serve(&arguments).await.map(|()| true),
        Ok(arguments) => drive(arguments).await,
        Err(problem) => Err(problem.into()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the processes, sends the load, and prints the table. Returns `true` if nothing was lost,
/// repeated or out of order.
async fn drive(arguments: Arguments) -> Result<bool, BoxError> {
    let notes = tempfile::NamedTempFile::new()?;
    let arguments = Arguments {
        network: Some(format!("cluster_{}", RandomIds.next_id())),
        notes: notes.path().display().to_string(),
        ..arguments
    };
    let bus = bus(&arguments).await?;
    let mut fleet = Fleet::start(&arguments).await?;
    let user = UserProxy::new(bus.clone(), "user").with_time_limit(PATIENCE);
    let answers = tokio::select! {
        answers = load::run(&arguments, &user) => answers?,
        trouble = fleet.trouble() => return trouble.map(|()| false),
    };
    let (kills, pauses) = (fleet.kills, fleet.pauses);
    let taken_over = fleet.end().await?;
    let counted = Report::of(&arguments, &answers, &std::fs::read_to_string(notes.path())?);
    let report = Report {
        kills,
        pauses,
        taken_over,
        ..counted
    };
    print(report.table().trim_end())?;
    bus.delete_topology().await?;
    drop_schema(&arguments).await?;
    Ok(report.is_whole())
}

/// Deletes what this run had in the database.
async fn drop_schema(arguments: &Arguments) -> Result<(), BoxError> {
    let (client, connection) = tokio_postgres::connect(&arguments.database, NoTls).await?;
    tokio::spawn(connection);
    let sql = format!("DROP SCHEMA {} CASCADE", network(arguments));
    Ok(client.batch_execute(&sql).await?)
}

/// Runs one process of the agent until its standard input ends.
async fn serve(arguments: &Arguments) -> Result<(), BoxError> {
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let options = PostgresOptions::default()
        .with_schema(network(arguments))
        .with_lease(LEASE);
    let stores = Postgres::connect_with(&arguments.database, options).await?;
    let host = AgentHost::builder("clerk")
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(note_taker(arguments))
        .add(stores)
        .bus(bus(arguments).await?)
        .serve_users()
        .build()?;
    host.start().await?;
    print(fleet::READY)?;
    tokio::select! {
        () = fleet::until_told_to_end() => {}
        told = tell_taken_over(&metrics) => told?,
    }
    host.shutdown(DRAIN).await;
    Ok(())
}

/// Prints the number of turns that this process has taken over, whenever it grows: the process may be
/// killed at any time.
async fn tell_taken_over(metrics: &PrometheusHandle) -> Result<(), BoxError> {
    let mut told = 0;
    loop {
        sleep(Duration::from_millis(200)).await;
        let count = taken_over(metrics);
        if count > told {
            print(&format!("{}{}", fleet::TAKEN_OVER, count - told))?;
            told = count;
        }
    }
}

/// Returns the tool whose side effect is a line in a file that all processes share.
fn note_taker(arguments: &Arguments) -> Tool {
    /// Takes a note.
    #[derive(Deserialize, JsonSchema)]
    struct TakeNote {
        /// The text of the note.
        text: String,
    }

    let (notes, half) = (arguments.notes.clone(), arguments.work / 2);
    let take = tool("take_note", move |note: TakeNote| {
        let notes = notes.clone();
        async move {
            // A process may be killed before the note, after it, and before its turn knows of it.
            sleep(half).await;
            let file = OpenOptions::new().append(true).open(&notes);
            let taken = file.and_then(|mut file| file.write_all(format!("{}\n", note.text).as_bytes()));
            sleep(half).await;
            taken
                .map(|()| "Noted.")
                .map_err(|error| ToolError::execution_failed(error.to_string()))
        }
    });
    take.own_output()
}

/// Returns the number of turns that this process took over.
fn taken_over(metrics: &PrometheusHandle) -> u64 {
    let page = metrics.render();
    let lines = page
        .lines()
        .filter(|line| line.starts_with("rockbot_agent_turns_taken_over"));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Connects to the broker, in exchanges of this run.
async fn bus(arguments: &Arguments) -> Result<Arc<RabbitMqBus>, BoxError> {
    let name = network(arguments);
    let mut settings = RabbitMqSettings::from_url(&arguments.bus)?;
    settings.exchange_name = name.to_owned();
    settings.dead_letter_exchange_name = format!("{name}.dlx");
    settings.queue_prefix = name.to_owned();
    Ok(Arc::new(RabbitMqBus::connect(settings).await?))
}

/// Returns the name of the exchange and of the schema.
fn network(arguments: &Arguments) -> &str {
    arguments.network.as_deref().unwrap_or("cluster")
}

/// Prints a line, and fails if it cannot be written.
fn print(line: &str) -> Result<(), BoxError> {
    let mut out = std::io::stdout();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("cannot print: {error}").into())
}
