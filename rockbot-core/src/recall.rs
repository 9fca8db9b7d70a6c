//! What an agent knows that may help with a message: gathered before each turn, from everybody who knows something.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;

use crate::chat::Provenance;
use crate::{BoxError, Principal, SessionId, TurnId};

/// Knows something that may help with a message: memories, skills, rules, notes.
///
/// All sources of a host are asked at once, before the model is. What they return the host shows to the model as far as
/// there is room, each source's best items first. A source that fails or takes too long is left out, and the turn goes on.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::chat::Provenance;
/// use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
///
/// /// Knows the opening hours.
/// #[derive(Debug)]
/// struct Hours;
///
/// #[async_trait]
/// impl ContextSource for Hours {
///     fn name(&self) -> &str {
///         "hours"
///     }
///
///     async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
///         let asked = query.topics().any(|topic| topic.contains("open"));
///         let hours = || ContextItem::new("Opening hours", "Monday to Friday, 9 to 17.", "asks when we are open", Provenance::HOST);
///         Ok(asked.then(hours).into_iter().collect())
///     }
/// }
/// ```
#[async_trait]
pub trait ContextSource: fmt::Debug + Send + Sync + 'static {
    /// What it is called, in logs and traces.
    fn name(&self) -> &str;

    /// What may help with the message, the best first.
    ///
    /// # Errors
    ///
    /// Fails when the source cannot be read.
    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError>;
}

/// A message with fewer characters says too little to search by: what it finds would only distract.
const SHORT: usize = 30;

/// The message that a turn begins with, and what was said before it; or, within the turn, something more that its model is to
/// do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextQuery {
    /// For whom the turn works.
    pub principal: Principal,
    /// The conversation.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The message, or what is to be done.
    pub text: String,
    /// What the same person said before it in the conversation, the newest first; before something more is done, the answer so
    /// far and then the message.
    pub earlier: Vec<String>,
}

impl ContextQuery {
    /// A message with nothing said before it.
    pub fn new(principal: Principal, session: SessionId, turn: TurnId, text: impl Into<String>) -> Self {
        Self {
            principal,
            session,
            turn,
            text: text.into(),
            earlier: Vec::new(),
        }
    }

    /// After these messages, the newest first.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Vec<String>) -> Self {
        self.earlier = earlier;
        self
    }

    /// Whether it is the first message of its conversation.
    pub fn is_first(&self) -> bool {
        self.earlier.is_empty()
    }

    /// What to search by, the most important first: the message and the last ones before it, without those of at most 30
    /// characters ("yes, do it"). Since earlier messages are searched again, what they found stays in sight while it
    /// matters, and a short answer does not lose the thread.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let said = std::iter::once(&self.text).chain(&self.earlier);
        said.map(|text| text.trim())
            .filter(|text| text.chars().nth(SHORT).is_some())
    }
}

/// Something that may help.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContextItem {
    /// Under which heading it stands, such as `Memories`; items of one heading stand together.
    pub heading: Cow<'static, str>,
    /// What the model reads.
    pub text: String,
    /// Why it is there, for people who look at a trace.
    pub reason: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// Whether it is an instruction of the agent's people, and no data.
    pub is_instruction: bool,
}

impl ContextItem {
    /// A piece of data.
    pub fn new(
        heading: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        reason: impl Into<String>,
        provenance: Provenance,
    ) -> Self {
        Self {
            heading: heading.into(),
            text: text.into(),
            reason: reason.into(),
            provenance,
            is_instruction: false,
        }
    }

    /// As an instruction, such as a rule that the user gave. It stands with the agent's instructions, before the
    /// conversation: so it should change seldom.
    #[must_use]
    pub fn as_instruction(mut self) -> Self {
        self.is_instruction = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, earlier: &[&str], expected: &[&str]) {
        let query = ContextQuery::new("p".into(), "s".into(), "t".into(), text);
        let query = query.with_earlier(earlier.iter().map(|&text| text.to_owned()).collect());
        assert_eq!(query.topics().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn short_messages_are_not_searched_by() {
        let (long, longer) = (
            "What did we say about the garden?",
            "And the fence, who was to paint it?",
        );
        check(long, &[longer], &[long, longer]);
        check("Yes, please, do it right away!", &[longer], &[longer]);
        check("Yes", &[], &[]);
    }
}
