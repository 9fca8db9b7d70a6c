//! Which texts have a word, and how often.

/// The texts that have something, in the order of their numbers, and how often each has it.
///
/// Most pairs of words stand in one text only: these take no allocation.
#[derive(Debug, Clone)]
pub(super) enum Postings {
    One([(u32, u32); 1]),
    Many(Vec<(u32, u32)>),
}

impl Postings {
    /// Of something that `text` has once.
    pub(super) fn new(text: u32) -> Self {
        Self::One([(text, 1)])
    }

    pub(super) fn as_slice(&self) -> &[(u32, u32)] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    /// `text`, whose number is not below any other, has it once more.
    pub(super) fn count(&mut self, text: u32) {
        let last = match self {
            Self::One([last]) => last,
            Self::Many(many) => many.last_mut().expect("many are more than one"),
        };
        if last.0 == text {
            last.1 = last.1.saturating_add(1);
        } else {
            let first = *last;
            match self {
                Self::One(_) => *self = Self::Many(vec![first, (text, 1)]),
                Self::Many(many) => many.push((text, 1)),
            }
        }
    }

    /// With the numbers that `number` gives; texts to which it gives none are left out.
    pub(super) fn renumbered(&self, number: impl Fn(u32) -> Option<u32>) -> Option<Self> {
        let renumber = |(text, count): &(u32, u32)| Some((number(*text)?, *count));
        let left: Vec<_> = self.as_slice().iter().filter_map(renumber).collect();
        match left.as_slice() {
            [] => None,
            [one] => Some(Self::One([*one])),
            _ => Some(Self::Many(left)),
        }
    }
}
