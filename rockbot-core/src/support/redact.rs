//! Removing credentials from texts that are logged or stored.

/// Returns `text` with everything that looks like a credential replaced by `[redacted]`.
///
/// Two forms are recognised: the token after the word `Bearer` in any case, and a word that
/// begins with `sk-` and has more than eight characters. This is a safety net for error bodies
/// and previews that a server may echo a key into, not a guarantee: keys of other forms pass.
///
/// ```
/// assert_eq!(rockbot_core::support::redact("use sk-1234567890, please"), "use [redacted], please");
/// ```
pub fn redact(text: &str) -> String {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=*".contains(c);
    let mut clean = String::with_capacity(text.len());
    let mut follows_bearer = false;
    for piece in text.split_inclusive(|c| !is_token(c)) {
        let token = piece.trim_end_matches(|c| !is_token(c));
        let is_key = (follows_bearer && token.len() > 1) || (token.starts_with("sk-") && token.len() > 8);
        clean.push_str(if is_key { "[redacted]" } else { token });
        clean.push_str(&piece[token.len()..]);
        follows_bearer = token.eq_ignore_ascii_case("bearer") || (follows_bearer && token.is_empty());
    }
    clean
}
