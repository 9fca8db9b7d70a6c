//! AG-UI 1.0, the protocol of agents and their user interfaces: a run is a turn, an approval is an
//! interrupt, and the run that resumes decides about it.
//!
//! A thread is a session, and the host keeps its conversation: of the messages that a client sends,
//! the last one is read. The id of the run is the id of the message, so the same run, sent again
//! after a lost connection, is the same turn, and its events are told from the beginning. Tools of
//! the client are refused, and its state is not read.

mod events;
mod input;
mod interrupt;

use std::collections::HashSet;

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use rockbot_core::CallId;
use rockbot_core::turn::TurnEvents;

use crate::door::{Caller, JsonBody, UrlPath};
use crate::error::WebError;
use crate::sse;
use events::AgUiEvents;
use input::{ResumeEntry, RunInput};
use interrupt::{Interrupt, pending};

/// Returns the routes.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/agui", post(run_own))
        .route("/agui/{agent}", post(run_beside))
}

async fn run_own(caller: Caller, JsonBody(input): JsonBody<RunInput>) -> Result<Response, WebError> {
    run(caller, None, input).await
}

async fn run_beside(
    caller: Caller,
    UrlPath(agent): UrlPath<String>,
    JsonBody(input): JsonBody<RunInput>,
) -> Result<Response, WebError> {
    run(caller, Some(&agent), input).await
}

async fn run(caller: Caller, agent: Option<&str>, mut input: RunInput) -> Result<Response, WebError> {
    input.check()?;
    let permit = caller.take_stream()?;
    let resume = input.resume.take().filter(|entries| !entries.is_empty());
    if let Some(entries) = resume {
        let (events, announced) = resumed(&caller, &entries).await?;
        let mut form = AgUiEvents::new(&caller, &input, events.turn().clone(), announced);
        let mut first = vec![form.started()];
        form.interrupt(&pending(&caller, events.turn()), events.sequence(), &mut first);
        return Ok(sse::stream((&caller, permit), events, form, first));
    }
    let instructions = input.instructions();
    let content = input.last_message()?;
    let request = caller.request(agent, &input.thread_id, &input.run_id, content)?;
    let request = match instructions {
        Some(instructions) => request.with_instructions(instructions),
        None => request,
    };
    caller.count_message().await?;
    let turn = caller.door.turns.start(request).await?;
    let events = caller.door.turns.events(&turn, 0).await?;
    let form = AgUiEvents::new(&caller, &input, turn, HashSet::new());
    let first = [form.started()];
    Ok(sse::stream((&caller, permit), events, form, first))
}

/// Decides about the interrupts of a run, and returns the events of its turn since then, with the
/// calls that the client has been told of.
async fn resumed(caller: &Caller, entries: &[ResumeEntry]) -> Result<(TurnEvents, HashSet<CallId>), WebError> {
    let mut interrupts = Vec::new();
    for entry in entries {
        interrupts.push((Interrupt::parse(&entry.interrupt_id)?, entry));
    }
    let first = &interrupts[0].0;
    if interrupts.iter().any(|(interrupt, _)| interrupt.run != first.run) {
        return Err(WebError::invalid(
            "`resume` answers interrupts of several runs: resume one at a time",
        ));
    }
    let run = caller.turn(first.run.as_str()).await?;
    let after = first.position(&caller.door.epoch);
    for (interrupt, entry) in &interrupts {
        let decision = interrupt.decision(entry)?;
        caller.door.turns.decide(decision, &caller.principal).await?;
    }
    let events = caller.door.turns.events(&run, after).await?;
    let announced = interrupts.into_iter().map(|(interrupt, _)| interrupt.call).collect();
    Ok((events, announced))
}
