//! A terminal host: streams answers, shows tool calls while they run, asks for approval where a
//! call needs it.
//!
//! `cargo run --example chat`, or `cargo run --example chat -- "What is 6 * 7?"`. Works without a
//! key.

mod arguments;
mod asking;
#[path = "../full_agent/bridges.rs"]
mod bridges;
#[path = "../full_agent/broker.rs"]
mod broker;
#[path = "../full_agent/bus.rs"]
mod bus;
mod calculator;
mod conversations;
mod doctor;
mod dreams;
mod log;
mod mcp;
mod media;
mod outside;
mod questions;
mod remote;
#[path = "../full_agent/serve_a2a.rs"]
mod serve_a2a;
#[path = "../full_agent/serve_mcp.rs"]
mod serve_mcp;
#[path = "../full_agent/service_bus.rs"]
mod service_bus;
mod terminal;
mod tools;
mod trace;
#[path = "../full_agent/words.rs"]
mod words;
#[path = "../full_agent/world.rs"]
mod world;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use arguments::{Arguments, HELP, Trace};
use outside::Outside;
use questions::{Question, Questions, questions};
use rockbot::agent::{AgentHostBuilder, Conversation};
use rockbot::config::{Config, HostSettings};
use rockbot::prelude::*;
use rockbot::turn::{Announcement, ApprovalRequest};
use rockbot::{AgentIdentity, TurnId};
use terminal::Terminal;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const INSTRUCTIONS: &str = "You are a helpful assistant in a terminal. Use your tools when they help. Answer briefly.";

/// Time for the shutdown.
const DRAIN: Duration = Duration::from_secs(5);

/// Time after which the user reads what the end waits for.
const PATIENCE: Duration = Duration::from_millis(500);

