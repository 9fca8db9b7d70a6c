//! The reporters of calls: they bring the reports of a model client or a tool to the listener of
//! the turn.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::context::{ProgressListener, ProgressReporter, WaitReason};
use rockbot_core::turn::{ProgressSink, TurnProgress};
use rockbot_core::{CallContext, CallId, Clock, ToolName};

use super::Drive;

/// A listener that passes the reports of one call to the listener of its turn.
struct CallListener {
    progress: ProgressSink,
    clock: Arc<dyn Clock>,
    /// The id and the tool of a tool call. A listener tells calls apart by it that run at the same
    /// time. `None` for a call of the model.
    call: Option<(CallId, ToolName)>,
}

impl ProgressListener for CallListener {
    fn tool_progress(&self, text: String) {
        self.progress.send(|| match self.call.clone() {
            Some((call, tool)) => TurnProgress::ToolProgress { call, tool, text },
            None => TurnProgress::Note(text),
        });
    }

    fn waiting(&self, at_most: Option<Duration>, why: WaitReason) {
        self.progress.send(|| TurnProgress::Waiting {
            until: at_most.map(|left| self.clock.now().after(left)),
            why,
        });
    }
}

impl Drive<'_> {
    /// Sets the reporter of a call, `None` for a call of the model. Without a listener to the turn
    /// no reporter is set.
    pub(super) fn with_reporter(&self, cx: CallContext, call: Option<(&CallId, &ToolName)>) -> CallContext {
        let progress = self.live.progress();
        if !progress.is_open() {
            return cx;
        }
        let listener = CallListener {
            progress: progress.clone(),
            clock: self.driver.clock.clone(),
            call: call.map(|(id, tool)| (id.clone(), tool.clone())),
        };
        cx.with_progress(ProgressReporter::new(Arc::new(listener)))
    }
}
