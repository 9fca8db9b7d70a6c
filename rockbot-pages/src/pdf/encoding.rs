//! The encodings of fonts whose codes are single bytes.

use std::collections::HashMap;
use std::sync::LazyLock;

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1252};

use super::cmap::unicode;
use super::file::File;
use super::object::{Dict, Object};
use super::syntax::Lexer;

/// The upper half of Adobe's standard encoding, from 0xA1. A space stands for a code without a
/// character.
const STANDARD: &str = "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß";

/// The characters of the codes from 11 in the fonts of TeX: ligatures of the older encoding, and
/// then of the newer encoding. A space stands for a code whose character is not the same in most
/// fonts.
const LIGATURES: &str = "ﬀﬁﬂﬃﬄ“”„«»–—  ıȷﬀﬁﬂﬃﬄ";

/// The characters of titles from 0x80, which differ from Latin-1.
const TITLES: &str = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž";

/// Names of glyphs, each followed by its characters. A name of one letter stands for the letter.
static NAMES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let words: Vec<&str> = include_str!("glyph_names.txt").split_whitespace().collect();
    words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
});

/// The characters of the codes 0 to 255. Empty: the code has none.
pub(super) type CodePage = Vec<String>;

/// Returns the characters of a font's codes: the characters of its base encoding, with the
/// differences that it lists.
pub(super) fn code_page(file: &File<'_>, font: &Dict) -> CodePage {
    let encoding = file.entry(font, "Encoding");
    let listed = encoding.as_deref().and_then(Object::dict);
    let base = match listed {
        Some(listed) => listed.get("BaseEncoding").and_then(Object::name),
        None => encoding.as_deref().and_then(Object::name),
    };
    let is_true_type = font.get("Subtype").and_then(Object::name) == Some("TrueType");
    let mut page = match base {
        Some("WinAnsiEncoding") => legacy(WINDOWS_1252),
        Some("MacRomanEncoding") => legacy(MACINTOSH),
        None if is_true_type => legacy(WINDOWS_1252),
        _ => standard(),
    };
    if base.is_none() {
        differ(&mut page, &built_in(file, font).unwrap_or_default());
    }
    let differences = listed.and_then(|listed| file.entry(listed, "Differences"));
    let differences = differences.as_deref().and_then(Object::array).unwrap_or_default();
    // They may stand in a dictionary that was paid for once and is used often.
    if file.budget.spend(differences.len()) {
        differ(&mut page, differences);
    }
    page
}

fn legacy(encoding: &'static Encoding) -> CodePage {
    let character = |code: u8| encoding.decode_without_bom_handling(&[code]).0.into_owned();
    (0..=255).map(character).collect()
}

fn standard() -> CodePage {
    let mut page: CodePage = (0..=255_u8)
        .map(|code| {
            if code.is_ascii() {
                char::from(code).into()
            } else {
                String::new()
            }
        })
        .collect();
    page[usize::from(b'\'')] = "’".to_owned();
    page[usize::from(b'`')] = "‘".to_owned();
    for (code, character) in (0xA1..)
        .zip(STANDARD.chars())
        .filter(|(_, character)| *character != ' ')
    {
        page[code] = character.into();
    }
    page
}

/// Applies a list such as `32 /space /exclam 65 /A`: a number is the code of the name behind it,
/// and names count up.
fn differ(page: &mut CodePage, differences: &[Object]) {
    let named_by_code = are_named_by_code(differences);
    for (code, name) in named(differences) {
        let by_code = || character_of(code).filter(|_| named_by_code && is_named_by(name, code));
        page[code] = glyph(name).or_else(by_code).unwrap_or_default();
    }
}

/// Returns the codes and the names of a list of differences.
fn named(differences: &[Object]) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0_usize;
    differences.iter().filter_map(move |object| match object {
        Object::Name(name) => {
            let code = next;
            next = next.saturating_add(1);
            Some((code, name.as_str())).filter(|_| code < 256)
        }
        object => {
            next = object.natural().unwrap_or(next);
            None
        }
    })
}

