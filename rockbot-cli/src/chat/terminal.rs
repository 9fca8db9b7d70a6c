//! Shows a turn while it runs, and prompts the person at the terminal.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rockbot::CallId;
use rockbot::chat::{MicroUsd, Spent, Usage};
use rockbot::prelude::*;
use rockbot::turn::{Announcement, Approval, ApprovalRequest, OutsideStatement};
use rockbot::{Clock as _, SystemClock};

use super::ctrl_c;
use super::lines::{Lines, Printer};
use super::markdown::Markdown;
use super::questions::Question;

/// Maximum number of characters shown of a tool's arguments or result.
const SHOWN: usize = 120;

/// Time of silence until the person reads the state of the turn.
const SILENCE: Duration = Duration::from_secs(1);

/// Goes to the beginning of the line, and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// The terminal.
pub(crate) struct Terminal {
    lines: Lines,
    interactive: bool,
    one_shot: bool,
    /// The part of the current answer that is on the screen.
    shown: String,
    /// The colours of answers, where a person reads them and wants colours.
    markdown: Option<Markdown>,
    waiting: Waiting,
    /// The calls that run, with their beginnings.
    calls: Vec<(CallId, Instant)>,
}

/// The line with the state of the turn while nothing else is printed.
struct Waiting {
    /// `true` where a person reads standard error.
    is_told: bool,
    since: Instant,
    doing: String,
    is_shown: bool,
}

impl Waiting {
    fn new(is_told: bool) -> Self {
        Self {
            is_told,
            since: Instant::now(),
            doing: String::new(),
            is_shown: false,
        }
    }

    /// Clears the line, and begins to wait for the end of `doing`.
    fn begin(&mut self, doing: impl Into<String>) {
        self.clear();
        self.since = Instant::now();
        self.doing = doing.into();
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprint!("{CLEAR}");
        }
    }
}

/// Returns `true` if a person reads this output and wants colours.
fn has_colours() -> bool {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !is_plain && !is_dumb
}

impl Terminal {
    /// Opens the terminal of this process, with the history of its lines in a file. With
    /// `one_shot`, standard output carries the answer alone.
    pub(crate) fn new(one_shot: bool, history: Option<&Path>) -> Self {
        let interactive = std::io::stdin().is_terminal();
        let lines = if interactive || !one_shot {
            Lines::open(history)
        } else {
            Lines::none()
        };
        Self {
            lines,
            interactive,
            one_shot,
            shown: String::new(),
            markdown: has_colours().then(Markdown::default),
            waiting: Waiting::new(interactive && std::io::stderr().is_terminal()),
            calls: Vec::new(),
        }
    }

    /// Begins the wait for an answer.
    pub(crate) fn begin_wait(&mut self) {
        self.waiting.begin("asking the model");
    }

    /// Tells the state of the turn, and its duration, once nothing was printed for a while.
    pub(crate) fn tick(&mut self) {
        let waiting = &mut self.waiting;
        let silence = waiting.since.elapsed();
        // A line that is half printed stays as it is.
        if waiting.is_told && self.shown.is_empty() && silence >= SILENCE {
            eprint!("{CLEAR}… {}, {} s (Ctrl-C stops)", waiting.doing, silence.as_secs());
            waiting.is_shown = true;
            flush();
        }
    }

    /// Returns a piece of an answer as this terminal shows it.
    fn styled(&mut self, text: &str) -> String {
        let text = clean(text);
        match &mut self.markdown {
            Some(markdown) => markdown.push(&text),
            None => text,
        }
    }

    /// Prints the held rest of an answer, which ends here.
    fn finish(&mut self) {
        if let Some(markdown) = &mut self.markdown {
            print(&markdown.finish());
        }
    }

    /// Prompts for the next message; returns `None` at the end of the input.
    pub(crate) async fn prompt(&mut self, prompt: &str) -> Option<String> {
        self.lines.next(prompt, true).await
    }

    /// Prompts for a message that begins as `text`, which the person changes.
    pub(crate) async fn edit(&mut self, prompt: &str, text: &str) -> Option<String> {
        self.lines.next_of(prompt, text, true).await
    }

    /// Returns the printer of lines above the line that the person edits.
    pub(crate) fn printer(&self) -> Printer {
        self.lines.printer()
    }

