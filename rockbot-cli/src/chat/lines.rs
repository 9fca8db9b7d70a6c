//! The lines of the person: edited at a terminal, with history and completion, and read as they
//! come elsewhere.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot::implement::tool::nearest_names;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, ExternalPrinter, Helper};
use tokio::sync::mpsc;

use super::{COMMANDS, terminal};

/// Maximum number of lines in the history.
const MAX_HISTORY: usize = 1_000;

/// The lines of standard input. They are read on a thread of their own, so that waiting for a line
/// can be cancelled.
pub(crate) struct Lines {
    /// The lines; `None` is the end of the input.
    lines: mpsc::Receiver<Option<String>>,
    /// The prompts of the editor; `None` where lines are read as they come.
    prompts: Option<std::sync::mpsc::Sender<Prompt>>,
    /// `true` while the editor shows a prompt.
    is_prompted: bool,
    printer: Printer,
    /// The mode of the terminal before it is edited.
    #[cfg(unix)]
    mode: Option<rustix::termios::Termios>,
}

/// A prompt of the editor.
struct Prompt {
    text: String,
    /// The beginning of the line.
    initial: String,
    /// `true` if the line goes into the history.
    is_kept: bool,
}

/// Prints lines above the line that the person edits.
#[derive(Clone)]
pub(crate) struct Printer(Option<Arc<Mutex<Box<dyn ExternalPrinter + Send>>>>);

impl Printer {
    /// Prints a text about the program, which ends with a line break: above the edited line, else
    /// on standard error.
    pub(crate) fn tell(&self, text: String) {
        if self.0.is_some() {
            self.print(text);
        } else {
            eprint!("{text}");
        }
    }

    /// Prints a text of the agent, which ends with a line break, on standard output.
    pub(crate) fn print(&self, text: String) {
        let Some(printer) = &self.0 else {
            return terminal::print(&text);
        };
        // A printer whose terminal is gone has nobody to tell.
        let _ = printer.lock().unwrap_or_else(PoisonError::into_inner).print(text);
    }
}

impl Lines {
    /// Opens standard input, with the history in `history`. Lines are edited where both input and
    /// output are a terminal.
    pub(crate) fn open(history: Option<&Path>) -> Self {
        let (sender, lines) = mpsc::channel(1);
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let editor = is_terminal.then(|| editor(history)).flatten();
        #[cfg(unix)]
        let mode = rustix::termios::tcgetattr(std::io::stdin()).ok();
        let (prompts, printer) = match editor {
            Some((editor, printer)) => {
                let (prompts, shown) = std::sync::mpsc::channel();
                let history = history.map(Path::to_owned);
                std::thread::spawn(move || edit(editor, shown.iter(), &sender, history.as_deref()));
                (Some(prompts), Printer(Some(Arc::new(Mutex::new(printer)))))
            }
            None => {
                std::thread::spawn(move || read(&sender));
                (None, Printer(None))
            }
        };
        Self {
            lines,
            prompts,
            is_prompted: false,
            printer,
            #[cfg(unix)]
            mode,
        }
    }

    /// Returns no line, ever: the input is not read.
    pub(crate) fn none() -> Self {
        Self {
            lines: mpsc::channel(1).1,
            prompts: None,
            is_prompted: false,
            printer: Printer(None),
            #[cfg(unix)]
            mode: None,
        }
    }

    /// Returns the printer of lines above the edited one.
    pub(crate) fn printer(&self) -> Printer {
        self.printer.clone()
    }

    /// Returns the next line; `None` at the end of the input, at Ctrl-C and at Ctrl-D. The wait can
    /// be cancelled: the next one goes on with the same prompt. With `is_kept` the line goes into
    /// the history.
    pub(crate) async fn next(&mut self, prompt: &str, is_kept: bool) -> Option<String> {
        self.next_of(prompt, "", is_kept).await
    }

