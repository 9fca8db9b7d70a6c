//! Long tool results with facts planted in them, and questions about these facts:
//! `benches/data/planted.txt`.
//!
//! A text consists of records of nine kinds and of sentences about nothing. Most records are not
//! asked about; they share names, towns and terms with those that are, one at a time.

mod form;
mod template;
mod values;

use std::collections::HashSet;

pub use form::Form;
use form::Writer;
use template::{Data, Kind};
pub(crate) use values::Numbers;
use values::Values;

/// Number of facts in a text, with one question each.
pub const FACTS: usize = 100;

/// The questions that are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// Those that the search was tuned by.
    Tuned,
    /// Those that were held out.
    HeldOut,
    /// The questions of `benches/data/confusable.txt`, about records whose words have the stems of
    /// other words.
    Confusable,
}

impl Questions {
    fn file(self) -> &'static str {
        match self {
            Self::Tuned | Self::HeldOut => include_str!("../../data/planted.txt"),
            Self::Confusable => include_str!("../../data/confusable.txt"),
        }
    }
}

/// A long text with facts in it.
#[derive(Debug)]
pub struct Planted {
    /// The text.
    pub text: String,
    /// The facts, in the order of the text.
    pub facts: Vec<Fact>,
}

/// A fact in a text.
#[derive(Debug)]
pub struct Fact {
    /// The fact as it stands in the text. Of a Markdown section these are the lines that answer,
    /// without its heading.
    pub written: String,
    /// A question that it answers.
    pub question: String,
}

/// Generates a text of about `bytes` bytes in `form`, with [`FACTS`] facts. The same arguments
/// give the same text.
pub fn plant(form: Form, bytes: usize, seed: u64, questions: Questions) -> Planted {
    let data = Data::read(questions.file());
    let mut numbers = Numbers::new(seed.wrapping_mul(31).wrapping_add(form as u64));
    let mut taken = HashSet::new();
    let facts: Vec<_> = (0..FACTS)
        .map(|number| {
            let kind = &data.kinds[number % data.kinds.len()];
            (kind, draw(kind, &data, &mut numbers, &mut taken, true))
        })
        .collect();
    let mut writer = Writer::new(form, bytes);
    let mut planted = Vec::new();
    for (number, (kind, values)) in facts.iter().enumerate() {
        let due = (bytes / FACTS) * number + numbers.below(bytes / FACTS);
        fill(&mut writer, due, &data, &mut numbers, &mut taken);
        let asked = match questions {
            Questions::Tuned | Questions::Confusable => &kind.asked,
            Questions::HeldOut => &kind.held_out,
        };
        let question = &asked[number / data.kinds.len() % asked.len()];
        planted.push(Fact {
            written: writer.record(kind, values, &data, &mut numbers),
            question: values.fill(question),
        });
    }
    fill(&mut writer, bytes, &data, &mut numbers, &mut taken);
    Planted {
        text: writer.finish(),
        facts: planted,
    }
}

/// Writes records and sentences that are not asked about, up to `length` bytes.
fn fill(writer: &mut Writer, length: usize, data: &Data, numbers: &mut Numbers, taken: &mut HashSet<String>) {
    while writer.len() < length {
        if numbers.below(2) == 0 {
            let sentence = &data.fillers[numbers.below(data.fillers.len())];
            let sentence = Values::draw(data, numbers).fill(sentence);
            writer.sentence(&sentence, numbers);
        } else {
            let kind = &data.kinds[numbers.below(data.kinds.len())];
            let values = draw(kind, data, numbers, taken, false);
            writer.record(kind, &values, data, numbers);
        }
    }
}

/// Draws values for a record whose identities no fact has, and reserves them for a fact.
fn draw(kind: &Kind, data: &Data, numbers: &mut Numbers, taken: &mut HashSet<String>, is_fact: bool) -> Values {
    loop {
        let values = Values::draw(data, numbers);
        let identities: Vec<_> = kind.identities.iter().map(|identity| values.fill(identity)).collect();
        if identities.iter().any(|identity| taken.contains(identity)) {
            continue;
        }
        if is_fact {
            taken.extend(identities);
        }
        return values;
    }
}
