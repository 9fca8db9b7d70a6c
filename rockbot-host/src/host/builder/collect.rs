//! The message side of a host: from its settings to the subscriptions and the pipeline behind them.

use std::sync::Arc;

use rockbot_core::messaging::{
    Bus, Disposition, MessageContext, MessageContexts, MessageRoute, SubscribeOptions, TopicPattern, check_topic,
};
use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
use rockbot_core::subsystem::{MergedDeclarations, Parts, SharedSubscription};
use rockbot_core::tool::{CallTranslator, ToolInvokeRequest, ToolOutcomeRequest};
use rockbot_core::{AgentIdentity, BoxError, IdSource};
use tokio_util::sync::CancellationToken;

use super::error::{BuildError, MessageProblem, note};
use super::messages::MessageOptions;
use crate::effects::EffectLedger;
use crate::engine::{ReplySender, TurnService};
use crate::handlers::{
    self, BusAnnouncer, BusReplySender, Cancellations, HandlerDeps, Outcomes, RunningCalls, TOOL_TOPIC,
    ToolInvokeHandler, cancel_subscription, outcome_subscription, tool_subscription,
};
use crate::host::lifecycle::{BusSide, PendingSubscription};
use crate::layer::Layers;
use crate::media_library::MediaLibrary;
use crate::pipeline::{HostRoute, Pipeline, ReplyTopics, Router};
use crate::telemetry::Traces;
use crate::workers::{Announcer, ToolCallCancelled};

/// The settings of the message side.
#[derive(Default)]
pub(super) struct MessageSettings {
    pub(super) bus: Option<Arc<dyn Bus>>,
    /// `true` when other components use the bus, too: then the host leaves it open.
    pub(super) bus_is_shared: bool,
    pub(super) routes: Vec<MessageRoute>,
    pub(super) subscriptions: Vec<(String, SubscribeOptions)>,
    /// The subscriptions that hosts of other names share.
    pub(super) shared_subscriptions: Vec<SharedSubscription>,
    pub(super) serves_users: bool,
    pub(super) serves_tools: bool,
    pub(super) announces_tools: bool,
    /// `true` if a subsystem translates calls of other programs into calls of the host's tools.
    pub(super) translates_calls: bool,
    pub(super) options: MessageOptions,
    pub(super) layers: Layers<MessageContext, Disposition>,
}

/// The topic patterns of a host: its subscriptions, and the patterns of topics that it replies
/// under.
pub(super) struct Patterns {
    pub(super) pending: Vec<PendingSubscription>,
    pub(super) replies: ReplyTopics,
}

impl MessageSettings {
    /// Merges the declarations of subsystems, checks all patterns, and returns them.
    pub(super) fn patterns(
        &mut self,
        identity: &AgentIdentity,
        declared: &mut MergedDeclarations,
        problems: &mut Vec<BoxError>,
    ) -> Patterns {
        self.merge(identity, declared);
        self.subscribe_to_handled_topics(problems);
        problems.extend(self.missing().map(BoxError::from));
        let pending = self.pending(identity, problems);
        problems.extend(self.own_replies(&pending).map(BoxError::from));
        let allowed = std::mem::take(&mut self.options.reply_topics);
        let replies = ReplyTopics {
            own: pending
                .iter()
                .map(|subscription| subscription.pattern.clone())
                .collect(),
            allowed: allowed
                .iter()
                .filter_map(|pattern| note(TopicPattern::new(pattern), problems))
                .collect(),
        };
        Patterns { pending, replies }
    }

    /// Adds the declarations of subsystems, and the subscriptions of the host's services.
    fn merge(&mut self, identity: &AgentIdentity, declared: &mut MergedDeclarations) {
        self.routes.append(&mut declared.routes);
        self.subscriptions.append(&mut declared.subscriptions);
        self.shared_subscriptions.append(&mut declared.shared_subscriptions);
        if self.serves_users {
            self.subscriptions.extend(handlers::user_subscriptions());
        }
        if self.serves_tools {
            self.subscriptions.push(tool_subscription(&self.tool_topic(identity)));
        }
        if self.runs_calls() {
            self.subscriptions
                .extend([cancel_subscription(), outcome_subscription()]);
        }
    }

    /// Returns `true` if the host runs calls of other programs.
    pub(super) fn runs_calls(&self) -> bool {
        self.serves_tools || self.translates_calls
    }