/// Returns `true` if most glyphs without a known name are named by their codes, such as `a65`,
/// `x41` or `C0041` at 65. Names of many subsets number glyphs in their order instead, and mean
/// nothing.
fn are_named_by_code(differences: &[Object]) -> bool {
    let unknown = named(differences).filter(|(_, name)| *name != ".notdef" && glyph(name).is_none());
    let (by_code, others): (Vec<_>, Vec<_>) = unknown.partition(|(code, name)| is_named_by(name, *code));
    by_code.len() > others.len()
}

/// Returns `true` if a name is letters and this code, in decimal or hexadecimal digits.
fn is_named_by(name: &str, code: usize) -> bool {
    let has_value = |start: usize, radix| {
        let digits = name.get(start..).unwrap_or_default();
        start <= 4 && usize::from_str_radix(digits, radix) == Ok(code)
    };
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    // The last of the letters may be hexadecimal digits, as in `xA9`.
    has_value(letters, 10) || (0..=letters).any(|start| has_value(start, 16))
}

/// Returns the character of a code in a font whose names do not say it: the fonts of TeX name
/// glyphs by their codes.
fn character_of(code: usize) -> Option<String> {
    let ligature = code.checked_sub(11).and_then(|index| LIGATURES.chars().nth(index));
    match code {
        0x20..0x7F => standard().get(code).cloned(),
        0xC0..=0xFF => char::from_u32(code as u32).map(String::from),
        _ => ligature.filter(|character| *character != ' ').map(String::from),
    }
}

/// Returns the encoding inside a Type 1 font program, as differences: `dup 65 /A put` for each
/// code.
fn built_in(file: &File<'_>, font: &Dict) -> Option<Vec<Object>> {
    let descriptor = file.entry(font, "FontDescriptor")?;
    let (_, program) = file.stream(descriptor.dict()?.get("FontFile")?)?;
    let mut lexer = Lexer::new(&program, 0, file.budget);
    let mut differences = Vec::new();
    let mut operands = Vec::new();
    loop {
        match lexer.object()? {
            Object::Word(word) if word == "eexec" => return Some(differences),
            Object::Word(word) => {
                if let ("put", [.., code @ Object::Number(_), name @ Object::Name(_)]) =
                    (word.as_str(), operands.as_slice())
                {
                    differences.extend([code.clone(), name.clone()]);
                }
                operands.clear();
            }
            operand => operands.push(operand),
        }
    }
}

/// Returns the characters of a glyph: of its parts, if it is a ligature such as `f_i`.
fn glyph(name: &str) -> Option<String> {
    let name = name.split('.').next().unwrap_or_default();
    name.split('_').take(8).map(single_glyph).collect()
}

fn single_glyph(name: &str) -> Option<String> {
    if let Some(text) = NAMES.get(name) {
        return Some((*text).to_owned());
    }
    let code = |digits: &str| char::from_u32(u32::from_str_radix(digits, 16).ok()?).map(String::from);
    let hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.strip_prefix("uni").or_else(|| name.strip_prefix('u')) {
        Some(digits) if (4..=6).contains(&digits.len()) && hexadecimal(digits) => code(digits),
        _ if name == "space" => Some(" ".to_owned()),
        _ => Some(name.to_owned()).filter(|name| name.chars().count() == 1),
    }
}

/// Returns a text outside a page, such as a title: in UTF-16 with a mark, in UTF-8 with a mark,
/// or in a superset of Latin-1.
pub(super) fn text_string(bytes: &[u8]) -> String {
    match bytes {
        [0xFE, 0xFF, units @ ..] => units.chunks(32).map(unicode).collect(),
        [0xEF, 0xBB, 0xBF, text @ ..] => String::from_utf8_lossy(text).into_owned(),
        _ => bytes
            .iter()
            .map(|byte| {
                TITLES
                    .chars()
                    .nth(usize::from(*byte).wrapping_sub(0x80))
                    .unwrap_or(char::from(*byte))
            })
            .collect(),
    }
}
