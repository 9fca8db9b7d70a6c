//! Character maps, from the codes of a font to Unicode.

use super::budget::Budget;
use super::object::Object;
use super::syntax::Lexer;

/// Maximum number of entries of a map.
const MAX_ENTRIES: usize = 1 << 16;

/// Memory that a range takes, in bytes.
const RANGE: usize = 64;

/// Maximum number of UTF-16 units that a code stands for.
const MAX_UNITS: usize = 16;

/// Values of ranges of codes.
#[derive(Debug)]
pub(super) struct Ranges<T>(Vec<(u32, u32, T)>);

impl<T> Ranges<T> {
    /// Sorts the ranges, and pays for the memory that they take. There are none if the budget does
    /// not allow it.
    pub(super) fn new(mut ranges: Vec<(u32, u32, T)>, budget: &Budget) -> Self {
        if !budget.spend(ranges.len() * RANGE) {
            ranges = Vec::new();
        }
        ranges.sort_by_key(|(first, ..)| *first);
        Self(ranges)
    }

    /// Returns the range that holds a code: its first code and its value.
    pub(super) fn get(&self, code: u32) -> Option<(u32, &T)> {
        let behind = self.0.partition_point(|(first, ..)| *first <= code);
        let (first, last, value) = self.0.get(behind.checked_sub(1)?)?;
        (code <= *last).then_some((*first, value))
    }
}

/// A character map.
#[derive(Debug)]
pub(super) struct CMap(Ranges<String>);

impl CMap {
    /// Reads a map, as far as it is intact.
    pub(super) fn read(bytes: &[u8], budget: &Budget) -> Self {
        let mut lexer = Lexer::new(bytes, 0, budget);
        let mut entries = Vec::new();
        let mut values = Vec::new();
        while let Some(object) = lexer.object() {
            let Object::Word(word) = &object else {
                values.push(object);
                continue;
            };
            match word.as_str() {
                "endbfchar" => entries.extend(values.chunks_exact(2).filter_map(character)),
                "endbfrange" => values.chunks_exact(3).for_each(|range| add_range(&mut entries, range)),
                _ => {}
            }
            values.clear();
            entries.truncate(MAX_ENTRIES);
        }
        Self(Ranges::new(entries, budget))
    }

    /// Appends the text of a code. Returns `false` if the map has none.
    pub(super) fn write(&self, code: u32, text: &mut String) -> bool {
        let Some((first, start)) = self.0.get(code) else {
            return false;
        };
        // Of a range, the last character counts up.
        let mut characters = start.chars();
        let last = characters.next_back().map_or(0, u32::from);
        text.push_str(characters.as_str());
        text.extend(char::from_u32(last.saturating_add(code - first)));
        true
    }
}

fn character(pair: &[Object]) -> Option<(u32, u32, String)> {
    let code = code_of(pair[0].text()?)?;
    Some((code, code, unicode(pair[1].text()?)))
}

fn add_range(entries: &mut Vec<(u32, u32, String)>, range: &[Object]) {
    let code = |object: &Object| object.text().and_then(code_of);
    let (Some(first), Some(last)) = (code(&range[0]), code(&range[1])) else {
        return;
    };
    match &range[2] {
        Object::Text(start) => entries.push((first, last, unicode(start))),
        Object::Array(each) => {
            let each = (first..=last).zip(each.iter().filter_map(Object::text));
            entries.extend(each.map(|(code, text)| (code, code, unicode(text))));
        }
        _ => {}
    }
}

/// Returns the code that up to four bytes are.
fn code_of(bytes: &[u8]) -> Option<u32> {
    let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
    (bytes.len() <= 4).then_some(code)
}

/// Returns the text that bytes in UTF-16 are.
pub(super) fn unicode(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .take(MAX_UNITS)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
