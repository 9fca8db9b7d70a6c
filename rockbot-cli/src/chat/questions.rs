//! Questions of the agent's parts to the person at the terminal, while an answer is made.
#![cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only MCP servers ask"))]

use tokio::sync::{mpsc, oneshot};

/// A question that waits for a line.
#[derive(Debug)]
pub(crate) struct Question {
    /// The text before the line.
    pub(crate) text: String,
    /// Takes the line, or nothing if no person answers.
    pub(crate) answer: oneshot::Sender<Option<String>>,
}

/// The side of the parts that ask.
#[derive(Debug, Clone)]
pub(crate) struct Questions(mpsc::Sender<Question>);

/// Creates both sides. One question waits at a time.
pub(crate) fn questions() -> (Questions, mpsc::Receiver<Question>) {
    let (sender, receiver) = mpsc::channel(1);
    (Questions(sender), receiver)
}

impl Questions {
    /// Asks the person, and returns the line; `None` if no person answers.
    pub(crate) async fn ask(&self, text: String) -> Option<String> {
        let (answer, line) = oneshot::channel();
        self.0.send(Question { text, answer }).await.ok()?;
        line.await.ok().flatten()
    }

    /// Asks the person for a yes.
    pub(crate) async fn confirm(&self, text: &str) -> bool {
        let line = self.ask(format!("{text} [y/N] ")).await;
        matches!(line.as_deref().map(str::trim), Some("y" | "Y" | "yes"))
    }
}
