//! The command line of both agents.

/// The text of `--help`.
pub(crate) const HELP: &str = "\
An agent that hands a task to another agent, each in a process of its own.

    a2a [OPTIONS]

Options:
    --ask TEXT       the task (default: What is 6 * 7?)
    --bus URL        the broker between the agents, such as amqp://127.0.0.1 or pulsar://127.0.0.1; without it both
                     run in one process
    --part PART      run one part until the standard input ends: mathematician
    --network NAME   the exchange that the parts share on RabbitMQ
                     (default: one of this run's own)
    --help           print this";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) question: String,
    pub(crate) bus: Option<String>,
    /// `true` if this process is the agent that is asked.
    pub(crate) is_mathematician: bool,
    pub(crate) network: Option<String>,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            question: "What is 6 * 7?".to_owned(),
            bus: None,
            is_mathematician: false,
            network: None,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--ask" => arguments.question = value()?,
                "--bus" => arguments.bus = Some(value()?),
                "--network" => arguments.network = Some(value()?),
                "--part" => match value()?.as_str() {
                    "mathematician" => arguments.is_mathematician = true,
                    other => return Err(format!("there is no part `{other}`: use mathematician")),
                },
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}
