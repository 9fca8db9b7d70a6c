//! Fields of cron expressions: numbers, names, ranges, steps and lists.

use super::error::quote;

/// A field of a cron expression, with the meaning of its numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Name in errors.
    name: &'static str,
    first: u8,
    last: u8,
    /// Names of the numbers from `first` on, three capital letters each.
    names: &'static [&'static str],
}

pub(super) const SECOND: Field = Field::new("second", 0, 59, &[]);
pub(super) const MINUTE: Field = Field::new("minute", 0, 59, &[]);
pub(super) const HOUR: Field = Field::new("hour", 0, 23, &[]);
pub(super) const DAY_OF_MONTH: Field = Field::new("day of month", 1, 31, &[]);
pub(super) const MONTH: Field = Field::new("month", 1, 12, &MONTHS);
/// 0 and 7 are both Sunday, and [`Values`] of this field have a bit for each of them.
pub(super) const DAY_OF_WEEK: Field = Field::new("day of week", 0, 7, &DAYS);

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The numbers that a field allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    /// A bit for each number.
    bits: u64,
    /// `true` if the field has a `*`, a range or a step: it names an interval, not single times.
    pub(super) is_interval: bool,
}

impl Values {
    /// Creates the values in `numbers`.
    pub(super) fn of(numbers: impl IntoIterator<Item = u8>) -> Self {
        Self {
            bits: numbers.into_iter().fold(0, |bits, number| bits | 1 << number),
            is_interval: false,
        }
    }

    pub(super) fn contains(self, number: u8) -> bool {
        self.bits & (1 << number) != 0
    }

    fn union(self, other: Self) -> Self {
        Self {
            bits: self.bits | other.bits,
            is_interval: self.is_interval || other.is_interval,
        }
    }
}

impl Field {
    const fn new(name: &'static str, first: u8, last: u8, names: &'static [&'static str]) -> Self {
        Self {
            name,
            first,
            last,
            names,
        }
    }

    /// Reads a whole field.
    ///
    /// The grammar is the grammar of Cronos, which the original uses: `*` and `?` stand for all
    /// numbers and may have a step; else the field is a list of numbers, of ranges, and of either
    /// with a step.
    ///
    /// # Errors
    ///
    /// The reason, which names the field.
    pub(super) fn parse(&self, text: &str) -> Result<Values, String> {
        let (range, step) = split_step(text);
        if matches!(range, "*" | "?") {
            let step = step.map_or(Ok(1), |step| self.step(step))?;
            let bits = Values::of((self.first..=self.last).step_by(step)).bits;
            return Ok(Values {
                bits,
                is_interval: true,
            });
        }
        let mut items = text.split(',').map(|item| self.item(item));
        let first = items.next().unwrap_or_else(|| self.item(""))?;
        items.try_fold(first, |all, item| Ok(all.union(item?)))
    }

    /// Reads one number or name of the field.
    pub(super) fn number(&self, text: &str) -> Result<u8, String> {
        let number = number(text).or_else(|| self.named(text));
        let number = number.filter(|number| (self.first..=self.last).contains(number));
        number.ok_or_else(|| self.refuse_number(text))
    }

    /// Describes the error `reason` at `text`, which is in this field.
    pub(super) fn refuse(&self, text: &str, reason: &str) -> String {
        format!("{}: {} {reason}", self.name, quote(text))
    }

    fn named(&self, text: &str) -> Option<u8> {
        let position = self.names.iter().position(|name| name.eq_ignore_ascii_case(text))?;
        u8::try_from(position).ok()?.checked_add(self.first)
    }

    fn refuse_number(&self, text: &str) -> String {
        let Self {
            name,
            first,
            last,
            names,
        } = self;
        let range = match names {
            [first_name, .., last_name] => format!("from {first} to {last} or from {first_name} to {last_name}"),
            _ => format!("from {first} to {last}"),
        };
        match text {
            "" => format!("{name}: a number is missing"),
            "*" | "?" => format!("{name}: `{text}` stands for all numbers, so it is alone in its field"),
            "H" | "h" => format!("{name}: `H` is not supported; write a number {range}"),
            _ => self.refuse(text, &format!("is not a number {range}")),
        }
    }

    /// Reads an item of a list: `a`, `a-b`, `a/n` (from `a` to the last number) or `a-b/n`.
    fn item(&self, text: &str) -> Result<Values, String> {
        let (range, step) = split_step(text);
        let ends = range.split_once('-');
        let (from, to) = match ends {
            Some((from, to)) => (self.number(from)?, self.number(to)?),
            None => (self.number(range)?, self.last),
        };
        let numbers = match (ends, step) {
            (None, None) => Values::of([from]),
            (_, step) => Values::of(self.range(from, to, step.map_or(Ok(1), |step| self.step(step))?)),
        };
        Ok(Values {
            is_interval: ends.is_some() || step.is_some(),
            ..numbers
        })
    }

    /// Returns each number that is `step` after the number before it, over the end of the field if
    /// `to` is before `from`.
    fn range(&self, from: u8, to: u8, step: usize) -> impl Iterator<Item = u8> + use<> {
        let (first, wraps) = (self.first, to < from);
        // A week that wraps has one Sunday.
        let count = if self.names.len() == DAYS.len() {
            7
        } else {
            self.last - first + 1
        };
        let end = if wraps { to + count } else { to };
        let wrapped = move |number| {
            if wraps {
                first + (number - first) % count
            } else {
                number
            }
        };
        (from..=end).step_by(step).map(wrapped)
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let step = number(text).filter(|step| (1..=self.last).contains(step));
        step.map(usize::from)
            .ok_or_else(|| self.refuse(text, &format!("is not a step from 1 to {}", self.last)))
    }
}

fn split_step(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    }
}

/// Reads a number of one or two digits.
pub(super) fn number(text: &str) -> Option<u8> {
    let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
