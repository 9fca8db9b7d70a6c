//! Texts as JSON strings.

/// Number of bytes of a long text that are examined together: the compiler vectorizes the comparison.
const BLOCK: usize = 64;

/// A number whose bytes are all one.
const ONES: u64 = u64::MAX / 0xff;

/// Appends the text that `parts` make together, as one JSON string: just as `serde_json` writes it. Long runs without
/// anything to escape are copied whole.
///
/// ```
/// let mut json = Vec::new();
/// rockbot_core::support::json::push_text(&mut json, ["two ", "\"parts\""]);
/// assert_eq!(json, br#""two \"parts\"""#);
/// ```
pub fn push_text<'a>(json: &mut Vec<u8>, parts: impl IntoIterator<Item = &'a str>) {
    json.push(b'"');
    for part in parts {
        match is_plain(part.as_bytes()) {
            true => json.extend_from_slice(part.as_bytes()),
            false => push_escaped(json, part.as_bytes()),
        }
    }
    json.push(b'"');
}

/// Returns `true` if nothing has to be escaped. Names are short, and so is the way through this function with one.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    match (text.first_chunk(), text.last_chunk()) {
        // By two words that overlap.
        (Some(first), Some(last)) if text.len() <= 16 => (special_in(*first) | special_in(*last)) == 0,
        (Some(_), _) => is_plain_long(text),
        _ => !text.iter().any(|&byte| is_special(byte)),
    }
}

#[inline(never)]
fn is_plain_long(text: &[u8]) -> bool {
    // No short cut within a block: without branches it is a few comparisons.
    let is_plain_block = |block: &[u8; BLOCK]| !block.iter().fold(false, |any, &byte| any | is_special(byte));
    let (blocks, rest) = text.as_chunks();
    let (words, _) = rest.as_chunks();
    blocks.iter().all(is_plain_block)
        && words.iter().all(|word| special_in(*word) == 0)
        && text.last_chunk().is_none_or(|last| special_in(*last) == 0)
}

fn push_escaped(json: &mut Vec<u8>, mut text: &[u8]) {
    loop {
        let (plain, rest) = text.split_at(plain_len(text));
        json.extend_from_slice(plain);
        let Some((special, behind)) = rest.split_first() else {
            return;
        };
        push_special(json, *special);
        text = behind;
    }
}

/// Returns the length of the beginning of `text` in which nothing has to be escaped.
fn plain_len(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let special = special_in(*word);
        if special != 0 {
            return 8 * index + special.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|&byte| is_special(byte));
    in_rest.map_or(text.len(), |at| 8 * words.len() + at)
}

/// Returns the highest bits of the special bytes of a word. A borrow may mark bytes above the first one besides.
fn special_in(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES << 7)
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_special(json: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            json.extend_from_slice(b"\\u00");
            return json.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
        }
    };
    json.extend([b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(parts: &[&str]) {
        let mut json = Vec::new();
        push_text(&mut json, parts.iter().copied());
        let expected = serde_json::to_string(&parts.concat()).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }

    #[test]
    fn is_what_serde_json_writes() {
        check(&[]);
        check(&["", "two ", "parts"]);
        let all: String = (0..=0x100).filter_map(char::from_u32).collect();
        check(&[&all]);
        for length in 0..200 {
            check(&[&format!("{}\"{}\\é", "x".repeat(length), "y".repeat(length % 9))]);
        }
    }

    proptest! {
        #[test]
        fn is_what_serde_json_writes_of_any_text(parts in prop::collection::vec("[ -~é\u{0}-\u{1f}]{0,60}", 0..3)) {
            check(&parts.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
