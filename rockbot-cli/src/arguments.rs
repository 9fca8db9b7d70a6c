//! The command line of the program.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::asking::Asking;
use crate::host::world::World;

const AFTER_HELP: &str = "\
Lines of a conversation that begin with a slash are commands; /help lists them.

The model is set in the section LLM of the file, or in the environment:
  OPENAI_API_KEY, and if need be OPENAI_BASE_URL and OPENAI_MODEL, or the same with ANTHROPIC_; or for
  each tier ROCKBOT_LLM__BALANCED__PROVIDER (openai, openai-responses or anthropic),
  ROCKBOT_LLM__BALANCED__ENDPOINT, ROCKBOT_LLM__BALANCED__APIKEY, ROCKBOT_LLM__BALANCED__MODELID, also
  without ROCKBOT_. Other settings alike: ROCKBOT_AGENTHOST__MAXTOOLITERATIONS=30.
  With no model, or with ROCKBOT_LLM__PROVIDER=offline, a built-in offline model answers, which is not
  an LLM.

Warnings of the library are printed on standard error; RUST_LOG chooses more or less, such as
RUST_LOG=info.";

/// An agent in the terminal.
///
/// With a question the answer is printed alone on standard output, everything else on standard
/// error, and the exit code is not zero when there is no answer. Without a question you talk to
/// the agent line by line.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    #[command(flatten)]
    pub(crate) chat: ChatOptions,
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The question; without one you talk line by line
    #[arg(value_name = "QUESTION")]
    words: Vec<String>,
}

/// A command of the program besides a chat.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check configuration, folders, keys and model servers, and list the agent's parts with their
    /// costs; with a problem the exit code is 1
    Doctor,
    /// Write a commented settings file
    Init {
        /// The file to write (default: where the program looks for its settings)
        file: Option<PathBuf>,
    },
    /// Serve the agent until Ctrl-C or SIGTERM: to users and programs on the broker of the settings,
    /// and at the addresses of --serve-mcp, --serve-a2a and --serve-web. It needs a model;
    /// ROCKBOT_LLM__PROVIDER=offline names the offline model
    Serve {
        #[command(flatten)]
        probes: Probes,
    },
    /// List the agent's tools
    Tools,
    /// List the MCP servers, call one of the agent's tools, serve the tools to the program that
    /// starts this one, or serve MCP servers to agents on a broker
    #[cfg(feature = "mcp")]
    #[command(subcommand)]
    Mcp(crate::commands::mcp::Command),
    /// List, cancel or run the tasks of the schedule
    #[cfg(feature = "scheduling")]
    Schedule {
        /// cancel NAME, or run NAME; without words all tasks are listed
        words: Vec<String>,
    },
    /// Copy what the agent knows from one place to another
    #[command(subcommand)]
    Data(crate::commands::data::Command),
    /// Print a turn from the journal: what happened, and why each message stood in each request
    Trace {
        /// The id of the turn, which each answer tells
        turn: String,
    },
    /// List, show, apply or undo the plans of dreams, or dream now
    Dreams {
        /// show ID, apply ID, undo ID, or now; without words all plans are listed
        words: Vec<String>,
    },
    /// Ask the questions of a dataset, check the answers, and print a report; the exit code is 0 if
    /// every run passed
    #[cfg(feature = "eval")]
    Eval(crate::commands::eval::Options),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Metrics and probes of a service.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Probes {
    /// Serve /metrics, /livez and /readyz at this port; 0: any free one
    #[arg(long, default_value_t = 9464)]
    port: u16,
    /// Open the port at this address of the machine, such as 0.0.0.0 for probes of a cluster. Whoever
    /// reaches it can read the metrics
    #[arg(long, value_name = "IP", default_value_t = Ipv4Addr::LOCALHOST.into())]
    bind: IpAddr,
}

impl Probes {
    pub(crate) fn address(self) -> SocketAddr {
        (self.bind, self.port).into()
    }
}

