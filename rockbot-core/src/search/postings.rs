//! Where words stand.

use std::collections::HashMap;

/// One occurrence where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// The number of the text.
    pub(super) text: u32,
    /// The number of the word before it, or [`NO_TERM`].
    pub(super) before: u32,
}

/// What stands before the first word of a text.
pub(super) const NO_TERM: u32 = u32::MAX;

/// All words of all texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    terms: HashMap<Box<str>, Postings>,
}

/// A word, and where it stands: in the order of the texts.
#[derive(Debug, Clone)]
pub(super) struct Postings {
    pub(super) number: u32,
    /// The texts that have it, and how often.
    texts: Few<(u32, u32)>,
    occurrences: Few<Occurrence>,
}

impl Vocabulary {
    pub(super) fn find(&self, word: &str) -> Option<&Postings> {
        self.terms.get(word)
    }

    /// Notes that `word` stands at `occurrence`, whose text is not before any other, and returns the number of the word.
    pub(super) fn add(&mut self, word: &str, occurrence: Occurrence) -> u32 {
        if let Some(known) = self.terms.get_mut(word) {
            known.add(occurrence);
            return known.number;
        }
        let number = u32::try_from(self.terms.len()).expect("an index holds fewer than 2^32 words");
        self.terms.insert(word.into(), Postings::new(number, occurrence));
        number
    }

    /// Gives texts the numbers that `number_of` names, and forgets those that get none. The order stays.
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

    /// Whether any text is left.
    fn renumber_texts(&mut self, number_of: impl Fn(u32) -> Option<u32>) -> bool {
        let renumber = |text: &mut u32| number_of(*text).map(|number| *text = number).is_some();
        self.occurrences.retain(|occurrence| renumber(&mut occurrence.text))
            && self.texts.retain(|(text, _)| renumber(text))
    }
}

/// One or more. Most words stand in one occurrence only: these take no allocation.
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

    /// Whether any is left. When none is, this is not to be used any more.
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
