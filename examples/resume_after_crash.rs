//! A turn that survives its process: this program starts itself, the copy kills itself in the
//! middle of a call, and the program resumes the turn of the copy.
//!
//! `cargo run --example resume_after_crash`: no key needed; the README says how to point it at a
//! real model.

use std::io::{Write, stdout};
use std::process::{Command, Stdio};

use rockbot::prelude::*;

const DATA: &str = "data/resume_after_crash";

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// Creates a host whose tool kills the process, or works.
fn host(is_deadly: bool) -> Result<AgentHost, BoxError> {
    let add = tool("add", move |Add { a, b }: Add| async move {
        if is_deadly {
            let _ = writeln!(stdout(), "killed in the middle of {a} + {b}");
            std::process::abort();
        }
        (a + b).to_string()
    });
    let builder = AgentHost::builder("adder").data_dir(DATA);
    // An interrupted pure call runs again. The outcome of a mutating call would be asked of its tool
    // instead.
    Ok(builder
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(add.pure())
        .build()?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let is_copy = std::env::args().any(|argument| argument == "--copy");
    if !is_copy {
        let program = std::env::current_exe()?;
        // The copy is killed, so its status is no success; an error of its start comes again below.
        Command::new(program).arg("--copy").stderr(Stdio::null()).status()?;
    }
    let host = host(is_copy)?;
    // Unfinished turns go on.
    host.start().await?;
    // The same message id is the same turn: the message is not asked again, and its answer is awaited.
    let answer = host
        .agent()
        .ask("session", "Add 19 and 23.")
        .message_id("question-1")
        .await?;
    writeln!(stdout(), "resumed: {answer}")?;
    Ok(())
}
