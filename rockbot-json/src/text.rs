//! Texts as JSON strings.

/// Number of bytes of a long text that are examined together: the compiler vectorizes the
/// comparison.
const BLOCK: usize = 32;

/// A number whose bytes are all one.
const ONES: u64 = u64::MAX / 0xff;

/// Appends the text that `parts` make together, as one JSON string: just as `serde_json` writes
/// it. Long runs without anything to escape are copied whole.
///
/// ```
/// let mut json = Vec::new();
/// rockbot_json::push_text(&mut json, ["two ", "\"parts\""]);
/// assert_eq!(json, br#""two \"parts\"""#);
/// ```
pub fn push_text<'a>(json: &mut Vec<u8>, parts: impl IntoIterator<Item = &'a str>) {
    json.push(b'"');
    parts.into_iter().for_each(|part| push_part(json, part.as_bytes()));
    json.push(b'"');
}

/// Appends `before`, which ends with a quote, the name of a member or of a variant, a quote and a
/// colon.
pub(super) fn push_name<const LEN: usize>(json: &mut Vec<u8>, before: &[u8; LEN], name: &str) {
    json.extend_from_slice(before);
    push_part(json, name.as_bytes());
    json.extend_from_slice(b"\":");
}

/// Appends one text, escaped. Names are short, and so is the way through this function with one.
#[inline]
fn push_part(json: &mut Vec<u8>, text: &[u8]) {
    let ends = (text.first_chunk(), text.last_chunk());
    let small_ends = (text.first_chunk::<4>(), text.last_chunk::<4>());
    match (text.len(), ends, small_ends) {
        (..=16, (Some(first), Some(last)), _) if special_in(*first) | special_in(*last) == 0 => {
            push_ends(json, text.len(), first, last);
        }
        (..8, _, (Some(first), Some(last))) if special_in(joined(*first, *last)) == 0 => {
            push_ends(json, text.len(), first, last);
        }
        _ if is_plain(text) => json.extend_from_slice(text),
        _ => push_escaped(json, text),
    }
}

/// Appends a text of `len` bytes with the ends `first` and `last`, which overlap. Copying a
/// number of bytes that is known at compile time takes no call.
#[inline]
fn push_ends<const N: usize>(json: &mut Vec<u8>, len: usize, first: &[u8; N], last: &[u8; N]) {
    json.extend_from_slice(first);
    json.truncate(json.len() + len - 2 * N);
    json.extend_from_slice(last);
}

fn joined(first: [u8; 4], last: [u8; 4]) -> [u8; 8] {
    let [first, last] = [first, last].map(u32::from_le_bytes);
    (u64::from(last) << 32 | u64::from(first)).to_le_bytes()
}

fn is_plain_block(block: &[u8; BLOCK]) -> bool {
    // No short cut within a block: without branches it is a few comparisons.
    !block.iter().fold(false, |any, &byte| any | is_special(byte))
}

/// Returns `true` if nothing has to be escaped.
#[inline(never)]
fn is_plain(text: &[u8]) -> bool {
    let (blocks, rest) = text.as_chunks();
    let (words, end) = rest.as_chunks();
    blocks.iter().all(is_plain_block)
        && words.iter().all(|word| special_in(*word) == 0)
        && match text.last_chunk() {
            Some(last) => special_in(*last) == 0,
            None => !end.iter().any(|&byte| is_special(byte)),
        }
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

/// Returns the length of the beginning of `text` without a byte that has to be escaped.
fn plain_len(text: &[u8]) -> usize {
    // In JSON that is itself a text, runs are short; only in a long one are blocks worth it.
    let near = plain_words_len(&text[..text.len().min(BLOCK)]);
    if near < BLOCK {
        return near;
    }
    let blocks = text[BLOCK..].as_chunks().0.iter();
    let skipped = BLOCK * (1 + blocks.take_while(|block| is_plain_block(block)).count());
    skipped + plain_words_len(&text[skipped..])
}

fn plain_words_len(text: &[u8]) -> usize {
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

/// Returns the highest bits of the special bytes of a word. A borrow may also mark bytes above
/// the first special byte.
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