    /// Returns `true` if a person is at the terminal, who can be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Asks the person to approve a tool call; denies it where there is no person to ask. Lines that
    /// are piped in are questions, and none of them is taken for an approval.
    pub(crate) async fn approve(&mut self, ask: &ApprovalRequest) -> Approval {
        self.waiting.clear();
        let asked_by: String = ask.asked_by.iter().map(|agent| format!(" (for {agent})")).collect();
        let why: String = ask
            .origins
            .iter()
            .map(|origin| format!("\n    {}", clean(&origin.to_string())))
            .collect();
        let asked = format!("\n? {}{asked_by} {}{why}", ask.tool, clean(&ask.arguments));
        if !self.interactive {
            eprintln!("{asked}\n  refused: there is no terminal to ask at; --yes approves every call");
            return ask.deny("the user said no");
        }
        self.printer().print(format!("{asked}\n"));
        self.lines.discard();
        // Without doubtful values there is nothing that could be approved for the conversation.
        let choices = if ask.origins.is_empty() {
            "y/N/edit"
        } else {
            "y/N/always/edit"
        };
        loop {
            let answer = self.lines.next(&format!("  Run it? [{choices}] "), false).await;
            match answer.as_deref().map(str::trim) {
                Some("y" | "Y" | "yes") => return ask.approve(),
                Some("a" | "always") if !ask.origins.is_empty() => return ask.approve_for_conversation(),
                Some("e" | "edit") => match self.lines.next("  Arguments as JSON: ", false).await {
                    Some(arguments) if !arguments.trim().is_empty() => return ask.approve_with(arguments.trim()),
                    _ => {}
                },
                None | Some("" | "n" | "N" | "no") => return ask.deny("the user said no"),
                // A typo is no decision.
                Some(_) => self.printer().print(format!("  answer one of {choices}\n")),
            }
        }
    }

    /// Asks the person for a yes. Where there is no person, nothing is agreed to.
    #[cfg(feature = "mcp")]
    pub(crate) async fn confirm(&mut self, question: &str) -> bool {
        if !self.interactive {
            return false;
        }
        self.waiting.clear();
        self.lines.discard();
        loop {
            let answer = self.lines.next(&format!("{question} [y/N] "), false).await;
            match answer.as_deref().map(str::trim) {
                Some("y" | "Y" | "yes") => return true,
                None | Some("" | "n" | "N" | "no") => return false,
                // A typo is no decision.
                Some(_) => self.printer().print("  answer y or n\n".to_owned()),
            }
        }
    }

    /// Puts a question of a part to the person. It ends without an answer where there is no person,
    /// at Ctrl-C, and when the part no longer waits.
    pub(crate) async fn answer(&mut self, mut question: Question) {
        let mut line = None;
        self.waiting.clear();
        if self.interactive {
            self.lines.discard();
            self.begin_line();
            tokio::select! {
                typed = self.lines.next(&question.text, false) => line = typed,
                () = question.answer.closed() => eprintln!("\n  the question is over"),
                () = ctrl_c() => eprintln!(),
            }
        }
        // An error means that the part no longer waits.
        let _ = question.answer.send(line);
    }

    /// Shows a progress report of the turn.
    pub(crate) fn show(&mut self, progress: &TurnProgress) {
        match progress {
            TurnProgress::Delta(text) if !self.one_shot => {
                self.waiting.begin("asking the model");
                let styled = self.styled(text);
                print(&styled);
                self.shown.push_str(text);
                flush();
            }
            TurnProgress::Retract => self.begin("… the model starts over"),
            TurnProgress::ToolStarted { call, tool, arguments } => {
                self.calls.push((call.clone(), Instant::now()));
                self.begin(&format!("→ {tool} {}", cut(arguments)));
                self.waiting.begin(format!("running {tool}"));
            }
            TurnProgress::ToolProgress { tool, text, .. } => self.begin(&format!("  {tool}: {}", cut(text))),
            TurnProgress::ToolFinished {
                call,
                tool,
                is_error,
                content,
            } => {
                let mark = if *is_error { "✗" } else { "✓" };
                let time = self.time_of(call);
                self.begin(&format!("{mark} {tool}{time}: {}", cut(content)));
            }
            TurnProgress::Note(text) => self.begin(&format!("note: {}", clean(text))),
            TurnProgress::Waiting { until, why } => {
                let left = until.map(|until| until.since(SystemClock.now()));
                self.begin(&format!("… {} (Ctrl-C stops)", clean(&why.in_words(left))));
            }
            _ => {}
        }
    }

    /// Returns how long a call took, where it took long enough to tell.
    fn time_of(&mut self, call: &CallId) -> String {
        let Some(at) = self.calls.iter().position(|(running, _)| running == call) else {
            return String::new();
        };
        let seconds = self.calls.swap_remove(at).1.elapsed().as_secs_f64();
        if seconds < 0.1 {
            String::new()
        } else {
            format!(" ({seconds:.1} s)")
        }
    }

