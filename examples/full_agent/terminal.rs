//! A small user interface of the agent: messages go over the bus, as they would from any other
//! program.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use rockbot::message::{AgentReply, RequestError, UserFeedback, UserMessage, headers};
use rockbot::prelude::*;
use rockbot::{MessageId, TraceContext};
use tokio::sync::mpsc;

use crate::otlp::Otlp;
use crate::{reviews, status};

/// The session of this terminal.
pub(crate) const SESSION: &str = "terminal";

/// The person at the terminal.
pub(crate) struct Terminal {
    proxy: UserProxy,
    bus: Arc<dyn Bus>,
    /// The collector of spans, if there is one.
    traces: Option<Otlp>,
    is_interactive: bool,
    /// The id of the last answered message.
    answered: Option<MessageId>,
    /// Files that the next message shows.
    shown: Vec<MediaPart>,
}

impl Terminal {
    pub(crate) fn new(bus: &Arc<dyn Bus>, traces: Option<&Otlp>) -> Self {
        Self {
            traces: traces.cloned(),
            proxy: UserProxy::new(bus.clone(), "terminal"),
            bus: bus.clone(),
            is_interactive: io::stdin().is_terminal(),
            answered: None,
            shown: Vec::new(),
        }
    }

    /// Talks until the person leaves; stays pending where there is no terminal, as in a service.
    pub(crate) async fn talk(&mut self) {
        let mut lines = lines();
        // What the agent says unasked.
        let hearing = self
            .proxy
            .on_announcement(|said| show(&format!("[{}] {}\n", said.session, said.content.words())));
        let hearing = hearing.await;
        if let Err(error) = &hearing {
            self.note(&format!("what the agent says unasked is not heard here: {error}"));
        }
        loop {
            if self.is_interactive {
                show("> ");
            }
            match lines.recv().await.as_deref().map(str::trim) {
                None if self.is_interactive => return,
                None => std::future::pending().await,
                Some("/quit") => return,
                Some("") => {}
                Some("/good") => self.rate(true).await,
                Some("/bad") => self.rate(false).await,
                Some("/status") => self.status().await,
                Some(line) => match line.split_once(' ') {
                    Some(("/show", file)) => self.show_file(Path::new(file.trim())),
                    Some(("/review", text)) => self.review(text.trim()).await,
                    _ => self.answer(line).await,
                },
            }
        }
    }

    async fn answer(&mut self, text: &str) {
        match self.send(text).await {
            Ok((message, reply)) => {
                self.note(&reply.content.words());
                self.answered = Some(message);
            }
            Err(error) => self.note(&format!("there is no answer: {error}")),
        }
    }

    /// Sends a message, shows the agent's progress, and waits for the reply.
    async fn send(&mut self, text: &str) -> Result<(MessageId, AgentReply), RequestError> {
        // A trace begins here; the agent's log lines about this message carry it.
        let span = tracing::info_span!("user_message", otel.kind = "producer");
        let trace = self.traces.as_ref().and_then(|traces| traces.place(&span));
        let trace = trace.unwrap_or_else(TraceContext::begin);
        let shown = std::mem::take(&mut self.shown);
        let content = shown.into_iter().fold(Content::from(text), Content::with_media);
        let message = MessageEnvelope::of(&UserMessage::new(SESSION, content))?;
        let message = message.with_header(headers::TRACEPARENT, trace.traceparent());
        let id = message.message_id.clone();
        let reply = self
            .proxy
            .send_envelope(message, |report| eprintln!("… {}", report.content));
        Ok((id, reply.await?))
    }

    /// Keeps a file for the next message.
    fn show_file(&mut self, file: &Path) {
        match std::fs::read(file) {
            Ok(bytes) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                self.shown.push(MediaPart::of_file(name, bytes));
                self.note("it is shown with your next message");
            }
            Err(error) => self.note(&format!("`{}` cannot be read: {error}", file.display())),
        }
    }

    async fn status(&self) {
        match status::ask(&self.bus).await {
            Ok(status) => self.note(&format!("{} runs for {} s", status.agent, status.uptime_seconds)),
            Err(error) => self.note(&format!("the agent does not answer: {error}")),
        }
    }

    async fn review(&self, text: &str) {
        match reviews::ask(&self.bus, text).await {
            Ok(review) => self.note(&review.to_string()),
            Err(error) => self.note(&format!("there is no review: {error}")),
        }
    }

    async fn rate(&self, is_positive: bool) {
        let Some(message_id) = self.answered.clone() else {
            return self.note("there is no reply yet");
        };
        let feedback = UserFeedback::new(SESSION, message_id, is_positive);
        match self.proxy.feedback(&feedback).await {
            Ok(()) => self.note("thank you"),
            Err(error) => self.note(&format!("that did not reach the agent: {error}")),
        }
    }

    /// Shows a line.
    pub(crate) fn note(&self, line: &str) {
        show(&format!("{line}\n"));
    }
}

fn show(text: &str) {
    // A service keeps running when its standard output is closed.
    let mut screen = io::stdout();
    let _ = screen.write_all(text.as_bytes()).and_then(|()| screen.flush());
}

/// Prints a line, and fails if it cannot be written.
pub(crate) fn print(line: &str) -> Result<(), BoxError> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("cannot print: {error}").into())
}

/// Returns the lines that are typed. A thread of their own reads them, because a blocked read on
/// the runtime would delay the end of the process.
fn lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let typed = io::stdin().lock().split(b'\n').map_while(Result::ok);
        let mut lines = typed.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.try_for_each(|line| sender.blocking_send(line))
    });
    lines
}
