//! Hooks: async functions that turns ask, and whose decisions are in the journal.

use std::sync::Arc;

use rockbot::chat::ChatMessage;
use rockbot::chat::ContextReason;
use rockbot::turn::{
    HistoryProcessor, InputGuardrail, InputVerdict, LoopDecision, LoopPoint, LoopPolicy, OutputValidator,
    OutputVerdict, UserInput, guardrail_fn, history_fn, policy_fn, validator_fn,
};

/// Number of questions to the model before the last one at which it is told to come to an end.
const RESERVE: u32 = 5;

/// Maximum length of a message in bytes.
const MAX_MESSAGE: usize = 100_000;

/// Maximum number of messages of earlier turns that the model reads.
const MAX_PAST: usize = 12;

/// Tells the model to come to an end before its budget is used up.
pub(crate) fn come_to_an_end() -> impl LoopPolicy {
    policy_fn(|point, turn| async move {
        Ok(match point {
            LoopPoint::BeforeRequest if turn.model_calls_left() == RESERVE => {
                LoopDecision::add_message("Only a few steps are left. Finish what you have begun, then answer.")
            }
            _ => LoopDecision::Continue,
        })
    })
}

/// Sends back an answer that shows one of the program's secrets.
pub(crate) fn no_secrets() -> impl OutputValidator {
    let keys = ["OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"];
    let secrets: Vec<_> = keys.into_iter().filter_map(|key| std::env::var(key).ok()).collect();
    validator_fn(move |answer, _turn| {
        let leaks = secrets
            .iter()
            .any(|secret| !secret.is_empty() && answer.text.contains(secret));
        async move {
            Ok(if leaks {
                OutputVerdict::complain("It shows a secret of the program.")
            } else {
                OutputVerdict::Accept
            })
        }
    })
}

/// Leaves out old messages of earlier turns: what matters of them is in the memory.
pub(crate) fn short_past() -> impl HistoryProcessor {
    history_fn(|mut messages, _turn| async move {
        let is_past = |message: &Arc<ChatMessage>| message.why() == ContextReason::History;
        let mut surplus = messages
            .iter()
            .filter(|message| is_past(message))
            .count()
            .saturating_sub(MAX_PAST);
        messages.retain(|message| {
            let drops = surplus > 0 && is_past(message);
            surplus -= usize::from(drops);
            !drops
        });
        Ok(messages)
    })
}

/// Refuses messages that are too long to be read by a person.
pub(crate) fn readable() -> impl InputGuardrail {
    guardrail_fn(|input: UserInput| async move {
        Ok(if input.text().len() > MAX_MESSAGE {
            InputVerdict::refuse("That is too long for me. Please send a shorter message, or a file.")
        } else {
            InputVerdict::Pass
        })
    })
}
