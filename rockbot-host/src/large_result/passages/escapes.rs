//! Escapes of JSON: a program's `M\u00fcller` is found by `Müller`.

use std::borrow::Cow;

/// Returns `text` with the characters that the escapes of JSON stand for. Line ends and tabs
/// become blanks; other backslashes stay, including the backslashes of Windows' paths.
pub(super) fn unescaped(text: Cow<'_, str>) -> Cow<'_, str> {
    // Only JSON quotes its strings and has these escapes; `C:\new` in a log is a path.
    let is_json = text.contains("\\u") || text.contains('"') && text.contains('\\');
    if !is_json {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        rest = match behind.as_bytes().first() {
            Some(b'u') => unicode(behind, &mut plain),
            Some(b'n' | b't' | b'r' | b'"' | b'/') => {
                plain.push(' ');
                &behind[1..]
            }
            Some(b'\\') => {
                plain.push('\\');
                &behind[1..]
            }
            _ => {
                plain.push('\\');
                behind
            }
        };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Reads the characters of `u00fc` and of the escapes that follow it at once, and returns the
/// rest.
fn unicode<'t>(escape: &'t str, plain: &mut String) -> &'t str {
    let mut units = Vec::new();
    let mut rest = escape;
    while let Some(unit) = rest.strip_prefix('u').and_then(|digits| hex(digits.get(..4)?)) {
        units.push(unit);
        rest = &rest[5..];
        match rest.strip_prefix('\\') {
            Some(next) if next.starts_with('u') && next.get(1..5).and_then(hex).is_some() => rest = next,
            _ => break,
        }
    }
    if units.is_empty() {
        plain.push('\\');
    }
    plain.push_str(&String::from_utf16_lossy(&units));
    rest
}

fn hex(digits: &str) -> Option<u16> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_json_become_characters_and_all_else_stays() {
        for (text, expected) in [
            (r#"{"name": "M\u00fcller"}"#, r#"{"name": "Müller"}"#),
            (r"\u0141\u00f3d\u017a", "Łódź"),
            (r"smile \ud83d\ude00!", "smile 😀!"),
            (r"lone \ud83d!", "lone \u{fffd}!"),
            (r#""one\ntwo\t\"three\"""#, r#""one two  three ""#),
            (r#""C:\\new\\table""#, r#""C:\new\table""#),
            (r"C:\new\table", r"C:\new\table"),
            (r"\users \u12 \u", r"\users \u12 \u"),
            ("plain", "plain"),
            ("\\", "\\"),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(unescaped(text.into()), expected, "{text}");
        }
    }
}
