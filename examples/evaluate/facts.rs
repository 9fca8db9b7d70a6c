//! Recognizes names and numbers in an answer, and the admission that something could not be done.

/// Returns `true` if `text` states `fact`: a number by value, anything else as whole words
/// ignoring case.
pub(crate) fn states(text: &str, fact: &str) -> bool {
    match fact.parse::<f64>() {
        Ok(number) => numbers(text).any(|other| (other - number).abs() < 1e-9) || has_words(text, in_words(number)),
        Err(_) => has_words(text, fact),
    }
}

/// Returns the numbers of a text. A comma before three digits separates thousands.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let runs = text.split(move |c| !is_part(c));
    runs.filter_map(|run| run.trim_matches(['.', ',']).replace(',', "").parse().ok())
}

/// Spells out a small whole number; returns a text that never occurs for any other.
fn in_words(number: f64) -> &'static str {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ];
    let small = (0u8..13).find(|small| f64::from(*small) == number);
    small.map_or("\0", |small| WORDS[usize::from(small)])
}

fn has_words(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let words = words.to_lowercase();
    text.match_indices(&words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

/// Returns `true` if an answer speaks of a tool, or of what one returned.
pub(crate) fn names_tool(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "the function",
        "the tool",
        "returned",
        "`calculate`",
        "save_memory",
        "take_note",
        "get_weather",
        "find_contact",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

/// Returns `true` if an answer admits that something could not be done.
pub(crate) fn admits(text: &str) -> bool {
    const WORDS: [&str; 19] = [
        "fail",
        "unable",
        "not able",
        "cannot",
        "can not",
        "can't",
        "could not",
        "couldn't",
        "did not work",
        "didn't work",
        "does not work",
        "doesn't work",
        "not possible",
        "not available",
        "unavailable",
        "don't have",
        "do not have",
        "not responding",
        "error",
    ];
    let text = text.to_lowercase().replace('’', "'");
    let says = |word: &str| {
        text.match_indices(word)
            .any(|(at, _)| !["without ", "no ", "any "].iter().any(|no| text[..at].ends_with(no)))
    };
    WORDS.iter().any(|word| says(word))
}