/// The agent: its settings, data and tools.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentOptions {
    /// Read settings from this file, .json or .toml, before the variables of the environment
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Keep turns here; a turn that was killed goes on at the next start (default: the setting
    /// AgentProfile.BasePath, else /data/agent if there is one, else the user's data folder)
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) data: Option<PathBuf>,
    /// The name of the agent for others on a broker
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) name: Option<String>,
    /// Use the tools of the MCP servers in this file, such as mcp.json
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) mcp: Option<PathBuf>,
    /// Use the tools of the MCP servers to which bridges on this broker are connected
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) mcp_bus: Option<String>,
    /// Serve the agent's tools to MCP clients at http://ADDRESS/mcp while the chat runs, such as
    /// 127.0.0.1:8931; McpServer.Tools chooses some
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub(crate) serve_mcp: Option<String>,
    /// Serve the agent to other agents by A2A at http://ADDRESS/ while the chat runs, such as
    /// 127.0.0.1:8940; A2aServer in the settings says who may call, and use which tools
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub(crate) serve_a2a: Option<String>,
    /// Serve the agent to people and their programs at http://ADDRESS/ while the chat runs, such as
    /// 127.0.0.1:8950: a page at /, events at /api, OpenAI's interfaces at /v1, AG-UI at /agui;
    /// WebServer in the settings says who may use it
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub(crate) serve_web: Option<String>,
    /// Watch this folder for descriptors of tools that other processes run; they are called over
    /// the broker in the section RabbitMq or Pulsar
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) tool_services: Option<PathBuf>,
    /// Search the web and read pages
    #[arg(long, global = true)]
    pub(crate) web: bool,
    /// Use the operations of this OpenAPI document, a file or a URL, as tools
    #[arg(long, value_name = "DOC", global = true)]
    pub(crate) openapi: Option<String>,
    /// Let the agent read and write text files in this folder
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) files: Option<PathBuf>,
    /// Run tasks at set times while the chat runs, which the agent schedules
    #[arg(long, global = true)]
    pub(crate) schedule: bool,
    /// Let the agent give work to subagents, which work in the background
    #[arg(long, global = true)]
    pub(crate) subagents: bool,
    /// Let the agent hand tasks to other agents on this broker, such as amqp://127.0.0.1, or to the
    /// agent at this address, such as https://agent.example.com; more than once if need be
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) agents: Vec<String>,
    /// Let the agent run pipelines of steps and batches of small tasks in one call
    #[arg(long, global = true)]
    pub(crate) wisps: bool,
    /// Let the agent tend its memories and skills while you are silent, in plans that /dreams shows
    #[arg(long, global = true)]
    pub(crate) dreams: bool,
    /// Let the agent run Python scripts in a sandbox
    #[arg(long, global = true)]
    pub(crate) scripts: bool,
    /// End an answer that has taken this many tokens (default: the setting
    /// AgentHost.MaxTurnTokens, else 200000)
    #[arg(long, value_name = "N", global = true)]
    pub(crate) max_tokens: Option<u64>,
}

/// The conversation.
#[derive(Debug, Args)]
#[command(next_help_heading = "Conversation")]
pub(crate) struct ChatOptions {
    /// Talk in this session
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) session: String,
    /// Talk to the agent of another process over this broker, such as amqp://127.0.0.1 or
    /// pulsar://127.0.0.1; model, data and tools are that agent's
    #[arg(long, value_name = "URL")]
    pub(crate) bus: Option<String>,
    /// Show this image, or another file, with the first question; can be given several times. The
    /// images of answers are saved in the folder images of the data folder
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Begin a new session with the conversation in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) import: Option<PathBuf>,
    /// At the end, write the conversation into this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Approve every tool call without asking. Where standard input is no terminal, its lines are
    /// questions: without this a call that needs an approval is refused there
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show standard input with the question, as a text of others: `git diff | rockbot --stdin "Review
    /// this"`
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print each event of the answer as a line of JSON on standard output, the last one with the
    /// outcome
    #[arg(long)]
    pub(crate) json: bool,
    /// After each answer, print the turn from its journal
    #[arg(long)]
    pub(crate) trace: bool,
}

impl Command {
    /// Returns `true` if the program is a service, whose log is read by programs.
    pub(crate) fn is_service(&self) -> bool {
        match self {
            Self::Serve { .. } => true,
            #[cfg(feature = "mcp")]
            Self::Mcp(command) => matches!(command, crate::commands::mcp::Command::Bridge { .. }),
            _ => false,
        }
    }
}

impl Arguments {
    /// Returns the question; `None` for a conversation line by line.
    pub(crate) fn question(&self) -> Option<String> {
        let question = self.words.join(" ");
        if self.words.is_empty() { None } else { Some(question) }
    }

