//! The region of a file that is most like a text that does not occur in it.

/// Number of lines that are shown before and after the nearest one.
const AROUND: usize = 4;

/// Maximum number of words of a line that are compared.
const MAX_WORDS: usize = 40;

/// Maximum length of a line, in bytes, that is compared and shown.
const MAX_LINE: usize = 1_000;

/// Returns the nearest region with its line numbers, or `None` if nothing is like it.
pub(super) fn region(text: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let sought: Vec<&str> = wanted.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let first = words(sought.first()?);
    let scores = lines.iter().enumerate().map(|(at, line)| {
        let follows = sought.iter().skip(1).take(3).zip(lines.iter().skip(at + 1));
        let further = follows.filter(|(sought, line)| **sought == line.trim()).count();
        (4 * likeness(&words(line), &first) + further, at)
    });
    let (score, at) = scores.max_by_key(|(score, at)| (*score, usize::MAX - at))?;
    if score < 4 {
        return None;
    }
    let from = at.saturating_sub(AROUND);
    let to = (at + sought.len() + AROUND).min(lines.len());
    let shown = lines[from..to].iter().take(40).enumerate();
    Some(
        shown
            .map(|(number, line)| format!("{}: {}\n", from + number + 1, start_of(line)))
            .collect(),
    )
}

/// Returns the words of a line, in lower case.
fn words(line: &str) -> Vec<String> {
    let words = start_of(line)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.take(MAX_WORDS).map(str::to_lowercase).collect()
}

fn start_of(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE)]
}

/// Returns the number of words that two lines share; more than any words if they differ in white
/// space alone.
fn likeness(own: &[String], other: &[String]) -> usize {
    if !own.is_empty() && own == other {
        return 2 * MAX_WORDS;
    }
    other.iter().filter(|word| own.contains(word)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_that_shares_most_words() {
        let text = "fn a() {\n    one();\n}\n\nfn b() {\n\tlet x = two(3);\n}\n";
        let near = region(text, "let x = two(4);").unwrap();
        assert_eq!(
            near,
            "2:     one();\n3: }\n4: \n5: fn b() {\n6: \tlet x = two(3);\n7: }\n"
        );
        assert!(region(text, "    let x = two(3);").unwrap().contains("6: "));
        assert_eq!(region(text, "nothing alike"), None);
        assert_eq!(region("", "x"), None);
        let long = format!("two{}", "(".repeat(5_000));
        assert_eq!(region(&long, &long).unwrap(), format!("1: {}\n", &long[..MAX_LINE]));
    }
}
