//! The briefing: messages of the host about the time and the working method, before the user's
//! message.
//!
//! The briefing (time, working method) is opt-in: a program that embeds an agent decides about
//! the host's messages to the model. Hosts with settings tell the date and time.

use std::sync::Arc;

use jiff::Zoned;
use jiff::tz::TimeZone;
use rockbot_core::chat::{ChatMessage, ContextReason, Provenance, Role};
use rockbot_core::store::RulesStore;
use rockbot_core::{BoxError, Clock, Principal, Timestamp};

/// The settings of the briefing that each turn begins with, besides the agent's instructions and
/// the conversation.
///
/// The briefing stands just before the user's message. The messages before it stay the same from
/// turn to turn, so that providers can keep them in their prompt caches. A host has no briefing
/// unless it is set, by [`AgentHostBuilder::briefing`](crate::AgentHostBuilder::briefing) or by
/// its settings: a program that embeds an agent decides about the messages that its agent reads.
/// A host with [settings](crate::AgentHostBuilder::settings) tells the date and the time.
///
/// # Examples
///
/// ```
/// use rockbot_host::Briefing;
///
/// let briefing = Briefing::full().with_time_zone("Europe/Paris");
/// assert!(briefing.date_time && briefing.working_method && briefing.task_list);
/// assert_eq!(briefing.time_zone.as_deref(), Some("Europe/Paris"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Briefing {
    /// `true` to give the model the date and the time, to the minute. Default true in
    /// [`Briefing::full`].
    pub date_time: bool,
    /// `true` to state how many steps the model has, and that it should plan them. Has an effect only
    /// for a model with tools. Default true in [`Briefing::full`].
    pub working_method: bool,
    /// `true` to let the model keep a task list, with the tools `task_create` and `task_update`.
    /// The list belongs to the turn, and stands at the end of each request whose model may call
    /// tools, so it stays in sight however long the turn gets. Has an effect only for a model with
    /// other tools. Default true in [`Briefing::full`].
    pub task_list: bool,
    /// Time zone of users who have not set their own: an IANA name such as `Europe/Paris`. `None`,
    /// the default, is the zone of the system. A user's own zone, which the tool `set_timezone` of
    /// `rockbot-memory` sets, is read from the host's [`RulesStore`] at the start of each turn.
    pub time_zone: Option<String>,
}

impl Briefing {
    /// Creates an empty briefing: the model sees the instructions, the conversation and the message
    /// alone.
    pub fn none() -> Self {
        Self {
            date_time: false,
            working_method: false,
            task_list: false,
            time_zone: None,
        }
    }

    /// Creates a briefing with all parts, in the zone of the system.
    pub fn full() -> Self {
        Self {
            date_time: true,
            working_method: true,
            task_list: true,
            time_zone: None,
        }
    }

    /// Sets the time zone of users who have not set their own, an IANA name such as `Europe/Paris`. A
    /// name that the system does not know is reported when the host is built.
    #[must_use]
    pub fn with_time_zone(mut self, name: impl Into<String>) -> Self {
        self.time_zone = Some(name.into());
        self
    }
}

/// The error of a time zone name that the system does not know.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not a known time zone: use an IANA name such as `Europe/Paris`")]
pub(crate) struct UnknownTimeZone {
    name: String,
    source: jiff::Error,
}

/// A briefing with its time zone resolved.
#[derive(Debug)]
pub(crate) struct ResolvedBriefing {
    briefing: Briefing,
    zone: TimeZone,
    /// The store of the users' own time zones.
    rules: Option<Arc<dyn RulesStore>>,
}

impl ResolvedBriefing {
    /// Resolves the time zone of `briefing`.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not know the time zone.
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

    /// Returns the time zone of users who have not set their own.
    pub(super) fn default_zone(&self) -> TimeZone {
        self.zone.clone()
    }

    /// Returns the time zone of a user. A store that fails, or that holds an unknown zone, does not
    /// fail the turn: the host's zone stands in.
    pub(super) async fn zone_of(&self, principal: &Principal) -> TimeZone {
        let Some(rules) = self.rules.as_ref().filter(|_| self.briefing.date_time) else {
            return self.zone.clone();
        };
        let stored = match rules.time_zone(principal).await {
            Ok(Some(name)) => TimeZone::get(&name).map_err(Into::into),
            Ok(None) => Ok(self.zone.clone()),
            Err(error) => Err(BoxError::from(error)),
        };
        stored.unwrap_or_else(|error| {
            tracing::warn!(%error, "time zone of the user unavailable; falling back to the zone of the host");
            self.zone.clone()
        })
    }

    /// Returns the messages for a user in `zone`, in order. `steps` is the model's number of steps,
    /// or `None` when it has no tools.
    pub(super) fn messages(
        &self,
        clock: &dyn Clock,
        zone: TimeZone,
        steps: Option<u32>,
    ) -> impl Iterator<Item = ChatMessage> {
        let host = |text, reason| ChatMessage::new(Role::User, text, Provenance::HOST).because(reason);
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
        // Beyond the year 9999; the turn continues without a date.
        return "The date and the time are not known.".to_owned();
    };
    let now = Zoned::new(instant, zone);
    let zone = now.time_zone().iana_name().unwrap_or("local time");
    let time = now.strftime("%A, %-d %B %Y, %H:%M %:z");
    format!("It is {time} ({zone})")
}

fn working_method(steps: u32, task_list: bool) -> String {
    let plan = if task_list {
        "plan them first with `task_create`"
    } else {
        "plan them first"
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
        let briefing = ResolvedBriefing::new(briefing, None).unwrap();
        let messages = briefing
            .messages(&clock, briefing.zone.clone(), steps)
            .collect::<Vec<_>>();
        messages.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn the_time_is_that_of_the_users_place_to_the_minute() {
        let briefing = Briefing {
            time_zone: Some("Asia/Kolkata".to_owned()),
            ..Briefing::full()
        };
        let time = "It is Sunday, 21 June 2026, 05:30 +05:30 (Asia/Kolkata)";
        assert_eq!(texts(briefing.clone(), None), [time]);
        assert_eq!(texts(briefing, Some(50))[1], time);
    }

    #[test]
    fn an_empty_briefing_has_no_messages() {
        assert_eq!(texts(Briefing::none(), Some(50)), [] as [&str; 0]);
    }

    #[test]
    fn an_unknown_zone_is_named_in_the_error() {
        let briefing = Briefing {
            time_zone: Some("Mars/Olympus".to_owned()),
            ..Briefing::full()
        };
        let error = ResolvedBriefing::new(briefing, None).unwrap_err().to_string();
        assert!(error.starts_with("`Mars/Olympus` is not a known time zone"), "{error}");
    }
}
