//! The beginning of a long text.

/// Returns a text of at most `max` characters; of a longer text the beginning, and a sign that it
/// goes on.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max).collect();
    if cut.len() < text.len() {
        format!("{cut}…")
    } else {
        cut
    }
}
