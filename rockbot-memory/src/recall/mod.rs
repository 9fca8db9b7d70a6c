//! What of all that an agent remembers is shown to its model before a turn.
//!
//! Each store has a [`ContextSource`](rockbot_core::recall::ContextSource). What it shows is chosen by the message and the
//! last ones before it, anew for each turn: nothing is kept about what was shown, so nothing is forgotten by a restart and
//! nothing disappears while the conversation is still about it.

mod memories;
mod notes;
mod rules;
mod skills;
mod topics;

pub use memories::MemoryRecall;
pub use notes::NoteRecall;
pub use rules::RuleRecall;
pub use skills::SkillRecall;

/// At most `len` bytes of a text in one line or many, with a note where something is missing.
fn shortened(text: &str, len: usize) -> String {
    let text = text.trim();
    match text.len() > len {
        false => text.to_owned(),
        true => format!("{} […]", &text[..text.floor_char_boundary(len)]),
    }
}
