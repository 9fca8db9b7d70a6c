//! The smallest agent with a tool of its own: arguments, shared state, an answer.
//!
//! `cargo run --example quickstart`: no key needed; the README says how to point it at a real
//! model.

use std::io::{Write, stdout};
use std::sync::Mutex;

use rockbot::prelude::*;

/// Writes a note down and tells how many there are.
#[derive(Deserialize, JsonSchema)]
struct TakeNote {
    /// The text of the note.
    text: String,
}

async fn take_note(notes: ToolState<Mutex<Vec<String>>>, note: TakeNote) -> Result<String, ToolError> {
    let mut notes = notes
        .lock()
        .map_err(|_| ToolError::execution_failed("the notebook is damaged"))?;
    notes.push(note.text);
    Ok(format!("Noted. There are {} notes now.", notes.len()))
}

pub(crate) fn notebook() -> Tool {
    stateful_tool("take_note", Mutex::new(Vec::new()), take_note)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(notebook())
        .build()?;

    for text in ["Take a note: \"buy milk\"", "Take a note: \"call Ada\""] {
        let answer = host.agent().ask("my-session", text).await?;
        writeln!(stdout(), "> {text}\n{answer}\n")?;
    }
    Ok(())
}
