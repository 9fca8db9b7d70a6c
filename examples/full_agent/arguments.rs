//! The command line of the agent.

use std::path::PathBuf;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
An agent as a service, with everything that a host has.

    full_agent [OPTIONS]

It runs until Ctrl-C or SIGTERM. At a terminal you can talk to it meanwhile, line by line.

Options:
    --ask TEXT       ask this, print the answer on standard output, and end
    --review TEXT    let the second agent review this, print its verdict, and end
    --config FILE    read settings from this JSON or TOML file; the environment goes before it
    --data FOLDER    keep everything here (default: the setting AgentProfile.BasePath, else /data/agent if there is one,
                     else data/full_agent); AgentProfile.BasePath, or else its folder `agent`, says who the agent is
    --bus URL        serve users and other programs over this broker, such as amqp://127.0.0.1 or pulsar://127.0.0.1,
                     instead of the one in the section RabbitMq or Pulsar of the settings; without both, inside this
                     process alone
    --openapi DOC    use the operations of this OpenAPI document, a file or a URL, as tools; needs a build with
                     `--features rest`
    --port PORT      serve /metrics, /livez and /readyz at this port of 127.0.0.1 (default: 9464; 0: any free one)
    --serve-mcp ADDRESS
                     serve the agent's tools to MCP clients at http://ADDRESS/mcp, such as 127.0.0.1:8931; needs a build
                     with `--features mcp-server`; McpServer.Tools in the settings chooses some
    --serve-a2a ADDRESS
                     serve the agent to other agents by A2A at http://ADDRESS/, such as 127.0.0.1:8940; needs a build
                     with `--features a2a-server`; A2aServer in the settings says who may call, and use what
    --mcp-bridges    use the tools of the MCP servers to which bridges on the bus are connected, such as the example
                     mcp_bridge; needs a build with `--features mcp`; McpProxy in the settings chooses some
    --otlp URL       send spans to this OpenTelemetry collector over HTTP, such as http://127.0.0.1:4318; needs a build
                     with `--features otel`
    --help           print this

As a service it needs a model, see `cargo run --example chat -- --help`; ROCKBOT_LLM__PROVIDER=offline names the built-in
offline model, which is not an LLM and answers --ask and --review without any setting.

Lines that begin with a slash:
    /show FILE       show this image or file with the next message
    /status          ask the agent over the bus how long it has been running
    /review TEXT     ask the second agent over the bus for its verdict on this text
    /good, /bad      tell the agent what you think of its last reply
    /quit            end; so does Ctrl-D

What happens is logged as JSON lines on standard error, as much as RUST_LOG says (default: info).";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) ask: Option<String>,
    pub(crate) review: Option<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) bus: Option<String>,
    pub(crate) openapi: Option<String>,
    pub(crate) port: u16,
    pub(crate) otlp: Option<String>,
    pub(crate) serve_mcp: Option<String>,
    pub(crate) serve_a2a: Option<String>,
    pub(crate) mcp_bridges: bool,
    pub(crate) help: bool,
}

impl Arguments {
    /// Returns `true` if users are served until the program is told to stop.
    pub(crate) fn serves(&self) -> bool {
        self.ask.is_none() && self.review.is_none()
    }

    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            ask: None,
            review: None,
            config: None,
            data: None,
            bus: None,
            openapi: None,
            port: 9464,
            otlp: None,
            serve_mcp: None,
            serve_a2a: None,
            mcp_bridges: false,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--ask" => arguments.ask = Some(value()?),
                "--review" => arguments.review = Some(value()?),
                "--config" => arguments.config = Some(value()?.into()),
                "--data" => arguments.data = Some(value()?.into()),
                "--bus" => arguments.bus = Some(value()?),
                "--openapi" => arguments.openapi = Some(value()?),
                "--port" => arguments.port = port(&value()?)?,
                "--otlp" => arguments.otlp = Some(value()?),
                "--mcp-bridges" => arguments.mcp_bridges = true,
                "--serve-mcp" => arguments.serve_mcp = Some(value()?),
                "--serve-a2a" => arguments.serve_a2a = Some(value()?),
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        if arguments
            .ask
            .as_deref()
            .is_some_and(|question| question.trim().is_empty())
        {
            return Err("the question of `--ask` is empty: write one".to_owned());
        }
        Ok(arguments)
    }
}

fn port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no port: use a number from 0 to 65535"))
}
