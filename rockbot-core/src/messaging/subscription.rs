//! The handle of a running subscription.

use std::fmt;

use async_trait::async_trait;

use super::TopicPattern;

/// A running consumer of a subscription. Dropping it ends it: no further message is taken, and handlers that
/// run finish in the background, watched by the bus.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    pattern: TopicPattern,
    name: String,
    control: Box<dyn SubscriptionControl>,
}

/// What a bus does to a consumer of its own.
#[async_trait]
pub trait SubscriptionControl: Send + Sync + 'static {
    /// Takes no further message. Called more than once.
    fn stop(&self);

    /// Waits until no handler of this consumer runs. Called after [`SubscriptionControl::stop`].
    async fn stopped(&self);

    /// Whether messages are still taken.
    fn is_active(&self) -> bool;
}

impl Subscription {
    /// A handle of the consumer that `control` ends. For buses: others get theirs from one.
    pub fn new(pattern: TopicPattern, name: impl Into<String>, control: impl SubscriptionControl) -> Self {
        Self {
            pattern,
            name: name.into(),
            control: Box::new(control),
        }
    }

    /// Which topics it takes.
    pub fn pattern(&self) -> &TopicPattern {
        &self.pattern
    }

    /// Its name, shared with competing consumers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether messages are still taken: the bus may have been closed.
    pub fn is_active(&self) -> bool {
        self.control.is_active()
    }

    /// Ends it and waits for the handlers that run. Called from one of them, it waits for ever.
    pub async fn close(self) {
        self.control.stop();
        self.control.stopped().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("pattern", &self.pattern)
            .field("name", &self.name)
            .field("is_active", &self.is_active())
            .finish()
    }
}
