//! The step that has the output validators check the final answer.

use rockbot_core::support::loggable;
use rockbot_core::turn::{JournalError, OutputValidator, OutputVerdict, TurnView};

use super::{Drive, HookEnd, HookError};
use crate::turn::{TurnEvent, Validation};

/// The error of an answer whose request had validators that are gone.
const LOST: &str = "output validators of the request lost with the process that asked";

impl Drive<'_> {
    /// Asks the validators of the host in order, then the validators of the request, until one does
    /// not accept the answer.
    pub(in crate::driver) async fn validate(&mut self, text: Option<String>) -> Result<(), JournalError> {
        // Write-ahead: the answer was paid for, and must not be lost to a crash while it is checked.
        self.flush().await?;
        let mut answer = self.turn.final_answer(text);
        let view = self.hook_view();
        if !answer.media.is_empty() {
            self.driver.media.load(self.cx.principal(), &mut answer.media).await;
        }
        let driver = self.driver;
        let live = self.live;
        if live.validators().len() < self.turn.policy().hooks.request_validators {
            let verdict = Validation::Failed(LOST.to_owned());
            let by = None;
            tracing::error!(turn = %self.turn.id(), "{LOST}; the answer is withheld");
            self.feed(TurnEvent::Validated { verdict, by });
            return Ok(());
        }
        let has_validators = !driver.hooks.validators.is_empty() || !live.validators().is_empty();
        for validator in driver.hooks.validators.iter().chain(live.validators()) {
            let verdict = match self.run_hook(validator.validate(&answer, &view)).await {
                HookEnd::Decided(decided) => verdict(&**validator, decided, &view),
                HookEnd::Cancelled(event) => {
                    self.feed(event);
                    return Ok(());
                }
                HookEnd::Halted => return Ok(()),
            };
            if verdict != Validation::Accepted {
                let by = Some(validator.name().to_owned());
                self.feed(TurnEvent::Validated { verdict, by });
                return Ok(());
            }
        }
        let verdict = if has_validators {
            Validation::Accepted
        } else {
            Validation::Unasked
        };
        self.feed(TurnEvent::Validated { verdict, by: None });
        Ok(())
    }
}

fn verdict(validator: &dyn OutputValidator, decided: Result<OutputVerdict, HookError>, turn: &TurnView) -> Validation {
    match decided {
        Ok(OutputVerdict::Accept) => Validation::Accepted,
        Ok(OutputVerdict::Complain(complaint)) => Validation::Complained(complaint),
        // A verdict of a newer version of the contract.
        Ok(_) => Validation::Failed("it returned an unknown verdict".to_owned()),
        Err(error) => {
            let turn = turn.request.turn_id();
            let validator = validator.name();
            let text = error.to_string();
            let error = loggable(&text);
            tracing::error!(%turn, validator, %error, "output validator failed; the answer is withheld");
            Validation::Failed(error.to_string())
        }
    }
}
