//! The person who decides about the calls of a turn of another program.

use serde::{Deserialize, Serialize};

use crate::{Principal, SessionId, ToolName};

/// The person who is asked for the approvals of a turn. The turn's principal is a program, so the
/// operator of the host decides: the turn works with the operator's means.
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
    /// Session of the question to the person.
    pub session: SessionId,
    /// Programs through which the work came, the first program first. The person reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ToolName>,
}

impl Approver {
    /// Creates the approver of work that came through no program.
    pub fn new(principal: impl Into<Principal>, session: impl Into<SessionId>) -> Self {
        Self {
            principal: principal.into(),
            session: session.into(),
            chain: Vec::new(),
        }
    }

    /// Sets the programs through which the work came, the first program first. Default: none.
    #[must_use]
    pub fn with_chain(mut self, chain: Vec<ToolName>) -> Self {
        self.chain = chain;
        self
    }
}
