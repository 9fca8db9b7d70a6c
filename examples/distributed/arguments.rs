//! The command line of the three parts.

/// The text of `--help`.
pub(crate) const HELP: &str = "\
An agent, its tool and its user, each in a process of its own.

    distributed [OPTIONS]

Options:
    --ask TEXT       the question (default: What is 6 * 7?)
    --bus URL        the broker between the processes, such as amqp://127.0.0.1 or pulsar://127.0.0.1; without it
                     everything runs in one process
    --part PART      run one part until the standard input ends: worker or agent
    --network NAME   the exchange that the parts share on RabbitMQ
                     (default: one of this run's own)
    --help           print this";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) question: String,
    pub(crate) bus: Option<String>,
    pub(crate) part: Part,
    pub(crate) network: Option<String>,
    pub(crate) help: bool,
}

/// The part that this process plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    User,
    Worker,
    Agent,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            question: "What is 6 * 7?".to_owned(),
            bus: None,
            part: Part::User,
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
                "--part" => arguments.part = part(&value()?)?,
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}

fn part(name: &str) -> Result<Part, String> {
    match name {
        "worker" => Ok(Part::Worker),
        "agent" => Ok(Part::Agent),
        other => Err(format!("there is no part `{other}`: use worker or agent")),
    }
}