    /// Takes the subscriptions, and returns each pattern once: users, tools and subsystems may name
    /// the same.
    fn pending(&mut self, identity: &AgentIdentity, problems: &mut Vec<BoxError>) -> Vec<PendingSubscription> {
        let mut pending: Vec<PendingSubscription> = Vec::new();
        for (pattern, options) in std::mem::take(&mut self.subscriptions) {
            let Some(pattern) = note(TopicPattern::new(&pattern), problems) else {
                continue;
            };
            match pending.iter().find(|known| known.pattern == pattern) {
                Some(known) if known.options != options => problems.push(MessageProblem::Options(pattern).into()),
                Some(_) => {}
                None => {
                    let mut name = identity.subscription_name(pattern.as_str());
                    if options.ephemeral {
                        // It ends with this instance, so no other instance can share it.
                        name = format!("{name}.{}", identity.instance_id());
                    }
                    pending.push(PendingSubscription { pattern, name, options });
                }
            }
        }
        for shared in std::mem::take(&mut self.shared_subscriptions) {
            pending.extend(
                note(TopicPattern::new(&shared.pattern), problems).map(|pattern| PendingSubscription {
                    pattern,
                    name: shared.name,
                    options: shared.options,
                }),
            );
        }
        pending
    }

    /// Returns the topic of the tool calls that the host takes. An announced host is called by its
    /// name, so that no other host on the bus answers its calls, too.
    pub(super) fn tool_topic(&self, identity: &AgentIdentity) -> String {
        if self.announces_tools && self.options.tool_topic == TOOL_TOPIC {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
            let name = identity.name().replace(|letter| !is_plain(letter), "-");
            format!("{TOOL_TOPIC}.{name}")
        } else {
            self.options.tool_topic.clone()
        }
    }

    /// Subscribes to the topic of each handled message type that no subscription covers, one message
    /// at a time.
    fn subscribe_to_handled_topics(&mut self, problems: &mut Vec<BoxError>) {
        // A pattern that is invalid covers nothing, and is reported with the subscriptions.
        let patterns = self
            .subscriptions
            .iter()
            .filter_map(|(pattern, _)| TopicPattern::new(pattern).ok());
        let mut covering: Vec<_> = patterns.collect();
        for topic in self.routes.iter().filter_map(MessageRoute::topic) {
            if covering.iter().any(|pattern| pattern.matches(topic)) || note(check_topic(topic), problems).is_none() {
                continue;
            }
            covering.extend(TopicPattern::new(topic));
            self.subscriptions.push((topic.to_owned(), SubscribeOptions::new()));
        }
    }

    /// Reports whether the host can do without a model: it only handles messages or serves tools,
    /// over the bus or by a subsystem.
    pub(super) fn need_no_model(&self, serves_tools: bool) -> bool {
        let over_bus = self.bus.is_some() && (!self.routes.is_empty() || self.serves_tools);
        !self.serves_users && (over_bus || serves_tools)
    }

    /// Returns the subscriptions that match the host's own replies to users.
    fn own_replies(&self, pending: &[PendingSubscription]) -> impl Iterator<Item = MessageProblem> {
        let own = pending.iter().filter(|subscription| {
            let replies = ["user.response", "user.response.a.b"];
            self.serves_users && replies.iter().any(|topic| subscription.pattern.matches(topic))
        });
        own.map(|subscription| MessageProblem::Replies(subscription.pattern.clone()))
    }

    /// Returns the handlers of the host itself: the handlers for users, and the handler of tool
    /// calls.
    pub(super) fn host_routes(
        &self,
        turns: &TurnService,
        parts: &Parts,
        ids: &Arc<dyn IdSource>,
        effects: Option<Arc<EffectLedger>>,
    ) -> Vec<HostRoute> {
        let mut routes = Vec::new();
        if self.serves_users {
            let feedback = parts.get::<dyn FeedbackStore>();
            routes.extend(handlers::user_routes(HandlerDeps {
                options: self.options.users.clone(),
                time_limit: self.options.handler_time_limit,
                turns: turns.clone(),
                memory: turns.engine().memory.clone(),
                feedback: feedback.unwrap_or_else(|| Arc::new(InMemoryFeedbackStore::new())),
                ids: ids.clone(),
                clock: parts.clock().clone(),
            }));
        }
        if let Some(effects) = effects {
            let running = Arc::<RunningCalls>::default();
            let handler = ToolInvokeHandler {
                translator: parts.get::<dyn CallTranslator>(),
                serves_own: self.serves_tools,
                tools: turns.engine().tools.clone(),
                effects: effects.clone(),
                running: running.clone(),
                cut_off: turns.engine().cut_off.clone(),
            };
            routes.push(HostRoute::at_most_once(MessageRoute::of::<ToolInvokeRequest, _>(
                handler,
            )));
            routes.push(MessageRoute::of::<ToolCallCancelled, _>(Cancellations(running)).into());
            routes.push(MessageRoute::of::<ToolOutcomeRequest, _>(Outcomes(effects)).into());
        }
        routes
    }

