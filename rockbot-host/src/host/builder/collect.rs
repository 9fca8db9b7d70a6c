//! The message side of a host: from its settings to the subscriptions and the pipeline behind them.

use std::sync::Arc;

use rockbot_core::messaging::{
    Bus, Disposition, MessageContext, MessageContexts, MessageRoute, SubscribeOptions, TopicPattern,
};
use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
use rockbot_core::subsystem::{MergedDeclarations, Parts};
use rockbot_core::tool::ToolInvokeRequest;
use rockbot_core::{AgentIdentity, BoxError, IdSource};
use tokio_util::sync::CancellationToken;

use super::error::{BuildError, MessageProblem, note};
use super::messages::MessageOptions;
use crate::engine::TurnService;
use crate::handlers::{self, HandlerDeps, ToolInvokeHandler, tool_subscription};
use crate::host::lifecycle::{BusSide, PendingSubscription};
use crate::layer::Layers;
use crate::pipeline::{HostRoute, Pipeline, ReplyTopics, Router};

/// The settings of the message side.
#[derive(Default)]
pub(super) struct MessageSettings {
    pub(super) bus: Option<Arc<dyn Bus>>,
    /// `true` when other components use the bus, too: then the host leaves it open.
    pub(super) bus_is_shared: bool,
    pub(super) routes: Vec<MessageRoute>,
    pub(super) subscriptions: Vec<(String, SubscribeOptions)>,
    pub(super) serves_users: bool,
    pub(super) serves_tools: bool,
    pub(super) options: MessageOptions,
    pub(super) layers: Layers<MessageContext, Disposition>,
}

/// The topic patterns of a host: those to which it subscribes, and those under which it replies.
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
        self.routes.append(&mut declared.routes);
        self.subscriptions.append(&mut declared.subscriptions);
        if self.serves_users {
            self.subscriptions.extend(handlers::user_subscriptions());
        }
        if self.serves_tools {
            self.subscriptions.push(tool_subscription(&self.options.tool_topic));
        }
        problems.extend(self.missing().map(BoxError::from));
        let mut pending: Vec<PendingSubscription> = Vec::new();
        for (pattern, options) in std::mem::take(&mut self.subscriptions) {
            let Some(pattern) = note(TopicPattern::new(&pattern), problems) else {
                continue;
            };
            // Users, tools and subsystems may name the same pattern: it is one subscription.
            match pending.iter().find(|known| known.pattern == pattern) {
                Some(known) if known.options != options => problems.push(MessageProblem::Options(pattern).into()),
                Some(_) => {}
                None => {
                    let name = identity.subscription_name(pattern.as_str());
                    pending.push(PendingSubscription { pattern, name, options });
                }
            }
        }
        problems.extend(self.unreachable(&pending).map(BoxError::from));
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

    /// Reports whether the host can do without a model: it only handles messages or serves tools.
    pub(super) fn need_no_model(&self) -> bool {
        self.bus.is_some() && !self.serves_users && (!self.routes.is_empty() || self.serves_tools)
    }

    /// Returns the problems between subscriptions and handlers, each of which is valid alone.
    fn unreachable(&self, pending: &[PendingSubscription]) -> impl Iterator<Item = MessageProblem> {
        let matches_any = |topic: &str| pending.iter().any(|subscription| subscription.pattern.matches(topic));
        let unreachable = self
            .routes
            .iter()
            .filter(|_| !pending.is_empty())
            .filter_map(move |route| {
                let topic = route.topic().filter(|topic| !matches_any(topic))?;
                let message_type = route.message_type().clone();
                Some(MessageProblem::Topic { message_type, topic })
            });
        let own_replies = pending.iter().filter(|subscription| {
            let replies = ["user.response", "user.response.a.b"];
            self.serves_users && replies.iter().any(|topic| subscription.pattern.matches(topic))
        });
        unreachable.chain(own_replies.map(|subscription| MessageProblem::Replies(subscription.pattern.clone())))
    }

    /// Returns the handlers of the host itself: those for users, and the one for tool calls.
    pub(super) fn host_routes(&self, turns: &TurnService, parts: &Parts, ids: &Arc<dyn IdSource>) -> Vec<HostRoute> {
        let mut routes = Vec::new();
        if self.serves_users {
            let feedback = parts.get::<dyn FeedbackStore>();
            routes.extend(handlers::user_routes(HandlerDeps {
                options: self.options.users.clone(),
                turns: turns.clone(),
                memory: turns.engine().memory.clone(),
                feedback: feedback.unwrap_or_else(|| Arc::new(InMemoryFeedbackStore::new())),
                ids: ids.clone(),
                clock: parts.clock().clone(),
            }));
        }
        if self.serves_tools {
            let tools = MessageRoute::of::<ToolInvokeRequest, _>(ToolInvokeHandler(turns.engine().tools.clone()));
            routes.push(HostRoute::at_most_once(tools));
        }
        routes
    }

    fn missing(&self) -> Option<MessageProblem> {
        let has_handlers = !self.routes.is_empty() || self.serves_users || self.serves_tools;
        match self.subscriptions.first() {
            Some(_) if self.bus.is_none() => Some(MessageProblem::Bus),
            Some((pattern, _)) if !has_handlers => Some(MessageProblem::Handler(pattern.clone())),
            None if has_handlers => Some(MessageProblem::Subscription),
            _ => None,
        }
    }

    /// Creates the pipeline between the bus and the handlers; `more` are those of the host itself. `abort` cancels the
    /// handlers that still run when the host has ended.
    pub(super) fn connect(
        self,
        identity: AgentIdentity,
        patterns: Patterns,
        more: Vec<HostRoute>,
        abort: CancellationToken,
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
        Ok(Some(BusSide {
            bus,
            is_shared: self.bus_is_shared,
            handler: Arc::new(Pipeline::new(contexts, router, self.layers, patterns.replies, abort)),
            pending: patterns.pending,
        }))
    }
}
