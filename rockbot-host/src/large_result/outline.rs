//! Outlines of chunked texts, as Markdown for a model.

use std::fmt::{Display, Write};

use super::chunker::Chunk;
use super::thousands::grouped;

/// Maximum number of characters of a heading in an outline or a table.
const TITLE_LEN: usize = 80;

/// Returns an outline of `chunks` as a Markdown list, nested as the headings are, each with the
/// key of its chunk.
///
/// Headings are untrusted: they are truncated after 80 characters, and characters with a meaning
/// in Markdown are escaped. The outline ends after about `max_len` bytes with the number of
/// chunks left out. Empty without chunks.
///
/// ```
/// use rockbot_host::large_result::{ContentChunker, outline};
///
/// let chunks = ContentChunker::new(30).split("# Models\nAll of them.\n## Pricing\nCheap.\n");
/// assert_eq!(
///     outline(&chunks, 20_000, |index| format!("key-{index}")),
///     "## Document Outline\n\n- **Models** → `key-0`\n  - **Pricing** → `key-1`\n",
/// );
/// ```
pub fn outline<K: Display>(chunks: &[Chunk<'_>], max_len: usize, key: impl Fn(usize) -> K) -> String {
    let mut text = String::with_capacity(max_len.min(96 * chunks.len()));
    for (index, chunk) in chunks.iter().enumerate() {
        if text.is_empty() {
            text.push_str("## Document Outline\n\n");
        }
        if text.len() > max_len {
            let left = grouped(chunks.len() - index);
            write!(text, "\n… and {left} more, left out here.\n").expect(TAKES_ALL);
            break;
        }
        text.push_str(["- **", "  - **", "    - **"][usize::from(chunk.level).saturating_sub(1)]);
        push_title(&mut text, chunk, index);
        writeln!(text, "** → `{}`", key(index)).expect(TAKES_ALL);
    }
    text
}

const TAKES_ALL: &str = "a String takes everything";

/// Appends [`Chunk::title`], truncated and escaped for a line or a table cell of Markdown.
pub(crate) fn push_title(text: &mut String, chunk: &Chunk<'_>, index: usize) {
    if chunk.heading.is_empty() {
        return write!(text, "Part {index}").expect(TAKES_ALL);
    }
    let is_plain = |byte: u8| !matches!(byte, b'`' | b'|' | 0..=31 | 127..);
    if chunk.heading.len() <= TITLE_LEN && chunk.heading.bytes().all(is_plain) {
        text.push_str(chunk.heading);
    } else {
        push_plain(text, chunk.heading);
    }
    if chunk.part > 0 {
        write!(text, " (continued {})", chunk.part).expect(TAKES_ALL);
    }
}

pub(super) fn push_plain(text: &mut String, heading: &str) {
    for c in heading.chars().take(TITLE_LEN) {
        match c {
            // A heading must not end the code span of the key beside it.
            '`' => text.push('\''),
            '|' => text.push_str("\\|"),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    if heading.chars().nth(TITLE_LEN).is_some() {
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::large_result::ContentChunker;

    fn check(text: &str, max_len: usize, expected: &[&str]) {
        let outline = outline(&ContentChunker::new(30).split(text), max_len, |index| index);
        assert_eq!(outline.lines().skip(2).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn levels_are_nested() {
        let text = "before\n# A\na\n### C\nc\n## B\nb\n# D\n";
        let expected = [
            "- **Part 0** → `0`",
            "- **A** → `1`",
            "    - **C** → `2`",
            "  - **B** → `3`",
            "- **D** → `4`",
        ];
        check(text, usize::MAX, &expected);
    }

    #[test]
    fn a_long_section_goes_on() {
        let text = "## H\n\none two three four\n\nfive six seven\n\neight nine ten eleven";
        let expected = [
            "  - **H** → `0`",
            "  - **H (continued 1)** → `1`",
            "  - **H (continued 2)** → `2`",
        ];
        check(text, usize::MAX, &expected);
    }

    #[test]
    fn headings_stay_in_their_place() {
        check(
            "# a` | \u{1b}[2J**b** \t\r\n",
            usize::MAX,
            &["- **a' \\|  [2J**b**** → `0`"],
        );
        let long = format!("# {}", "ä".repeat(90));
        let short = format!("- **{}…** → `0`", "ä".repeat(80));
        let chunks = ContentChunker::new(500).split(&long);
        assert!(outline(&chunks, usize::MAX, |index| index).contains(&short));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        check(
            "# A\n# B\n# C\n# D\n",
            30,
            &["- **A** → `0`", "", "… and 3 more, left out here."],
        );
        assert_eq!(outline(&[], 100, |index| index), "");
    }
}
