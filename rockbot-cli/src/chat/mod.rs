//! The conversation at the terminal: streams answers, shows tool calls while they run, asks for
//! approval where a call needs it.

mod conversations;
pub(crate) mod dreams;
mod input;
mod lines;
pub(crate) mod look;
mod markdown;
pub(crate) mod mcp;
mod media;
mod questions;
mod remote;
pub(crate) mod schedule;
mod syntax;
pub(crate) mod terminal;
pub(crate) mod trace;
mod wisps;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use lines::Printer;
use questions::Question;
pub(crate) use questions::{Questions, questions};
use rockbot::TurnId;
use rockbot::agent::{AgentRequest, Conversation, TurnStream};
use rockbot::content::ContentPart;
use rockbot::prelude::*;
use rockbot::tool::ToolFilter;
use rockbot::turn::{Announcement, ApprovalRequest, TurnError};
use terminal::Terminal;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::Setup;
use crate::arguments::Arguments;
use crate::host::{serve_a2a, serve_mcp, serve_web};

/// Time for the shutdown.
const DRAIN: Duration = Duration::from_secs(5);

/// Time until the user reads why the end takes so long.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time between two looks at how long an answer takes.
const TICK: Duration = Duration::from_millis(500);

/// The question for a summary, which a shorter conversation begins with.
const SUMMARIZE: &str = "Summarize our conversation so far, so that we can go on from your summary alone: what I want and \
    have decided, the facts, names, numbers and paths in it, and what is still open. Write the summary and nothing else.";

/// The commands of a conversation.
const COMMANDS: &str = "\
/tools           what the agent can do
/model TIER      ask the low, balanced or high tier from now on; auto: as the question deserves
/retry           ask the last question again
/edit            change the last question and ask it, in a copy of the conversation without it
/undo            go on without the last question, in a copy of the conversation
/image FILE      show this image, or another file, with the next question
/sessions        the conversations of this agent, the newest first
/resume NAME     go on with this conversation; without a name with the newest other one
/session NAME    go to another conversation, or begin it
/fork N NAME     go on from the answer to the Nth question, in a new conversation
/compact WORDS   go on in a copy that begins with a summary of this conversation; WORDS say what must stay
/save FILE       write this conversation into a file, as JSON
/memory WORDS    the memories with these words; without words the newest
/rules           the rules that you gave
/agents          the agents that tasks can be handed to
/mcp             the MCP servers, and how they are
/accept NAME     show the held tools of this MCP server, and accept them if you agree
/cost            what this conversation and this run cost
/trace TURN      what happened in a turn; without an id in the last one
/schedule        the tasks at set times; /schedule cancel NAME, /schedule run NAME
/dreams          the plans of dreams; /dreams show ID, /dreams apply ID, /dreams undo ID, /dreams now
/wisps           the wisps that have ended; /wisps failed, and /wisps show ID for the definition of one of them
/reset           forget this conversation
/quit            end; so do Ctrl-C and Ctrl-D at the prompt. Ctrl-C during an answer stops the answer
";

/// Asks the question of the command line, or talks line by line. Returns `false` if the question
/// has no answer.
pub(crate) async fn run(arguments: &Arguments, setup: Setup<'_>) -> Result<bool, BoxError> {
    let pictures = setup.pictures();
    if let Some(url) = &arguments.chat.bus {
        return remote::talk(arguments, url, &pictures).await;
    }
    let (asking, questions) = questions();
    let host = setup.open(asking).await?;
    let question = arguments.question();
    let mut chat = Chat {
        host,
        images: media::read(&arguments.chat.images)?,
        pictures,
        terminal: Terminal::new(question.is_some(), Some(&setup.history())),
        questions,
        session: arguments.chat.session.as_str().into(),
        tier: None,
        last: None,
        arguments,
    };
    let resumed = chat.begin(question.is_some()).await?;
    let answered = match question {
        Some(question) => {
            let shown = if arguments.chat.stdin { input::read()? } else { None };
            let answered = chat.answer_about(&question, shown).await?;
            tokio::select! {
                () = ended(resumed) => {}
                () = ctrl_c() => return Err("stopped; the interrupted turn goes on at the next start".into()),
            }
            answered
        }
        None => chat.talk().await?,
    };
    if let Some(file) = &chat.arguments.chat.export {
        conversations::export(&chat.conversation(), file).await?;
    }
    shut_down(&chat.host).await;
    Ok(answered)
}

