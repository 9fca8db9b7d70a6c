//! The plots: the sentences about one value or two, in their order, and the right answer at the end.

/// The form of a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// The sentence of the grammar with this number.
    Says(usize),
    /// Any of the sentences.
    Any,
    /// The first sentence, with the word `now`.
    Now,
    /// The change in other words.
    Changes,
    /// A value that rests on the first.
    Rests,
    /// The user takes the fact back.
    Forget,
}

/// The author of a sentence, and the way in which the agent keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It stands in the conversation log alone.
    Unsaved,
    /// The agent saved it, unless the words were known.
    Saved,
    /// It came with an import, which compares nothing.
    Imported,
    /// It is a correction, which feedback records.
    Feedback,
    /// The agent archives the memory that it takes back.
    Archives,
    /// A web page has it; the agent saved it.
    OfPage,
    /// A web page has it, and it was not saved.
    Seen,
}

impl Kept {
    pub(super) fn is_of_page(self) -> bool {
        matches!(self, Self::OfPage | Self::Seen)
    }
}

/// A plot. Values are numbers: 0, 1 and 2.
pub(super) struct Plot {
    pub(super) kind: &'static str,
    /// Group of the grammar.
    pub(super) group: &'static str,
    /// Number of stories in 60 conversations.
    pub(super) count: usize,
    pub(super) told: &'static [(Form, usize, Kept)],
    /// Present value; `None` if there is none.
    pub(super) expected: Option<usize>,
    /// Values that are wrong by now.
    pub(super) wrong: &'static [usize],
}

use Form::{Any, Changes, Forget, Now, Rests, Says};
use Kept::{Archives, Feedback, Imported, OfPage, Saved, Seen, Unsaved};

type Told = &'static [(Form, usize, Kept)];

const fn plot(kind: &'static str, count: usize, told: Told, expected: Option<usize>, wrong: &'static [usize]) -> Plot {
    Plot {
        kind,
        group: "fact",
        count,
        told,
        expected,
        wrong,
    }
}

const fn of(group: &'static str, count: usize, told: Told, expected: Option<usize>) -> Plot {
    Plot {
        group,
        ..plot(group, count, told, expected, &[])
    }
}

pub(super) const PLOTS: [Plot; 15] = [
    plot("plain", 24, &[(Any, 0, Saved)], Some(0), &[]),
    plot("update", 8, &[(Any, 0, Saved), (Now, 1, Saved)], Some(1), &[0]),
    plot("update", 8, &[(Any, 0, Saved), (Changes, 1, Saved)], Some(1), &[0]),
    plot(
        "contradiction",
        8,
        &[(Says(0), 0, Saved), (Says(0), 1, Saved)],
        Some(1),
        &[0],
    ),
    plot(
        "dependent",
        8,
        &[(Says(0), 0, Saved), (Rests, 2, Saved), (Says(0), 1, Saved)],
        None,
        &[2],
    ),
    plot("deletion", 6, &[(Any, 0, Saved), (Forget, 0, Archives)], None, &[0]),
    plot("absence", 6, &[], None, &[]),
    plot(
        "duplicate",
        8,
        &[(Says(0), 0, Imported), (Says(0), 0, Imported), (Says(0), 0, Imported)],
        Some(0),
        &[],
    ),
    plot(
        "duplicate",
        8,
        &[(Says(0), 0, Saved), (Says(1), 0, Saved), (Says(2), 0, Saved)],
        Some(0),
        &[],
    ),
    plot("unsaved", 12, &[(Any, 0, Unsaved)], Some(0), &[]),
    // A later web page says something else than the user.
    plot("page", 6, &[(Says(0), 0, Saved), (Says(0), 1, OfPage)], Some(0), &[]),
    of("habit", 4, &[(Any, 0, Unsaved), (Any, 0, Unsaved)], Some(0)),
    of("correction", 4, &[(Any, 0, Feedback), (Any, 0, Feedback)], Some(0)),
    of("injection", 3, &[(Any, 0, OfPage)], None),
    of("injection", 3, &[(Any, 0, Seen)], None),
];
