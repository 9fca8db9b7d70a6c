//! Parts of a host: what they need of each other, and how they start and stop.
//!
//! A host is built in two phases. First every [`Subsystem`] declares: what it gives the others, what it needs of
//! them, its tools and its message handlers. Only when all have spoken does the host look whether somebody needs what
//! nobody gives, so the order in which they were added does not matter. Then, when the host starts, each subsystem is
//! started, in the order of their [`Stage`]s, and stopped in reverse.

mod declarations;
mod parts;

use std::fmt;

use async_trait::async_trait;

pub use declarations::{Declarations, Declared, MissingPart};
pub use parts::Parts;

use crate::BoxError;

/// A part of a host that somebody adds to it: stores, tools, connections, work in the background.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
/// use rockbot_core::subsystem::{Idle, Declarations, Parts, Running, Subsystem};
///
/// /// Gives the host a feedback store.
/// #[derive(Debug)]
/// struct Feedback;
///
/// #[async_trait]
/// impl Subsystem for Feedback {
///     fn name(&self) -> &str {
///         "feedback"
///     }
///
///     fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
///         needs.provide::<dyn FeedbackStore>(Arc::new(InMemoryFeedbackStore::new()));
///         Ok(())
///     }
///
///     async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
///         Ok(Box::new(Idle))
///     }
/// }
/// ```
#[async_trait]
pub trait Subsystem: fmt::Debug + Send + Sync + 'static {
    /// What it is called, in errors and in logs.
    fn name(&self) -> &str;

    /// When it starts.
    fn stage(&self) -> Stage {
        Stage::Services
    }

    /// Says what it gives, needs and handles. Opens what it must have, and runs nothing yet.
    ///
    /// # Errors
    ///
    /// An error keeps the host from being built, together with everybody else's.
    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError>;

    /// Begins its work. Everything that it needs is in `parts`.
    ///
    /// # Errors
    ///
    /// An error keeps the host from starting; what had started is stopped again.
    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError>;
}

/// A subsystem at work. Its tasks are its own: they end in [`Running::stop`], or when it is dropped.
#[async_trait]
pub trait Running: Send + Sync + 'static {
    /// Ends its work and writes down what must not be lost. The host waits for it until its own time is up, and then
    /// drops it.
    async fn stop(&self) {}

    /// Whether it can do its work. Must not block.
    ///
    /// # Errors
    ///
    /// Says what is wrong; the host is then not ready.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A subsystem that has no work of its own: what it gave lives without it.
#[derive(Debug, Clone, Copy)]
pub struct Idle;

impl Running for Idle {}

/// When a subsystem starts: in this order, those of one stage in the order in which they were added. The host's
/// subscriptions come after all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Stage {
    /// Seeds skills.
    Skills,
    /// Connects to servers.
    Bridges,
    /// Opens what the agent remembers.
    Memory,
    /// Looks at sessions that have ended.
    Evaluation,
    /// Tends memory while nobody waits.
    Dreams,
    /// Everything else.
    #[default]
    Services,
}
