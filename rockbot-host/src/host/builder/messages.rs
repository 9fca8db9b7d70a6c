//! The bus, and what comes over it.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Bus, Message, MessageHandler, MessageRoute, SubscribeOptions};
use serde::de::DeserializeOwned;

use super::AgentHostBuilder;
use crate::handlers::{TOOL_TOPIC, UserOptions};

impl AgentHostBuilder {
    /// The bus that brings messages and takes replies. It is closed when the host stops.
    pub fn bus(mut self, bus: impl Bus) -> Self {
        self.messages.bus = Some(Arc::new(bus));
        self.messages.bus_is_shared = false;
        self
    }

    /// A bus that others use, too: the host leaves it open.
    pub fn shared_bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.messages.bus = Some(bus);
        self.messages.bus_is_shared = true;
        self
    }

    /// Takes the messages of all topics that match `pattern` (`*` stands for one segment, `#` for any number), one at
    /// a time. All instances of this agent share them.
    pub fn subscribe_to(self, pattern: impl Into<String>) -> Self {
        self.subscribe_with(pattern, SubscribeOptions::new())
    }

    /// Takes the messages of all topics that match `pattern`, served as `options` say.
    pub fn subscribe_with(mut self, pattern: impl Into<String>, options: SubscribeOptions) -> Self {
        self.messages.subscriptions.push((pattern.into(), options));
        self
    }

    /// Handles messages of type `M`. A handler is a type of one's own or an async closure
    /// `|message: M, cx: MessageContext| async { … }`.
    ///
    /// A message without a handler, and one whose body does not fit, becomes a dead letter that says why. A message
    /// that was handled is not handled again when the bus delivers it once more.
    pub fn handle<M, H>(mut self, handler: H) -> Self
    where
        M: Message + DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        self.messages.routes.push(MessageRoute::of::<M, H>(handler));
        self
    }

    /// As [`AgentHostBuilder::handle`], for an `M` whose type on the wire is `message_type`.
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

    /// Answers the people who write to the agent over the bus: their messages, their questions for a conversation,
    /// their feedback, their decisions about tool calls. [`UserProxy`](rockbot_core::user::UserProxy) is the client.
    ///
    /// A message is acknowledged once its turn stands in the journal, and gets exactly one final reply, under the
    /// topic that it names, or else under `user.response`.
    pub fn serve_users(self) -> Self {
        self.serve_users_with(UserOptions::default())
    }

    /// As [`AgentHostBuilder::serve_users`], as `options` say.
    pub fn serve_users_with(mut self, options: UserOptions) -> Self {
        self.messages.users = Some(options);
        self
    }

    /// Runs the agent's tools for others, who call them over the topic `tool.invoke`:
    /// [`RemoteToolExecutor`](rockbot_core::tool::RemoteToolExecutor) is the client. Whoever can publish there can
    /// call every tool that needs no approval.
    pub fn serve_tools(self) -> Self {
        self.serve_tools_on(TOOL_TOPIC)
    }

    /// As [`AgentHostBuilder::serve_tools`], over a topic of one's own. On a bus with several hosts that serve tools,
    /// each needs its own: over the common one all of them answer, also those that do not have the tool.
    pub fn serve_tools_on(mut self, topic: impl Into<String>) -> Self {
        self.messages.tool_topics.push(topic.into());
        self
    }

    /// How long a handler may take. Default 5 minutes; the message is then delivered again.
    pub fn handler_time_limit(mut self, limit: Duration) -> Self {
        self.messages.handler_time_limit = limit;
        self
    }

    /// Answers only under topics that match one of `patterns`; a message that names another one becomes a dead
    /// letter. Default: under any topic that the agent itself does not subscribe to.
    pub fn reply_topics<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.messages.reply_topics.extend(patterns.into_iter().map(Into::into));
        self
    }
}
