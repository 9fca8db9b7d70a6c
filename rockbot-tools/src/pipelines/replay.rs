//! The replay of a run: the function is called anew, gets the recorded results, and makes the
//! next steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use rockbot_core::BoxError;
use rockbot_core::chat::{ChatError, ChatErrorKind, ChatRequest, ChatResponse, ToolCall};

use super::Procedure;
use super::round;
use super::step::Ledger;
use super::steps::Steps;

/// Maximum number of polls between two rounds of steps.
const MAX_POLLS: usize = 100_000;

/// Returns the next steps of a run, or its answer.
pub(super) fn answer(
    pipeline: &str,
    request: &ChatRequest,
    run: impl FnOnce(Steps, &str) -> Procedure,
) -> Result<ChatResponse, ChatError> {
    let read = round::read(&request.messages);
    let (message, rounds) = read.ok_or_else(|| stopped("the conversation has no message"))?;
    let ledger = Arc::new(Ledger::default());
    let mut running = run(Steps::new(pipeline, ledger.clone()), &message.text());
    let mut rounds = rounds.into_iter();
    loop {
        if let Poll::Ready(ended) = poll(&mut running) {
            return ended.map(ChatResponse::text).map_err(failed);
        }
        let calls = ledger.take_calls();
        if calls.is_empty() {
            return Err(stopped(
                "it waits for something that is no step: a pipeline awaits its steps alone",
            ));
        }
        match rounds.next() {
            Some(round) if is_same(&calls, round.calls) => ledger.end(round.ends),
            Some(round) => return Err(stopped(other_steps(&calls, round.calls))),
            // A turn has no tools any more when its budget is used up.
            None if request.tools.is_empty() => {
                return Err(stopped("its time, or its number of steps, was used up"));
            }
            None => return Ok(ChatResponse::calls(calls)),
        }
    }
}

/// Polls the function until it waits for steps alone.
fn poll(running: &mut Procedure) -> Poll<Result<String, BoxError>> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    for _ in 0..MAX_POLLS {
        if !woken.0.swap(false, Ordering::Relaxed) {
            break;
        }
        if let Poll::Ready(ended) = running.as_mut().poll(&mut cx) {
            return Poll::Ready(ended);
        }
    }
    Poll::Pending
}

/// A waker that remembers that it was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_same(calls: &[ToolCall], recorded: &[ToolCall]) -> bool {
    let same =
        |(call, recorded): (&ToolCall, &ToolCall)| call.name == recorded.name && call.arguments == recorded.arguments;
    calls.len() == recorded.len() && calls.iter().zip(recorded).all(same)
}

/// Returns the error text of a run whose function makes other steps than before.
fn other_steps(calls: &[ToolCall], recorded: &[ToolCall]) -> String {
    let named = |calls: &[ToolCall]| {
        let names: Vec<_> = calls.iter().map(|call| format!("`{}`", call.name)).collect();
        names.join(", ")
    };
    let now = named(calls);
    let before = named(recorded);
    format!(
        "it has made other steps before: {before} where it now makes {now}, or with other arguments. Between its steps a \
         pipeline does the same each time; a changed one has another name"
    )
}

fn stopped(why: impl Into<String>) -> ChatError {
    ChatError::new(ChatErrorKind::InvalidRequest, why)
}

fn failed(error: BoxError) -> ChatError {
    let message = error.to_string();
    ChatError::new(ChatErrorKind::InvalidRequest, message).with_source(error)
}
