//! The text of a response, in whatever charset it came.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes at the beginning of a page that may hold a declaration.
const DECLARED_WITHIN: usize = 2048;

/// Returns the text, or `None` if the bytes are no text.
///
/// A byte order mark wins over `content_type`, and that over a declaration in the document.
/// Without any, and where bytes declared as UTF-8 are not, the charset is guessed.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> Option<String> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return Some(encoding.decode_without_bom_handling(&bytes[length..]).0.into_owned());
    }
    let stated = parameter(content_type, "charset").and_then(|label| Encoding::for_label(label.as_bytes()));
    let declared = stated.or_else(|| declared(&bytes[..bytes.len().min(DECLARED_WITHIN)]));
    // In any charset but these, a zero byte is no character.
    let is_wide = declared.is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE);
    if !is_wide && bytes.contains(&0) {
        return None;
    }
    let encoding = match declared {
        Some(encoding) if encoding != UTF_8 => encoding,
        _ if std::str::from_utf8(bytes).is_ok() => UTF_8,
        _ => guess(bytes),
    };
    Some(encoding.decode_without_bom_handling(bytes).0.into_owned())
}

/// Returns the value of a parameter of a content type.
fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
    let parameters = content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(own, _)| own.trim().eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().trim_matches(['"', '\'']))
}

/// Returns the charset that a `meta` element or an XML declaration names.
fn declared(start: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let after = ["charset=", "encoding="]
        .into_iter()
        .find_map(|name| start.split_once(name))?
        .1;
    let value = after.trim_start_matches(['"', '\'', ' ']);
    let label = value.split(['"', '\'', ' ', ';', '>', '/']).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A document whose declaration was read as bytes is not in UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else {
        encoding
    })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    // A stray byte in UTF-8 is more likely than a text that looks like it in another charset.
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let is_mostly_utf8 = bytes[..valid].iter().filter(|byte| !byte.is_ascii()).count() > 8;
    if is_mostly_utf8 {
        UTF_8
    } else {
        detector.guess(None, Utf8Detection::Allow)
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1252};
    use rockbot_core::testing::Mutations;

    use super::*;

    #[test]
    fn mutated_texts_are_decoded() {
        let corpus = [
            SHIFT_JIS
                .encode("<meta charset=shift_jis>日本語のページです。")
                .0
                .into_owned(),
            WINDOWS_1252
                .encode("<?xml encoding='windows-1252'?>Größe: fünf Äpfel")
                .0
                .into_owned(),
            "Größe: 東京 🚀".as_bytes().to_vec(),
            b"\xFF\xFEa\0b\0".to_vec(),
            b"\x1b$B%F%9\x1b(B and more".to_vec(),
        ];
        Mutations::of(corpus).check(|bytes| {
            for content_type in [
                "",
                "text/html; charset=utf-16be",
                "text/html; charset=\"iso-2022-jp\"",
                "text/plain;charset=gbk;x",
            ] {
                let text = decode(bytes, content_type);
                assert!(
                    text.is_none_or(|text| text.len() <= 3 * bytes.len() + 3),
                    "{content_type}"
                );
            }
            // The bytes as a content type.
            let _ = decode(b"a\xe9", &String::from_utf8_lossy(bytes));
        });
    }

    #[test]
    fn charsets_are_stated_declared_or_guessed() {
        let shift_jis = SHIFT_JIS.encode("日本語のページです。").0.into_owned();
        let western = WINDOWS_1252.encode("Größe: fünf Äpfel für Zoë").0.into_owned();
        let declared = [b"<meta charset=\"windows-1252\">".as_slice(), &western].concat();
        for (bytes, content_type, expected) in [
            ("Größe".as_bytes(), "text/html", Some("Größe")),
            (&shift_jis, "text/html; charset=Shift_JIS", Some("日本語のページです。")),
            (&shift_jis, "text/html", Some("日本語のページです。")),
            (
                &western,
                "text/plain; charset=\"ISO-8859-1\"",
                Some("Größe: fünf Äpfel für Zoë"),
            ),
            (&western, "text/plain", Some("Größe: fünf Äpfel für Zoë")),
            // Declared as what it is not.
            (&western, "text/plain; charset=utf-8", Some("Größe: fünf Äpfel für Zoë")),
            (
                &declared,
                "text/html",
                Some("<meta charset=\"windows-1252\">Größe: fünf Äpfel für Zoë"),
            ),
            (b"\xFF\xFEa\0b\0", "text/html; charset=utf-8", Some("ab")),
            (b"\xEF\xBB\xBFab", "text/html; charset=windows-1252", Some("ab")),
            (b"a\0b", "text/plain", None),
            (b"a\0b\0", "text/plain; charset=utf-16le", Some("ab")),
            (b"", "", Some("")),
        ] {
            assert_eq!(decode(bytes, content_type).as_deref(), expected, "{content_type}");
        }
    }
}
