//! The tools: notes of this process, each effect once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot::prelude::*;

/// Maximum number of notes; the oldest go first.
const MAX_NOTES: usize = 1_000;

/// Searches the notes for a text, or lists all of them.
#[derive(Deserialize, JsonSchema)]
struct SearchNotes {
    /// The text that a note must contain.
    text: Option<String>,
}

/// Adds a note.
#[derive(Deserialize, JsonSchema)]
struct AddNote {
    /// The note.
    text: String,
}

/// Counts down by seconds, and reports each.
#[derive(Deserialize, JsonSchema)]
struct CountDown {
    /// The number of seconds, at most 10.
    #[schemars(range(min = 1, max = 10))]
    seconds: u32,
}

type Notes = Arc<Mutex<Vec<String>>>;

/// Returns the tools.
pub(crate) fn tools() -> [Tool; 3] {
    let notes = Notes::default();
    let search = stateful_tool("search_notes", notes.clone(), search).pure();
    let add = stateful_tool("add_note", notes, add);
    let count = tool("count_down", count_down).pure().own_output();
    [search, add, count]
}

async fn search(notes: ToolState<Notes>, search: SearchNotes) -> String {
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = search.text.unwrap_or_default();
    let found: Vec<_> = notes.iter().filter(|note| note.contains(&wanted)).cloned().collect();
    if found.is_empty() {
        "no notes".to_owned()
    } else {
        found.join("\n")
    }
}

async fn add(notes: ToolState<Notes>, note: AddNote) -> &'static str {
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    if notes.len() == MAX_NOTES {
        notes.remove(0);
    }
    notes.push(note.text);
    "noted"
}

async fn count_down(count: CountDown, cx: CallContext) -> &'static str {
    for left in (1..=count.seconds).rev() {
        cx.progress().report(format!("{left} …"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    "lift-off"
}
