//! Printing a turn from its journal.

use rockbot::core::TurnId;
use rockbot::core::turn::RunState;
use rockbot::prelude::*;

use super::terminal::clean;

/// Prints everything that the journal knows of a turn.
pub async fn print(host: &AgentHost, turn: &TurnId) -> Result<(), BoxError> {
    let Some(run) = host.trace(turn).await? else {
        return Err(format!("the journal knows no turn `{turn}`; it keeps them for a day").into());
    };
    eprintln!(
        "turn {turn} in session {}, message {}",
        run.accepted.key.session, run.accepted.key.message
    );
    for record in &run.records {
        let after = record.at.since(run.accepted.at).as_millis();
        eprintln!("  {after:>6} ms  {}", clean(record.body.get()));
    }
    match run.state {
        RunState::Finished(outcome) => eprintln!("  ended: {}", clean(outcome.get())),
        _ => eprintln!("  not ended"),
    }
    Ok(())
}