    fn missing(&self) -> Option<MessageProblem> {
        let has_handlers = !self.routes.is_empty() || self.serves_users || self.runs_calls();
        match self.subscriptions.first() {
            Some(_) if self.bus.is_none() => Some(MessageProblem::Bus),
            Some((pattern, _)) if !has_handlers => Some(MessageProblem::Handler(pattern.clone())),
            None if has_handlers => Some(MessageProblem::Subscription),
            _ => None,
        }
    }

    /// Returns the sender of final replies, if there is a bus.
    pub(super) fn replies(&self, identity: &AgentIdentity, media: &Arc<MediaLibrary>) -> Option<Arc<dyn ReplySender>> {
        Some(Arc::new(BusReplySender {
            publisher: self.bus.clone()?,
            identity: identity.clone(),
            media: media.clone(),
            max_media_bytes: self.options.users.max_reply_media_bytes,
        }))
    }

    /// Returns the publisher of the agent's announcements, if the host serves users over a bus.
    pub(super) fn unasked(&self, identity: &AgentIdentity, media: &Arc<MediaLibrary>) -> Option<BusAnnouncer> {
        Some(BusAnnouncer {
            publisher: self.bus.clone().filter(|_| self.serves_users)?,
            identity: identity.clone(),
            media: media.clone(),
            max_media_bytes: self.options.users.max_reply_media_bytes,
        })
    }

    /// Creates the pipeline between the bus and the handlers; `more` are the handlers of the host
    /// itself. `abort` cancels the handlers that still run when the host has ended.
    pub(super) fn connect(
        self,
        identity: AgentIdentity,
        patterns: Patterns,
        more: Vec<HostRoute>,
        announcer: Option<Announcer>,
        abort: CancellationToken,
        traces: Traces,
    ) -> Result<Option<BusSide>, BuildError> {
        let Some(bus) = self.bus else { return Ok(None) };
        let mut router = Router::new(self.options.handler_time_limit);
        let mut problems = Vec::new();
        for route in self.routes.into_iter().map(HostRoute::from).chain(more) {
            note(router.add(route), &mut problems);
        }
        if !problems.is_empty() {
            return Err(BuildError { problems });
        }
        let contexts = MessageContexts::new(identity, bus.clone());
        let pipeline = Pipeline::new(contexts, router, self.layers, patterns.replies, abort);
        Ok(Some(BusSide {
            bus,
            is_shared: self.bus_is_shared,
            handler: Arc::new(pipeline.traces(traces)),
            pending: patterns.pending,
            announcer,
        }))
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::messaging::Message;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Job {}

    impl Message for Job {
        const TYPE: &'static str = "work.Job";
        const TOPIC: Option<&'static str> = Some("work.job");
    }

    /// Checks the patterns of a host that handles jobs twice and subscribes to `pattern` with these
    /// options.
    fn check(subscription: Option<(&str, SubscribeOptions)>, expected: &[(&str, &SubscribeOptions)]) {
        let route = |name: &str| MessageRoute::named::<Job, _>(name, |_: Job, _: MessageContext| async {});
        let mut settings = MessageSettings {
            routes: vec![
                MessageRoute::of::<Job, _>(|_: Job, _: MessageContext| async {}),
                MessageRoute::of::<Job, _>(|_: Job, _: MessageContext| async {}),
                route("work.Other"),
            ],
            subscriptions: subscription
                .into_iter()
                .map(|(pattern, options)| (pattern.to_owned(), options))
                .collect(),
            ..MessageSettings::default()
        };
        let mut problems = Vec::new();
        settings.subscribe_to_handled_topics(&mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let subscriptions = settings.subscriptions.iter();
        let subscriptions: Vec<_> = subscriptions
            .map(|(pattern, options)| (pattern.as_str(), options))
            .collect();
        assert_eq!(subscriptions, expected);
    }

    #[test]
    fn a_handled_topic_is_subscribed_to_unless_a_subscription_covers_it() {
        let default = SubscribeOptions::new();
        let wide = SubscribeOptions::new().with_concurrency(9);
        check(None, &[("work.job", &default)]);
        check(Some(("work.#", wide.clone())), &[("work.#", &wide)]);
        check(Some(("work.job", wide.clone())), &[("work.job", &wide)]);
        check(
            Some(("other.#", wide.clone())),
            &[("other.#", &wide), ("work.job", &default)],
        );
        check(Some(("a..b", wide.clone())), &[("a..b", &wide), ("work.job", &default)]);
    }
}
