//! The ids of queues, in the two spellings that TrustGraph uses.

use std::fmt;
use std::str::FromStr;

use rockbot_core::messaging::{TopicError, check_topic};

/// The space of queues whose id names none.
const SPACE: &str = "tg";

/// The id of a queue of a tool service: a class, a space and a name.
///
/// Its text is `request:tg:joke`, or `non-persistent://tg/request/joke`, which means the same. On a
/// [`Bus`](rockbot_core::messaging::Bus) it is the [topic](QueueId::topic) `tg.request.joke`.
///
/// On Pulsar the queues of the class `flow` are persistent, and no others. A text that states the
/// opposite, such as `persistent://tg/request/joke`, is the id of another queue there: its topic
/// is that text, which other buses take [without its
/// domain](rockbot_core::messaging::without_domain), as `tg.request.joke`.
///
/// ```
/// use rockbot_remote::tool_services::QueueId;
///
/// let queue: QueueId = "non-persistent://tg/request/joke".parse()?;
/// assert_eq!(queue, QueueId::request("joke")?);
/// assert_eq!((queue.to_string(), queue.topic()), ("request:tg:joke".into(), "tg.request.joke".into()));
/// # Ok::<(), rockbot_remote::tool_services::QueueIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    class: QueueClass,
    space: Box<str>,
    name: Box<str>,
    /// The domain on Pulsar, if it differs from the domain of the class.
    domain: Option<&'static str>,
}

/// The class of a queue: the purpose of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum QueueClass {
    Flow,
    Request,
    Response,
    Notify,
}

impl QueueClass {
    const ALL: [Self; 4] = [Self::Flow, Self::Request, Self::Response, Self::Notify];

    fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Request => "request",
            Self::Response => "response",
            Self::Notify => "notify",
        }
    }

    /// Returns the domain of its queues on Pulsar.
    fn domain(self) -> &'static str {
        match self {
            Self::Flow => "persistent",
            Self::Request | Self::Response | Self::Notify => "non-persistent",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl QueueId {
    /// Creates the id of the queue for requests to the service `name`, in the space `tg`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name cannot be part of a topic.
    pub fn request(name: &str) -> Result<Self, QueueIdError> {
        Self::checked(QueueClass::Request, SPACE, name, None)
    }

    /// Creates the id of the queue for the replies of the service `name`, in the space `tg`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name cannot be part of a topic.
    pub fn response(name: &str) -> Result<Self, QueueIdError> {
        Self::checked(QueueClass::Response, SPACE, name, None)
    }

    /// Creates the id of a queue of broadcasts, in the space `tg`.
    pub(super) fn notify(name: &str) -> Result<Self, QueueIdError> {
        Self::checked(QueueClass::Notify, SPACE, name, None)
    }

    /// Returns the topic of the queue on a bus: space, class and name, joined by dots; or its text,
    /// if that states another domain than the domain of its class.
    pub fn topic(&self) -> String {
        match self.domain {
            None => format!("{}.{}.{}", self.space, self.class.name(), self.name),
            Some(_) => self.to_string(),
        }
    }

    fn checked(class: QueueClass, space: &str, name: &str, domain: Option<&'static str>) -> Result<Self, QueueIdError> {
        let id = Self {
            class,
            space: space.into(),
            name: name.into(),
            domain: domain.filter(|domain| *domain != class.domain()),
        };
        match check_topic(&id.topic()) {
            Ok(()) => Ok(id),
            Err(cause) => Err(QueueIdError::Topic {
                id: id.to_string(),
                cause,
            }),
        }
    }
}

impl FromStr for QueueId {
    type Err = QueueIdError;

    /// Parses either spelling.
    fn from_str(text: &str) -> Result<Self, QueueIdError> {
        let form = || QueueIdError::Form(text.to_owned());
        let url = text.split_once("://");
        let domain = match url {
            Some(("persistent", _)) => Some("persistent"),
            Some(("non-persistent", _)) => Some("non-persistent"),
            Some(_) => return Err(form()),
            None => None,
        };
        let (class, space, name) = match url {
            Some((_, path)) => {
                let mut parts = path.splitn(3, '/');
                let space = parts.next();
                (parts.next(), space, parts.next())
            }
            None => {
                // A name may have colons of its own: `request:tg:default:joke`.
                let mut parts = text.splitn(3, ':');
                (parts.next(), parts.next(), parts.next())
            }
        };
        let class = class.and_then(QueueClass::named).ok_or_else(form)?;
        let (space, name) = space.zip(name).ok_or_else(form)?;
        Self::checked(class, space, name, domain)
    }
}

/// Writes the form `class:space:name`, or `domain://space/class/name` if the domain differs from
/// the domain of the class.
impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.name();
        let space = &self.space;
        let name = &self.name;
        match self.domain {
            None => write!(f, "{class}:{space}:{name}"),
            Some(domain) => write!(f, "{domain}://{space}/{class}/{name}"),
        }
    }
}

/// An error of a text that is no id of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueIdError {
    /// The text has neither of the two forms.
    #[error("`{0}` is no queue id: write `request:tg:NAME` or `non-persistent://tg/request/NAME`")]
    Form(String),
    /// Space or name cannot be part of a topic.
    #[error("`{id}` is no queue id: {cause}")]
    Topic {
        /// The id.
        id: String,
        /// The error in the topic.
        cause: TopicError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, id: &str, topic: &str) {
        let queue: QueueId = text.parse().unwrap();
        assert_eq!((queue.to_string(), queue.topic()), (id.to_owned(), topic.to_owned()));
    }

    #[test]
    fn both_spellings_are_read() {
        check("request:tg:joke", "request:tg:joke", "tg.request.joke");
        check(
            "non-persistent://tg/response/joke",
            "response:tg:joke",
            "tg.response.joke",
        );
        check("persistent://tg/flow/joke", "flow:tg:joke", "tg.flow.joke");
        for other in ["persistent://tg/request/joke", "non-persistent://tg/flow/joke"] {
            check(other, other, other);
        }
        check(
            "request:tg:default:joke",
            "request:tg:default:joke",
            "tg.request.default:joke",
        );
        check("notify:mine:a.b", "notify:mine:a.b", "mine.notify.a.b");
    }

    #[test]
    fn other_texts_are_refused_with_the_form_to_write() {
        for text in [
            "",
            "joke",
            "request:tg",
            "queue:tg:joke",
            "http://tg/request/joke",
            "persistent://tg/request",
        ] {
            let error = text.parse::<QueueId>().unwrap_err();
            assert_eq!(error, QueueIdError::Form(text.to_owned()));
        }
        let error = QueueId::request("a..b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`request:tg:a..b` is no queue id: topic `tg.request.a..b` has an empty segment: put one word between dots"
        );
    }
}
