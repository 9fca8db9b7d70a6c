//! The input guardrails, before a turn enters its session.

use rockbot_core::support::loggable;
use rockbot_core::turn::{InputGuardrail, InputVerdict, UserInput};

use super::{HookEnd, TurnDriver};
use crate::driver::context;
use crate::live::LiveTurn;
use crate::turn::{Turn, TurnEvent};

/// The result of checking a user's message.
pub(crate) enum InputCheck {
    /// The turn may begin.
    Passed,
    /// The turn ends with this event.
    Refused(Box<TurnEvent>),
    /// The turn was cancelled first.
    Cancelled,
    /// The host stops. Nothing is decided, so a resume checks the message again.
    Halted,
}

impl TurnDriver {
    /// Returns `true` if the host has guardrails.
    pub(crate) fn has_guardrails(&self) -> bool {
        !self.hooks.guardrails.is_empty()
    }

    /// Has the guardrails check the message of a turn that has not begun, and replace its content.
    pub(crate) async fn check_input(&self, turn: &mut Turn, live: &LiveTurn) -> InputCheck {
        let mut input = UserInput::new(turn.request().clone()).with_context(context(turn, live));
        for guardrail in &self.hooks.guardrails {
            let decided = match self.run_hook(turn, live, guardrail.check(&input)).await {
                HookEnd::Decided(decided) => decided,
                HookEnd::Cancelled(_) => return InputCheck::Cancelled,
                HookEnd::Halted => return InputCheck::Halted,
            };
            match decided {
                Ok(InputVerdict::Pass) => {}
                Ok(InputVerdict::Replace(content)) => match content.check_bounds() {
                    Ok(()) => input.content = content,
                    Err(error) => return failed(turn, &**guardrail, &error.to_string()),
                },
                Ok(InputVerdict::Refuse(text)) => return refused(&**guardrail, text, None),
                // A verdict of a newer version of the contract.
                Ok(_) => return failed(turn, &**guardrail, "it returned an unknown verdict"),
                Err(error) => return failed(turn, &**guardrail, &error.to_string()),
            }
        }
        if input.content != turn.request().content {
            if input.content.has_media() {
                // As with a message itself, the journal has references to images and files only.
                let keeping = self.media.keep_or_describe(input.cx.principal(), &mut input.content);
                Box::pin(keeping).await;
            }
            live.replace_input(input.content.clone());
            turn.replace_input(input.content);
        }
        InputCheck::Passed
    }
}

fn failed(turn: &Turn, guardrail: &dyn InputGuardrail, error: &str) -> InputCheck {
    let turn = turn.id();
    let name = guardrail.name();
    let shown = loggable(error);
    tracing::error!(%turn, guardrail = name, error = %shown, "input guardrail failed; the message is not answered");
    refused(guardrail, String::new(), Some(shown.to_string()))
}

fn refused(guardrail: &dyn InputGuardrail, text: String, error: Option<String>) -> InputCheck {
    let by = guardrail.name().to_owned();
    InputCheck::Refused(Box::new(TurnEvent::InputRefused { text, by, error }))
}
