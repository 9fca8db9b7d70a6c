//! The problems that keep a host from being built, each with its remedy.

use std::fmt;
use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::chat::ModelTier;
use rockbot_core::messaging::TopicPattern;

/// The error of [`AgentHostBuilder::build`](super::AgentHostBuilder::build), with every problem
/// at once.
#[derive(thiserror::Error)]
#[error("the agent host cannot be built: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
#[non_exhaustive]
pub struct BuildError {
    /// The parts that are missing or wrong, each with its remedy.
    pub problems: Vec<BoxError>,
}

/// Prints the message, since a `main` that returns the error prints its `Debug` form.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The problem of an empty name.
#[derive(Debug, thiserror::Error)]
#[error("the name of {0} is empty: give it a name")]
pub(super) struct EmptyName(pub(super) &'static str);

/// The problem of an agent beside the host's own.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentProblem {
    /// Two agents of the host have the same name.
    #[error("two agents of the host are called `{0}`: give each a name of its own")]
    Taken(String),
    /// The name cannot stand in the path of a namespace.
    #[error("an agent cannot be called `{0}`: use a name without `/`, `\\`, control characters and spaces around it")]
    Invalid(String),
}

/// The problem of a limit that lets nothing pass.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is zero, so no message could be answered within it: set it to at least one, or leave it out")]
pub(super) struct ZeroLimit(pub(super) &'static str);

/// The problem of a host without a model.
#[derive(Debug, thiserror::Error)]
#[error("the host has no model to ask: call `.chat(…)`, for example with `ChatTiers::from_env_or_offline()?`")]
pub(super) struct NoChat;

/// The problem of a limit in money without the price of a model.
#[derive(Debug, thiserror::Error)]
#[error(
    "turns have a limit in money (`max_cost`), and the price of the model `{model}` of the tier {} is unknown: give its price with `.prices(…)`, or set no such limit",
    .tier.name()
)]
pub(super) struct NoPrice {
    pub(super) tier: ModelTier,
    pub(super) model: Arc<str>,
}

/// The problem of subsystems that could not declare.
#[derive(Debug, thiserror::Error)]
#[error("{names}: {cause}")]
pub(super) struct FailedDeclaration {
    /// The names of the subsystems.
    pub(super) names: String,
    /// The error of each of them.
    pub(super) cause: BoxError,
}

/// A missing or contradictory setting of the message side.
#[derive(Debug, thiserror::Error)]
pub(super) enum MessageProblem {
    #[error("the host is to handle messages, and has no bus: call `.bus(…)`, for example with `InProcessBus::new()`")]
    Bus,
    #[error(
        "the host has message handlers and subscribes to nothing: call `.subscribe_to(…)` with their messages' topics"
    )]
    Subscription,
    #[error("the host subscribes to `{0}` and has no message handlers: call `.handle(…)` or `.serve_users()`")]
    Handler(String),
    #[error(
        "the host serves users and subscribes to `{0}`, which matches the replies to them (`user.response.#`): subscribe to narrower topics"
    )]
    Replies(TopicPattern),
    #[error("the host subscribes to `{0}` twice with different options: keep one of the subscriptions")]
    Options(TopicPattern),
}

/// Returns the value of a result; an error is added to `problems`.
pub(super) fn note<T, E: Into<BoxError>>(result: Result<T, E>, problems: &mut Vec<BoxError>) -> Option<T> {
    result.map_err(|error| problems.push(error.into())).ok()
}
