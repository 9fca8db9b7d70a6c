//! Doc comments as texts for a model: without the line breaks that only fit them into a source
//! file.

/// The line before the present one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Blank,
    /// A line that the next line may continue.
    Open,
    /// A line that stands alone, such as a heading.
    Closed,
}

/// Returns `text` with each paragraph on one line. A blank line still separates paragraphs; the
/// items of lists, and the lines of tables, quotes, headings and code stay apart.
pub(super) fn unwrapped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut before = Before::Nothing;
    let mut is_code = false;
    for line in text.lines().map(str::trim_end) {
        let is_fence = line.trim_start().starts_with("```");
        if line.is_empty() && !is_code {
            before = before.and_blank();
            continue;
        }
        let is_code_line = is_code || is_fence || (line.starts_with("    ") && before != Before::Open);
        let stands_alone = is_code_line || matches!(line.as_bytes()[..], [b'#' | b'|' | b'>', ..]);
        let (separator, line) = match before {
            Before::Nothing => ("", line),
            Before::Blank => ("\n\n", line),
            Before::Open if !stands_alone && !is_item(line) => (" ", line.trim_start()),
            Before::Open | Before::Closed => ("\n", line),
        };
        result.push_str(separator);
        result.push_str(line);
        before = if stands_alone { Before::Closed } else { Before::Open };
        is_code ^= is_fence;
    }
    result
}

impl Before {
    /// Returns the state after a blank line: nothing at the beginning of the text.
    fn and_blank(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Blank | Self::Open | Self::Closed => Self::Blank,
        }
    }
}

/// Returns `true` for the first line of an item of a list, such as `- tea` or `2. tea`.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let behind_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = behind_number.len() < line.len() && behind_number.starts_with([')', '.']);
    let marker_len = line.len() - behind_number.len() + 1;
    let behind_marker = if is_numbered || line.starts_with(['-', '*', '+']) {
        &line[marker_len..]
    } else {
        return false;
    };
    behind_marker.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(unwrapped(text), expected);
        assert_eq!(unwrapped(expected), expected, "a second time changes nothing");
    }

    #[test]
    fn a_paragraph_is_one_line() {
        check("", "");
        check("One line.", "One line.");
        check("A sentence that\ngoes on and\non.", "A sentence that goes on and on.");
        check(
            "\nFirst\nparagraph.\n\n\nSecond\none.\n",
            "First paragraph.\n\nSecond one.",
        );
    }

    #[test]
    fn what_has_lines_keeps_them() {
        check("Either:\n- tea,\n  hot\n- milk", "Either:\n- tea, hot\n- milk");
        check("1. one\n2) two\n10. ten", "1. one\n2) two\n10. ten");
        check("# Head\nText\nof it.", "# Head\nText of it.");
        check("| a | b |\n| 1 | 2 |\nand\nmore", "| a | b |\n| 1 | 2 |\nand more");
        check(
            "Like:\n```\na\n\n  b\n```\nSo\nit is.",
            "Like:\n```\na\n\n  b\n```\nSo it is.",
        );
        check("Like:\n\n    a\n    b", "Like:\n\n    a\n    b");
        check("-5 and\n2.5 are numbers,\n-1 too", "-5 and 2.5 are numbers, -1 too");
    }
}
