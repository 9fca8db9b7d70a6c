//! Chinese, Japanese and Korean fonts: the characters of Adobe's glyph collections, and of the
//! encodings before Unicode.
//!
//! The tables in `cid/` are Adobe's maps `Adobe-*-UCS2`, as differences of one number to the
//! next. Their license stands there.

use std::io::Read;
use std::sync::LazyLock;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS};
use flate2::read::ZlibDecoder;

/// The UTF-16 units of glyphs, by their numbers. Zero: the glyph has no character, or more than
/// one.
type Table = LazyLock<Vec<u16>>;

static JAPAN: Table = Table::new(|| table(include_bytes!("cid/japan1.z")));
static GB: Table = Table::new(|| table(include_bytes!("cid/gb1.z")));
static CNS: Table = Table::new(|| table(include_bytes!("cid/cns1.z")));
static KOREA: Table = Table::new(|| table(include_bytes!("cid/korea1.z")));

/// Returns the characters of a collection of glyphs, such as `Japan1`.
pub(super) fn collection(ordering: &[u8]) -> Option<&'static [u16]> {
    match ordering {
        b"Japan1" => Some(&JAPAN),
        b"GB1" => Some(&GB),
        b"CNS1" => Some(&CNS),
        b"Korea1" => Some(&KOREA),
        _ => None,
    }
}

fn table(packed: &[u8]) -> Vec<u16> {
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(packed).read_to_end(&mut bytes);
    read.expect("the table is built in");
    let differences = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let next = |unit: &mut u16, difference: u16| {
        *unit = unit.wrapping_add(difference);
        Some(*unit)
    };
    differences.scan(0, next).collect()
}

/// An encoding of one and two bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Legacy {
    encoding: &'static Encoding,
    /// `true` for two bytes of seven bits each.
    is_seven_bit: bool,
}

impl Legacy {
    /// Returns the encoding of a character map that viewers know by its name, such as `90ms-RKSJ-H`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (encoding, is_seven_bit) = match name {
            "H" | "V" => (EUC_JP, true),
            _ if name.contains("RKSJ") => (SHIFT_JIS, false),
            _ if name.starts_with("KSC") => (EUC_KR, false),
            _ if name.starts_with("GB") => (GBK, false),
            _ if name.contains("B5") => (BIG5, false),
            "EUC-H" | "EUC-V" => (EUC_JP, false),
            _ => return None,
        };
        Some(Self { encoding, is_seven_bit })
    }

    /// Returns the length of the code that begins with this byte.
    pub(super) fn size(self, first: u8) -> usize {
        let is_kana = self.encoding == SHIFT_JIS && matches!(first, 0xA0..=0xDF);
        if !self.is_seven_bit && (first <= 0x80 || is_kana) {
            1
        } else {
            2
        }
    }

    /// Returns the characters of a code; U+FFFD if it has none.
    pub(super) fn decode(self, code: u32) -> String {
        let code = if self.is_seven_bit { code | 0x8080 } else { code };
        let bytes = [(code >> 8) as u8, code as u8];
        let start = usize::from(code < 0x100);
        self.encoding
            .decode_without_bom_handling(&bytes[start..])
            .0
            .into_owned()
    }
}
