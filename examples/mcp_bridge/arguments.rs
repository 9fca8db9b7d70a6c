//! The command line of the bridge.

use std::path::PathBuf;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
A bridge: it is connected to MCP servers, and agents on its bus have their tools.

    mcp_bridge [OPTIONS]

With a broker it serves agents until Ctrl-C, such as `full_agent --bus URL --mcp-bridges` or `chat --mcp-bus URL`. Without
one, an agent in this process asks the question, and the program ends.

Options:
    --mcp FILE       the servers, in the form of a desktop client's mcp.json (default: notes, in this process)
    --bus URL        the broker, such as amqp://127.0.0.1 or pulsar://127.0.0.1, instead of the one in the section RabbitMq
                     or Pulsar of the settings
    --config FILE    read settings from this JSON or TOML file; the environment goes before it
    --data FOLDER    keep here which calls have run, so that none runs twice, and the definitions of tools as they were first
                     seen (default: data/mcp_bridge)
    --name NAME      the name of the bridge; processes of one name have the same servers and share their calls
                     (default: mcp-bridge)
    --allow HOST     let agents have servers at this host connected; can be given several times (default: none)
    --ask TEXT       the question, without a broker (default: two about notes)
    --help           print this";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) mcp: Option<PathBuf>,
    pub(crate) bus: Option<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: PathBuf,
    pub(crate) name: String,
    pub(crate) allowed: Vec<String>,
    pub(crate) question: Option<String>,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            mcp: None,
            bus: None,
            config: None,
            data: PathBuf::from("data/mcp_bridge"),
            name: "mcp-bridge".to_owned(),
            allowed: Vec::new(),
            question: None,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--mcp" => arguments.mcp = Some(value()?.into()),
                "--bus" => arguments.bus = Some(value()?),
                "--config" => arguments.config = Some(value()?.into()),
                "--data" => arguments.data = value()?.into(),
                "--name" => arguments.name = value()?,
                "--allow" => arguments.allowed.push(value()?),
                "--ask" => arguments.question = Some(value()?),
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }
}
