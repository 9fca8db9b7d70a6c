//! The handle of a running subscription.

use std::fmt;

use async_trait::async_trait;

use super::TopicPattern;
use crate::shared::share;

/// A running consumer of a subscription.
///
/// Dropping the handle ends the consumer: it takes no further message, and running handlers
/// finish in the background under the supervision of the bus. [`Subscription::close`] also waits
/// for them.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    pattern: TopicPattern,
    name: String,
    control: Box<dyn SubscriptionControl>,
}

/// The control over a consumer, implemented by each bus for its own.
#[async_trait]
pub trait SubscriptionControl: Send + Sync + 'static {
    /// Stops taking messages. It may be called more than once.
    fn stop(&self);

    /// Waits until no handler of this consumer runs. It is called after [`SubscriptionControl::stop`].
    async fn stopped(&self);

    /// Returns `true` while messages are taken.
    fn is_active(&self) -> bool;
}

share! {
    SubscriptionControl {
        async stopped();
        fn stop();
        fn is_active() -> bool;
    }
}

impl Subscription {
    /// Creates the handle of a consumer that `control` stops. Only bus implementations call it.
    pub fn new(pattern: TopicPattern, name: impl Into<String>, control: impl SubscriptionControl) -> Self {
        Self {
            pattern,
            name: name.into(),
            control: Box::new(control),
        }
    }

    /// Returns the pattern of topics that it takes.
    pub fn pattern(&self) -> &TopicPattern {
        &self.pattern
    }

    /// Returns its name, which competing consumers share.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` while messages are taken. It is `false` after the bus was closed.
    pub fn is_active(&self) -> bool {
        self.control.is_active()
    }

    /// Ends the consumer and waits for its running handlers. A handler that closes its own
    /// subscription deadlocks.
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
