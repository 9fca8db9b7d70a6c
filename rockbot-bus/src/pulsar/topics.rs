//! Topics of the bus as topics of Pulsar.

use std::borrow::Cow;
use std::fmt::Write as _;

use rockbot_core::messaging::{BusError, check_topic, without_domain};

use super::settings::{PulsarSettings, TopicLayout};

impl PulsarSettings {
    /// Returns Pulsar's name of a topic of the bus.
    ///
    /// ```
    /// use rockbot_bus::pulsar::{PulsarSettings, TopicLayout};
    ///
    /// let settings = PulsarSettings::new();
    /// assert_eq!(settings.pulsar_topic("user.message")?, "persistent://public/default/user.message");
    /// let settings = settings.with_topic_layout(TopicLayout::TrustGraph);
    /// assert_eq!(settings.pulsar_topic("tg.request.joke")?, "non-persistent://tg/request/joke");
    /// let stated = "persistent://tg/request/joke";
    /// assert_eq!(settings.pulsar_topic(stated)?, stated);
    /// # Ok::<(), rockbot_core::messaging::BusError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no topic, or the layout has no place for it.
    pub fn pulsar_topic(&self, topic: &str) -> Result<String, BusError> {
        check_topic(topic)?;
        match self.topic_layout {
            TopicLayout::Namespace => Ok(self.own_topic(&self.topic_of_layout(topic))),
            TopicLayout::TrustGraph => {
                if let Some((domain @ ("persistent" | "non-persistent"), path)) = topic.split_once("://") {
                    return stated(domain, path).ok_or_else(|| no_place(topic));
                }
                let mut parts = topic.splitn(3, '.');
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(space), Some(class @ ("flow" | "request" | "response" | "notify")), Some(name)) => {
                        let domain = if class == "flow" {
                            "persistent"
                        } else {
                            "non-persistent"
                        };
                        Ok(format!("{domain}://{}/{class}/{}", encoded(space), encoded(name)))
                    }
                    _ => Err(no_place(topic)),
                }
            }
        }
    }

    /// Returns the text of a topic, pattern or subscription as the layout reads it: only the layout
    /// of TrustGraph has domains.
    pub(super) fn topic_of_layout<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.topic_layout {
            TopicLayout::Namespace => without_domain(text),
            TopicLayout::TrustGraph => text.into(),
        }
    }

    /// Returns Pulsar's name of a topic in the namespace of the settings.
    pub(super) fn own_topic(&self, name: &str) -> String {
        let tenant = encoded(&self.tenant);
        let namespace = encoded(&self.namespace);
        format!("persistent://{tenant}/{namespace}/{}", encoded(name))
    }

    /// Returns Pulsar's name of the subscription `name` to `topic`, both of the bus.
    ///
    /// TrustGraph's queue of a service on RabbitMQ has the name of its topic, a dot and the name that
    /// the subscription has on Pulsar.
    pub(super) fn subscription<'a>(&self, topic: &str, name: &'a str) -> &'a str {
        let rest = name.strip_prefix(topic).and_then(|rest| rest.strip_prefix('.'));
        match (self.topic_layout, rest) {
            (TopicLayout::TrustGraph, Some(rest)) if !rest.is_empty() => rest,
            _ => name,
        }
    }
}

/// Returns the name of a topic whose domain is stated.
fn stated(domain: &str, path: &str) -> Option<String> {
    let mut parts = path.splitn(3, '/');
    let space = parts.next()?;
    let class = parts.next()?;
    let name = parts.next()?;
    let is_whole = [space, class, name].iter().all(|part| !part.is_empty());
    is_whole.then(|| format!("{domain}://{}/{}/{}", encoded(space), encoded(class), encoded(name)))
}

/// Returns the topic that belongs to a subscription, beside the topic that it subscribes to.
/// Pulsar's own clients give the same names: `TOPIC-SUBSCRIPTION-RETRY` and
/// `TOPIC-SUBSCRIPTION-DLQ`.
pub(super) fn beside(topic: &str, subscription: &str, suffix: &str) -> String {
    let path = topic.split_once("://").map_or(topic, |(_, path)| path);
    format!("persistent://{path}-{}-{suffix}", encoded(subscription))
}

/// Returns `text` as a part of a topic's name, with other characters than letters, digits and
/// `-_.:=~` as `%XX`.
fn encoded(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b':' | b'=' | b'~' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            // Writing to a text cannot fail.
            byte => drop(write!(name, "%{byte:02X}")),
        }
    }
    name
}

fn no_place(topic: &str) -> BusError {
    BusError::Provider {
        context: format!(
            "the topic `{topic}` is none of TrustGraph's: write `tg.request.NAME`, or use the other layout"
        ),
        source: "a space, a class and a name are needed".into(),
    }
}
