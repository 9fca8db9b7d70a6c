//! Fonts: the meaning of a text's codes, and their widths.

use super::cmap::{CMap, Ranges};
use super::collection::{Legacy, collection};
use super::encoding::{CodePage, code_page};
use super::file::File;
use super::object::{Dict, Object};

/// Work that a font takes beside its bytes, in bytes.
const BASE_WORK: usize = 4 << 10;

/// A font.
#[derive(Debug)]
pub(super) struct Font {
    codes: Codes,
    to_unicode: Option<CMap>,
    widths: Ranges<f64>,
    /// The width of a code that `widths` lacks. Default: estimated from its character.
    default_width: Option<f64>,
    /// The width of all glyphs of a typewriter font without a table of widths.
    is_typewriter: bool,
    /// The length of a unit of the widths, in the size of the font.
    unit: f64,
}

/// The codes of a font.
#[derive(Debug)]
enum Codes {
    /// Single bytes.
    Bytes(CodePage),
    /// Pairs of bytes that number glyphs: only the map to Unicode knows their characters.
    Glyphs,
    /// Pairs of bytes that number the glyphs of a known collection.
    Collection(&'static [u16]),
    /// UTF-16.
    Unicode,
    /// An encoding before Unicode.
    Legacy(Legacy),
}

/// A glyph of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Glyph {
    pub(super) code: u32,
    /// The width, at size 1.
    pub(super) width: f64,
    /// `true` for the code that the spacing between words widens.
    pub(super) is_space: bool,
}

impl Font {
    /// Reads a font, as far as it is intact.
    pub(super) fn read(file: &File<'_>, font: &Dict) -> Self {
        file.budget.spend(BASE_WORK);
        let map = font.get("ToUnicode").and_then(|map| file.stream(map));
        let to_unicode = map.map(|(_, map)| CMap::read(&map, file.budget));
        let kind = font.get("Subtype").and_then(Object::name).unwrap_or_default();
        let mut own = match kind {
            "Type0" => Self::composite(file, font),
            _ => Self::simple(file, font),
        };
        own.to_unicode = to_unicode;
        if kind == "Type3" {
            let matrix = file.entry(font, "FontMatrix");
            let unit = matrix
                .as_deref()
                .and_then(Object::array)
                .and_then(|matrix| matrix.first()?.number());
            own.unit = unit.unwrap_or(own.unit);
        }
        own
    }

    fn simple(file: &File<'_>, font: &Dict) -> Self {
        let first = file
            .entry(font, "FirstChar")
            .and_then(|first| first.natural())
            .unwrap_or(0);
        let widths = file.entry(font, "Widths");
        let widths = widths.as_deref().and_then(Object::array).unwrap_or_default();
        let widths = (first as u32..=u32::MAX).zip(widths).take(256);
        let widths: Vec<_> = widths
            .filter_map(|(code, width)| Some((code, code, width.number()?)))
            .collect();
        let has_widths = !widths.is_empty();
        let descriptor = file.entry(font, "FontDescriptor");
        let missing = descriptor
            .as_deref()
            .and_then(Object::dict)
            .and_then(|own| own.get("MissingWidth")?.number());
        let name = font.get("BaseFont").and_then(Object::name).unwrap_or_default();
        Self {
            codes: Codes::Bytes(code_page(file, font)),
            to_unicode: None,
            widths: Ranges::new(widths, file.budget),
            default_width: missing.filter(|_| has_widths),
            is_typewriter: name.contains("Courier") || name.contains("Mono"),
            unit: 0.001,
        }
    }

