//! Texts as JSON strings.

/// Number of bytes that are examined together: the compiler vectorizes a comparison of sixteen.
const CHUNK: usize = 16;

/// Appends the text that `parts` make together, as one JSON string: just as `serde_json` writes it. Long runs without
/// anything to escape are copied whole.
pub(crate) fn push_text<'a>(json: &mut Vec<u8>, parts: impl IntoIterator<Item = &'a str>) {
    json.push(b'"');
    for part in parts {
        push_escaped(json, part.as_bytes());
    }
    json.push(b'"');
}

fn push_escaped(json: &mut Vec<u8>, text: &[u8]) {
    let (mut at, mut copied) = (0, 0);
    while at < text.len() {
        let chunk = &text[at..text.len().min(at + CHUNK)];
        if !has_special(chunk) {
            at += chunk.len();
            continue;
        }
        for &byte in chunk {
            if is_special(byte) {
                json.extend_from_slice(&text[copied..at]);
                push_special(json, byte);
                copied = at + 1;
            }
            at += 1;
        }
    }
    json.extend_from_slice(&text[copied..]);
}

fn has_special(chunk: &[u8]) -> bool {
    match <&[u8; CHUNK]>::try_from(chunk) {
        // No short cut: without branches it is one comparison.
        Ok(whole) => whole.iter().fold(false, |any, &byte| any | is_special(byte)),
        Err(_) => chunk.iter().any(|&byte| is_special(byte)),
    }
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
        for length in 0..40 {
            check(&[&format!("{}\"", "x".repeat(length))]);
        }
    }

    proptest! {
        #[test]
        fn is_what_serde_json_writes_of_any_text(parts in prop::collection::vec("[ -~é\u{0}-\u{1f}]{0,60}", 0..3)) {
            check(&parts.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
