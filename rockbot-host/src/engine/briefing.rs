//! What the model is told besides its instructions and the conversation: the time, and how to work.

use std::sync::Arc;

use jiff::Zoned;
use jiff::tz::TimeZone;
use rockbot_core::chat::{ChatMessage, ContextReason, Provenance, Role};
use rockbot_core::store::RulesStore;
use rockbot_core::{BoxError, Clock, Principal, Timestamp};

/// What every turn begins with, besides the agent's instructions and the conversation.
///
/// It stands just before the user's message, so that everything before it keeps the same bytes and providers can
/// keep it cached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Briefing {
    /// The date and the time, to the minute. Default true in [`Briefing::full`].
    pub date_time: bool,
    /// How many steps the model has, and that it should plan them. Only when it has tools. Default true in
    /// [`Briefing::full`].
    pub working_method: bool,
    /// Whether the model can write down what it is to do, with the tools `task_create` and `task_update`. The list is the
    /// turn's alone, and stands at the end of each request in which the model may call tools, so it stays in sight however
    /// long the turn gets. Only when it has other tools. Default true in [`Briefing::full`].
    pub task_list: bool,
    /// Where users are who have not said it: an IANA name such as `Europe/Paris`. `None`, the default, is the zone of the
    /// system. Who has said it, such as with the tool `set_timezone` of `rockbot-memory`, is where the host's [`RulesStore`]
    /// says, from the next turn on.
    pub time_zone: Option<String>,
}

impl Briefing {
    /// Nothing: the model sees the instructions, the conversation and the message alone.
    pub fn none() -> Self {
        Self {
            date_time: false,
            working_method: false,
            task_list: false,
            time_zone: None,
        }
    }

    /// Everything.
    pub fn full() -> Self {
        Self {
            date_time: true,
            working_method: true,
            task_list: true,
            time_zone: None,
        }
    }
}

impl Briefing {
    /// With the time of this zone for users who have not said where they are, an IANA name such as `Europe/Paris`.
    #[must_use]
    pub fn with_time_zone(mut self, name: impl Into<String>) -> Self {
        self.time_zone = Some(name.into());
        self
    }
}

/// A time zone that nobody knows.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is no time zone that this system knows: use an IANA name such as `Europe/Paris`")]
pub(crate) struct UnknownTimeZone {
    name: String,
    source: jiff::Error,
}

/// A briefing that is ready to be given.
#[derive(Debug)]
pub(crate) struct Briefer {
    briefing: Briefing,
    zone: TimeZone,
    /// Knows where users are.
    rules: Option<Arc<dyn RulesStore>>,
}

impl Briefer {
    pub(crate) fn new(briefing: Briefing, rules: Option<Arc<dyn RulesStore>>) -> Result<Self, UnknownTimeZone> {
        let zone = match &briefing.time_zone {
            None => TimeZone::system(),
            Some(name) => TimeZone::get(name).map_err(|source| UnknownTimeZone {
                name: name.clone(),
                source,
            })?,
        };
        Ok(Self { briefing, zone, rules })
    }

    /// Where `principal` is. What the store does not know keeps nobody from an answer.
    pub(super) async fn zone_of(&self, principal: &Principal) -> TimeZone {
        let Some(rules) = self.rules.as_ref().filter(|_| self.briefing.date_time) else {
            return self.zone.clone();
        };
        let kept = match rules.time_zone(principal).await {
            Ok(Some(name)) => TimeZone::get(&name).map_err(Into::into),
            Ok(None) => Ok(self.zone.clone()),
            Err(error) => Err(BoxError::from(error)),
        };
        kept.unwrap_or_else(|error| {
            tracing::warn!(%error, "the time zone of a user is not known; the one of the host stands in");
            self.zone.clone()
        })
    }

    /// The messages, in their order, for somebody in `zone`.
    pub(super) fn messages(
        &self,
        clock: &dyn Clock,
        zone: TimeZone,
        steps: Option<u32>,
    ) -> impl Iterator<Item = ChatMessage> {
        let host = |text, reason| ChatMessage::text_of(Role::User, text, Provenance::HOST).because(reason);
        let method = steps.filter(|_| self.briefing.working_method);
        let method = method.map(|steps| working_method(steps, self.briefing.task_list));
        let method = method.map(|text| host(text, ContextReason::WorkingMethod));
        let time = self.briefing.date_time.then(|| date_time(clock.now(), zone));
        let time = time.map(|text| host(text, ContextReason::DateTime));
        method.into_iter().chain(time)
    }
}

fn date_time(now: Timestamp, zone: TimeZone) -> String {
    let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let Ok(instant) = jiff::Timestamp::from_millisecond(millis) else {
        // A clock beyond the year 9999 has more to worry about.
        return "The user's local date and time is not known.".to_owned();
    };
    let now = Zoned::new(instant, zone);
    let zone = now.time_zone().iana_name().unwrap_or("local time");
    let time = now.strftime("%A, %-d %B %Y, %H:%M %:z");
    format!("The user's local date and time is: {time} ({zone})")
}

fn working_method(steps: u32, task_list: bool) -> String {
    let plan = match task_list {
        true => "plan them first with `task_create`",
        false => "plan them first",
    };
    format!(
        "You can call tools in up to {steps} rounds for the next message. If it needs several steps, {plan}, \
         take them one after the other, look at each result before the next step, and stop when the request is done. \
         Answer at once when no tool is needed."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockbot_core::testing::ManualClock;

    fn texts(briefing: Briefing, steps: Option<u32>) -> Vec<String> {
        let clock = ManualClock::new(Timestamp::from_millis(1_782_000_059_999));
        let briefer = Briefer::new(briefing, None).unwrap();
        let messages = briefer
            .messages(&clock, briefer.zone.clone(), steps)
            .collect::<Vec<_>>();
        messages.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn the_time_is_that_of_the_users_place_to_the_minute() {
        let briefing = Briefing {
            time_zone: Some("Asia/Kolkata".to_owned()),
            ..Briefing::full()
        };
        let time = "The user's local date and time is: Sunday, 21 June 2026, 05:30 +05:30 (Asia/Kolkata)";
        assert_eq!(texts(briefing.clone(), None), [time]);
        assert_eq!(texts(briefing, Some(50))[1], time);
    }

    #[test]
    fn nobody_is_told_what_was_not_asked_for() {
        assert_eq!(texts(Briefing::none(), Some(50)), [] as [&str; 0]);
    }

    #[test]
    fn a_zone_that_nobody_knows_is_named() {
        let briefing = Briefing {
            time_zone: Some("Mars/Olympus".to_owned()),
            ..Briefing::full()
        };
        let error = Briefer::new(briefing, None).unwrap_err().to_string();
        assert!(error.starts_with("`Mars/Olympus` is no time zone"), "{error}");
    }
}
