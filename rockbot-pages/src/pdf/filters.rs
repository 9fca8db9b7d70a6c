//! The encodings of streams.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::budget::Budget;
use super::object::{Dict, Object};
use super::syntax::{digit, is_space};

/// Maximum number of encodings, one in the other.
const MAX_FILTERS: usize = 4;

/// Decodes a stream, as far as it is intact. Returns `None` if an encoding is unknown, or the
/// budget is spent.
pub(super) fn decode(dict: &Dict, raw: &[u8], budget: &Budget) -> Option<Vec<u8>> {
    let filters = match dict.get("Filter").or_else(|| dict.get("F")) {
        None => &[],
        Some(Object::Array(filters)) => filters.as_slice(),
        Some(filter) => std::slice::from_ref(filter),
    };
    if filters.len() > MAX_FILTERS || has_predictor(dict) {
        return None;
    }
    // A stream that decompresses to nothing takes work, too.
    let mut data = budget.spend(raw.len()).then(|| raw.to_vec())?;
    for filter in filters {
        let max = budget.room();
        data = match filter.name()? {
            "FlateDecode" | "Fl" => inflate(&data, max),
            "ASCII85Decode" | "A85" => ascii85(&data),
            "ASCIIHexDecode" | "AHx" => hexadecimal(&data),
            _ => return None,
        };
        if data.len() >= max {
            budget.exceed();
            data.truncate(max);
        }
        if !budget.spend(data.len()) {
            return None;
        }
    }
    Some(data)
}

/// Returns `true` if the bytes are differences: streams of text never are, tables and images may
/// be.
fn has_predictor(dict: &Dict) -> bool {
    let of = |parameters: &Object| parameters.dict()?.get("Predictor")?.natural();
    let parameters = dict.get("DecodeParms").or_else(|| dict.get("DP"));
    let all = match parameters {
        Some(Object::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    all.iter().filter_map(of).any(|predictor| predictor > 1)
}

fn inflate(data: &[u8], max: usize) -> Vec<u8> {
    let mut decoded = Vec::new();
    // Data before the damage is kept.
    let _ = ZlibDecoder::new(data).take(max as u64).read_to_end(&mut decoded);
    decoded
}

fn ascii85(data: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(data.len() / 5 * 4 + 4);
    let mut group = Vec::with_capacity(5);
    for &byte in data {
        match byte {
            b'z' if group.is_empty() => decoded.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            b'~' => break,
            _ => {}
        }
        if group.len() == 5 {
            decoded.extend(word(&group).to_be_bytes());
            group.clear();
        }
    }
    if group.len() > 1 {
        let kept = group.len() - 1;
        group.resize(5, 84);
        decoded.extend(&word(&group).to_be_bytes()[..kept]);
    }
    decoded
}

fn word(group: &[u8]) -> u32 {
    group.iter().fold(0_u32, |word, digit| {
        word.wrapping_mul(85).wrapping_add(u32::from(*digit))
    })
}

fn hexadecimal(data: &[u8]) -> Vec<u8> {
    let digits = data
        .iter()
        .filter(|byte| !is_space(**byte))
        .map_while(|byte| digit(*byte));
    let digits: Vec<u8> = digits.collect();
    let byte = |pair: &[u8]| 16 * pair[0] + pair.get(1).copied().unwrap_or(0);
    digits.chunks(2).map(byte).collect()
}
