//! The library: conversations over days, the tuple behind each sentence, and the questions.

use std::collections::BTreeMap;

use super::grammar::SMALL_TALK;
use super::story::{Author, Stories, Told};
use crate::planted::Numbers;

/// A tuple, and the role of its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tuple {
    /// Person and property.
    pub(super) topic: String,
    pub(super) value: String,
    pub(super) role: Role,
    /// The topic and the value that the tuple rests on.
    pub(super) base: Option<(String, String)>,
}

impl Tuple {
    /// Returns `true` if the tuple, or the value that it rests on, cannot be true beside `other`.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        let differs = |topic: &str, value: &str| topic == other.topic && value != other.value;
        let rests = self.base.as_ref().is_some_and(|(topic, value)| differs(topic, value));
        rests || differs(&self.topic, &self.value)
    }
}

/// The role of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Fact,
    Habit,
    Correction,
    /// The user takes a fact back.
    Forget,
}

/// A sentence of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) day: u64,
    pub(super) session: String,
    pub(super) told: Told,
}

/// A question about the library.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Kind of the fact that is asked for.
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// Person whose lines count; without a person all lines do.
    pub(super) who: Option<String>,
    /// Present values, all of which an answer needs; empty if there is none.
    pub(super) expected: Vec<String>,
    /// Values that are wrong by now.
    pub(super) wrong: Vec<String>,
}

/// Conversations over 30 days, and the questions about them.
#[derive(Debug)]
pub struct Library {
    pub(super) lines: Vec<Line>,
    pub(super) tuples: BTreeMap<String, Tuple>,
    pub(super) questions: Vec<Question>,
}

impl Library {
    /// Generates a library of so many conversations, two a day. The same arguments give the same
    /// library.
    pub fn new(conversations: usize, seed: u64) -> Self {
        let mut stories = Stories::new(conversations, seed);
        let questions = stories.questions();
        let mut numbers = Numbers::new(seed.wrapping_mul(77));
        let mut lines = Vec::new();
        for told in stories.told {
            let mut at: Vec<_> = told.iter().map(|_| numbers.below(conversations)).collect();
            at.sort_unstable();
            lines.extend(at.into_iter().zip(told));
        }
        let talk = (0..2 * conversations).map(|number| {
            let text = SMALL_TALK[numbers.below(SMALL_TALK.len())];
            (number / 2, Told::unsaved(Author::User, text))
        });
        lines.extend(talk.collect::<Vec<_>>());
        // A stable sort: the sentences of a story keep their order.
        lines.sort_by_key(|(conversation, _)| *conversation);
        let lines = lines.into_iter().map(|(conversation, told)| Line {
            day: conversation as u64 / 2,
            session: format!("c{conversation:02}"),
            told,
        });
        Self {
            lines: lines.collect(),
            tuples: stories.tuples,
            questions,
        }
    }
}
