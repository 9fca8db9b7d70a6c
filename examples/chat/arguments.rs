//! The command line of the chat.

use std::path::PathBuf;

use crate::asking::{Asking, number};
use crate::world::World;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
A chat with an agent in the terminal.

    chat [OPTIONS] [QUESTION]
    chat [OPTIONS] doctor

With a question the answer is printed alone on standard output, everything else on standard error, and the
exit code is not zero when there is no answer. Without one you talk to the agent line by line. `doctor` looks at
configuration, folders, keys and model servers, asks each model two short questions in the shape of a turn's
requests, and says what is wrong; with a problem the exit code is 1.

Options:
    --session NAME   talk in this session (default: main)
    --config FILE    read settings from this file, .json or .toml, before those in the environment
    --data FOLDER    keep turns here; a turn that was killed goes on at the next start (default: the setting
                     AgentProfile.BasePath, else /data/agent if there is one, else data/chat)
    --bus URL        talk to the agent of another process over this broker, such as amqp://127.0.0.1 or
                     pulsar://127.0.0.1; model, data and tools are that agent's
    --mcp FILE       use the tools of the MCP servers in this file, such as mcp.json; needs the feature mcp
    --mcp-bus URL    use the tools of the MCP servers to which bridges on this broker are connected, such as the example
                     mcp_bridge; needs the feature mcp
    --serve-mcp ADDRESS
                     serve this agent's tools to MCP clients at http://ADDRESS/mcp while the chat runs, such as
                     127.0.0.1:8931; McpServer.Tools chooses some; needs the feature mcp-server
    --serve-a2a ADDRESS
                     serve this agent to other agents by A2A at http://ADDRESS/ while the chat runs, such as
                     127.0.0.1:8940; A2aServer in the settings says who may call, and use what; needs the feature
                     a2a-server
    --tool-services FOLDER
                     watch this folder for descriptors of tools that other processes run; they are called over the
                     broker in the section RabbitMq or Pulsar, such as ROCKBOT_RABBITMQ__HOSTNAME=127.0.0.1, which is
                     the agent's bus for the sections McpProxy, RemoteTools and ToolServices, too
    --web            search the web and read pages; needs the feature web, and pdf for PDF documents
    --openapi DOC    use the operations of this OpenAPI document, a file or a URL, as tools; needs the feature rest
    --files FOLDER   let the agent read and write text files in this folder; needs the feature files
    --schedule       run tasks at set times while the chat runs, which the agent schedules; needs the feature scheduling
    --subagents      let the agent give work to subagents, which work in the background; needs the feature subagents
    --agents URL     let the agent hand tasks to other agents on this broker, such as amqp://127.0.0.1, or to the agent at
                     this address, such as https://agent.example.com; more than once if need be; A2A in the settings
                     names their keys; needs the feature a2a
    --wisps          let the agent run pipelines of steps and batches of small tasks in one call; needs the feature wisps
    --dreams         let the agent tend its memories and skills while you are silent, in plans that /dreams shows
    --scripts        let the agent run Python scripts in a sandbox; needs the feature scripts
    --image FILE     show this image, or another file, with the first question; can be given several times. Those of
                     answers are saved in the folder images of the data folder
    --import FILE    begin a new session with the conversation in this file
    --export FILE    at the end, write the conversation into this file, as JSON
    --tier TIER      ask the model of this tier, low, balanced or high (default: as the question deserves)
    --max-tokens N   end an answer that has taken this many tokens (default: the setting AgentHost.MaxTurnTokens, else
                     200000)
    --temperature T  ask the model at this temperature
    --schema FILE    answer with JSON that matches the JSON Schema in this file
    --schema-by WAY  make the model match it by its own means (native), a tool (tool) or words (prompt); default auto
    --message-id ID  the id of the QUESTION: asked again within a day, it has the same answer, which is made once
    --yes            approve every tool call without asking. Where standard input is no terminal, its lines are
                     questions: without this a call that needs an approval is refused there
    --trace          after each answer, print the turn from its journal: what happened, and why each message stood
                     in what the model was shown
    --trace=TURN     print this turn from the journal, and end
    --help           print this

Lines that begin with a slash:
    /tools           what the agent can do
    /sessions        the conversations of this run
    /session NAME    go to another conversation, or begin it
    /fork N NAME     go on from the answer to the Nth question, in a new conversation
    /accept NAME     show the held tools of this MCP server, and accept them if you agree
    /dreams          the plans of dreams; /dreams show ID, /dreams apply ID, /dreams undo ID, and /dreams now for a cycle
    /reset           forget this conversation
    /quit            end; so do Ctrl-C and Ctrl-D at the prompt. Ctrl-C during an answer stops the answer.

The model is set in the section LLM of the file, or in the environment:
    OPENAI_API_KEY, and if need be OPENAI_BASE_URL and OPENAI_MODEL, or the same with ANTHROPIC_; or for each tier
    ROCKBOT_LLM__BALANCED__PROVIDER (openai, openai-responses or anthropic),
    ROCKBOT_LLM__BALANCED__ENDPOINT, ROCKBOT_LLM__BALANCED__APIKEY, ROCKBOT_LLM__BALANCED__MODELID,
    also without ROCKBOT_. Other settings alike: ROCKBOT_AGENTHOST__MAXTOOLITERATIONS=30.
    With no model, or with ROCKBOT_LLM__PROVIDER=offline, a built-in offline model answers, which is not an LLM.

