//! Notes: texts that the host adds in the user's role, between marks that nothing outside can
//! know.

use std::hash::{DefaultHasher, Hash, Hasher};

use rockbot_core::chat::{ChatCall, ChatMessage, ContextReason, Provenance, Role};
use rockbot_core::{IdSource, RandomIds, TurnId};

/// Returns `true` for a note: a text that the host adds in the user's role, unless it has marks
/// of its own.
pub(crate) fn is_note(message: &ChatMessage) -> bool {
    let first = message.content.parts().first();
    let is_hosts = first.is_some_and(|part| *part.provenance() == Provenance::HOST);
    message.role == Role::User && is_hosts && message.why() != ContextReason::Recalled
}

/// Returns `true` if notes stand beside other texts among messages that become one, so that they
/// need marks.
pub(crate) fn is_mixed<'a>(messages: impl IntoIterator<Item = &'a ChatMessage>) -> bool {
    let mut notes = false;
    let mut others = false;
    for message in messages {
        *(if is_note(message) { &mut notes } else { &mut others }) = true;
    }
    notes && others
}

/// The secret of a client; the marks follow from it. Tools may know the id of the turn.
#[derive(Debug)]
pub(crate) struct MarkSecret(String);

impl MarkSecret {
    /// Creates a random secret.
    pub(crate) fn random() -> Self {
        Self(RandomIds.next_id())
    }

    /// Returns the inputs of the marks in the request of `call`.
    pub(crate) fn scope<'a>(&'a self, call: &'a ChatCall) -> MarkScope<'a> {
        let turn = call.cx.turn().map_or(call.cx.session().as_str(), TurnId::as_str);
        MarkScope([&self.0, turn])
    }
}

/// A secret of this process and the id of the turn; marks are a hash of both. The author of a
/// tool's result cannot know the secret, so a prompt injection cannot pretend to be the host.
/// Both stay the same in all requests of the turn, as the provider's prompt cache needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkScope<'a>(pub(crate) [&'a str; 2]);

impl MarkScope<'_> {
    /// Returns the marks around notes: letters alone, because small models calculate with digits.
    pub(crate) fn marks(self) -> NoteMarks {
        // SipHash: without the secret before it, the hash of an id cannot be told. Every request of a
        // turn asks for it.
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        let mut rest = hasher.finish();
        let mark: String = std::iter::repeat_with(|| {
            let letter = LETTERS[(rest % LETTERS.len() as u64) as usize];
            rest /= LETTERS.len() as u64;
            char::from(letter)
        })
        .take(MARK_LEN)
        .collect();
        NoteMarks {
            begin: format!("{BEGIN}{mark}{BEHIND}"),
            end: "]".to_owned(),
        }
    }
}

/// The beginning of every note, before its mark.
pub(super) const BEGIN: &str = "[Note ";

/// The characters behind the mark of a note.
pub(super) const BEHIND: &str = ": ";

/// The letters of marks. Without vowels they spell no word.
pub(super) const LETTERS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";

/// The length of a mark: there are 1 280 000 000 marks.
pub(super) const MARK_LEN: usize = 7;

/// The marks around notes. The first mark alone is a secret: behind a forged end nothing speaks
/// for the host.
#[derive(Debug)]
pub(crate) struct NoteMarks {
    pub(crate) begin: String,
    pub(crate) end: String,
}
