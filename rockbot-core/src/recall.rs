//! Recall: knowledge that may help with a message, gathered from all context sources before each
//! turn.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;

use crate::chat::Provenance;
use crate::search::is_content_word;
use crate::shared::share;
use crate::store::Namespace;
use crate::{BoxError, Principal, SessionId, ToolName, TurnId};

/// A source of knowledge that may help with a message: memories, skills, rules, notes.
///
/// Before the first model call of a turn the host asks all its sources concurrently. It shows
/// their items to the model as far as the token budget allows, each source's best items first. A
/// source that fails or takes too long is skipped, and the turn goes on.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::chat::Provenance;
/// use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
///
/// /// Provides the opening hours.
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
    /// Returns the name of the source, for logs and traces.
    fn name(&self) -> &str;

    /// Returns the items that may help with the message, the best first.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read. The host logs it and goes on without the source.
    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError>;
}

share! {
    ContextSource {
        async gather<'a>(query: &'a ContextQuery) -> Result<Vec<ContextItem>, BoxError>;
        fn name() -> &str;
    }
}

/// Length, in characters, above which a message is searched by whatever its words are.
const MAX_SHORT_MESSAGE: usize = 30;

/// Words of greetings, thanks and consent, sorted. A short message that has no others is not
/// searched by: it says nothing, and its matches would only distract.
const SMALL_TALK: [&str; 46] = [
    "absolutely",
    "afternoon",
    "again",
    "ahead",
    "alright",
    "away",
    "bye",
    "cheers",
    "continue",
    "cool",
    "correct",
    "do",
    "done",
    "evening",
    "exactly",
    "fine",
    "go",
    "good",
    "great",
    "hello",
    "hey",
    "hi",
    "indeed",
    "more",
    "morning",
    "next",
    "nice",
    "night",
    "nope",
    "oh",
    "ok",
    "okay",
    "perfect",
    "please",
    "proceed",
    "right",
    "stop",
    "sure",
    "thank",
    "thanks",
    "wait",
    "welcome",
    "well",
    "yeah",
    "yep",
    "yes",
];

/// A query for context: the message that a turn begins with and the messages before it, or,
/// within a turn, a further task for its model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextQuery {
    /// The principal that the turn works for.
    pub principal: Principal,
    /// The conversation.
    pub session: SessionId,
    /// The namespace of the work in working memory; `None` means the namespace of the conversation.
    pub namespace: Option<Namespace>,
    /// The turn.
    pub turn: TurnId,
    /// The message, or the description of the further task.
    pub text: String,
    /// The earlier messages of the same user in the conversation, newest first. For a further task:
    /// the answer so far, then the message.
    pub earlier: Vec<String>,
    /// `true` for a further task within a turn, such as a follow-up. Default `false`.
    pub is_further_task: bool,
}

impl ContextQuery {
    /// Creates the query for a message without earlier messages.
    pub fn new(principal: Principal, session: SessionId, turn: TurnId, text: impl Into<String>) -> Self {
        Self {
            principal,
            session,
            namespace: None,
            turn,
            text: text.into(),
            earlier: Vec::new(),
            is_further_task: false,
        }
    }

    /// Sets the namespace of the work in working memory. Default: the namespace of the
    /// conversation.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Option<Namespace>) -> Self {
        self.namespace = namespace;
        self
    }

    /// Returns the namespace of the work in working memory.
    pub fn namespace(&self) -> Namespace {
        let of_session = || Namespace::of_session(&self.session);
        self.namespace.clone().unwrap_or_else(of_session)
    }

    /// Sets the earlier messages, newest first.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Vec<String>) -> Self {
        self.earlier = earlier;
        self
    }

    /// Marks the query as one for a further task within a turn.
    #[must_use]
    pub fn for_further_task(mut self) -> Self {
        self.is_further_task = true;
        self
    }

    /// Returns `true` if it is the first message of its conversation.
    pub fn is_first(&self) -> bool {
        self.earlier.is_empty()
    }

    /// Returns the texts to search by, the most important first: the message and the last messages
    /// before it, without messages of at most 30 characters that say nothing ("yes, do it", "17 *
    /// 23").
    ///
    /// Earlier messages are searched by again, so that their matches stay in the context while they
    /// matter, and a short answer does not lose the thread.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let messages = std::iter::once(&self.text).chain(&self.earlier);
        messages
            .map(|text| text.trim())
            .filter(|text| text.chars().nth(MAX_SHORT_MESSAGE).is_some() || says_something(text))
    }
}

/// Returns `true` if a short message has a word that a memory may be found by.
fn says_something(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    let mut words = words.map(|word| word.replace(['\'', '’'], "").to_lowercase());
    words.any(|word| {
        let is_word = word.chars().any(char::is_alphabetic);
        is_word && is_content_word(&word) && SMALL_TALK.binary_search(&word.as_str()).is_err()
    })
}

/// An item of context that may help with a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContextItem {
    /// The heading above it, such as `Memories`. Items with the same heading stand together.
    pub heading: Cow<'static, str>,
    /// The text that the model reads.
    pub text: String,
    /// The reason why it was chosen, for people who read a trace.
    pub reason: String,
    /// The provenance of the text, which decides how far it is trusted.
    pub provenance: Provenance,
    /// `true` for an instruction of the agent's operator or user, `false` for data. Default `false`.
    pub is_instruction: bool,
    /// `true` for guidance: how to do something, which the model follows where it fits. Default
    /// `false`.
    pub is_guidance: bool,
    /// Group of tools that the model needs to make use of the item, which is then active; `None` by
    /// default.
    pub activates: Option<ToolName>,
}

impl ContextItem {
    /// Creates an item that is data, not an instruction.
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
            is_guidance: false,
            activates: None,
        }
    }

    /// Marks the item as guidance, such as a skill or a guide of a trusted author: the model follows
    /// it where it fits. It stands just before the message, in a frame of its own for each heading.
    #[must_use]
    pub fn as_guidance(mut self) -> Self {
        self.is_guidance = true;
        self
    }

    /// Sets the [group of tools](crate::tool::ToolExposure) that the model needs to make use of the
    /// item. The group becomes active in the conversation when the item is shown.
    #[must_use]
    pub fn activating(mut self, group: impl Into<ToolName>) -> Self {
        self.activates = Some(group.into());
        self
    }

    /// Marks the item as an instruction, such as a rule that the user gave. It stands with the
    /// agent's instructions, before the conversation, where a change invalidates the prompt cache: it
    /// should change rarely.
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
    fn short_messages_are_searched_by_if_they_say_something() {
        let long = "What did we say about the garden?";
        let longer = "And the fence, who was to paint it?";
        check(long, &[longer], &[long, longer]);
        check("Yes, please, do it right away!", &[longer], &[longer]);
        check("Yes", &[], &[]);
        check("Hi, what's up with you?", &["OK, thanks!", "don’t do that"], &[]);
        check("What is 17 * 23?", &[], &[]);
        let cat = "What is my cat called?";
        let name = "Who is Miso?";
        check(cat, &["Good morning", name], &[cat, name]);
        assert!(SMALL_TALK.is_sorted());
    }
}
