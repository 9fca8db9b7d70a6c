//! Hooks: a guardrail for messages, a validator of answers and a policy of the loop, each an
//! async function.
//!
//! `cargo run --example hooks`: no key needed; the README says how to point it at a real model.

use std::io::{Write, stdout};

use rockbot::prelude::*;
use rockbot::turn::{
    InputVerdict, LoopDecision, LoopPoint, OutputVerdict, UserInput, guardrail_fn, policy_fn, validator_fn,
};

/// Rolls a die.
#[derive(Deserialize, JsonSchema)]
struct RollDie {}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let short = guardrail_fn(|input: UserInput| async move {
        Ok(if input.text().len() < 100 {
            InputVerdict::Pass
        } else {
            InputVerdict::refuse("That is too long for me. Please send a shorter message.")
        })
    });
    let no_shouting = validator_fn(|answer, _turn| async move {
        Ok(if answer.text.ends_with("!!") {
            OutputVerdict::complain("Do not shout.")
        } else {
            OutputVerdict::Accept
        })
    });
    let no_gambling = policy_fn(|point, _turn| async move {
        Ok(match point {
            LoopPoint::AfterAnswer(answer) if answer.tool_calls.iter().any(|call| call.name.as_str() == "roll_die") => {
                LoopDecision::answer("I do not gamble.")
            }
            _ => LoopDecision::Continue,
        })
    });
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(tool("roll_die", |RollDie {}: RollDie| async { "4" }))
        .input_guardrail(short)
        .output_validator(no_shouting)
        .loop_policy(no_gambling)
        .build()?;

    for text in ["Roll die", &"word ".repeat(30)] {
        let answer = host.agent().ask("session", text).await?;
        writeln!(
            stdout(),
            "> {}\n{answer}",
            text.chars().take(20).collect::<String>().trim()
        )?;
    }
    Ok(())
}
