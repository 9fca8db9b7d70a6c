//! Where words stand.

use std::collections::HashMap;

/// One place where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the text.
    pub(super) text: u32,
    /// The number of the word before it, or [`NO_WORD`].
    pub(super) before: u32,
}

/// What stands before the first word of a text.
pub(super) const NO_WORD: u32 = u32::MAX;

/// All words of all texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    words: HashMap<Box<str>, Word>,
}

/// A word, and where it stands: in the order of the texts.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) number: u32,
    /// The texts that have it, and how often.
    texts: Few<(u32, u32)>,
    places: Few<Place>,
}

impl Words {
    pub(super) fn find(&self, word: &str) -> Option<&Word> {
        self.words.get(word)
    }

    /// Notes that `word` stands at `place`, whose text is not before any other, and returns the number of the word.
    pub(super) fn add(&mut self, word: &str, place: Place) -> u32 {
        if let Some(known) = self.words.get_mut(word) {
            known.add(place);
            return known.number;
        }
        let number = u32::try_from(self.words.len()).expect("an index holds fewer than 2^32 words");
        self.words.insert(word.into(), Word::new(number, place));
        number
    }

    /// Gives texts the numbers that `number_of` names, and forgets those that get none. The order stays.
    pub(super) fn renumber_texts(&mut self, number_of: impl Fn(u32) -> Option<u32>) {
        self.words.retain(|_, word| word.renumber_texts(&number_of));
        let mut numbers = HashMap::from([(NO_WORD, NO_WORD)]);
        for (number, word) in (0..).zip(self.words.values_mut()) {
            numbers.insert(std::mem::replace(&mut word.number, number), number);
        }
        for place in self.words.values_mut().flat_map(|word| word.places.as_mut_slice()) {
            place.before = numbers[&place.before];
        }
    }
}

impl Word {
    fn new(number: u32, place: Place) -> Self {
        Self {
            number,
            texts: Few::One([(place.text, 1)]),
            places: Few::One([place]),
        }
    }

    pub(super) fn texts(&self) -> &[(u32, u32)] {
        self.texts.as_slice()
    }

    pub(super) fn places(&self) -> &[Place] {
        self.places.as_slice()
    }

    fn add(&mut self, place: Place) {
        match self.texts.as_mut_slice().last_mut() {
            Some((text, count)) if *text == place.text => *count = count.saturating_add(1),
            _ => self.texts.push((place.text, 1)),
        }
        self.places.push(place);
    }

    /// Whether any text is left.
    fn renumber_texts(&mut self, number_of: impl Fn(u32) -> Option<u32>) -> bool {
        let renumber = |text: &mut u32| number_of(*text).map(|number| *text = number).is_some();
        self.places.retain(|place| renumber(&mut place.text)) && self.texts.retain(|(text, _)| renumber(text))
    }
}

/// One or more. Most words stand in one place only: these take no allocation.
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