/// Shuts the host down: running turns end first, unless the user presses Ctrl-C. The next start
/// goes on with the others.
pub(crate) async fn shut_down(host: &AgentHost) {
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

/// Prints the end of a turn that was resumed.
async fn report(agent: Agent, turn: TurnId, printer: Printer) {
    match agent.outcome(&turn).await {
        Ok(outcome) => printer.tell(format!("turn {turn} ended: {}\n", terminal::clean(&outcome.text))),
        Err(error) => printer.tell(format!("turn {turn}: {error}\n")),
    }
}

/// Waits until all reports are printed.
async fn ended(reports: Vec<JoinHandle<()>>) {
    for report in reports {
        // A report that panicked has said so itself.
        let _ = report.await;
    }
}

struct Chat<'a> {
    host: AgentHost,
    /// Files that the next question shows.
    images: Vec<MediaPart>,
    /// The folder for images and files of answers.
    pictures: PathBuf,
    terminal: Terminal,
    /// Questions of parts of the agent, while an answer is made.
    questions: mpsc::Receiver<Question>,
    session: SessionId,
    /// The tier that `/model` chose.
    tier: Option<ModelTier>,
    /// The last question, and its turn.
    last: Option<(String, TurnId)>,
    arguments: &'a Arguments,
}

impl Chat<'_> {
    /// Starts the agent, says where it is served, and imports the conversation of the command line.
    async fn begin(&mut self, is_one_shot: bool) -> Result<Vec<JoinHandle<()>>, BoxError> {
        let resumed = self.resume(is_one_shot).await?;
        let has_bridges = self.arguments.agent.mcp_bus.is_some();
        mcp::connected(&self.host, &mut self.terminal, &mut self.questions, has_bridges).await;
        if let Some(url) = serve_mcp::url(&self.host) {
            eprintln!("the tools are served at {url}");
        }
        if let Some(url) = serve_a2a::url(&self.host) {
            eprintln!("the agent is served at {url}");
        }
        if let Some(url) = serve_web::url(&self.host) {
            eprintln!("the agent is served to people and their programs at {url}");
        }
        if let Some(file) = &self.arguments.chat.import {
            conversations::import(&self.conversation(), file).await?;
        }
        Ok(resumed)
    }

    /// Finishes the turns that an earlier run left unfinished.
    ///
    /// A turn that waits for an approval is asked about in a conversation, and stays parked during
    /// a one-shot question and where there is no terminal to ask at.
    async fn resume(&mut self, is_one_shot: bool) -> Result<Vec<JoinHandle<()>>, BoxError> {
        let resumed = self.host.start().await?;
        let asks = self.host.agent().approvals();
        let mut turns = resumed.running;
        let can_ask = self.arguments.chat.yes || self.terminal.is_interactive();
        if (is_one_shot || !can_ask) && !asks.is_empty() {
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
            tokio::spawn(report(self.host.agent().clone(), turn, self.terminal.printer()))
        });
        Ok(going_on.collect())
    }

    fn conversation(&self) -> Conversation {
        self.host.agent().conversation(self.session.clone())
    }

    /// Talks until the input ends. A failed answer does not end the conversation.
    async fn talk(&mut self) -> Result<bool, BoxError> {
        eprintln!("Ask something; /help lists the commands, /quit ends.");
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

    /// Shows an announcement of the agent, and asks for the approval that it needs.
    async fn told(&mut self, said: &Announcement) -> Result<(), BoxError> {
        terminal::announce(said, &self.terminal.printer());
        if let Some(ask) = &said.approval {
            self.decide(ask).await?;
        }
        Ok(())
    }

    /// Carries out a command. One that fails does not end the conversation.
    async fn command(&mut self, command: &str) -> Result<(), BoxError> {
        let (name, words) = command.split_once(' ').unwrap_or((command, ""));
        let words = words.trim();
        let shown = match name {
            "/memory" => look::memories(&self.host, words).await,
            "/rules" => look::rules(&self.host).await,
            "/agents" => Ok(look::agents(&self.host)),
            "/mcp" => Ok(look::servers(&self.host)),
            "/cost" => Ok(look::spending(&self.host, &self.session)),
            "/sessions" => conversations::list(self.host.agent(), &self.session).await,
            "/resume" => self.go_on(words).await,
            "/model" => self.choose(words),
            "/image" => self.attach(words),
            "/save" if words.is_empty() => Err("use it like this: /save FILE".into()),
            "/save" => conversations::export(&self.conversation(), words.as_ref())
                .await
                .map(|()| String::new()),
            _ => return self.act(name, words).await,
        };
        match shown {
            Ok(text) if text.is_empty() => {}
            Ok(text) => terminal::print(&format!("{text}\n")),
            Err(problem) => eprintln!("{problem}"),
        }
        Ok(())
    }

    /// Carries out a command that asks, tells or changes the conversation.
    async fn act(&mut self, name: &str, words: &str) -> Result<(), BoxError> {
        match name {
            "/help" => terminal::print(COMMANDS),
            "/tools" => terminal::list_tools(&self.host),
            "/session" if !words.is_empty() => self.session = words.into(),
            "/fork" => match conversations::fork(&self.conversation(), words).await {
                Ok(session) => self.session = session,
                Err(problem) => eprintln!("{problem}"),
            },
            "/accept" => mcp::accept(&self.host, &mut self.terminal, words).await,
            "/dreams" => dreams::command(&self.host, words).await,
            "/schedule" => schedule::command(&self.host, words).await,
            "/wisps" => wisps::command(&self.host, words),
            "/reset" => self.host.agent().reset(&self.session).await?,
            "/undo" => drop(self.undo().await),
            "/compact" => self.compact(words).await?,
            "/edit" => self.edit().await?,
            "/retry" => match self.last.clone() {
                Some((question, _)) => drop(self.answer(&question).await?),
                None => eprintln!("nothing was asked yet"),
            },
            "/trace" => self.trace(words).await,
            _ => eprintln!("there is no command `{name}`{}; /help lists them", lines::meant(name)),
        }
        Ok(())
    }

    /// Goes to a copy of the conversation without the last question, which it returns.
    async fn undo(&mut self) -> Option<String> {
        match conversations::undo(self.host.agent(), &self.conversation()).await {
            Ok((copy, question)) => {
                let before = std::mem::replace(&mut self.session, copy);
                let copy = terminal::clean(self.session.as_str());
                eprintln!(
                    "this is `{copy}` now, without the last question; what its calls did stays done, and `/session {before}` has it all"
                );
                Some(question)
            }
            Err(problem) => {
                eprintln!("{problem}");
                None
            }
        }
    }

    /// Lets the person change the last question, and asks it in place of the old one.
    async fn edit(&mut self) -> Result<(), BoxError> {
        if !self.terminal.is_interactive() {
            eprintln!("a question can be edited at a terminal alone; /undo takes it back");
            return Ok(());
        }
        let Some(question) = self.undo().await else {
            return Ok(());
        };
        match self.terminal.edit("> ", &question).await {
            Some(question) if !question.trim().is_empty() => drop(self.answer(question.trim()).await?),
            _ => {}
        }
        Ok(())
    }

    /// Goes to a copy of the conversation that begins with a summary, which the agent writes there.
    async fn compact(&mut self, kept: &str) -> Result<(), BoxError> {
        let copy = match conversations::copy(self.host.agent(), &self.conversation()).await {
            Ok(copy) => copy,
            Err(problem) => {
                eprintln!("{problem}");
                return Ok(());
            }
        };
        let question = if kept.is_empty() {
            SUMMARIZE.to_owned()
        } else {
            format!("{SUMMARIZE} Above all keep {kept}.")
        };
        let agent = self.host.agent();
        let request = agent.ask(copy.session(), question).tools(ToolFilter::only([""; 0]));
        let turn = self.chosen(request).stream().cancel_on_drop();
        self.terminal.begin_wait();
        if !self.follow(turn).await? {
            self.host.agent().reset(copy.session()).await?;
            eprintln!("there is no summary, and the conversation stays as it is");
            return Ok(());
        }
        conversations::keep_last(self.host.agent(), &copy).await?;
        let before = std::mem::replace(&mut self.session, copy.session().clone());
        let copy = terminal::clean(self.session.as_str());
        eprintln!("this is `{copy}` now, which begins with this summary; `/session {before}` has it all");
        Ok(())
    }

    /// Goes to an earlier conversation, and shows where it was.
    async fn go_on(&mut self, name: &str) -> Result<String, BoxError> {
        let found = conversations::resume(self.host.agent(), &self.session, name).await?;
        let (session, shown) = found;
        let told = format!("this is `{}` now\n{shown}", terminal::clean(session.as_str()));
        self.session = session;
        Ok(told)
    }

    /// Sets the tier of the questions from now on.
    fn choose(&mut self, name: &str) -> Result<String, BoxError> {
        self.tier = match name {
            "auto" | "" => None,
            name => Some(crate::asking::tier(name)?),
        };
        Ok(match self.tier {
            Some(tier) => format!("the {} tier answers from now on", tier.name()),
            None => "each question is answered by the tier that it deserves".to_owned(),
        })
    }

    /// Attaches a file to the next question.
    fn attach(&mut self, file: &str) -> Result<String, BoxError> {
        self.images.extend(media::read(&[PathBuf::from(file)])?);
        Ok(format!("the next question shows {file}"))
    }

    /// Shows what happened in a turn, or in the last one.
    async fn trace(&self, turn: &str) {
        let last = self.last.as_ref().map(|(_, turn)| turn.clone());
        let turn = if turn.is_empty() {
            last
        } else {
            Some(TurnId::from(turn))
        };
        let Some(turn) = turn else {
            return eprintln!("nothing was asked yet");
        };
        if let Err(problem) = trace::print(&self.host, &turn).await {
            eprintln!("{problem}");
        }
    }

    async fn answer(&mut self, question: &str) -> Result<bool, BoxError> {
        self.answer_about(question, None).await
    }

    /// Asks the agent, and returns whether it answered. The question shows a text of others.
    async fn answer_about(&mut self, question: &str, shown: Option<ContentPart>) -> Result<bool, BoxError> {
        let turn = self.ask(question, shown);
        self.follow(turn).await
    }

    /// Shows the progress of a turn, and returns whether it answered. Ctrl-C cancels the turn.
    async fn follow(&mut self, mut turn: TurnStream) -> Result<bool, BoxError> {
        // One listener for the whole answer: a signal between two waits would be lost otherwise.
        let mut stopped = pin!(ctrl_c());
        loop {
            let progress = tokio::select! {
                progress = turn.next() => progress,
                Some(question) = self.questions.recv() => {
                    self.terminal.answer(question).await;
                    continue;
                }
                () = tokio::time::sleep(TICK) => {
                    self.terminal.tick();
                    continue;
                }
                () = &mut stopped => {
                    eprintln!("\nstopped");
                    return Ok(false);
                }
            };
            let progress = progress.transpose()?;
            if self.arguments.chat.json
                && let Some(progress) = &progress
            {
                terminal::print(&format!("{}\n", serde_json::to_string(progress)?));
            }
            match progress {
                Some(TurnProgress::ApprovalNeeded(ask)) => {
                    if !self.decide(&ask).await? {
                        return Ok(false);
                    }
                }
                Some(TurnProgress::Final(outcome)) => return self.end(&outcome).await,
                Some(_) if self.arguments.chat.json => {}
                Some(progress) => self.terminal.show(&progress),
                None => return Ok(false),
            }
        }
    }

    /// Begins the turn of a question, with the files and the tier that were chosen for it.
    fn ask(&mut self, question: &str, shown: Option<ContentPart>) -> TurnStream {
        let images = std::mem::take(&mut self.images);
        let mut content = images.into_iter().fold(Content::from(question), Content::with_media);
        shown.into_iter().for_each(|part| content.push(part));
        let request = self.host.agent().ask(&self.session, content).mark_statements();
        let request = self.arguments.asking.apply(request);
        let turn = self.chosen(request).stream().cancel_on_drop();
        self.last = Some((question.to_owned(), turn.turn_id().clone()));
        self.terminal.begin_wait();
        turn
    }

    /// Sets the tier that `/model` chose.
    fn chosen(&self, request: AgentRequest) -> AgentRequest {
        match self.tier {
            Some(tier) => request.tier(tier),
            None => request,
        }
    }

    /// Asks the user about a tool call. Ctrl-C cancels the turn instead, and this returns `false`.
    async fn decide(&mut self, ask: &ApprovalRequest) -> Result<bool, BoxError> {
        let agent = self.host.agent();
        loop {
            let decision = tokio::select! {
                () = ctrl_c() => {
                    eprintln!("\nstopped");
                    agent.cancel(&ask.turn).await?;
                    return Ok(false);
                }
                decision = self.terminal.approve(ask), if !self.arguments.chat.yes => decision,
                () = std::future::ready(()), if self.arguments.chat.yes => ask.approve(),
            };
            match agent.decide(decision).await {
                Ok(()) => return Ok(true),
                // The person is asked once more.
                Err(problem @ TurnError::Arguments(_)) => eprintln!("{problem}"),
                // Another person may have decided meanwhile; the conversation goes on.
                Err(problem) => {
                    eprintln!("{problem}");
                    return Ok(true);
                }
            }
        }
    }

    async fn end(&mut self, outcome: &TurnOutcome) -> Result<bool, BoxError> {
        let answered = if self.arguments.chat.json {
            outcome.is_answer()
        } else {
            self.terminal.end(outcome)
        };
        if let Err(error) = media::save(&self.host, outcome, &self.pictures).await {
            eprintln!("error: an image of the answer is not saved: {error}");
        }
        if self.arguments.chat.trace {
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
