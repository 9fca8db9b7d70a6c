//! The reports of a resumed turn's work in an earlier process.

use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::chat::{ChatMessage, Role, ToolCall};
use rockbot_core::turn::{TurnFeed, TurnProgress};

use crate::live::LiveTurn;
use crate::turn::{CallStatus, Turn};

/// Creates the live turn of a resumed turn, whose feed begins with the words and the ended calls
/// of the earlier process. A call that was interrupted is reported once it runs again.
pub(super) fn live_again(turn: &Turn, asked: Option<&LiveTurn>) -> Arc<LiveTurn> {
    let live = LiveTurn::resumed(turn.request().clone(), asked);
    if let Some(feed) = live.feed() {
        append_earlier(turn, feed);
    }
    live
}

fn append_earlier(turn: &Turn, feed: &TurnFeed) {
    let mut calls: Vec<&ToolCall> = Vec::new();
    for message in turn.own_messages() {
        // An answer without calls was not accepted: the listeners were told so.
        if message.role == Role::Assistant && !message.tool_calls.is_empty() {
            append_words(message, feed);
            calls.extend(&message.tool_calls);
        } else if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id)
            && let Some(call) = calls.iter().find(|call| call.id == *id)
        {
            append_call(call, message.is_error, &message.content.words(), feed);
        }
    }
    for state in turn.calls() {
        if let CallStatus::Finished(response) = &state.status {
            append_call(&state.call, response.is_error, &response.content.words(), feed);
        }
    }
}

fn append_words(message: &ChatMessage, feed: &TurnFeed) {
    let words = message.content.words();
    if !words.is_empty() {
        feed.push(TurnProgress::Delta(words.into_owned()));
    }
}

fn append_call(call: &ToolCall, is_error: bool, content: &str, feed: &TurnFeed) {
    let tool: ToolName = call.name.clone();
    feed.push(TurnProgress::ToolStarted {
        call: call.id.clone(),
        tool: tool.clone(),
        arguments: call.arguments.clone(),
    });
    feed.push(TurnProgress::ToolFinished {
        call: call.id.clone(),
        tool,
        is_error,
        content: content.to_owned(),
    });
}
