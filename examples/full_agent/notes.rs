//! Tools that keep notes in a file, and the guide to them.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rockbot::content::Provenance;
use rockbot::memory::{ContextItem, ContextQuery, ContextSource};
use rockbot::prelude::*;
use rockbot::tool::StaticGuide;

/// The file, below the data folder.
const FILE: &str = "notes.txt";

/// Maximum length of a note, in bytes.
const MAX_NOTE: usize = 1000;

/// Writes a note down.
#[derive(Deserialize, JsonSchema)]
struct TakeNote {
    /// The text of the note.
    text: String,
}

/// Reads all notes.
#[derive(Deserialize, JsonSchema)]
struct ReadNotes {}

/// Returns the tools; notes are kept in `folder`.
pub(crate) fn tools(folder: &Path) -> [Tool; 2] {
    let file = folder.join(FILE);
    [
        stateful_tool("take_note", file.clone(), take_note),
        stateful_tool("read_notes", file, read_notes).pure(),
    ]
}

/// Returns the guide that the model reads before it uses the tools.
pub(crate) fn guide() -> StaticGuide {
    StaticGuide::new("notes", "Taking and reading notes.", include_str!("notes.md"))
}

/// Tells the model before each turn how many notes there are, so that it knows without a call.
#[derive(Debug)]
pub(crate) struct NoteCount {
    file: PathBuf,
}

impl NoteCount {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            file: folder.join(FILE),
        }
    }
}

#[async_trait]
impl ContextSource for NoteCount {
    fn name(&self) -> &str {
        "notes"
    }

    async fn gather(&self, _: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let count = std::fs::read_to_string(&self.file).map_or(0, |notes| notes.lines().count());
        let text = format!("{count}; `read_notes` reads them.");
        let item =
            (count > 0).then(|| ContextItem::new("Notes taken so far", text, "there are notes", Provenance::HOST));
        Ok(item.into_iter().collect())
    }
}

// Any error may leave a tool with `?`: the model reads it. A `ToolError` also carries the kind
// of error.
async fn take_note(file: ToolState<PathBuf>, note: TakeNote) -> Result<&'static str, BoxError> {
    if note.text.len() > MAX_NOTE {
        let problem = format!("a note has up to {MAX_NOTE} bytes: write it shorter");
        return Err(ToolError::invalid_arguments(problem).into());
    }
    let line = note.text.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    let mut file = File::options().create(true).append(true).open(&*file)?;
    file.write_all(line.as_bytes())?;
    Ok("Noted.")
}

async fn read_notes(file: ToolState<PathBuf>, _: ReadNotes) -> Result<String, BoxError> {
    match std::fs::read_to_string(&*file) {
        Ok(notes) => Ok(notes),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok("There are no notes.".to_owned()),
        Err(error) => Err(error.into()),
    }
}
