//! Recall: the memories, skills, rules and notes that a model is shown before a turn.
//!
//! Each store has a [`ContextSource`](rockbot_core::recall::ContextSource), which selects items
//! by the message and the last ones before it, anew for each turn. Recall is stateless: a restart
//! loses nothing, and items stay visible while the conversation is about them.
//!
//! Recall. Each store has a stateless context source that selects items by the message and the
//! three before it, anew for each turn, within a budget, with a reason for each item in the
//! journal. Data stands between unpredictable delimiters, rules with the instructions. Words are
//! ranked by BM25; with embeddings, normalized scores of words and meaning are added. Vectors of
//! a principal are compared exhaustively (10 to 20 ms for ten thousand of 1536 numbers) and
//! cached on disk by the digest of model and text. A search waits a second for its vector; after
//! a failure, none waits for 30 seconds.

mod decay;
mod memories;
mod notes;
mod rules;
mod skill_list;
mod skills;
mod topics;

use std::borrow::Cow;

pub use decay::Decay;
pub use memories::MemoryRecall;
pub use notes::NoteRecall;
pub use rules::RuleRecall;
pub use skills::SkillRecall;

/// Truncates a text to at most `len` bytes, with a mark where something is missing.
fn shortened(text: &str, len: usize) -> Cow<'_, str> {
    let text = text.trim();
    if text.len() > len {
        Cow::Owned([&text[..text.floor_char_boundary(len)], " […]"].concat())
    } else {
        Cow::Borrowed(text)
    }
}
