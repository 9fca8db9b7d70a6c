//! Prints a turn from its journal: events, decisions, and the reason for each message of a request.

use std::sync::Arc;

use rockbot::TurnId;
use rockbot::chat::ContextReason;
use rockbot::chat::{ChatMessage, ChatResponse, Role, Spent};
use rockbot::prelude::*;
use rockbot::turn::{TraceEntry, TraceEvent, TraceRequest, TurnTrace};

use super::questions::questions;
use super::terminal::{costs, cut};
use crate::agent::Setup;

/// Prints all records of a turn.
pub(crate) async fn print(host: &AgentHost, turn: &TurnId) -> Result<(), BoxError> {
    let Some(trace) = host.trace(turn).await? else {
        return Err(format!("the journal knows no turn `{turn}`; it keeps them for a day").into());
    };
    lines(&trace).iter().for_each(|line| eprintln!("{line}"));
    Ok(())
}

/// Prints a turn from the journal of an agent that is not started.
pub(crate) async fn of(setup: &Setup<'_>, turn: &str) -> Result<(), BoxError> {
    let host = setup.open(questions().0).await?;
    print(&host, &TurnId::from(turn)).await
}

/// Formats a trace, line by line.
fn lines(trace: &TurnTrace) -> Vec<String> {
    let accepted = &trace.run().accepted;
    let key = &accepted.key;
    let mut lines = vec![format!(
        "turn {} in session {}, message {}",
        accepted.run, key.session, key.message
    )];
    let mut shown = Vec::new();
    for entry in trace.entries() {
        let after = entry.at.since(accepted.at).as_millis();
        let told = tell(entry, &mut shown);
        lines.extend(told.into_iter().enumerate().map(|(index, line)| match index {
            0 => format!("  {after:>6} ms  {line}"),
            _ => format!("               {line}"),
        }));
    }
    lines.push(if trace.is_finished() {
        "  ended".to_owned()
    } else {
        "  not ended".to_owned()
    });
    lines
}

/// Describes an event and its decisions, then the requests that they led to. `shown` is the
/// request before.
fn tell(entry: &TraceEntry, shown: &mut Vec<Arc<ChatMessage>>) -> Vec<String> {
    let decided: Vec<_> = entry.decisions.iter().map(|decision| cut(decision)).collect();
    let arrow = if decided.is_empty() { "" } else { " → " };
    let mut lines = vec![format!("{}{arrow}{}", happened(&entry.event), decided.join(", "))];
    for asked in &entry.requests {
        lines.extend(request(asked, shown));
    }
    lines
}

fn happened(event: &TraceEvent) -> String {
    match event {
        TraceEvent::Started { messages, .. } => format!("started with {messages} messages"),
        TraceEvent::ModelAnswered { response, tier, .. } => {
            format!("{} [{}, {}]", said(response), tier.name(), costs(&Spent::on(response)))
        }
        TraceEvent::ToolStarted { call } => format!("call {call} starts"),
        TraceEvent::ToolReturned(response) => {
            format!("{} returned: {}", response.tool_name, cut(&response.content.words()))
        }
        TraceEvent::Delegated { turn: Some(turn) } => format!("turn {turn} of a called agent ended"),
        TraceEvent::Other(text) => cut(text),
        other => cut(&format!("{other:?}")),
    }
}

/// Lists the messages that are new since the last request, each with its position, reason and
/// source.
fn request(asked: &TraceRequest, shown: &mut Vec<Arc<ChatMessage>>) -> Vec<String> {
    if asked.is_out_of_band {
        return vec!["an out-of-band question, which the conversation does not show".to_owned()];
    }
    let messages = &asked.messages;
    let same = |(one, other): &(&Arc<_>, &Arc<_>)| Arc::ptr_eq(one, other);
    let known = messages.iter().zip(&*shown).take_while(same).count();
    let mut turns = 0;
    let mut lines = vec![format!("a request with {} messages:", messages.len())];
    if known > 0 {
        lines.push(format!("    1 to {known} as before"));
    }
    for (index, message) in messages.iter().enumerate() {
        let is_past = message.why() == ContextReason::History;
        turns += u32::from(is_past && message.role == Role::User);
        if index >= known {
            let why = if is_past {
                format!("history, turn {turns}")
            } else {
                message.why().to_string()
            };
            lines.push(format!(
                "    {} {why} ({}): {}",
                index + 1,
                source(message),
                words(message)
            ));
        }
    }
    shown.clone_from(messages);
    lines
}

fn said(response: &ChatResponse) -> String {
    if response.tool_calls.is_empty() {
        format!("the model said: {}", cut(&response.text))
    } else {
        let form = if response.calls_from_text {
            ", read from its text"
        } else {
            ""
        };
        format!("the model wants {}{form}", calls(&response.to_message()))
    }
}

fn calls(message: &ChatMessage) -> String {
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| format!("{} {}", call.name, cut(&call.arguments)));
    calls.collect::<Vec<_>>().join(", ")
}

/// Returns the source of a message.
fn source(message: &ChatMessage) -> &str {
    message
        .content
        .parts()
        .first()
        .map_or("model", |part| &part.provenance().source)
}

fn words(message: &ChatMessage) -> String {
    if message.tool_calls.is_empty() {
        cut(&message.content.words())
    } else {
        calls(message)
    }
}