    fn composite(file: &File<'_>, font: &Dict) -> Self {
        let descendants = file.entry(font, "DescendantFonts");
        let first = descendants.as_deref().and_then(Object::array).and_then(<[_]>::first);
        let descendant = first.and_then(|first| file.resolve(first));
        let descendant = descendant.as_deref().and_then(Object::dict);
        let widths = descendant.and_then(|own| file.entry(own, "W"));
        let widths = widths.as_deref().and_then(Object::array).unwrap_or_default();
        file.budget.spend(widths.len());
        let default = descendant.and_then(|own| file.entry(own, "DW")?.number());
        let encoding = font.get("Encoding").and_then(Object::name).unwrap_or_default();
        let system = descendant.and_then(|own| file.entry(own, "CIDSystemInfo"));
        let ordering = system
            .as_deref()
            .and_then(Object::dict)
            .and_then(|own| own.get("Ordering")?.text());
        let collection = ordering
            .and_then(collection)
            .filter(|_| encoding.starts_with("Identity"));
        let codes = if encoding.contains("UCS2") || encoding.contains("UTF16") {
            Codes::Unicode
        } else {
            let legacy = Legacy::named(encoding).map(Codes::Legacy);
            collection.map(Codes::Collection).or(legacy).unwrap_or(Codes::Glyphs)
        };
        Self {
            codes,
            to_unicode: None,
            widths: Ranges::new(widths_of(widths), file.budget),
            default_width: Some(default.unwrap_or(1000.0)),
            is_typewriter: false,
            unit: 0.001,
        }
    }

    /// Returns the glyphs of a text.
    pub(super) fn glyphs<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Glyph> + 't {
        let mut rest = text;
        std::iter::from_fn(move || {
            let size = match self.codes {
                Codes::Bytes(_) => 1,
                Codes::Legacy(legacy) => legacy.size(*rest.first()?),
                _ => 2,
            };
            let (bytes, behind) = rest.split_at_checked(size)?;
            rest = behind;
            let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            Some(Glyph {
                code,
                width: self.width(code) * self.unit,
                is_space: bytes == b" ",
            })
        })
    }

    /// Appends the characters of a glyph; U+FFFD if they are not known.
    pub(super) fn write(&self, glyph: Glyph, text: &mut String) {
        if self.to_unicode.as_ref().is_some_and(|map| map.write(glyph.code, text)) {
            return;
        }
        match &self.codes {
            Codes::Bytes(page) => match page.get(glyph.code as usize) {
                Some(own) if !own.is_empty() => text.push_str(own),
                _ => text.push(char::REPLACEMENT_CHARACTER),
            },
            Codes::Unicode => text.push(char::from_u32(glyph.code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            Codes::Collection(table) => {
                let unit = table.get(glyph.code as usize).filter(|unit| **unit != 0);
                let character = unit.and_then(|unit| char::from_u32(u32::from(*unit)));
                text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Codes::Legacy(legacy) => text.push_str(&legacy.decode(glyph.code)),
            Codes::Glyphs => text.push(char::REPLACEMENT_CHARACTER),
        }
    }

    fn width(&self, code: u32) -> f64 {
        // The table has the numbers of glyphs, which these codes are not.
        if matches!(self.codes, Codes::Legacy(_)) {
            return if code < 0x100 { 500.0 } else { 1000.0 };
        }
        let listed = self.widths.get(code).map(|(_, width)| *width);
        listed.or(self.default_width).unwrap_or_else(|| {
            let character = u8::try_from(code).map_or('m', char::from);
            if self.is_typewriter { 600.0 } else { estimate(character) }
        })
    }
}

/// Returns about the width of a character in the fonts that every viewer has: documents need not
/// state the widths of such fonts.
fn estimate(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '!' | '\'' | '|' => 240.0,
        ' ' | 'f' | 't' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' | 'r' => 300.0,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 840.0,
        'A'..='Z' => 680.0,
        _ => 540.0,
    }
}

/// Reads the widths of a composite font: `12 [500 600]` for codes from 12, and `20 30 500` for
/// the codes from 20 to 30.
fn widths_of(items: &[Object]) -> Vec<(u32, u32, f64)> {
    let mut widths = Vec::new();
    let mut rest = items;
    while let [first, second, behind @ ..] = rest {
        let Some(first) = first.natural().map(|first| first as u32) else {
            break;
        };
        rest = match (second, behind) {
            (Object::Array(each), _) => {
                let each = (first..=u32::MAX).zip(each.iter().filter_map(Object::number));
                widths.extend(each.map(|(code, width)| (code, code, width)));
                behind
            }
            (last, [width, behind @ ..]) => {
                let range = last.natural().zip(width.number());
                widths.extend(range.map(|(last, width)| (first, last as u32, width)));
                behind
            }
            _ => break,
        };
    }
    widths
}
