//! Topics, and the patterns that match them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Maximum length of a topic or pattern, in bytes: the limit of brokers for a routing key.
const MAX_BYTES: usize = 255;

/// A pattern that matches topics. Dots separate segments; `*` matches exactly one segment, `#`
/// any number, including none.
///
/// ```
/// # use rockbot_core::messaging::TopicPattern;
/// let pattern = TopicPattern::new("billing.#")?;
/// assert!(pattern.matches("billing"));
/// assert!(pattern.matches("billing.invoice.paid"));
/// assert!(!TopicPattern::new("billing.*")?.matches("billing.invoice.paid"));
/// # Ok::<(), rockbot_core::messaging::TopicError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TopicPattern {
    text: Arc<str>,
    segments: Arc<[Segment]>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Segment {
    Word(Box<str>),
    One,
    Any,
}

impl TopicPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is empty or longer than 255 bytes, has an empty segment, or has a
    /// wildcard inside a longer segment, where it could never match.
    pub fn new(text: &str) -> Result<Self, TopicError> {
        let segments = segments(text)?.map(Segment::parse);
        let segments = segments.collect::<Option<Vec<_>>>();
        let segments = segments.ok_or_else(|| TopicError::MixedWildcard(text.into()))?;
        Ok(Self {
            text: text.into(),
            segments: segments.into(),
        })
    }

    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the pattern matches `topic`.
    pub fn matches(&self, topic: &str) -> bool {
        let mut at = 0;
        let mut rest = topic.split('.');
        // The position to backtrack to when the segments after the last `#` do not match: the `#` then
        // takes one more segment. Only the last `#` needs to be remembered, so the time is at most
        // pattern length times topic length.
        let mut resume = None;
        loop {
            let here = rest.clone();
            let Some(segment) = rest.next() else { break };
            match self.segments.get(at) {
                Some(Segment::Any) => {
                    at += 1;
                    rest = here;
                    resume = Some((at, rest.clone()));
                }
                Some(expected) if expected.accepts(segment) => at += 1,
                _ => {
                    let Some((after, mut swallowed)) = resume else {
                        return false;
                    };
                    swallowed.next();
                    at = after;
                    rest = swallowed.clone();
                    resume = Some((after, swallowed));
                }
            }
        }
        self.segments[at..].iter().all(|rest| *rest == Segment::Any)
    }
}

impl Segment {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::One),
            "#" => Some(Self::Any),
            word if word.contains(['*', '#']) => None,
            word => Some(Self::Word(word.into())),
        }
    }

    fn accepts(&self, segment: &str) -> bool {
        match self {
            Self::Word(word) => **word == *segment,
            Self::One | Self::Any => true,
        }
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Validates a topic to publish under. Bus implementations call it before they route.
///
/// # Errors
///
/// Returns an error if the topic is empty or longer than 255 bytes, has an empty segment, or has
/// a wildcard.
pub fn check_topic(topic: &str) -> Result<(), TopicError> {
    segments(topic)?;
    if topic.bytes().any(|byte| matches!(byte, b'*' | b'#')) {
        return Err(TopicError::Wildcard(topic.into()));
    }
    Ok(())
}

/// Returns the topic that `text` names on a bus without the domains of Pulsar: `space.class.name`
/// for `persistent://space/class/name` and `non-persistent://space/class/name`, and any other
/// text as it is.
///
/// Programs that share their configuration with others on Pulsar name topics so. Bus
/// implementations call it for topics, patterns and names of subscriptions, which begin with the
/// topic there.
///
/// ```
/// use rockbot_core::messaging::without_domain;
///
/// assert_eq!(without_domain("persistent://tg/request/joke"), "tg.request.joke");
/// assert_eq!(without_domain("tg.request.joke"), "tg.request.joke");
/// ```
pub fn without_domain(text: &str) -> Cow<'_, str> {
    let Some(("persistent" | "non-persistent", path)) = text.split_once("://") else {
        return text.into();
    };
    match path.splitn(3, '/').filter(|part| !part.is_empty()).count() {
        3 => path.replacen('/', ".", 2).into(),
        _ => text.into(),
    }
}

fn segments(text: &str) -> Result<std::str::Split<'_, char>, TopicError> {
    if text.len() > MAX_BYTES {
        return Err(TopicError::TooLong(text.len()));
    }
    if text.split('.').any(str::is_empty) {
        return Err(TopicError::EmptySegment(text.into()));
    }
    Ok(text.split('.'))
}

