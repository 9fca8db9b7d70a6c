//! Shows a turn while it runs, and prompts the person at the terminal.

use std::io::{IsTerminal, Write};
use std::path::Path;

use rockbot::chat::{MicroUsd, Spent, Usage};
use rockbot::prelude::*;
use rockbot::turn::{Announcement, ApprovalRequest};
use rockbot::{Clock as _, SystemClock};

use super::ctrl_c;
use super::lines::{Lines, Printer};
use super::questions::Question;

/// Maximum number of characters shown of a tool's arguments or result.
const SHOWN: usize = 120;

/// The terminal.
pub(crate) struct Terminal {
    lines: Lines,
    interactive: bool,
    one_shot: bool,
    /// The part of the current answer that is on the screen.
    shown: String,
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
        }
    }

    /// Prompts for the next message; returns `None` at the end of the input.
    pub(crate) async fn prompt(&mut self, prompt: &str) -> Option<String> {
        self.lines.next(prompt, true).await
    }

    /// Returns the printer of lines above the line that the person edits.
    pub(crate) fn printer(&self) -> Printer {
        self.lines.printer()
    }

    /// Returns `true` if a person is at the terminal, who can be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Asks the person to approve a tool call; returns `false` where there is no person to ask.
    /// Lines that are piped in are questions, and none of them is taken for an approval.
    pub(crate) async fn approve(&mut self, ask: &ApprovalRequest) -> bool {
        let asked_by: String = ask.asked_by.iter().map(|agent| format!(" (for {agent})")).collect();
        let asked = format!("\n? {}{asked_by} {}", ask.tool, clean(&ask.arguments));
        if self.interactive {
            self.printer().print(format!("{asked}\n"));
        } else {
            eprintln!("{asked}\n  refused: there is no terminal to ask at; --yes approves every call");
        }
        self.confirm("  Run it?").await
    }

    /// Asks the person for a yes. Where there is no person, nothing is agreed to.
    pub(crate) async fn confirm(&mut self, question: &str) -> bool {
        if !self.interactive {
            return false;
        }
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
                print(&clean(text));
                self.shown.push_str(text);
                flush();
            }
            TurnProgress::Retract => self.begin("… the model starts over"),
            TurnProgress::ToolStarted { tool, arguments, .. } => self.begin(&format!("→ {tool} {}", cut(arguments))),
            TurnProgress::ToolProgress { tool, text, .. } => self.begin(&format!("  {tool}: {}", cut(text))),
            TurnProgress::ToolFinished {
                tool,
                is_error,
                content,
                ..
            } => {
                self.begin(&format!(
                    "{} {tool}: {}",
                    if *is_error { "✗" } else { "✓" },
                    cut(content)
                ));
            }
            TurnProgress::Note(text) => self.begin(&format!("note: {}", clean(text))),
            TurnProgress::Waiting { until, why } => {
                let left = until.map(|until| until.since(SystemClock.now()));
                self.begin(&format!("… {} (Ctrl-C stops)", clean(&why.in_words(left))));
            }
            _ => {}
        }
    }

    /// Shows the end of a turn, and returns whether it had an answer.
    pub(crate) fn end(&mut self, outcome: &TurnOutcome) -> bool {
        if !outcome.is_answer() {
            self.begin(&format!("error: {}", clean(&outcome.text)));
            return false;
        }
        if self.shown == outcome.text {
            print("\n");
        } else {
            self.begin_line();
            print(&format!("{}\n", clean(&outcome.text)));
        }
        self.shown.clear();
        eprintln!("{}", summary(outcome));
        true
    }

    /// Begins a line about the turn, apart from the answer.
    fn begin(&mut self, line: &str) {
        self.begin_line();
        eprintln!("{line}");
    }

    fn begin_line(&mut self) {
        if !self.shown.is_empty() {
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
    format!("[model calls: {models}, tool calls: {tools}, {costs}, turn: {turn}]")
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

/// Prints on standard output. Errors are ignored: there is no other place to report them.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn flush() {
    // As above: a closed standard output is no reason to fail.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}
