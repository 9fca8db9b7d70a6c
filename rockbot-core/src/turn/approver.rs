//! The person who decides about the calls of a turn of another program.

use serde::{Deserialize, Serialize};

use crate::{Principal, SessionId, ToolName};

/// The person who is asked for the approvals of a turn, instead of its principal, which is a
/// program: the operator of the host, with whose means the turn works.
///
/// ```
/// use rockbot_core::turn::{Approver, TurnRequest};
///
/// let request = TurnRequest::new("task-1", "start", "Buy milk.")
///     .with_principal("agent:planner")
///     .with_approver(Approver::new("local", "main").with_chain(vec!["planner".into()]));
/// assert_eq!(request.approver.unwrap().principal.as_str(), "local");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Approver {
    /// Principal of the person, who may decide.
    pub principal: Principal,
    /// Session that asks the person.
    pub session: SessionId,
    /// Programs through which the work came, from the first one on; the person reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ToolName>,
}

impl Approver {
    /// Creates the approver of work that came from nowhere else.
    pub fn new(principal: impl Into<Principal>, session: impl Into<SessionId>) -> Self {
        Self {
            principal: principal.into(),
            session: session.into(),
            chain: Vec::new(),
        }
    }

    /// Sets the programs through which the work came, from the first one on. Default none.
    #[must_use]
    pub fn with_chain(mut self, chain: Vec<ToolName>) -> Self {
        self.chain = chain;
        self
    }
}