    /// Shows the end of a turn, and returns whether it had an answer.
    pub(crate) fn end(&mut self, outcome: &TurnOutcome) -> bool {
        if !outcome.is_answer() {
            self.begin(&format!("error: {}", clean(&outcome.text)));
            return false;
        }
        self.waiting.clear();
        self.calls.clear();
        if self.shown != outcome.text {
            self.begin_line();
            let styled = self.styled(&outcome.text);
            print(&styled);
        }
        self.finish();
        print("\n");
        self.shown.clear();
        eprint!("{}", statements(outcome));
        eprintln!("{}", summary(outcome));
        true
    }

    /// Begins a line about the turn, apart from the answer.
    fn begin(&mut self, line: &str) {
        self.begin_line();
        eprintln!("{line}");
        self.waiting.begin("asking the model");
    }

    fn begin_line(&mut self) {
        self.waiting.clear();
        if !self.shown.is_empty() {
            self.finish();
            print("\n");
            self.shown.clear();
        }
    }
}

/// Shows an announcement of the agent above the line that the person edits.
pub(crate) fn announce(said: &Announcement, printer: &Printer) {
    let session = clean(said.session.as_str());
    let words = clean(&said.content.words());
    printer.print(format!("[{session}] {words}\n"));
    flush();
}

/// Prints a line for each tool of the agent.
pub(crate) fn list_tools(host: &AgentHost) {
    for entry in host.tools().snapshot().entries() {
        let tool = entry.registration();
        print(&format!("{}: {}\n", tool.name, tool.description));
    }
}

/// Maximum number of statements that are listed below an answer.
const MAX_STATEMENTS: usize = 5;

/// Lists the statements of an answer that rest on text of others alone, a line each.
fn statements(outcome: &TurnOutcome) -> String {
    let all = &outcome.outside_statements;
    let line = |found: &OutsideStatement| {
        let (statement, source) = (clean(&found.statement), clean(&found.source));
        format!("  only {source} says: {statement}\n")
    };
    let mut lines: String = all.iter().take(MAX_STATEMENTS).map(line).collect();
    if let Some(more) = all.len().checked_sub(MAX_STATEMENTS + 1) {
        lines.push_str(&format!("  and {} more statements of others\n", more + 1));
    }
    lines
}

/// Summarizes the cost of an answer in one line.
fn summary(outcome: &TurnOutcome) -> String {
    let models = outcome.model_calls;
    let tools = outcome.calls.len();
    let turn = &outcome.turn;
    let tiers = outcome
        .tiers
        .iter()
        .map(|(tier, spent)| format!("{}: {}", tier.name(), costs(spent)));
    let costs = match outcome.tiers.len() {
        0 | 1 => costs(&outcome.spent()),
        _ => format!("{} ({})", costs(&outcome.spent()), tiers.collect::<Vec<_>>().join("; ")),
    };
    // An answer that was made of text of others says so: it may be wrong, and want something.
    let sources = outcome.label.sources();
    let sources: Vec<_> = sources
        .iter()
        .map(|source| source.trim_start_matches("tool:"))
        .collect();
    let rests_on = if sources.is_empty() {
        String::new()
    } else {
        format!("rests on text of others: {}, ", clean(&sources.join(", ")))
    };
    format!("[{rests_on}model calls: {models}, tool calls: {tools}, {costs}, turn: {turn}]")
}

/// Formats tokens and money. Tokens that the server does not count and an unknown cost are shown
/// as unknown, not as zero.
pub(crate) fn costs(spent: &Spent) -> String {
    let Usage {
        input,
        output,
        cached,
        reasoning,
        ..
    } = spent.usage;
    let part = |count: u64, name: &str| {
        if count == 0 {
            String::new()
        } else {
            format!(" ({count} {name})")
        }
    };
    let tokens = if spent.usage.total() == 0 {
        "tokens: unknown".to_owned()
    } else {
        let cached = part(cached, "cached");
        let reasoning = part(reasoning, "reasoning");
        format!("tokens: {input} in{cached}, {output} out{reasoning}")
    };
    match spent.price() {
        Some(price) => format!("{tokens}, cost: {price}"),
        None if spent.cost > MicroUsd(0) => format!("{tokens}, cost: more than {}", spent.cost),
        None => format!("{tokens}, cost: unknown"),
    }
}

/// Removes control characters, so that a model or a tool cannot control the screen.
pub(crate) fn clean(text: &str) -> String {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if control(c) { '\u{fffd}' } else { c }).collect()
}

/// Cleans a text and truncates it to one line.
pub(crate) fn cut(text: &str) -> String {
    let line: String = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns a duration in its two largest units.
pub(crate) fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m {}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

/// Prints on standard output. Errors are ignored: there is no other place to report them.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn flush() {
    // As above: a closed standard output is no reason to fail.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}
