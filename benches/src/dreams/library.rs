//! The library: conversations over days, the tuple behind each sentence, and the questions.

use std::collections::BTreeMap;

use super::grammar::{Block, MADE_UP, blocks, name};
use super::plot::{Form, Kept, PLOTS, Plot};
use crate::planted::Numbers;

/// The tuple behind a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tuple {
    pub(super) group: &'static str,
    /// Person and property.
    pub(super) topic: String,
    /// Value; `None` if the user takes it back.
    pub(super) value: Option<String>,
    /// Topic and value that the tuple rests on.
    base: Option<(String, String)>,
}

impl Tuple {
    /// Returns `true` if the tuple cannot be true beside `other`.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        self.topic == other.topic && self.value != other.value
    }

    /// Returns `true` if the tuple follows from the value of `other`.
    pub(super) fn rests_on(&self, other: &Self) -> bool {
        let base = self.base.as_ref();
        base.is_some_and(|(topic, value)| *topic == other.topic && Some(value) == other.value.as_ref())
    }
}

/// A sentence of a conversation.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) conversation: usize,
    pub(super) text: String,
    pub(super) kept: Kept,
}

/// A question about the library.
#[derive(Debug)]
pub(super) struct Question {
    /// Kind of the fact that is asked for.
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// Person whose lines count; empty if all lines do.
    pub(super) who: String,
    /// Present value; `None` if there is none.
    pub(super) expected: Option<String>,
    /// Values that are wrong.
    pub(super) wrong: Vec<String>,
}

/// Conversations over 30 days, and the questions about them.
#[derive(Debug, Default)]
pub struct Library {
    pub(super) lines: Vec<Line>,
    pub(super) tuples: BTreeMap<String, Tuple>,
    pub(super) questions: Vec<Question>,
}

impl Library {
    /// Generates a library of so many conversations, two a day. The same arguments give the same
    /// library.
    pub fn new(conversations: usize, seed: u64) -> Self {
        let grammar = blocks();
        let mut library = Self::default();
        let mut names = (0..8_000).map(|number| name((seed as usize * 97 + number * 1_237) % 8_000));
        let mut numbers = Numbers::new(seed);
        for plot in PLOTS {
            let blocks: Vec<_> = grammar.iter().filter(|block| block.group == plot.group).collect();
            for story in 0..(plot.count * conversations / 60).max(1) {
                let names = [(); 4].map(|()| names.next().expect("there are names enough"));
                let first = if blocks.len() == plot.count {
                    story
                } else {
                    numbers.below(blocks.len())
                };
                library.tell(&plot, blocks[first], names, conversations, &mut numbers);
            }
        }
        let talk = grammar
            .iter()
            .find(|block| block.group == "talk")
            .expect("the grammar has talk");
        library.lines.extend((0..2 * conversations).map(|number| Line {
            conversation: number / 2,
            text: talk.says[numbers.below(talk.says.len())].to_owned(),
            kept: Kept::Unsaved,
        }));
        // A stable sort: the sentences of a story keep their order.
        library.lines.sort_by_key(|line| line.conversation);
        library
    }

    fn tell(&mut self, plot: &Plot, block: &Block, [who, values @ ..]: [String; 4], all: usize, numbers: &mut Numbers) {
        let who = if plot.group == "fact" { who } else { String::new() };
        let topic = format!("{who}/{}", block.name);
        let mut at: Vec<_> = plot.told.iter().map(|_| numbers.below(all)).collect();
        at.sort_unstable();
        for (conversation, (form, value, kept)) in at.into_iter().zip(plot.told) {
            let (pattern, rests) = match form {
                Form::Says(number) => (block.says[*number].to_owned(), false),
                Form::Any => (block.says[numbers.below(block.says.len())].to_owned(), false),
                Form::Now => (block.says[0].replace('.', " now."), false),
                Form::Changes => (block.changes.to_owned(), false),
                Form::Rests => (block.rests.0.to_owned(), true),
                Form::Forget => (format!("Please forget the {} of {{who}}.", block.name), false),
            };
            let text = pattern
                .replace("{who}", &who)
                .replace("{value}", &values[*value])
                .replace("{base}", &values[0]);
            let tuple = Tuple {
                group: plot.group,
                topic: if rests { format!("{topic} rests") } else { topic.clone() },
                value: (*kept != Kept::Archives).then(|| values[*value].clone()),
                base: rests.then(|| (topic.clone(), values[0].clone())),
            };
            self.tuples.insert(text.clone(), tuple);
            self.lines.push(Line {
                conversation,
                text,
                kept: *kept,
            });
        }
        self.ask(plot, block, who, &values, numbers);
    }

    fn ask(&mut self, plot: &Plot, block: &Block, who: String, values: &[String], numbers: &mut Numbers) {
        let asks = match plot.kind {
            "dependent" => std::slice::from_ref(&block.rests.1),
            _ => &block.asks,
        };
        if asks.is_empty() {
            return;
        }
        let wrong = plot.wrong.iter().map(|value| values[*value].clone());
        self.questions.push(Question {
            kind: plot.kind,
            text: asks[numbers.below(asks.len())].replace("{who}", &who),
            who,
            expected: plot.expected.map(|value| values[value].clone()),
            wrong: wrong.chain([MADE_UP.to_owned()]).collect(),
        });
    }
}
