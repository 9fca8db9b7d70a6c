//! One step: a future that registers its call when it is awaited, and ends with the recorded
//! result.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rockbot_core::ToolName;
use rockbot_core::chat::ToolCall;

use super::round::StepEnd;

/// The steps of one run of the function: the calls that wait, and the ends of the other calls.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of steps that began.
    begun: usize,
    /// Calls that have begun since the last [`Ledger::take_calls`].
    waiting: Vec<ToolCall>,
    ends: HashMap<usize, StepEnd>,
    wakers: Vec<Waker>,
}

/// A step that is awaited.
#[derive(Debug)]
pub(super) struct Step {
    ledger: Arc<Ledger>,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Fresh { tool: ToolName, arguments: String },
    Begun(usize),
}

impl Ledger {
    /// Takes the calls that began since the last time, in order.
    pub(super) fn take_calls(&self) -> Vec<ToolCall> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Ends the steps that began last, in order, and wakes the futures that wait.
    pub(super) fn end(&self, ends: Vec<StepEnd>) {
        let mut state = self.lock();
        let first = state.begun - ends.len();
        state.ends.extend((first..).zip(ends));
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    /// Creates a step that has not begun.
    pub(super) fn new(ledger: Arc<Ledger>, tool: ToolName, arguments: String) -> Self {
        let progress = Progress::Fresh { tool, arguments };
        Self { ledger, progress }
    }
}

impl Future for Step {
    type Output = StepEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StepEnd> {
        let step = &mut *self;
        let mut state = step.ledger.lock();
        let number = match &step.progress {
            Progress::Begun(number) => *number,
            Progress::Fresh { tool, arguments } => {
                let number = state.begun;
                state.begun += 1;
                let call = ToolCall::new(format!("step-{number}"), tool.clone(), arguments.as_str());
                state.waiting.push(call);
                step.progress = Progress::Begun(number);
                number
            }
        };
        match state.ends.remove(&number) {
            Some(end) => Poll::Ready(end),
            None => {
                state.wakers.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