/// An error of a text that is not a topic or not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The text is empty, starts or ends with a dot, or has two dots in a row.
    #[error("topic `{0}` has an empty segment: put one word between dots")]
    EmptySegment(Box<str>),
    /// The topic has a wildcard. A message is published under one topic, not under a pattern.
    #[error("topic `{0}` has a wildcard: publish under a topic without `*` and `#`")]
    Wildcard(Box<str>),
    /// The pattern has a wildcard inside a segment. A wildcard must be a segment of its own.
    #[error("pattern `{0}` has a wildcard inside a segment: `*` and `#` stand alone between dots")]
    MixedWildcard(Box<str>),
    /// The text is longer than brokers accept.
    #[error("a topic of {0} bytes is too long: use at most 255")]
    TooLong(usize),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, topic: &str, expected: bool) {
        let pattern = TopicPattern::new(pattern).unwrap();
        assert_eq!(pattern.matches(topic), expected, "{pattern} on {topic}");
    }

    /// The definition of matching, one line per rule.
    fn matches_by_definition(pattern: &[&str], topic: &[&str]) -> bool {
        match (pattern, topic) {
            ([], []) => true,
            (["#", rest @ ..], _) => (0..=topic.len()).any(|n| matches_by_definition(rest, &topic[n..])),
            (["*", rest @ ..], [_, topic @ ..]) => matches_by_definition(rest, topic),
            ([word, rest @ ..], [first, topic @ ..]) => word == first && matches_by_definition(rest, topic),
            _ => false,
        }
    }

    #[test]
    fn star_is_one_segment_and_hash_is_any_number() {
        check("a.*", "a.b", true);
        check("a.*", "a", false);
        check("a.*", "a.b.c", false);
        check("a.#", "a", true);
        check("a.#", "a.b.c", true);
        check("#.c", "a.b.c", true);
        check("#.c", "c", true);
        check("a.#.b.*", "a.b.b.c", true);
        check("#", "a", true);
        check("*", "a.b", false);
    }

    #[test]
    fn texts_that_could_never_match_are_refused() {
        for (text, error) in [
            ("", TopicError::EmptySegment("".into())),
            ("a..b", TopicError::EmptySegment("a..b".into())),
            ("a.b*", TopicError::MixedWildcard("a.b*".into())),
        ] {
            assert_eq!(TopicPattern::new(text), Err(error));
        }
        assert_eq!(check_topic("a.*"), Err(TopicError::Wildcard("a.*".into())));
        assert_eq!(check_topic(&"a".repeat(256)), Err(TopicError::TooLong(256)));
        assert_eq!(check_topic("tool.invoke.mcp"), Ok(()));
    }

    #[test]
    fn topics_with_a_domain_need_three_parts() {
        for (text, topic) in [
            ("non-persistent://tg/flow/a/b.c", "tg.flow.a/b.c"),
            (
                "persistent://tg/request/joke.joke-service",
                "tg.request.joke.joke-service",
            ),
            ("persistent://tg/request", "persistent://tg/request"),
            ("persistent://tg//joke", "persistent://tg//joke"),
            ("amqp://tg/request/joke", "amqp://tg/request/joke"),
        ] {
            assert_eq!(without_domain(text), topic);
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_defined(
            pattern in proptest::collection::vec(prop_oneof!["[ab]", Just("*".into()), Just("#".into())], 1..7),
            topic in proptest::collection::vec("[ab]", 1..8),
        ) {
            let words = |list: &[String]| list.join(".");
            let by_definition = matches_by_definition(
                &pattern.iter().map(String::as_str).collect::<Vec<_>>(),
                &topic.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            let compiled = TopicPattern::new(&words(&pattern)).unwrap();
            prop_assert_eq!(compiled.matches(&words(&topic)), by_definition);
        }

        #[test]
        fn every_topic_is_a_pattern_of_itself(topic in "[a-z]{1,4}(\\.[a-z]{1,4}){0,5}") {
            prop_assert!(TopicPattern::new(&topic).unwrap().matches(&topic));
        }

        #[test]
        fn no_text_panics(pattern in ".{0,40}", topic in ".{0,40}") {
            let _ = check_topic(&topic);
            if let Ok(pattern) = TopicPattern::new(&pattern) {
                pattern.matches(&topic);
            }
        }
    }
}
