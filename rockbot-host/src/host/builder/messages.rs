//! The message side: the bus, its subscriptions, and the handlers of messages.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Bus, Message, MessageHandler, MessageRoute, SubscribeOptions};
use serde::de::DeserializeOwned;

use super::AgentHostBuilder;
use crate::effects::EFFECT_WINDOW;
use crate::handlers::{TOOL_TOPIC, UserOptions};
use crate::pipeline::TIME_LIMIT;
use crate::workers::TOOL_LEASE;

/// The options of the message side, for [`AgentHostBuilder::message_options`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_host::MessageOptions;
///
/// let options = MessageOptions::new().with_handler_time_limit(Duration::from_secs(30)).with_reply_topics(["desk.*"]);
/// assert_eq!(options.reply_topics, ["desk.*"]);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessageOptions {
    /// Maximum time that a handler may take. A message whose handler exceeds it is delivered again.
    /// Default 5 minutes.
    pub handler_time_limit: Duration,
    /// The patterns of the topics of replies. A message that names another reply topic becomes a
    /// dead letter. Empty, the default, allows every topic except the host's own subscriptions.
    pub reply_topics: Vec<String>,
    /// The topic of the calls that [`serve_tools`](AgentHostBuilder::serve_tools) takes. Default
    /// `tool.invoke`, and `tool.invoke.NAME` for a host that [announces its
    /// tools](AgentHostBuilder::announce_tools). On a bus with several hosts that serve tools each
    /// needs a topic of its own: all hosts that share a topic answer every call, also hosts without
    /// the tool.
    pub tool_topic: String,
    /// Validity of an [announcement](AgentHostBuilder::announce_tools) of tools. The host renews it
    /// three times as often, so tools of a host that was killed are gone after this time. Default
    /// 15 s; agents count at least 1 s and at most 5 min.
    pub tool_lease: Duration,
    /// Retention of the records of mutating calls of other programs, so that none of them runs
    /// twice. Default 24 h.
    pub effect_window: Duration,
    /// The options of [`serve_users`](AgentHostBuilder::serve_users).
    pub users: UserOptions,
}

impl Default for MessageOptions {
    fn default() -> Self {
        Self {
            handler_time_limit: TIME_LIMIT,
            reply_topics: Vec::new(),
            tool_topic: TOOL_TOPIC.to_owned(),
            tool_lease: TOOL_LEASE,
            effect_window: EFFECT_WINDOW,
            users: UserOptions::default(),
        }
    }
}

impl MessageOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum time that a handler may take.
    #[must_use]
    pub fn with_handler_time_limit(mut self, limit: Duration) -> Self {
        self.handler_time_limit = limit;
        self
    }

    /// Sets the patterns of the topics of replies.
    #[must_use]
    pub fn with_reply_topics<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.reply_topics = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the topic of the calls of the host's tools.
    #[must_use]
    pub fn with_tool_topic(mut self, topic: impl Into<String>) -> Self {
        self.tool_topic = topic.into();
        self
    }

    /// Sets the validity of an announcement of tools. Default 15 s.
    #[must_use]
    pub fn with_tool_lease(mut self, lease: Duration) -> Self {
        self.tool_lease = lease;
        self
    }

    /// Sets the retention of the records of mutating calls of other programs. Default 24 h.
    #[must_use]
    pub fn with_effect_window(mut self, window: Duration) -> Self {
        self.effect_window = window;
        self
    }

    /// Sets the options of serving users.
    #[must_use]
    pub fn with_users(mut self, options: UserOptions) -> Self {
        self.users = options;
        self
    }
}

/// Messages: the bus, subscriptions, and handlers.
impl AgentHostBuilder {
    /// Sets the bus that delivers messages and takes replies. The host closes it when it stops.
    pub fn bus(mut self, bus: impl Bus) -> Self {
        self.messages.bus = Some(Arc::new(bus));
        self.messages.bus_is_shared = false;
        self
    }

