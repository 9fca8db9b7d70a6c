//! Prints a turn from its journal: events, decisions, and the reason for each message of a request.

use std::sync::Arc;

use rockbot::TurnId;
use rockbot::chat::{ChatMessage, ChatResponse, ContextReason, ModelTier, Role, Spent};
use rockbot::prelude::*;
use rockbot::turn::{AcceptedTurn, Purpose, RecordedEvent, RunRecord, RunState, StoredRun, Turn, TurnEvent, TurnStep};

use super::terminal::{clean, costs, cut};

/// Prints all records of a turn.
pub(crate) async fn print(host: &AgentHost, turn: &TurnId) -> Result<(), BoxError> {
    let Some(run) = host.trace(turn).await? else {
        return Err(format!("the journal knows no turn `{turn}`; it keeps them for a day").into());
    };
    lines(&run)?.iter().for_each(|line| eprintln!("{line}"));
    Ok(())
}

/// Formats the records of a turn, line by line.
fn lines(run: &StoredRun) -> Result<Vec<String>, BoxError> {
    let accepted: AcceptedTurn = serde_json::from_str(run.accepted.body.get())?;
    let mut replay = Replay {
        turn: Turn::new(accepted.request, accepted.policy, run.accepted.at),
        shown: Vec::new(),
        is_out_of_band: false,
    };
    let key = &run.accepted.key;
    let mut lines = vec![format!(
        "turn {} in session {}, message {}",
        run.accepted.run, key.session, key.message
    )];
    for record in &run.records {
        let after = record.at.since(run.accepted.at).as_millis();
        let told = replay.tell(record);
        lines.extend(told.into_iter().enumerate().map(|(index, line)| match index {
            0 => format!("  {after:>6} ms  {line}"),
            _ => format!("               {line}"),
        }));
    }
    lines.push(match run.state {
        RunState::Finished(_) => "  ended".to_owned(),
        _ => "  not ended".to_owned(),
    });
    Ok(lines)
}

/// A replay of a turn, record by record.
struct Replay {
    turn: Turn,
    /// The messages of the last request.
    shown: Vec<Arc<ChatMessage>>,
    /// The last request was out-of-band: a judge's question, which goes to a cheap model.
    is_out_of_band: bool,
}

impl Replay {
    /// Describes an event and its decisions, then the requests that they led to.
    fn tell(&mut self, record: &RunRecord) -> Vec<String> {
        let Ok(RecordedEvent { event, steps }) = serde_json::from_str(record.body.get()) else {
            return vec![format!("cannot be read: {}", clean(record.body.get()))];
        };
        let decided: Vec<_> = steps.iter().map(|step| cut(&format!("{step:?}"))).collect();
        let arrow = if decided.is_empty() { "" } else { " → " };
        let mut lines = vec![format!("{}{arrow}{}", self.happened(&event), decided.join(", "))];
        self.turn.replay(&event, &steps, record.at);
        for step in &steps {
            if let TurnStep::AskModel(purpose) = step {
                lines.extend(self.request(purpose));
            }
        }
        lines
    }

    fn happened(&self, event: &TurnEvent) -> String {
        match event {
            TurnEvent::Started { context, .. } => format!("started with {} messages", context.len()),
            TurnEvent::ModelAnswered { response, .. } => {
                let tier = match self.is_out_of_band {
                    true => ModelTier::Low,
                    false => self.turn.tier().unwrap_or_default(),
                };
                format!("{} [{}, {}]", said(response), tier.name(), costs(&Spent::on(response)))
            }
            TurnEvent::ToolStarted { call } => format!("call {call} starts"),
            TurnEvent::ToolReturned(response) => {
                format!("{} returned: {}", response.tool_name, cut(&response.content.words()))
            }
            other => cut(&format!("{other:?}")),
        }
    }

    /// Lists the messages that are new since the last request, each with its position, reason and source.
    fn request(&mut self, purpose: &Purpose) -> Vec<String> {
        self.is_out_of_band = purpose.is_out_of_band();
        if self.is_out_of_band {
            return vec!["an out-of-band question, which the conversation does not show".to_owned()];
        }
        let messages = self.turn.messages_for(purpose);
        let same = |(one, other): &(&Arc<_>, &Arc<_>)| Arc::ptr_eq(one, other);
        let known = messages.iter().zip(&self.shown).take_while(same).count();
        let mut turns = 0;
        let mut lines = vec![format!("a request with {} messages:", messages.len())];
        if known > 0 {
            lines.push(format!("    1 to {known} as before"));
        }
        for (index, message) in messages.iter().enumerate() {
            let is_past = message.why() == ContextReason::History;
            turns += u32::from(is_past && message.role == Role::User);
            if index >= known {
                let why = match is_past {
                    true => format!("history, turn {turns}"),
                    false => message.why().to_string(),
                };
                lines.push(format!(
                    "    {} {why} ({}): {}",
                    index + 1,
                    source(message),
                    words(message)
                ));
            }
        }
        self.shown = messages;
        lines
    }
}

fn said(response: &ChatResponse) -> String {
    match response.tool_calls.is_empty() {
        true => format!("the model said: {}", cut(&response.text)),
        false => format!("the model wants {}", calls(&response.to_message())),
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
    match message.tool_calls.is_empty() {
        true => cut(&message.content.words()),
        false => calls(message),
    }
}
