//! The text of a file, and the encoding for writing it back.

/// An encoding with its byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Encoding {
    #[default]
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
}

/// Returns the text of a file with its encoding, or `None` if it is not text.
pub(super) fn decode(bytes: &[u8]) -> Option<(String, Encoding)> {
    if let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        return Some((std::str::from_utf8(rest).ok()?.to_owned(), Encoding::Utf8WithMark));
    }
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| rest.len().is_multiple_of(2))
    };
    if let Some(rest) = bytes.strip_prefix(b"\xFF\xFE") {
        return Some((wide(rest, u16::from_le_bytes)?, Encoding::Utf16Le));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xFE\xFF") {
        return Some((wide(rest, u16::from_be_bytes)?, Encoding::Utf16Be));
    }
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    Some((text.to_owned(), Encoding::Utf8))
}

/// Returns the bytes of a text in an encoding.
pub(super) fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf8WithMark => [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        Encoding::Utf16Le => b"\xFF\xFE"
            .iter()
            .copied()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect(),
        Encoding::Utf16Be => b"\xFE\xFF"
            .iter()
            .copied()
            .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_kept() {
        for encoding in [
            Encoding::Utf8,
            Encoding::Utf8WithMark,
            Encoding::Utf16Le,
            Encoding::Utf16Be,
        ] {
            for text in ["", "aß\n", "😀"] {
                assert_eq!(decode(&encode(text, encoding)), Some((text.to_owned(), encoding)));
            }
        }
        for bytes in [
            b"a\0b".as_slice(),
            b"\xFF",
            b"\xFF\xFEa",
            b"\xFF\xFE\x00\xD8",
            b"\xEF\xBB\xBF\xFF",
        ] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}