    /// Sets a bus that other components use, too. The host leaves it open when it stops.
    pub fn shared_bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.messages.bus = Some(bus);
        self.messages.bus_is_shared = true;
        self
    }

    /// Subscribes to all topics that match `pattern` (`*` stands for one segment, `#` for any
    /// number), and handles their messages one at a time. All instances of this agent share the
    /// subscription. A handler of a message type that has a topic needs none, see
    /// [`handle`](Self::handle).
    pub fn subscribe_to(self, pattern: impl Into<String>) -> Self {
        self.subscribe_with(pattern, SubscribeOptions::new())
    }

    /// Subscribes to all topics that match `pattern`, with the concurrency, order and retries of
    /// `options`.
    pub fn subscribe_with(mut self, pattern: impl Into<String>, options: SubscribeOptions) -> Self {
        self.messages.subscriptions.push((pattern.into(), options));
        self
    }

    /// Handles messages of type `M`.
    ///
    /// A handler is a type that implements [`MessageHandler`], or an async closure
    /// `|message: M, cx: MessageContext| async { … }`. A message without a handler, and a message
    /// whose body cannot be parsed, becomes a dead letter with the reason. A message that was
    /// handled is not handled again when the bus redelivers it.
    ///
    /// The host subscribes to the [topic](Message::TOPIC) of the type by itself, and handles its
    /// messages one at a time, unless a subscription by [`subscribe_to`](Self::subscribe_to) or
    /// [`subscribe_with`](Self::subscribe_with), before or after this call, or by a subsystem
    /// covers it. A type without a topic, and messages under other topics, need such a
    /// subscription.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use rockbot_core::messaging::{Message, MessageContext, MessagePublisherExt};
    /// use rockbot_host::AgentHost;
    /// use rockbot_host::bus::InProcessBus;
    /// use tokio::sync::mpsc;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Invoice { amount: u32 }
    ///
    /// impl Message for Invoice {
    ///     const TYPE: &'static str = "billing.Invoice";
    ///     const TOPIC: Option<&'static str> = Some("billing.invoice");
    /// }
    ///
    /// let (paid, mut payments) = mpsc::unbounded_channel();
    /// let bus = InProcessBus::new();
    /// let host = AgentHost::builder("clerk")
    ///     .bus(bus.clone())
    ///     .handle(move |invoice: Invoice, _: MessageContext| {
    ///         let paid = paid.clone();
    ///         async move { paid.send(invoice.amount).expect("the receiver is alive") }
    ///     })
    ///     .build()?;
    /// host.start().await?;
    ///
    /// bus.send("shop", &Invoice { amount: 7 }).await?;
    /// assert_eq!(payments.recv().await, Some(7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle<M, H>(mut self, handler: H) -> Self
    where
        M: Message + DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        self.messages.routes.push(MessageRoute::of::<M, H>(handler));
        self
    }

    /// Handles messages of type `M` whose type on the wire is `message_type`, as
    /// [`AgentHostBuilder::handle`] does.
    pub fn handle_named<M, H>(mut self, message_type: &str, handler: H) -> Self
    where
        M: DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        self.messages
            .routes
            .push(MessageRoute::named::<M, H>(message_type, handler));
        self
    }

    /// Serves users who write to the agent over the bus: their messages, their requests for a
    /// conversation, their feedback, their decisions about tool calls.
    /// [`UserProxy`](rockbot_core::user::UserProxy) is the client.
    ///
    /// A message is acknowledged once its turn is in the journal, and gets exactly one final reply,
    /// under the topic that it names, or else under `user.response`.
    pub fn serve_users(mut self) -> Self {
        self.messages.serves_users = true;
        self
    }

    /// Serves the agent's tools to other programs, which call them over the topic
    /// [`MessageOptions::tool_topic`]. [`RemoteToolExecutor`](rockbot_core::tool::RemoteToolExecutor)
    /// is the client.
    ///
    /// Every program that can publish there can call every tool that needs no approval. A mutating
    /// call runs at most once. It is recorded before it begins, in the [data
    /// folder](Self::data_dir) if the host has one. A call that is delivered again gets its first
    /// result, or the error that its outcome is unknown. A call ends a little before the time limit
    /// of its caller, who so learns why.
    pub fn serve_tools(mut self) -> Self {
        self.messages.serves_tools = true;
        self
    }

    /// Serves the agent's tools as [`serve_tools`](Self::serve_tools) does, and announces them on
    /// the bus: agents with the subsystem [`RemoteTools`](crate::workers::RemoteTools) have them
    /// while this host runs. Tools that are added or removed meanwhile are announced, too; tools
    /// that need an approval are not.
    ///
    /// Hosts of one name share their calls, so several processes with the same tools are started to
    /// work faster. When the host stops, it withdraws the tools first, and then finishes the calls
    /// that it has.
    pub fn announce_tools(mut self) -> Self {
        self.messages.announces_tools = true;
        self.serve_tools()
    }

    /// Sets the options of the message side.
    pub fn message_options(mut self, options: MessageOptions) -> Self {
        self.messages.options = options;
        self
    }
}