    /// Checks the options against each other; the error says which do not go together.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut brokers = self.agent.mcp_bus.iter().chain(self.agent.agents_on_brokers());
        if let Some(first) = brokers.next()
            && brokers.any(|other| other != first)
        {
            return Err("`--mcp-bus` and `--agents` name two brokers: the agent has one bus".to_owned());
        }
        let question = self.question();
        if question.as_deref().is_some_and(|question| question.trim().is_empty()) {
            return Err("the question is empty: write one, or give none to talk line by line".to_owned());
        }
        if self.asking.is_for_one() && question.is_none() {
            return Err("`--message-id` is the id of one question: give the question, too".to_owned());
        }
        let of_one = [("--stdin", self.chat.stdin), ("--json", self.chat.json)];
        if let Some((option, _)) = of_one.iter().find(|(_, is_given)| *is_given && question.is_none()) {
            return Err(format!("`{option}` goes with one question: give the question, too"));
        }
        Ok(())
    }
}

impl AgentOptions {
    /// Returns the URL of the broker of the agent's bus, if an option names it.
    pub(crate) fn bus(&self) -> Option<&str> {
        self.mcp_bus
            .iter()
            .chain(self.agents_on_brokers())
            .next()
            .map(String::as_str)
    }

    fn agents_on_brokers(&self) -> impl Iterator<Item = &String> {
        self.agents.iter().filter(|url| !is_http(url))
    }

    /// Returns the variables that name the agents with a URL, behind the agents of the settings.
    pub(crate) fn remote_agents(&self) -> impl Iterator<Item = (String, String)> {
        let urls = self.agents.iter().filter(|url| is_http(url)).enumerate();
        urls.map(|(at, url)| (format!("ROCKBOT_A2A__AGENTS__{}__URL", 1_000 + at), url.clone()))
    }

    /// Returns the families of tools for the world that the options turn on.
    pub(crate) fn world(&self) -> World {
        World {
            web: self.web,
            openapi: self.openapi.clone(),
            files: self.files.clone(),
            scheduling: self.schedule,
            patrol: false,
            subagents: self.subagents,
        }
    }

    /// Returns the sections of the further families that the options turn on.
    pub(crate) fn families(&self) -> impl Iterator<Item = &'static str> {
        let families = [
            (!self.agents.is_empty(), "A2A"),
            (self.wisps, "Wisps"),
            (self.wisps, "Workers"),
            (self.dreams, "Dream"),
            (self.scripts, "Scripts"),
        ];
        families.into_iter().filter_map(|(is_on, name)| is_on.then_some(name))
    }
}

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Arguments, String> {
        let words = ["rockbot"].iter().chain(line);
        Arguments::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_is_a_word_of_its_own() {
        let doctor = parse(&["--data", "d", "doctor", "--config", "a.toml"]).unwrap();
        assert!(matches!(doctor.command, Some(Command::Doctor)));
        assert_eq!(doctor.agent.config, Some("a.toml".into()));
        assert_eq!(doctor.agent.data, Some("d".into()));
        let question = parse(&["doctor who?"]).unwrap();
        assert!(question.command.is_none());
        assert_eq!(question.question().as_deref(), Some("doctor who?"));
        let words = parse(&["what", "does", "doctor", "mean?"]).unwrap();
        assert_eq!(words.question().as_deref(), Some("what does doctor mean?"));
    }

    #[test]
    fn a_wrong_command_line_says_what_is_possible() {
        let missing = parse(&["--config"]).unwrap_err();
        assert!(
            missing.contains("a value is required for '--config <FILE>'"),
            "{missing}"
        );
        let near = parse(&["--scrpts"]).unwrap_err();
        assert!(near.contains("'--scripts'"), "{near}");
        let talk = parse(&["--json"]).unwrap().check();
        assert_eq!(
            talk,
            Err("`--json` goes with one question: give the question, too".to_owned())
        );
        let two = parse(&["--mcp-bus", "amqp://a", "--agents", "amqp://b"]).unwrap();
        let problem = "`--mcp-bus` and `--agents` name two brokers: the agent has one bus";
        assert_eq!(two.check(), Err(problem.to_owned()));
        let both = parse(&["--agents", "amqp://a", "--agents", "https://b.example"]).unwrap();
        assert_eq!((both.check(), both.agent.bus()), (Ok(()), Some("amqp://a")));
        let remote = both.agent.remote_agents().collect::<Vec<_>>();
        let name = "ROCKBOT_A2A__AGENTS__1000__URL".to_owned();
        assert_eq!(remote, [(name, "https://b.example".to_owned())]);
    }

    #[test]
    fn the_command_line_is_sound() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
