//! Postings: for each term, the texts that contain it and its occurrences.

use std::collections::HashMap;

use super::word_hash::WordHash;

/// An occurrence of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// Document number.
    pub(super) text: u32,
    /// Number of the term before it, for bigrams; [`NO_TERM`] at the beginning of a text.
    pub(super) before: u32,
}

/// Number that stands for no term, at the beginning of a text.
pub(super) const NO_TERM: u32 = u32::MAX;

/// All terms of all texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    terms: HashMap<Box<str>, Postings, WordHash>,
}

/// The postings of a term, in the order of document numbers.
#[derive(Debug, Clone)]
pub(super) struct Postings {
    pub(super) number: u32,
    /// Document numbers and term frequencies.
    texts: Few<(u32, u32)>,
    occurrences: Few<Occurrence>,
}

impl Vocabulary {
    pub(super) fn find(&self, word: &str) -> Option<&Postings> {
        self.terms.get(word)
    }

    /// Adds an occurrence of `word`, whose document number is the highest so far, and returns the number of
    /// the term.
    pub(super) fn add(&mut self, word: &str, occurrence: Occurrence) -> u32 {
        if let Some(known) = self.terms.get_mut(word) {
            known.add(occurrence);
            return known.number;
        }
        let number = u32::try_from(self.terms.len()).expect("an index holds fewer than 2^32 words");
        self.terms.insert(word.into(), Postings::new(number, occurrence));
        number
    }

    /// Renumbers texts by `number_of`, and drops those without a new number. The order stays.
    pub(super) fn renumber_texts(&mut self, number_of: impl Fn(u32) -> Option<u32>) {
        self.terms.retain(|_, word| word.renumber_texts(&number_of));
        let mut numbers = HashMap::from([(NO_TERM, NO_TERM)]);
        for (number, word) in (0..).zip(self.terms.values_mut()) {
            numbers.insert(std::mem::replace(&mut word.number, number), number);
        }
        for occurrence in self.terms.values_mut().flat_map(|word| word.occurrences.as_mut_slice()) {
            occurrence.before = numbers[&occurrence.before];
        }
    }
}

impl Postings {
    fn new(number: u32, occurrence: Occurrence) -> Self {
        Self {
            number,
            texts: Few::One([(occurrence.text, 1)]),
            occurrences: Few::One([occurrence]),
        }
    }

    pub(super) fn texts(&self) -> &[(u32, u32)] {
        self.texts.as_slice()
    }

    pub(super) fn occurrences(&self) -> &[Occurrence] {
        self.occurrences.as_slice()
    }

    fn add(&mut self, occurrence: Occurrence) {
        match self.texts.as_mut_slice().last_mut() {
            Some((text, count)) if *text == occurrence.text => *count = count.saturating_add(1),
            _ => self.texts.push((occurrence.text, 1)),
        }
        self.occurrences.push(occurrence);
    }

    /// Renumbers the texts, and returns `true` if any is left.
    fn renumber_texts(&mut self, number_of: impl Fn(u32) -> Option<u32>) -> bool {
        let renumber = |text: &mut u32| number_of(*text).map(|number| *text = number).is_some();
        self.occurrences.retain(|occurrence| renumber(&mut occurrence.text))
            && self.texts.retain(|(text, _)| renumber(text))
    }
}

/// One or more values. Most terms occur once only, and take no allocation.
#[derive(Debug, Clone)]
enum Few<T> {
    One([T; 1]),
    Many(Vec<T>),
}

impl<T: Copy> Few<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    fn push(&mut self, next: T) {
        match self {
            Self::One([first]) => *self = Self::Many(vec![*first, next]),
            Self::Many(many) => many.push(next),
        }
    }

    /// Retains the values that `is_left` accepts, and returns `true` if any is left. An emptied value must not
    /// be used again.
    fn retain(&mut self, is_left: impl Fn(&mut T) -> bool) -> bool {
        match self {
            Self::One([one]) => is_left(one),
            Self::Many(many) => {
                many.retain_mut(is_left);
                many.shrink_to_fit();
                !many.is_empty()
            }
        }
    }
}
