//! Printing a turn from its journal.

use rockbot::core::TurnId;
use rockbot::core::turn::{RunRecord, RunState};
use rockbot::host::turn::{RecordedEvent, TurnEvent};
use rockbot::prelude::*;

use super::terminal::{clean, cut};

/// Prints everything that the journal knows of a turn: what happened, and what was decided then.
pub(crate) async fn print(host: &AgentHost, turn: &TurnId) -> Result<(), BoxError> {
    let Some(run) = host.trace(turn).await? else {
        return Err(format!("the journal knows no turn `{turn}`; it keeps them for a day").into());
    };
    eprintln!(
        "turn {turn} in session {}, message {}",
        run.accepted.key.session, run.accepted.key.message
    );
    for record in &run.records {
        let after = record.at.since(run.accepted.at).as_millis();
        eprintln!("  {after:>6} ms  {}", describe(record));
    }
    match run.state {
        RunState::Finished(_) => eprintln!("  ended"),
        _ => eprintln!("  not ended"),
    }
    Ok(())
}

fn describe(record: &RunRecord) -> String {
    let Ok(RecordedEvent { event, steps }) = serde_json::from_str(record.body.get()) else {
        return format!("cannot be read: {}", clean(record.body.get()));
    };
    let steps: Vec<_> = steps.iter().map(|step| cut(&format!("{step:?}"))).collect();
    let arrow = if steps.is_empty() { "" } else { " → " };
    format!("{}{arrow}{}", happened(&event), steps.join(", "))
}

fn happened(event: &TurnEvent) -> String {
    match event {
        TurnEvent::Started { context, .. } => format!("started with {} messages", context.len()),
        TurnEvent::ModelAnswered { response, .. } if response.tool_calls.is_empty() => {
            format!("the model said: {}", cut(&response.text))
        }
        TurnEvent::ModelAnswered { response, .. } => {
            let calls = response
                .tool_calls
                .iter()
                .map(|call| format!("{} {}", call.name, cut(&call.arguments)));
            format!("the model wants {}", calls.collect::<Vec<_>>().join(", "))
        }
        TurnEvent::ToolStarted { call } => format!("call {call} starts"),
        TurnEvent::ToolReturned(response) => format!("{} returned: {}", response.tool_name, cut(&response.content)),
        other => cut(&format!("{other:?}")),
    }
}
