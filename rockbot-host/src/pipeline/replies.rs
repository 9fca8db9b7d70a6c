//! Validation of reply topics.

use rockbot_core::messaging::{MessageEnvelope, TopicPattern, check_topic};

/// The reply topics that a host accepts.
///
/// The sender chooses the reply topic, so it is untrusted input: it must not redirect the host's
/// answer to a topic whose subscribers take the host's word for it, the host itself included.
#[derive(Debug, Default)]
pub(crate) struct ReplyTopics {
    /// The topics that the host itself subscribes to. An answer there would be a new message for the
    /// host, and could loop.
    pub(crate) own: Vec<TopicPattern>,
    /// The allow-list. If it is empty, all topics but the host's own are accepted.
    pub(crate) allowed: Vec<TopicPattern>,
}

impl ReplyTopics {
    /// Checks the reply topic of a message; a message without one passes.
    ///
    /// # Errors
    ///
    /// Returns the reason if the topic is invalid, a topic of the host's own, or not in the
    /// allow-list.
    pub(super) fn check(&self, envelope: &MessageEnvelope) -> Result<(), String> {
        let Some(topic) = envelope.reply_to.as_deref() else {
            return Ok(());
        };
        check_topic(topic).map_err(|error| format!("its reply topic cannot be used: {error}"))?;
        let matches = |patterns: &[TopicPattern]| patterns.iter().any(|pattern| pattern.matches(topic));
        if matches(&self.own) {
            return Err(format!(
                "its reply topic `{topic}` is one that this agent takes messages from: reply elsewhere, or have the agent subscribe to narrower topics"
            ));
        }
        if self.allowed.is_empty() || matches(&self.allowed) {
            Ok(())
        } else {
            Err(format!(
                "its reply topic `{topic}` is not in the list of topics that this agent may reply to"
            ))
        }
    }
}
