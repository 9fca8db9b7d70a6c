//! What a turn reports on the way, for the one who asked.

use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::messaging::{MessageContext, MessageEnvelope, MessagePublisherExt as _};
use rockbot_core::turn::{ProgressSink, TurnProgress};
use rockbot_core::user::{AgentReply, UserMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::TurnEngine;

/// How many reports wait to be sent. Further ones are dropped: the reply itself never is.
const WAITING: usize = 64;

/// Reports to the topic that the sender named for the reply, and what fires when all of them are out. One that named
/// none gets none: everybody would see them.
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
    let (sender, mut receiver) = mpsc::channel::<TurnProgress>(WAITING);
    let (session, cx, is_out) = (message.session_id.clone(), cx.clone(), out.clone().drop_guard());
    engine.spawn(async move {
        let _is_out = is_out;
        while let Some(progress) = receiver.recv().await {
            let Some(content) = words(&progress) else { continue };
            let report = AgentReply {
                content,
                session_id: session.clone(),
                agent_name: cx.identity().name().to_string(),
                is_final: false,
                structured_data: serde_json::to_value(&progress).ok(),
                content_type: Some(AgentReply::PROGRESS.to_owned()),
            };
            if let Err(error) = send(&report, &cx).await {
                tracing::debug!(%error, "a report on the way to a reply was not sent");
            }
        }
    });
    let sender = Mutex::new(Some(sender));
    let sink = ProgressSink::without_deltas(move |progress| {
        // What stands under the lock is whole at every moment, whoever panics.
        let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(progress, TurnProgress::Final(_)) {
            *sender = None;
        } else if let Some(sender) = sender.as_ref().filter(|_| words(&progress).is_some()) {
            let _ = sender.try_send(progress);
        }
    });
    (sink, out)
}

async fn send(report: &AgentReply, cx: &MessageContext) -> Result<(), rockbot_core::messaging::BusError> {
    let envelope = MessageEnvelope::of(report)?.with_source(Arc::clone(cx.identity().name()));
    cx.publisher().reply(cx.envelope(), envelope).await.map(drop)
}

/// What people read; `None` for what is not worth a message of its own.
fn words(progress: &TurnProgress) -> Option<String> {
    match progress {
        TurnProgress::ToolStarted { tool, .. } => Some(format!("Using {tool} …")),
        TurnProgress::ToolProgress { text } | TurnProgress::Note(text) => Some(text.clone()),
        TurnProgress::ApprovalNeeded(ask) => {
            let (tool, arguments) = (&ask.tool, &ask.arguments);
            Some(format!("May I call {tool} with {arguments}? I wait for your decision."))
        }
        _ => None,
    }
}
