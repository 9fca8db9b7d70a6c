//! From the settings of the message side to the subscriptions and the pipeline behind them.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{
    Bus, Disposition, MessageContext, MessageContexts, MessageRoute, SubscribeOptions, TopicPattern,
};
use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
use rockbot_core::subsystem::{MergedDeclarations, Parts};
use rockbot_core::tool::ToolInvokeRequest;
use rockbot_core::{AgentIdentity, BoxError, IdSource};
use tokio_util::sync::CancellationToken;

use super::assemble::{BuildError, note};
use crate::engine::TurnService;
use crate::handlers::{self, HandlerDeps, ToolInvokeHandler, UserOptions, tool_subscription};
use crate::host::lifecycle::{BusSide, Intake};
use crate::layer::Layers;
use crate::pipeline::{HostRoute, Pipeline, ReplyTopics, Router, TIME_LIMIT};

/// What a builder was told about messages.
pub(super) struct MessageSettings {
    pub(super) bus: Option<Arc<dyn Bus>>,
    /// Whether others use the bus, too: then it does not end with the host.
    pub(super) bus_is_shared: bool,
    pub(super) routes: Vec<MessageRoute>,
    pub(super) subscriptions: Vec<(String, SubscribeOptions)>,
    pub(super) users: Option<UserOptions>,
    /// Where calls of the host's tools come in; none when it serves none.
    pub(super) tool_topics: Vec<String>,
    pub(super) handler_time_limit: Duration,
    pub(super) reply_topics: Vec<String>,
    pub(super) layers: Layers<MessageContext, Disposition>,
}

impl Default for MessageSettings {
    fn default() -> Self {
        Self {
            bus: None,
            bus_is_shared: false,
            routes: Vec::new(),
            subscriptions: Vec::new(),
            users: None,
            tool_topics: Vec::new(),
            handler_time_limit: TIME_LIMIT,
            reply_topics: Vec::new(),
            layers: Layers::default(),
        }
    }
}

/// What is missing, and what to add.
#[derive(Debug, thiserror::Error)]
enum Missing {
    #[error("it is to take messages, and has no bus: call `.bus(…)`, for example with `InProcessBus::new()`")]
    Bus,
    #[error("it has message handlers and subscribes to nothing: call `.subscribe_to(…)` with their messages' topics")]
    Subscription,
    #[error("it subscribes to `{0}` and has no message handlers: call `.handle(…)` or `.serve_users()`")]
    Handler(String),
    #[error(
        "it handles `{message_type}` and subscribes to nothing that takes in its topic: call `.subscribe_to(\"{topic}\")`, or `.handle_named(…)` when such messages come under another one"
    )]
    Topic {
        message_type: Arc<str>,
        topic: &'static str,
    },
    #[error(
        "it serves users and subscribes to `{0}`, which takes in the replies to them (`user.response.#`): subscribe to narrower topics"
    )]
    Replies(TopicPattern),
    #[error("it subscribes to `{0}` twice with different options: keep one of them")]
    Options(TopicPattern),
}

/// The patterns of a host: what it takes, and where it answers.
pub(super) struct Patterns {
    pub(super) intakes: Vec<Intake>,
    pub(super) replies: ReplyTopics,
}

