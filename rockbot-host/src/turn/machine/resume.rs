//! The continuation of a turn after its process ended.

use rockbot_core::Timestamp;

use super::{Phase, Turn};
use crate::turn::policy::resume;
use crate::turn::step::TurnStep;

impl Turn {
    /// Decides how to continue after the process ended: the interrupted step is repeated, unless that
    /// happened too often.
    pub(super) fn resume(&self, at: Timestamp) -> Vec<TurnStep> {
        if self.resumes > self.policy.max_resumes {
            return vec![resume::abandon(self.resumes, &self.finished_calls())];
        }
        match &self.phase {
            Phase::Asking(purpose) => {
                // A crash between a compaction's decision and its `Compacted` event leaves the plan pending; the
                // question must not be asked with the conversation that was too long.
                let ask = TurnStep::AskModel(purpose.clone());
                self.pending_compaction().into_iter().chain([ask]).collect()
            }
            Phase::Consulting(about) => vec![TurnStep::Consult(about.clone())],
            Phase::Validating { status, text } => vec![TurnStep::Validate {
                status: status.clone(),
                text: text.clone(),
            }],
            Phase::Calling(group) => {
                let left = resume::unfinished(group, &self.calls);
                if left.is_empty() || self.end_reason.is_some() {
                    self.after_calls()
                } else {
                    vec![TurnStep::CallTools(left)]
                }
            }
            Phase::Parked(_) => self.call_or_park(at),
            Phase::Accepted | Phase::Done { .. } => vec![],
        }
    }
}
