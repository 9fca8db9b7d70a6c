//! The identity of an agent, for its peers on a bus.

use std::fmt;
use std::sync::Arc;

use crate::{IdSource as _, RandomIds};

/// The name of an agent, and the id of one running instance of it.
///
/// The name is the source of the messages that the agent sends and part of the names of its
/// subscriptions, so that instances with the same name share the work as competing consumers. The
/// instance id tells them apart.
///
/// ```
/// use rockbot_core::AgentIdentity;
///
/// let (one, two) = (AgentIdentity::new("clerk"), AgentIdentity::new("clerk"));
/// assert_eq!(one.name(), two.name());
/// assert_ne!(one.instance_id(), two.instance_id());
/// assert_eq!(one.subscription_name("billing.#"), "clerk.billing-__");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentIdentity {
    name: Arc<str>,
    instance_id: Arc<str>,
}

impl AgentIdentity {
    /// Creates a new instance of the agent `name`, with a random instance id.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            instance_id: RandomIds.next_id().into(),
        }
    }

    /// Sets the instance id.
    #[must_use]
    pub fn with_instance_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.instance_id = id.into();
        self
    }

    /// Returns the name of the agent.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the id of the running instance.
    pub fn instance_id(&self) -> &Arc<str> {
        &self.instance_id
    }

    /// Returns the name of this agent's subscription to `pattern`, shared by all its instances: `.`
    /// in the pattern becomes `-`, `*` becomes `_`, `#` becomes `__`.
    pub fn subscription_name(&self, pattern: &str) -> String {
        let pattern = pattern.replace('.', "-").replace('#', "__").replace('*', "_");
        format!("{}.{pattern}", self.name)
    }
}

impl fmt::Display for AgentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.instance_id)
    }
}