impl MessageSettings {
    /// Takes in what subsystems declared, and says what the host subscribes to.
    pub(super) fn patterns(
        &mut self,
        identity: &AgentIdentity,
        declared: &mut MergedDeclarations,
        problems: &mut Vec<BoxError>,
    ) -> Patterns {
        self.routes.append(&mut declared.routes);
        self.subscriptions.append(&mut declared.subscriptions);
        if self.users.is_some() {
            self.subscriptions.extend(handlers::user_subscriptions());
        }
        self.subscriptions
            .extend(self.tool_topics.iter().map(|topic| tool_subscription(topic)));
        problems.extend(self.missing().map(BoxError::from));
        let mut intakes: Vec<Intake> = Vec::new();
        for (pattern, options) in std::mem::take(&mut self.subscriptions) {
            let Some(pattern) = note(TopicPattern::new(&pattern), problems) else {
                continue;
            };
            // One pattern twice is one subscription.
            match intakes.iter().find(|known| known.pattern == pattern) {
                Some(known) if known.options != options => problems.push(Missing::Options(pattern).into()),
                Some(_) => {}
                None => {
                    let name = identity.subscription_name(pattern.as_str());
                    intakes.push(Intake { pattern, name, options });
                }
            }
        }
        problems.extend(self.unreachable(&intakes).map(BoxError::from));
        let allowed = std::mem::take(&mut self.reply_topics);
        let replies = ReplyTopics {
            own: intakes.iter().map(|intake| intake.pattern.clone()).collect(),
            allowed: allowed
                .iter()
                .filter_map(|pattern| note(TopicPattern::new(pattern), problems))
                .collect(),
        };
        Patterns { intakes, replies }
    }

    /// Whether messages alone make the host useful: they never ask a model.
    pub(super) fn need_no_model(&self) -> bool {
        self.bus.is_some() && self.users.is_none() && !(self.routes.is_empty() && self.tool_topics.is_empty())
    }

    /// What can never work with these subscriptions, though each of them is right.
    fn unreachable(&self, intakes: &[Intake]) -> impl Iterator<Item = Missing> {
        let takes_in = |topic: &str| intakes.iter().any(|intake| intake.pattern.matches(topic));
        let unheard = self
            .routes
            .iter()
            .filter(|_| !intakes.is_empty())
            .filter_map(move |route| {
                let topic = route.topic().filter(|topic| !takes_in(topic))?;
                let message_type = route.message_type().clone();
                Some(Missing::Topic { message_type, topic })
            });
        let own_replies = intakes.iter().filter(|intake| {
            let replies = ["user.response", "user.response.a.b"];
            self.users.is_some() && replies.iter().any(|topic| intake.pattern.matches(topic))
        });
        unheard.chain(own_replies.map(|intake| Missing::Replies(intake.pattern.clone())))
    }

    /// The handlers of the host itself.
    pub(super) fn host_routes(&self, turns: &TurnService, parts: &Parts, ids: &Arc<dyn IdSource>) -> Vec<HostRoute> {
        let mut routes = Vec::new();
        if let Some(options) = self.users.clone() {
            let feedback = parts.get::<dyn FeedbackStore>();
            routes.extend(handlers::user_routes(HandlerDeps {
                options,
                turns: turns.clone(),
                memory: turns.engine().memory.clone(),
                feedback: feedback.unwrap_or_else(|| Arc::new(InMemoryFeedbackStore::new())),
                ids: ids.clone(),
                clock: parts.clock().clone(),
            }));
        }
        if !self.tool_topics.is_empty() {
            let tools = MessageRoute::of::<ToolInvokeRequest, _>(ToolInvokeHandler(turns.engine().tools.clone()));
            routes.push(HostRoute::at_most_once(tools));
        }
        routes
    }

    fn missing(&self) -> Option<Missing> {
        let has_handlers = !self.routes.is_empty() || self.users.is_some() || !self.tool_topics.is_empty();
        match self.subscriptions.first() {
            Some(_) if self.bus.is_none() => Some(Missing::Bus),
            Some((pattern, _)) if !has_handlers => Some(Missing::Handler(pattern.clone())),
            None if has_handlers => Some(Missing::Subscription),
            _ => None,
        }
    }

    /// Puts the pipeline between the bus and the handlers; `more` are those of the host itself. `abort` ends them all.
    pub(super) fn connect(
        self,
        identity: AgentIdentity,
        patterns: Patterns,
        more: Vec<HostRoute>,
        abort: CancellationToken,
    ) -> Result<Option<BusSide>, BuildError> {
        let Some(bus) = self.bus else { return Ok(None) };
        let mut router = Router::new(self.handler_time_limit);
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
            intakes: patterns.intakes,
        }))
    }
}
