//! Stemming.
//!
//! The rules were chosen by measured retrieval quality (`cargo run -p rockbot-benches --bin
//! recall_quality`). For English they find as much as Snowball's, and they serve German and
//! Romance words as well.

/// Returns the stem of `word`: without the commonest endings of English, German and Romance
/// nouns, verbs and adjectives. Words with other characters than `a` to `z` stay as they are.
pub(super) fn stem(word: &str) -> &str {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let word = without_derivation(word);
    let word = without_ending(word, &["ing", "ed"], 3).map_or(word, without_doubled_end);
    let mut stem = without_ending(word, &["ern", "en", "er", "em"], 4).unwrap_or(word);
    while let Some(shorter) = without_ending(stem, &["a", "e", "i", "o", "y"], 3) {
        stem = shorter;
    }
    stem
}

/// Removes the plural and an ending that makes an adverb of an adjective or a noun of a verb:
/// `adopt` of `adoptions`. The rest is long enough that `family` and `station` keep theirs.
fn without_derivation(word: &str) -> &str {
    if let Some(plural_of_ly) = without_ending(word, &["lies"], 5) {
        return plural_of_ly;
    }
    let word = without_plural(word);
    let shorter = without_ending(word, &["ly", "ation", "ion"], 5);
    shorter
        .or_else(|| without_ending(word, &["ment", "ness"], 4))
        .unwrap_or(word)
}

fn without_plural(word: &str) -> &str {
    let shorter = without_ending(word, &["s"], 3);
    shorter.filter(|it| !it.ends_with(['i', 's', 'u'])).unwrap_or(word)
}

/// Returns `word` without the first of `endings` that matches, if at least `least` letters are
/// left and a vowel is among them.
fn without_ending<'a>(word: &'a str, endings: &[&str], least: usize) -> Option<&'a str> {
    let mut shorter = endings.iter().filter_map(|ending| word.strip_suffix(ending));
    shorter.find(|it| it.len() >= least && it.bytes().any(is_vowel))
}

/// Removes a doubled consonant before a stripped ending: `run` of `runn`. `fall`, `miss` and
/// `buzz` keep theirs.
fn without_doubled_end(stem: &str) -> &str {
    match stem.as_bytes() {
        [_, _, .., before, last] if before == last && !b"lsz".contains(last) && !is_vowel(*last) => {
            &stem[..stem.len() - 1]
        }
        _ => stem,
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}
