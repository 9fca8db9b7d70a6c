//! Postings: for each term, the texts that contain it and its occurrences.

use std::collections::HashMap;

use super::word_hash::WordHash;

/// An occurrence of a term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// Document number.
    pub(super) text: u32,
    /// Number of the term before it, for bigrams; [`NO_TERM`] at the beginning of a text.
    pub(super) before: u32,
    /// Number of the word as written among the forms of the term.
    pub(super) form: u32,
}

/// Maximum number of forms of a term that are told apart, since they are searched one by one.
const MAX_FORMS: usize = 64;

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
    /// The words as written that have this term; empty for the term itself.
    forms: Few<Box<str>>,
}

impl Vocabulary {
    pub(super) fn find(&self, word: &str) -> Option<&Postings> {
        self.terms.get(word)
    }

    /// Adds an occurrence of `term`, as `written`, after the term number `before` in the text with
    /// the highest document number so far. Returns the number of the term.
    pub(super) fn add(&mut self, term: &str, written: &str, text: u32, before: u32) -> u32 {
        let written = if written == term { "" } else { written };
        if let Some(known) = self.terms.get_mut(term) {
            let form = known.form_or_new(written);
            known.add(Occurrence { text, before, form });
            return known.number;
        }
        let number = u32::try_from(self.terms.len()).expect("an index holds fewer than 2^32 words");
        let occurrence = Occurrence { text, before, form: 0 };
        self.terms
            .insert(term.into(), Postings::new(number, written, occurrence));
        number
    }

    /// Renumbers texts by `number_of`, and drops texts without a new number. The order stays.
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
    fn new(number: u32, written: &str, occurrence: Occurrence) -> Self {
        Self {
            number,
            texts: Few::One([(occurrence.text, 1)]),
            occurrences: Few::One([occurrence]),
            forms: Few::One([written.into()]),
        }
    }

    /// Returns the number of a form, which is added if there is room.
    fn form_or_new(&mut self, written: &str) -> u32 {
        let forms = self.forms.as_slice();
        let number = forms.iter().position(|form| **form == *written);
        let number = number.unwrap_or(forms.len());
        if number == forms.len() && number < MAX_FORMS {
            self.forms.push(written.into());
        }
        number as u32
    }

    /// Returns the texts that have the term in the form `written`, with frequencies, if there are
    /// other forms.
    pub(super) fn texts_with(&self, written: &str) -> Option<Vec<(u32, u32)>> {
        let mut forms = self.forms.as_slice().iter();
        let has_others = forms.len() > 1;
        let form = forms.position(|form| **form == *written).filter(|_| has_others)?;
        let mut texts: Vec<(u32, u32)> = Vec::new();
        for place in self.occurrences().iter().filter(|place| place.form == form as u32) {
            match texts.last_mut() {
                Some((text, count)) if *text == place.text => *count = count.saturating_add(1),
                _ => texts.push((place.text, 1)),
            }
        }
        Some(texts)
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

impl<T: Default> Few<T> {
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
            Self::One([first]) => *self = Self::Many(vec![std::mem::take(first), next]),
            Self::Many(many) => many.push(next),
        }
    }

    /// Retains the values that `is_left` accepts, and returns `true` if any is left. An emptied value
    /// must not be used again.
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
