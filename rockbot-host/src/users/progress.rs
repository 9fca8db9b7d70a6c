//! What a turn reports on the way, for the one who asked.

use std::sync::Arc;

use rockbot_core::messaging::{MessageContext, MessageEnvelope, MessagePublisherExt as _};
use rockbot_core::turn::{ProgressSink, TurnProgress};
use rockbot_core::user::{AgentReply, UserMessage};
use tokio::sync::mpsc;

use crate::engine::TurnEngine;

/// How many reports wait to be sent. Further ones are dropped: the reply itself never is.
const WAITING: usize = 64;

/// Reports to the topic that the sender named for the reply. One that named none gets none: everybody would see
/// them.
pub(super) fn progress_of(engine: &Arc<TurnEngine>, message: &UserMessage, cx: &MessageContext) -> ProgressSink {
    if cx.envelope().reply_to.is_none() {
        return ProgressSink::none();
    }
    let (sender, mut receiver) = mpsc::channel::<TurnProgress>(WAITING);
    let (session, cx) = (message.session_id.clone(), cx.clone());
    engine.spawn(async move {
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
    ProgressSink::without_deltas(move |progress| {
        if words(&progress).is_some() {
            let _ = sender.try_send(progress);
        }
    })
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
