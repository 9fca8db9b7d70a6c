//! The command line.

use std::time::Duration;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
One agent as several processes, which share RabbitMQ and PostgreSQL, under load and under fire.

    cluster [OPTIONS]

Options:
    --bus URL          the broker (default: amqp://127.0.0.1)
    --database URL     the database (default: postgres://postgres@127.0.0.1/postgres)
    --processes N      processes of the agent (default: 3)
    --sessions N       conversations (default: 100)
    --messages N       messages of each conversation (default: 10)
    --seconds N        time over which the messages are spread (default: 10)
    --work MS          time that a note takes (default: 100)
    --kill-every N     kill a process with SIGKILL every N seconds, and start another one (default: never)
    --pause            stop one process for longer than its lease, and let it go on
    --part agent       run one agent until the standard input ends; with --network and --notes
    --help             print this";

/// The parsed command line.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    pub(crate) bus: String,
    pub(crate) database: String,
    pub(crate) processes: usize,
    pub(crate) sessions: usize,
    pub(crate) messages: usize,
    pub(crate) time: Duration,
    /// The time that a note takes.
    pub(crate) work: Duration,
    pub(crate) kill_every: Option<Duration>,
    pub(crate) pauses: bool,
    pub(crate) is_agent: bool,
    /// The name of the exchange and of the schema.
    pub(crate) network: Option<String>,
    /// The file of the side effects.
    pub(crate) notes: String,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            bus: "amqp://127.0.0.1".to_owned(),
            database: "postgres://postgres@127.0.0.1/postgres".to_owned(),
            processes: 3,
            sessions: 100,
            messages: 10,
            time: Duration::from_secs(10),
            work: Duration::from_millis(100),
            kill_every: None,
            pauses: false,
            is_agent: false,
            network: None,
            notes: String::new(),
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--bus" => arguments.bus = value()?,
                "--database" => arguments.database = value()?,
                "--processes" => arguments.processes = number(&value()?)?,
                "--sessions" => arguments.sessions = number(&value()?)?,
                "--messages" => arguments.messages = number(&value()?)?,
                "--seconds" => arguments.time = seconds(&value()?)?,
                "--work" => arguments.work = Duration::from_millis(number(&value()?)? as u64),
                "--kill-every" => arguments.kill_every = Some(seconds(&value()?)?),
                "--pause" => arguments.pauses = true,
                "--part" => arguments.is_agent = value()? == "agent",
                "--network" => arguments.network = Some(value()?),
                "--notes" => arguments.notes = value()?,
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is not a number above 0"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    Ok(Duration::from_secs(number(text)? as u64))
}
