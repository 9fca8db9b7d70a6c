//! Hooks: the async functions of the host's program that turns ask.
//!
//! This file has the hooks of a host, and the single function that runs all of them: isolated,
//! under a time limit, until the turn is cancelled or the host stops. `policies.rs` asks the loop
//! policies, `validators.rs` the output validators, `history.rs` the history processors,
//! `guardrails.rs` the input guardrails.

mod guardrails;
mod history;
mod policies;
mod validators;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::turn::{HistoryProcessor, InputGuardrail, LoopPolicy, OutputValidator, TurnView};
use tokio::time::Instant;

pub(crate) use guardrails::InputCheck;

use super::{Drive, TurnDriver};
use crate::isolate::{Isolate, Isolated};
use crate::live::LiveTurn;
use crate::turn::{Turn, TurnEvent};

/// The hooks of a host, each kind in the order of asking.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) guardrails: Vec<Arc<dyn InputGuardrail>>,
    pub(crate) policies: Vec<Arc<dyn LoopPolicy>>,
    pub(crate) validators: Vec<Arc<dyn OutputValidator>>,
    pub(crate) history: Vec<Arc<dyn HistoryProcessor>>,
}

/// The error of a hook that did not decide.
#[derive(Debug, thiserror::Error)]
enum HookError {
    #[error(transparent)]
    Failed(BoxError),
    #[error("it panicked: {0}")]
    Panicked(String),
    #[error("it did not decide within {0:?}")]
    TimedOut(Duration),
}

/// The end of a hook that was asked.
enum HookEnd<T> {
    Decided(Result<T, HookError>),
    /// The turn was cancelled first.
    Cancelled(TurnEvent),
    /// The host stops. The step is in the journal, so a resume asks again.
    Halted,
}

impl Drive<'_> {
    /// Returns the turn as hooks see it.
    fn hook_view(&self) -> TurnView {
        let cx = self.cx.clone().with_label(self.turn.label());
        self.turn.view(cx)
    }

    /// Runs a hook to its end.
    async fn run_hook<T>(&self, hook: impl Future<Output = Result<T, BoxError>> + Send) -> HookEnd<T> {
        self.driver.run_hook(self.turn, self.live, hook).await
    }
}

impl TurnDriver {
    /// Runs a hook of `turn` to its end.
    async fn run_hook<T>(
        &self,
        turn: &Turn,
        live: &LiveTurn,
        hook: impl Future<Output = Result<T, BoxError>> + Send,
    ) -> HookEnd<T> {
        let limit = turn.policy().hooks.time_limit;
        let running = pin!(Isolate::new(Box::pin(hook), Instant::now(), limit));
        tokio::select! {
            // In order: a cancelled turn ends for good, so it must not be left to a resume.
            biased;
            () = live.cancellation().cancelled() => HookEnd::Cancelled(TurnEvent::Cancelled(live.cancel_reason())),
            () = self.halt.cancelled() => HookEnd::Halted,
            ended = running => HookEnd::Decided(match ended {
                Isolated::Done(decided) => decided.map_err(HookError::Failed),
                Isolated::Panicked(message) => Err(HookError::Panicked(message)),
                Isolated::TimedOut => Err(HookError::TimedOut(limit)),
            }),
        }
    }
}
