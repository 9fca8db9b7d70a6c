//! Words of names, descriptions and questions, in a form that can be compared.

/// Words that tell nothing about the wish.
const COMMON: &[&str] = &[
    "the", "and", "for", "you", "your", "are", "was", "with", "that", "this", "from", "get", "set", "can", "what",
    "whats", "which", "who", "how", "please", "tool", "tools", "use", "using", "given", "returns", "return", "its",
    "into", "one", "all", "any", "has", "have", "does", "not", "there", "name", "text", "value", "string",
];

/// Returns the telling words of `text`, in lower case and the singular. Names are split at `_`,
/// `-` and capitals.
pub(super) fn telling(text: &str) -> Vec<String> {
    all(text).into_iter().filter(|word| is_telling(word)).collect()
}

/// Returns `true` if the word tells something about the wish.
pub(super) fn is_telling(word: &str) -> bool {
    word.len() >= 3 && !COMMON.contains(&word)
}

/// Returns all words of `text`, in lower case and the singular.
pub(super) fn all(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        let is_part = c.is_alphanumeric() || c == '\'';
        if (!is_part || (c.is_uppercase() && was_lower)) && !word.is_empty() {
            words.push(normal(&std::mem::take(&mut word)));
        }
        if is_part {
            word.push(c);
        }
        was_lower = c.is_lowercase();
    }
    words
}

/// Normalizes one word for comparison: `Files` as `file`, `what's` as `what`.
pub(super) fn normal(word: &str) -> String {
    let word = word.to_lowercase();
    let word = word.trim_matches('\'');
    let word = word.strip_suffix("'s").unwrap_or(word);
    match word.strip_suffix('s') {
        Some(stem) if stem.len() >= 3 && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word.to_owned(),
    }
}
