//! The tool of a subagent that tells the user how far the subagent is.

use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::turn::{Announcement, TurnQuery};
use rockbot_core::{CallContext, Digest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{SubagentState, id_of, name_of};

/// Maximum length of a report, in bytes.
const MAX_REPORT: usize = 4 << 10;

/// Tells the user how far you are, in one or two sentences.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReportProgress {
    /// News for the user.
    message: String,
}

pub(super) async fn report(
    state: ToolState<SubagentState>,
    args: ReportProgress,
    cx: CallContext,
) -> Result<String, ToolError> {
    let message = args.message.trim();
    if message.is_empty() || message.len() > MAX_REPORT {
        return Err(ToolError::invalid_arguments(format!(
            "`message` has 1 to {MAX_REPORT} bytes"
        )));
    }
    let turns = &state.parts()?.turns;
    let query = TurnQuery::default()
        .with_principal(cx.principal().clone())
        .with_session(cx.session().clone());
    let live = turns
        .live(&query)
        .into_iter()
        .find(|live| Some(&live.turn) == cx.turn() && id_of(live).is_some());
    let Some(live) = live else {
        return Err(ToolError::execution_failed(
            "only a subagent reports: tell the user yourself",
        ));
    };
    let Some(recipient) = &live.request.recipient else {
        return Err(ToolError::execution_failed("nothing waits for the result of this work"));
    };
    let words = format!("[{}] {message}", name_of(&live));
    let announcement = Announcement::new(cx.principal().clone(), recipient.session.clone(), words)
        .with_turn(live.turn.clone())
        .with_label(cx.label());
    // The same words of the same subagent are the same report, also when the call is repeated after
    // a crash.
    let id = format!("{}-{}", live.turn, Digest::of([message]).short());
    turns
        .announce(&id, announcement)
        .await
        .map_err(|error| ToolError::execution_failed(error.to_string()))?;
    Ok("The user is told.".to_owned())
}