/// The default data folder.
const DATA_FOLDER: &str = "data/chat";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match words::words().and_then(Arguments::parse) {
        Ok(arguments) if arguments.help => {
            terminal::print(&format!("{HELP}\n"));
            return ExitCode::SUCCESS;
        }
        Ok(arguments) => arguments,
        Err(problem) => return failed(&problem),
    };
    if let Err(problem) = log::install() {
        return failed(&problem.to_string());
    }
    match run(arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(problem: &str) -> ExitCode {
    eprintln!("error: {problem}");
    ExitCode::FAILURE
}

async fn run(arguments: Arguments) -> Result<bool, BoxError> {
    if arguments.doctor {
        let file = arguments.config.as_deref();
        let data = arguments.data.as_deref();
        let mut report = doctor::examine(file, data, Path::new(DATA_FOLDER), std::env::vars_os()).await;
        report.list_parts(examined(&arguments));
        terminal::print(&report.to_string());
        return Ok(!report.has_problem());
    }
    if let Some(url) = &arguments.bus {
        return remote::talk(&arguments, url).await;
    }
    let config = settings(&arguments)?;
    let outside = Outside::connect(&arguments, &config).await?;
    let (asking, questions) = questions();
    let host = build(&arguments, &config, outside, asking)?;
    if let Trace::Only(turn) = &arguments.trace {
        trace::print(&host, &TurnId::from(turn.as_str())).await?;
        return Ok(true);
    }
    let terminal = Terminal::new(arguments.question.is_some());
    let images = media::read(&arguments.images)?;
    let mut chat = Chat {
        host,
        images,
        pictures: pictures(&arguments),
        terminal,
        questions,
        session: arguments.session.as_str().into(),
        arguments,
    };
    let resumed = chat.resume().await?;
    let has_bridges = chat.arguments.mcp_bus.is_some();
    mcp::connected(&chat.host, &mut chat.terminal, &mut chat.questions, has_bridges).await;
    if let Some(url) = serve_mcp::url(&chat.host) {
        eprintln!("the tools are served at {url}");
    }
    if let Some(url) = serve_a2a::url(&chat.host) {
        eprintln!("the agent is served at {url}");
    }
    if let Some(file) = &chat.arguments.import {
        conversations::import(&chat.conversation(), file).await?;
    }
    let answered = match chat.arguments.question.clone() {
        Some(question) => {
            let answered = chat.answer(&question).await?;
            tokio::select! {
                () = ended(resumed) => {}
                () = ctrl_c() => return Err("stopped; the interrupted turn goes on at the next start".into()),
            }
            answered
        }
        None => chat.talk().await?,
    };
    if let Some(file) = &chat.arguments.export {
        conversations::export(&chat.conversation(), file).await?;
    }
    shut_down(&chat.host).await;
    Ok(answered)
}

/// Shuts the host down: running turns end first, unless the user presses Ctrl-C. The next start
/// goes on with the others.
async fn shut_down(host: &AgentHost) {
    let mut ending = pin!(host.shutdown(DRAIN));
    // One listener for both waits: a signal between them would be lost otherwise.
    let mut stopped = pin!(ctrl_c());
    tokio::select! {
        () = &mut ending => return,
        () = &mut stopped => return,
        () = tokio::time::sleep(PATIENCE) => eprintln!("ending what still runs … Ctrl-C stops it at once"),
    }
    tokio::select! {
        () = ending => {}
        () = stopped => {}
    }
}

/// Reads the settings: the file's, then the environment's, and what the options turn on.
fn settings(arguments: &Arguments) -> Result<Config, BoxError> {
    let config = Config::load(arguments.config.as_deref())?;
    let config = agents(families(config, &arguments.families)?, &arguments.agents);
    let config = mcp::configured(config, arguments.mcp.as_deref())?;
    let config = bridges::configured(config, arguments.mcp_bus.is_some())?;
    let config = serve_a2a::configured(config, arguments.serve_a2a.as_deref())?;
    serve_mcp::configured(config, arguments.serve_mcp.as_deref())
}

/// Turns families of tools on, unless the settings say something of them.
fn families(mut config: Config, wanted: &[&str]) -> Result<Config, BoxError> {
    for name in wanted {
        if !config.section(name)?.is_set() {
            config = config.with_text("options.toml", &format!("[{name}]\nEnabled = true\n"))?;
        }
    }
    Ok(config)
}

/// Adds the agents of `--agents` that have a URL, behind the agents of the settings.
fn agents(config: Config, urls: &[String]) -> Config {
    let name = |at: usize| format!("ROCKBOT_A2A__AGENTS__{}__URL", 1_000 + at);
    config.with_variables(urls.iter().enumerate().map(|(at, url)| (name(at), url.clone())))
}

/// Returns the folder for images and files of answers.
fn pictures(arguments: &Arguments) -> PathBuf {
    let data = arguments.data.as_deref().unwrap_or(Path::new(DATA_FOLDER));
    data.join("images")
}

/// Maximum number of tokens of a turn, unless `AgentHost.MaxTurnTokens` is set: a model that goes
/// in circles costs money.
const MAX_TURN_TOKENS: u64 = 200_000;

fn build(
    arguments: &Arguments,
    config: &Config,
    outside: Outside,
    questions: Questions,
) -> Result<AgentHost, BoxError> {
    Ok(compose(arguments, config, outside, questions)?.build()?)
}

/// Returns the builder of the agent for the doctor, who connects to no broker and builds the
/// agent in another data folder.
fn examined(arguments: &Arguments) -> Result<AgentHostBuilder, BoxError> {
    let config = settings(arguments)?;
    let host = HostSettings::read(&config, Path::new(DATA_FOLDER))?;
    let data = arguments.data.as_deref().unwrap_or(host.agent_profile.base_path());
    let inputs = doctor::inputs(&config, data)?;
    // Read anew, since what was read above counts as known, and only a part of the agent can know it.
    let config = settings(arguments)?.with_variables(inputs);
    let outside = Outside::unconnected(arguments, &config)?;
    compose(arguments, &config, outside, questions().0)
}

/// Returns the builder of the chat's agent.
fn compose(
    arguments: &Arguments,
    config: &Config,
    outside: Outside,
    questions: Questions,
) -> Result<AgentHostBuilder, BoxError> {
    let settings = HostSettings::read(config, Path::new(DATA_FOLDER))?;
    let data = arguments.data.as_deref().unwrap_or(settings.agent_profile.base_path());
    let tools = tools::all(std::env::current_dir()?);
    let budget = settings.budget();
    let max_tokens = arguments.max_tokens.or(budget.max_tokens);
    // Models behind the gateway, prices, memory with recall, profile, and links that a file cannot
    // put into an answer.
    let builder = AgentHost::configured(config, Path::new(DATA_FOLDER))?
        .identity(AgentIdentity::new("chat"))
        .instructions(INSTRUCTIONS)
        .budget(budget.with_max_tokens(max_tokens.unwrap_or(MAX_TURN_TOKENS)))
        .data_dir(data);
    let builder = mcp::answered(builder, questions);
    let builder = tools.into_iter().fold(builder, AgentHostBuilder::tool);
    // The web, HTTP interfaces and files, as the options ask for them.
    let builder = arguments.world.clone().add_to(builder, config)?;
    Ok(outside.add_to(builder))
}

/// Prints the end of a turn that was resumed.
async fn report(agent: Agent, turn: TurnId) {
    match agent.outcome(&turn).await {
        Ok(outcome) => eprintln!("turn {turn} ended: {}", terminal::clean(&outcome.text)),
        Err(error) => eprintln!("turn {turn}: {error}"),
    }
}

/// Waits until all reports are printed.
async fn ended(reports: Vec<JoinHandle<()>>) {
    for report in reports {
        // A report that panicked has said so itself.
        let _ = report.await;
    }
}

struct Chat {
    host: AgentHost,
    /// Files that the next question shows.
    images: Vec<MediaPart>,
    /// The folder for images and files of answers.
    pictures: PathBuf,
    terminal: Terminal,
    /// Questions of parts of the agent, while an answer is made.
    questions: mpsc::Receiver<Question>,
    session: SessionId,
    arguments: Arguments,
}

impl Chat {
    /// Finishes the turns that an earlier run left unfinished.
    ///
    /// A turn that waits for an approval is asked about in a conversation, and stays parked during a
    /// one-shot question and where there is no terminal to ask at.
    async fn resume(&mut self) -> Result<Vec<JoinHandle<()>>, BoxError> {
        let resumed = self.host.start().await?;
        let asks = self.host.agent().approvals();
        let mut turns = resumed.running;
        let can_ask = self.arguments.yes || self.terminal.is_interactive();
        if (self.arguments.question.is_some() || !can_ask) && !asks.is_empty() {
            eprintln!(
                "note: {} tool calls of earlier turns wait for you; start the chat in a terminal, without a question",
                asks.len()
            );
        } else {
            turns.extend(resumed.parked);
            for ask in &asks {
                eprintln!("an earlier turn waits for you:");
                self.decide(ask).await?;
            }
        }
        // Reported as they end: a new question need not wait for them.
        let going_on = turns.into_iter().map(|turn| {
            eprintln!("going on with turn {turn}, which was interrupted …");
            tokio::spawn(report(self.host.agent().clone(), turn))
        });
        Ok(going_on.collect())
    }

    fn conversation(&self) -> Conversation {
        self.host.agent().conversation(self.session.clone())
    }

    /// Talks until the input ends. A failed answer does not end the conversation.
    async fn talk(&mut self) -> Result<bool, BoxError> {
        eprintln!(
            "Ask something. /tools, /sessions, /session NAME, /fork N NAME, /dreams, /reset, /quit; --help tells the rest."
        );
        let mut unasked = self.host.agent().announcements();
        loop {
            let line = tokio::select! {
                line = self.terminal.prompt("> ") => line,
                Some(said) = unasked.next() => {
                    self.told(&said).await?;
                    continue;
                }
                () = ctrl_c() => None,
            };
            match line.as_deref().map(str::trim) {
                None | Some("/quit") => return Ok(true),
                Some("") => {}
                Some(command) if command.starts_with('/') => self.command(command).await?,
                Some(question) => drop(self.answer(question).await?),
            }
        }
    }

    /// Shows what the agent says unasked, and asks for the approval that it needs.
    async fn told(&mut self, said: &Announcement) -> Result<(), BoxError> {
        terminal::announce(said, self.terminal.is_interactive());
        if let Some(ask) = &said.approval {
            self.decide(ask).await?;
        }
        Ok(())
    }

    async fn command(&mut self, command: &str) -> Result<(), BoxError> {
        match command.split_once(' ').unwrap_or((command, "")) {
            ("/tools", _) => self.host.tools().snapshot().entries().iter().for_each(|entry| {
                let tool = entry.registration();
                terminal::print(&format!("{}: {}\n", tool.name, tool.description));
            }),
            ("/sessions", _) => self
                .host
                .agent()
                .sessions()
                .await?
                .iter()
                .for_each(|session| terminal::print(&format!("{session}\n"))),
            ("/session", name) if !name.trim().is_empty() => self.session = name.trim().into(),
            ("/fork", words) => match conversations::fork(&self.conversation(), words).await {
                Ok(session) => self.session = session,
                Err(problem) => eprintln!("{problem}"),
            },
            ("/accept", name) => mcp::accept(&self.host, &mut self.terminal, name.trim()).await,
            ("/dreams", words) => dreams::command(&self.host, words.trim()).await,
            ("/reset", _) => self.host.agent().reset(&self.session).await?,
            _ => eprintln!("there is no command `{command}`; --help lists them"),
        }
        Ok(())
    }

    /// Asks the agent, shows its progress, and returns whether it answered. Ctrl-C cancels the answer.
    async fn answer(&mut self, question: &str) -> Result<bool, BoxError> {
        let images = std::mem::take(&mut self.images);
        let content = images.into_iter().fold(Content::from(question), Content::with_media);
        let request = self.host.agent().ask(&self.session, content);
        let mut turn = self.arguments.asking.apply(request).stream().cancel_on_drop();
        loop {
            let progress = tokio::select! {
                progress = turn.next() => progress,
                Some(question) = self.questions.recv() => {
                    self.terminal.answer(question).await;
                    continue;
                }
                () = ctrl_c() => {
                    eprintln!("\nstopped");
                    return Ok(false);
                }
            };
            match progress.transpose()? {
                Some(TurnProgress::ApprovalNeeded(ask)) => {
                    if !self.decide(&ask).await? {
                        return Ok(false);
                    }
                }
                Some(TurnProgress::Final(outcome)) => return self.end(&outcome).await,
                Some(progress) => self.terminal.show(&progress),
                None => return Ok(false),
            }
        }
    }

    /// Asks the user about a tool call. Ctrl-C cancels the turn instead, and this returns `false`.
    async fn decide(&mut self, ask: &ApprovalRequest) -> Result<bool, BoxError> {
        let agent = self.host.agent();
        let approved = tokio::select! {
            () = ctrl_c() => {
                eprintln!("\nstopped");
                agent.cancel(&ask.turn).await?;
                return Ok(false);
            }
            approved = self.terminal.approve(ask), if !self.arguments.yes => approved,
            () = std::future::ready(()), if self.arguments.yes => true,
        };
        agent
            .decide(if approved {
                ask.approve()
            } else {
                ask.deny("the user said no")
            })
            .await?;
        Ok(true)
    }

    async fn end(&mut self, outcome: &TurnOutcome) -> Result<bool, BoxError> {
        let answered = self.terminal.end(outcome);
        if let Err(error) = media::save(&self.host, outcome, &self.pictures).await {
            eprintln!("error: an image of the answer is not saved: {error}");
        }
        if self.arguments.trace == Trace::EachTurn {
            trace::print(&self.host, &outcome.turn).await?;
        }
        Ok(answered)
    }
}

/// Resolves at Ctrl-C; stays pending on platforms without signals.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
