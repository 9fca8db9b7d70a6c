//! The topics of messages between agents, and the settings that name them.

use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::messaging::check_topic;

/// Topic of the wish for announcements. The original has none.
const WANTED: &str = "discovery.wanted";

/// The topics, from the section `A2A`.
#[derive(Debug, Clone)]
pub(super) struct Topics {
    task: String,
    cancel: String,
    response: String,
    /// Topic of all statuses.
    pub(super) status: String,
    /// Topic of all announcements.
    pub(super) discovery: String,
}

impl Topics {
    /// Reads the topics from the settings.
    pub(super) fn read(config: &Config) -> Result<Self, BoxError> {
        let section = config.section("A2A")?;
        let topic = |name: &str, default: &str| -> Result<String, BoxError> {
            let topic = section.get_or(name, default.to_owned())?;
            let checked = check_topic(&topic).map(|()| topic);
            checked.map_err(|error| format!("`{}`: {error}", section.path(name)).into())
        };
        Ok(Self {
            task: topic("TaskTopic", "agent.task")?,
            cancel: topic("CancelTopic", "agent.task.cancel")?,
            response: topic("CallerResultTopic", "agent.response")?,
            status: topic("StatusTopic", "agent.task.status")?,
            discovery: topic("DiscoveryTopic", "discovery.announce")?,
        })
    }

    /// Returns the topic of tasks for an agent.
    pub(super) fn task_of(&self, agent: &str) -> String {
        format!("{}.{agent}", self.task)
    }

    /// Returns the topic of cancellations of an agent's tasks.
    pub(super) fn cancel_of(&self, agent: &str) -> String {
        format!("{}.{agent}", self.cancel)
    }

    /// Returns the topic of answers to an agent.
    pub(super) fn response_of(&self, agent: &str) -> String {
        format!("{}.{agent}", self.response)
    }

    /// Returns the topic of answers to a caller that names none.
    pub(super) fn response(&self) -> &str {
        &self.response
    }

    /// Returns `true` if an answer may be published under `topic`: a message must not lead the
    /// answer elsewhere.
    pub(super) fn is_response(&self, topic: &str) -> bool {
        let below = topic.strip_prefix(&self.response);
        below.is_some_and(|below| below.is_empty() || below.starts_with('.')) && check_topic(topic).is_ok()
    }

    /// Returns the topic of the wish for announcements.
    pub(super) fn wanted() -> &'static str {
        WANTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_the_original_s_and_answers_go_nowhere_else() {
        let topics = Topics::read(&Config::new()).unwrap();
        let all = [
            topics.task_of("Bob"),
            topics.cancel_of("Bob"),
            topics.response_of("main"),
            topics.status.clone(),
            topics.discovery.clone(),
        ];
        let expected = [
            "agent.task.Bob",
            "agent.task.cancel.Bob",
            "agent.response.main",
            "agent.task.status",
            "discovery.announce",
        ];
        assert_eq!(all, expected);
        let allowed = [
            "agent.response",
            "agent.response.x",
            "agent.responses",
            "user.message",
            "agent.response.*",
        ];
        assert_eq!(
            allowed.map(|topic| topics.is_response(topic)),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn a_wrong_topic_is_named() {
        let config = Config::new()
            .with_text("a.toml", "[A2A]\nTaskTopic = \"a..b\"")
            .unwrap();
        let error = Topics::read(&config).unwrap_err().to_string();
        assert!(error.starts_with("`A2A.TaskTopic`: "), "{error}");
    }
}