    /// Returns the next line, which begins as `initial` where it is edited.
    pub(crate) async fn next_of(&mut self, prompt: &str, initial: &str, is_kept: bool) -> Option<String> {
        match &self.prompts {
            Some(prompts) if !self.is_prompted => {
                let (text, initial) = (prompt.to_owned(), initial.to_owned());
                prompts.send(Prompt { text, initial, is_kept }).ok()?;
                self.is_prompted = true;
            }
            // A question while the person edits: the line that is edited answers it.
            Some(_) if !is_kept => self.printer.print(format!("{prompt}\n")),
            Some(_) => {}
            None if std::io::stdin().is_terminal() => {
                eprint!("{prompt}");
                let _ = std::io::stderr().flush();
            }
            None => {}
        }
        let line = self.lines.recv().await.flatten();
        self.is_prompted = false;
        line
    }

    /// Discards what was typed and not taken: it does not answer a question that comes later.
    pub(crate) fn discard(&mut self) {
        #[cfg(unix)]
        if self.prompts.is_some() && !self.is_prompted {
            let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        }
        while self.lines.try_recv().is_ok() {
            self.is_prompted = false;
        }
    }
}

#[cfg(unix)]
impl Drop for Lines {
    /// Gives the terminal its mode back: the thread may be in the middle of a line.
    fn drop(&mut self) {
        if let Some(mode) = &self.mode {
            let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, mode);
        }
    }
}

type Edited = (Editor<Commands, FileHistory>, Box<dyn ExternalPrinter + Send>);

/// Opens the editor; `None` if the terminal cannot be edited.
fn editor(history: Option<&Path>) -> Option<Edited> {
    let config = Config::builder().max_history_size(MAX_HISTORY).ok()?.build();
    let mut editor = Editor::with_config(config).ok()?;
    editor.set_helper(Some(Commands));
    if let Some(file) = history {
        // Without a history it begins anew.
        let _ = editor.load_history(file);
    }
    let printer = editor.create_external_printer().ok()?;
    Some((editor, Box::new(printer)))
}

/// Edits a line for each prompt.
fn edit(
    mut editor: Editor<Commands, FileHistory>,
    prompts: impl Iterator<Item = Prompt>,
    lines: &mpsc::Sender<Option<String>>,
    history: Option<&Path>,
) {
    for prompt in prompts {
        let line = editor.readline_with_initial(&prompt.text, (&prompt.initial, "")).ok();
        let kept = line.as_deref().filter(|line| prompt.is_kept && !line.trim().is_empty());
        if let (Some(line), Some(file)) = (kept, history) {
            // A history that cannot be written is not worth a word in the conversation.
            let _ = editor.add_history_entry(line);
            let _ = std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")));
            let _ = editor.append_history(file);
        }
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads lines as they come.
fn read(lines: &mpsc::Sender<Option<String>>) {
    let input = std::io::stdin().lock().split(b'\n').map_while(Result::ok);
    // Bytes that are no UTF-8 are shown as such: neither they nor the lines after them are lost.
    for line in input.map(|line| String::from_utf8_lossy(&line).into_owned()) {
        if lines.blocking_send(Some(line)).is_err() {
            return;
        }
    }
}

/// The completion of commands.
struct Commands;

impl Completer for Commands {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, completed(line.get(..at).unwrap_or(line))))
    }
}

/// Returns the commands that begin with `typed`.
fn completed(typed: &str) -> Vec<String> {
    if !typed.starts_with('/') {
        return Vec::new();
    }
    let fitting = commands().filter(|command| command.starts_with(typed));
    fitting.map(ToOwned::to_owned).collect()
}

/// Returns the names of the commands.
fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.lines().filter_map(|line| line.split_whitespace().next())
}

/// Asks whether the nearest command was meant, if one is near.
pub(crate) fn meant(typed: &str) -> String {
    let nearest = nearest_names(typed, commands(), 1).pop();
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

impl Hinter for Commands {
    type Hint = String;
}
impl Highlighter for Commands {}
impl Validator for Commands {}
impl Helper for Commands {}

#[cfg(test)]
mod tests {
    use super::{completed, meant};

    #[test]
    fn commands_are_completed() {
        assert_eq!(completed("/dr"), ["/dreams"]);
        assert_eq!(completed("/sess"), ["/sessions", "/session"]);
        assert_eq!(completed("dr"), Vec::<String>::new());
        assert_eq!(meant("/modle"), "; did you mean `/model`?");
        assert_eq!(meant("/xyz"), "");
    }
}
