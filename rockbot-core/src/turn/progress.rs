//! What a turn reports while it runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, TurnOutcome};
use crate::{CallId, ToolName};

/// Something that happened in a running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnProgress {
    /// More of the text that the model is writing.
    Delta(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// Forget the deltas since the last tool call: the model starts over.
    Retract,
    /// A tool call begins.
    ToolStarted {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The arguments, as JSON text.
        arguments: Arc<str>,
    },
    /// A tool reports how far it is.
    ToolProgress {
        /// The tool's own words.
        text: String,
    },
    /// A tool call ended.
    ToolFinished {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// Whether it failed.
        is_error: bool,
        /// What the model will read.
        content: String,
    },
    /// A tool call waits for a person.
    ApprovalNeeded(ApprovalRequest),
    /// Something worth telling.
    Note(String),
    /// The end. Nothing follows.
    Final(TurnOutcome),
}

/// Receives what a turn reports. Called from the turn: must not block.
#[derive(Clone, Default)]
pub struct ProgressSink {
    receive: Option<Arc<dyn Fn(TurnProgress) + Send + Sync>>,
    without_deltas: bool,
}

impl ProgressSink {
    /// A sink that calls `receive` with each report.
    pub fn new(receive: impl Fn(TurnProgress) + Send + Sync + 'static) -> Self {
        Self {
            receive: Some(Arc::new(receive)),
            without_deltas: false,
        }
    }

    /// A sink for somebody whom the pieces of an answer do not concern: the model's answers come whole.
    pub fn without_deltas(receive: impl Fn(TurnProgress) + Send + Sync + 'static) -> Self {
        Self {
            without_deltas: true,
            ..Self::new(receive)
        }
    }

    /// Nobody listens.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether somebody listens.
    pub fn is_open(&self) -> bool {
        self.receive.is_some()
    }

    /// Whether somebody listens to the pieces of an answer. A client streams only then.
    pub fn wants_deltas(&self) -> bool {
        self.is_open() && !self.without_deltas
    }

    /// Reports `progress`, which is made only when somebody listens.
    pub fn send(&self, progress: impl FnOnce() -> TurnProgress) {
        if let Some(receive) = &self.receive {
            receive(progress());
        }
    }

    /// Reports a tool's own words.
    pub fn tool(&self, text: impl Into<String>) {
        self.send(|| TurnProgress::ToolProgress { text: text.into() });
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSink").field(&self.is_open()).finish()
    }
}
