//! Progress reports of a turn on their way to the user.

use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::messaging::MessageContext;
use rockbot_core::turn::{ProgressSink, TurnProgress};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_core::{Clock, Timestamp};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::TurnEngine;

/// Maximum number of reports that wait to be sent. Further reports are dropped; the final reply
/// is never dropped.
const MAX_WAITING: usize = 64;

/// Returns a sink that sends reports to the message's reply topic, and a token that fires when
/// all of them are out. A message without a reply topic gets no reports: they would go to the
/// topic that all interfaces see.
pub(super) fn progress_of(
    engine: &Arc<TurnEngine>,
    message: &UserMessage,
    cx: &MessageContext,
) -> (ProgressSink, CancellationToken) {
    let out = CancellationToken::new();
    if cx.envelope().reply_to.is_none() {
        out.cancel();
        return (ProgressSink::none(), out);
    }
    let (sender, mut receiver) = mpsc::channel::<TurnProgress>(MAX_WAITING);
    // A drop guard fires the token even when the task is aborted: the reply waits for it.
    let session = message.session_id.clone();
    let cx = cx.clone();
    let is_out = out.clone().drop_guard();
    let clock = engine.clock.clone();
    engine.spawn(async move {
        let _is_out = is_out;
        while let Some(progress) = receiver.recv().await {
            let Some(content) = text_of(&progress, clock.now()) else {
                continue;
            };
            let report = AgentReply::new(session.clone(), &**cx.identity().name(), content)
                .with_final(false)
                .with_structured_data(serde_json::to_value(&progress).ok())
                .with_content_type(AgentReply::PROGRESS);
            if let Err(error) = cx.reply(&report).await {
                tracing::debug!(%error, "progress report not sent; the turn continues");
            }
        }
    });
    let sender = Mutex::new(Some(sender));
    let sink = ProgressSink::without_deltas(move |progress| {
        // The guarded value is replaced in one step, so it is consistent even after a panic elsewhere.
        let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(progress, TurnProgress::Final(_)) {
            // Dropping the sender ends the task above once it has sent the queued reports.
            *sender = None;
        } else if let Some(sender) = sender
            .as_ref()
            .filter(|_| text_of(&progress, Timestamp::default()).is_some())
        {
            // Never waits: a slow bus must not slow the turn down.
            let _ = sender.try_send(progress);
        }
    });
    (sink, out)
}

/// Returns the text that users read at the time `now`, or `None` for a report that is not worth a
/// message of its own.
fn text_of(progress: &TurnProgress, now: Timestamp) -> Option<String> {
    match progress {
        TurnProgress::ToolStarted { tool, .. } => Some(format!("Using {tool} …")),
        TurnProgress::ToolProgress { tool, text, .. } => Some(format!("{tool}: {text}")),
        TurnProgress::Note(text) => Some(text.clone()),
        TurnProgress::Waiting { until, why } => Some(why.in_words(until.map(|until| until.since(now)))),
        TurnProgress::ApprovalNeeded(request) => {
            let tool = &request.tool;
            let arguments = &request.arguments;
            Some(format!("May I call {tool} with {arguments}? I wait for your decision."))
        }
        _ => None,
    }
}