Warnings of the library are printed on standard error; RUST_LOG chooses more or less, such as RUST_LOG=info.";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) question: Option<String>,
    pub(crate) session: String,
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) bus: Option<String>,
    pub(crate) mcp: Option<PathBuf>,
    pub(crate) mcp_bus: Option<String>,
    pub(crate) serve_mcp: Option<String>,
    pub(crate) serve_a2a: Option<String>,
    pub(crate) tool_services: Option<PathBuf>,
    pub(crate) world: World,
    /// The broker of other agents.
    pub(crate) agents_bus: Option<String>,
    /// The URLs of agents that are reached over HTTP.
    pub(crate) agents: Vec<String>,
    /// The sections of further families of tools, which the settings turn on.
    pub(crate) families: Vec<&'static str>,
    pub(crate) images: Vec<PathBuf>,
    pub(crate) import: Option<PathBuf>,
    pub(crate) export: Option<PathBuf>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) asking: Asking,
    pub(crate) yes: bool,
    pub(crate) trace: Trace,
    pub(crate) help: bool,
    pub(crate) doctor: bool,
}

/// The part of the journal to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    Nothing,
    EachTurn,
    Only(String),
}

impl Arguments {
    /// Returns the URL of the broker of the agent's bus, if an option names it.
    pub(crate) fn bus_of_agent(&self) -> Option<&str> {
        self.mcp_bus.as_deref().or(self.agents_bus.as_deref())
    }

    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            question: None,
            session: "main".to_owned(),
            config: None,
            data: None,
            bus: None,
            mcp: None,
            mcp_bus: None,
            serve_mcp: None,
            serve_a2a: None,
            tool_services: None,
            world: World::default(),
            families: Vec::new(),
            agents_bus: None,
            agents: Vec::new(),
            images: Vec::new(),
            import: None,
            export: None,
            max_tokens: None,
            asking: Asking::default(),
            yes: false,
            trace: Trace::Nothing,
            help: false,
            doctor: false,
        };
        let mut question = Vec::new();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            if arguments.asking.take(&word, &mut value)? {
                continue;
            }
            match word.as_str() {
                "--session" => arguments.session = value()?,
                "--config" => arguments.config = Some(value()?.into()),
                "--data" => arguments.data = Some(value()?.into()),
                "--bus" => arguments.bus = Some(value()?),
                "--mcp-bus" => arguments.mcp_bus = Some(value()?),
                "--mcp" => arguments.mcp = Some(value()?.into()),
                "--serve-mcp" => arguments.serve_mcp = Some(value()?),
                "--serve-a2a" => arguments.serve_a2a = Some(value()?),
                "--tool-services" => arguments.tool_services = Some(value()?.into()),
                "--web" => arguments.world.web = true,
                "--openapi" => arguments.world.openapi = Some(value()?),
                "--files" => arguments.world.files = Some(value()?.into()),
                "--schedule" => arguments.world.scheduling = true,
                "--subagents" => arguments.world.subagents = true,
                "--agents" => {
                    let url = value()?;
                    if url.starts_with("http://") || url.starts_with("https://") {
                        arguments.agents.push(url);
                    } else {
                        arguments.agents_bus = Some(url);
                    }
                    arguments.families.push("A2A");
                }
                "--wisps" => arguments.families.extend(["Wisps", "Workers"]),
                "--dreams" => arguments.families.push("Dream"),
                "--scripts" => arguments.families.push("Scripts"),
                "--image" => arguments.images.push(value()?.into()),
                "--import" => arguments.import = Some(value()?.into()),
                "--export" => arguments.export = Some(value()?.into()),
                "--max-tokens" => arguments.max_tokens = Some(number(&word, &value()?)?),
                "--yes" => arguments.yes = true,
                "--trace" => arguments.trace = Trace::EachTurn,
                "--help" | "-h" => arguments.help = true,
                other => match other.strip_prefix("--trace=") {
                    Some(turn) => arguments.trace = Trace::Only(turn.to_owned()),
                    None if other.starts_with('-') && other.len() > 1 => {
                        return Err(format!("there is no option `{other}`; see --help"));
                    }
                    None => question.push(word),
                },
            }
        }
        if let (Some(mcp), Some(agents)) = (&arguments.mcp_bus, &arguments.agents_bus)
            && mcp != agents
        {
            return Err("`--mcp-bus` and `--agents` name two brokers: the agent has one bus".to_owned());
        }
        if question == ["doctor"] {
            arguments.doctor = true;
        } else if !question.is_empty() {
            arguments.question = Some(question.join(" "));
        }
        if arguments
            .question
            .as_deref()
            .is_some_and(|question| question.trim().is_empty())
        {
            return Err("the question is empty: write one, or give none to talk line by line".to_owned());
        }
        if arguments.asking.is_for_one() && arguments.question.is_none() {
            return Err("`--message-id` is the id of one question: give the question, too".to_owned());
        }
        Ok(arguments)
    }
}
