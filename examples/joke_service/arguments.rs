//! The command line of the joke service.

use std::path::PathBuf;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
A tool service that tells jokes, with the two descriptors that give an agent its tool.

    joke_service --demo [OPTIONS]
    joke_service --bus URL [OPTIONS]
    joke_service put-config FOLDER KEY

With --demo an agent and the service run together, the agent asks for a joke, and the answer is printed. With --bus the
service runs until Ctrl-C, or until its standard input ends, and announces its tool. put-config reads a descriptor from the
standard input and puts it into a folder that an agent watches, as tool-service/ID or tool/NAME. Without arguments the two
descriptors are printed.

Options:
    --demo           ask for a joke, print it, and end
    --about TOPIC    the topic of the joke of --demo (default: programming)
    --bus URL        the broker between agent and service, such as amqp://127.0.0.1 or pulsar://127.0.0.1, which
                     TrustGraph can share; --demo without it runs in one process
    --topic NAME     use the queues request:tg:NAME and response:tg:NAME (default: joke)
    --help           print this";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) demo: bool,
    pub(crate) about: String,
    pub(crate) bus: Option<String>,
    pub(crate) topic: String,
    /// The folder and the key of `put-config`.
    pub(crate) put: Option<(PathBuf, String)>,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            demo: false,
            about: "programming".to_owned(),
            bus: None,
            topic: "joke".to_owned(),
            put: None,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--demo" => arguments.demo = true,
                "--about" => arguments.about = value()?,
                "--bus" => arguments.bus = Some(value()?),
                "--topic" => arguments.topic = value()?,
                "put-config" => arguments.put = Some((value()?.into(), value()?)),
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}
