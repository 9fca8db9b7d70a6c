//! The parts of a host: how they depend on each other, and how they start and stop.
//!
//! A host is built in two phases. First every [`Subsystem`] declares to one collector, the
//! [`Declarations`]: the [`Parts`] that it provides and requires, its tools and its message
//! handlers. When all have declared, the host reports every required part that is missing, so
//! subsystems can be added in any order. Then the host starts the subsystems in the order of
//! their [`Stage`]s, and stops them in reverse order.

mod agent_spec;
mod cost;
mod declarations;
mod parts;
mod running_task;

use std::fmt;

use async_trait::async_trait;

pub use agent_spec::AgentSpec;
pub use cost::PartCost;
pub use declarations::{Declarations, MergedDeclarations, MissingPart, SharedSubscription};
pub use parts::Parts;
pub use running_task::RunningTask;

use crate::BoxError;

/// A part of a host with a lifecycle: stores, families of tools, connections, background work.
///
/// Implement it for whatever must be opened when the host is built, started with it, or stopped
/// with it. A single tool needs none: the host's builder takes it.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
/// use rockbot_core::subsystem::{Declarations, Idle, Parts, Running, Subsystem};
///
/// /// Provides a feedback store.
/// #[derive(Debug)]
/// struct Feedback;
///
/// #[async_trait]
/// impl Subsystem for Feedback {
///     fn name(&self) -> &str {
///         "feedback"
///     }
///
///     fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
///         declarations.provide::<dyn FeedbackStore>(Arc::new(InMemoryFeedbackStore::new()));
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
    /// Returns the name, for errors and logs.
    fn name(&self) -> &str;

    /// Returns the stage that the subsystem starts in. Default [`Stage::Services`].
    fn stage(&self) -> Stage {
        Stage::Services
    }

    /// Declares the parts, requirements and handlers of the subsystem.
    ///
    /// It may open a resource that it must have, such as a file, but it must not spawn tasks yet:
    /// the host may still fail to build.
    ///
    /// # Errors
    ///
    /// Returns an error if the subsystem cannot work, for example because a setting is wrong. The
    /// host is then not built; it reports the errors of all subsystems together.
    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError>;

    /// Starts the work of the subsystem. `parts` holds all parts that it requires.
    ///
    /// # Errors
    ///
    /// Returns an error if the work cannot start. The host then stops the subsystems that have
    /// started, and does not start itself.
    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError>;
}

/// The handle of a subsystem that has started.
///
/// It owns the tasks of the subsystem: they end in [`Running::stop`], or when the handle is
/// dropped.
#[async_trait]
pub trait Running: Send + Sync + 'static {
    /// Stops the work and flushes data that must not be lost.
    ///
    /// The host waits for it until the deadline of its own shutdown, and then drops the handle. Does
    /// nothing by default.
    async fn stop(&self) {}

    /// Checks whether the subsystem can do its work. It is called often and must not block.
    ///
    /// # Errors
    ///
    /// Returns a description of the fault. The host then reports that it is not ready. Succeeds by
    /// default.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The handle of a subsystem without work of its own: the parts that it provides work by
/// themselves.
#[derive(Debug, Clone, Copy)]
pub struct Idle;

impl Running for Idle {}

/// A stage of a host's start.
///
/// Stages start in the order of the variants, the subsystems of one stage in the order of their
/// addition. The host opens its own subscriptions after the last stage, so no message comes
/// before all subsystems have started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Stage {
    /// Seeding of skills.
    Skills,
    /// Connections to other servers.
    Bridges,
    /// Stores of the agent's memory. They also declare first, so that other subsystems find them.
    Memory,
    /// Evaluation of sessions that have ended.
    Evaluation,
    /// Background care of memory while no turn runs.
    Dreams,
    /// All other subsystems; the default.
    #[default]
    Services,
}
