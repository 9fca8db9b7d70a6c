//! Progress reports of a running turn.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, TurnOutcome};
use crate::context::WaitReason;
use crate::{CallId, Timestamp, ToolName};

/// A progress report of a running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnProgress {
    /// Next piece of the text that the model is writing.
    Delta(String),
    /// Next piece of the model's reasoning.
    Reasoning(String),
    /// Retraction of the deltas since the last tool call: the model starts over.
    Retract,
    /// Start of a tool call.
    ToolStarted {
        /// Id of the call.
        call: CallId,
        /// Name of the tool.
        tool: ToolName,
        /// Arguments of the call, as JSON text.
        arguments: Arc<str>,
    },
    /// Report of a running tool.
    ToolProgress {
        /// Id of the call. Empty in a report of a version that did not name it.
        #[serde(default = "unnamed")]
        call: CallId,
        /// Name of the tool. Empty in a report of a version that did not name it.
        #[serde(default = "unnamed")]
        tool: ToolName,
        /// Text that the tool reports.
        text: String,
    },
    /// End of a tool call.
    ToolFinished {
        /// Id of the call.
        call: CallId,
        /// Name of the tool.
        tool: ToolName,
        /// `true` if the call failed.
        is_error: bool,
        /// Content that the model will read.
        content: String,
    },
    /// Tool call that waits for an approval.
    ApprovalNeeded(ApprovalRequest),
    /// Note to the user.
    Note(String),
    /// Wait for something that is neither the model's work nor a tool's, reported if it takes a
    /// second or more. Cancelling the turn ends it at once.
    Waiting {
        /// Latest time for the end of the wait, by the clock of the host; `None` if it is unknown.
        until: Option<Timestamp>,
        /// Reason of the wait.
        why: WaitReason,
    },
    /// Outcome of the turn; no report follows.
    Final(TurnOutcome),
}

/// The receiver of a turn's reports. It is called from within the turn and must not block.
///
/// The host sends it all events of the turn. Tools and model clients get its narrow side, the
/// [`ProgressReporter`](crate::context::ProgressReporter) in their
/// [`CallContext`](crate::CallContext).
#[derive(Clone, Default)]
pub struct ProgressSink {
    receiver: Option<Receiver>,
    without_deltas: bool,
}

type Receiver = Arc<dyn Fn(TurnProgress) + Send + Sync>;

impl ProgressSink {
    /// Creates a sink that calls `receive` with each report.
    pub fn new(receive: impl Fn(TurnProgress) + Send + Sync + 'static) -> Self {
        Self {
            receiver: Some(Arc::new(receive)),
            without_deltas: false,
        }
    }

    /// Creates a sink that does not need the pieces of an answer, so that the model's answers need
    /// not be streamed.
    pub fn without_deltas(receive: impl Fn(TurnProgress) + Send + Sync + 'static) -> Self {
        Self {
            without_deltas: true,
            ..Self::new(receive)
        }
    }

    /// Creates a sink without a receiver, which drops all reports.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns `true` if there is a receiver.
    pub fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Returns `true` if the receiver wants the pieces of an answer. The host streams the model's
    /// answer only then.
    pub fn wants_deltas(&self) -> bool {
        self.is_open() && !self.without_deltas
    }

    /// Sends a report. `progress` runs only if the sink has a receiver, so building a report costs
    /// nothing without a receiver.
    pub fn send(&self, progress: impl FnOnce() -> TurnProgress) {
        if let Some(receive) = &self.receiver {
            receive(progress());
        }
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSink").field(&self.is_open()).finish()
    }
}

/// Returns the empty id, for a report that lacks one.
fn unnamed<T: for<'a> From<&'a str>>() -> T {
    T::from("")
}

#[cfg(test)]
mod tests {
    use super::TurnProgress;

    #[test]
    fn a_report_of_an_older_version_has_no_call() {
        let report: TurnProgress = serde_json::from_str(r#"{"tool_progress":{"text":"half"}}"#).unwrap();
        let expected = TurnProgress::ToolProgress {
            call: "".into(),
            tool: "".into(),
            text: "half".to_owned(),
        };
        assert_eq!(report, expected);
    }
}
