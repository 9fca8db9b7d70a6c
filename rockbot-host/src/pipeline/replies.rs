//! Where a sender may have its answer put.

use rockbot_core::messaging::{MessageEnvelope, TopicPattern, check_topic};

/// Which reply topics a host accepts. A reply topic is the sender's own choice, and must not turn the host's answer
/// into a message to somebody who believes the host.
#[derive(Debug, Default)]
pub(crate) struct ReplyTopics {
    /// What the host itself subscribes to: an answer there would be work for itself.
    pub(crate) own: Vec<TopicPattern>,
    /// The only topics that are accepted; all others are when this is empty.
    pub(crate) allowed: Vec<TopicPattern>,
}

impl ReplyTopics {
    /// Says what is wrong with the reply topic, if anything.
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
        match self.allowed.is_empty() || matches(&self.allowed) {
            true => Ok(()),
            false => Err(format!(
                "its reply topic `{topic}` is none that this agent may answer under"
            )),
        }
    }
}
