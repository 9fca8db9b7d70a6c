use proptest::prelude::*;

use super::{Chunk, ContentChunker};

fn check(text: &str, max_len: usize, expected: &[(&str, &str)]) {
    let chunks = ContentChunker::new(max_len).split(text);
    let chunks: Vec<_> = chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| (chunk.title(index), chunk.text))
        .collect();
    let chunks: Vec<_> = chunks.iter().map(|(title, text)| (title.as_str(), *text)).collect();
    assert_eq!(chunks, expected, "{text:?} in pieces of {max_len}");
}

#[test]
fn what_is_short_is_one_chunk() {
    check("", 9, &[("Part 0", "")]);
    check("a\n\nb", 9, &[("Part 0", "a\n\nb")]);
}

#[test]
fn each_section_is_a_chunk() {
    let expected = [
        ("Part 0", "before\n"),
        ("A", "# A\na\n"),
        ("B", "## B \nb\n#### D\n"),
        ("C", "### C"),
    ];
    check("before\n# A\na\n## B \nb\n#### D\n### C", 99, &expected);
    check("\n\r\n # no\n# A", 99, &[("Part 0", "\n\r\n # no\n"), ("A", "# A")]);
    check("\n\r\n# A\n\n# B", 99, &[("A", "\n\r\n# A\n\n"), ("B", "# B")]);
}

#[test]
fn long_sections_are_cut_at_blank_lines() {
    let expected = [
        ("A", "# A\n\none two\n\n"),
        ("A (continued 1)", "three\nfour\n \n"),
        ("A (continued 2)", "five six"),
    ];
    check("# A\n\none two\n\nthree\nfour\n \nfive six", 16, &expected);
}

#[test]
fn carriage_returns_do_not_hide_blank_lines() {
    let expected = [
        ("Part 0", "one\r\n\r\n"),
        ("Part 1", "two\r\n\r\n"),
        ("Part 2", "three"),
    ];
    check("one\r\n\r\ntwo\r\n\r\nthree", 8, &expected);
}

#[test]
fn fences_stay_whole() {
    let expected = [
        ("Part 0", "text:\n"),
        ("Part 1", "```\n# a\n\nb\n```\n"),
        ("Part 2", "more text"),
    ];
    check("text:\n```\n# a\n\nb\n```\nmore text", 18, &expected);
}

#[test]
fn what_cannot_be_helped_is_cut_at_line_ends_or_anywhere() {
    let expected = [("Part 0", "one two\n"), ("Part 1", "three four"), ("Part 2", " five")];
    check("one two\nthree four five", 10, &expected);
    let expected = [("Part 0", "ä😀"), ("Part 1", "€ö"), ("Part 2", "x")];
    check("ä😀€öx", 2, &expected);
    check("a\r\nb", 2, &[("Part 0", "a"), ("Part 1", "\r\n"), ("Part 2", "b")]);
}

#[test]
fn no_length_is_too_small() {
    check("abc", 0, &[("Part 0", "ab"), ("Part 1", "c")]);
}

#[test]
fn large_texts_of_every_kind() {
    for text in [
        "x".repeat(500_000),
        "\0".repeat(40_000),
        "漢字😀\u{301}".repeat(900_000),
        "```\n".repeat(200_001),
        "# a\n".repeat(100_000),
        "\r\n".repeat(100_000),
        "\r".repeat(100_000),
    ] {
        promises(&text, 20_000).unwrap();
    }
}

/// Checks everything that the chunker promises.
fn promises(text: &str, max_len: usize) -> Result<(), TestCaseError> {
    let chunks = ContentChunker::new(max_len).split(text);
    let whole: String = chunks.iter().map(|chunk| chunk.text).collect();
    prop_assert!(whole == text, "the chunks are the text");
    for chunk in &chunks {
        prop_assert_eq!(&text[chunk.range()], chunk.text);
        prop_assert!(chunk.text.chars().count() <= max_len);
        prop_assert!(!chunk.text.is_empty() || text.is_empty());
    }
    for pair in chunks.windows(2) {
        prop_assert!(!(pair[0].text.ends_with('\r') && pair[1].text.starts_with('\n')));
        prop_assert!(pair[1].part == 0 || continues(&pair[0], &pair[1]));
    }
    let (headings, fences) = headings_and_fences(text);
    let starts: Vec<_> = chunks
        .iter()
        .filter(|chunk| chunk.part == 0 && chunk.level > 0)
        .collect();
    prop_assert_eq!(starts.len(), headings.len());
    for (chunk, heading) in starts.iter().zip(&headings) {
        prop_assert!(
            text[chunk.start..*heading].trim().is_empty(),
            "only blank lines stand before a heading"
        );
    }
    for fence in fences {
        let is_cut = chunks
            .iter()
            .any(|chunk| fence.contains(&chunk.start) && chunk.start > fence.start);
        let length = text[fence].chars().count();
        prop_assert!(!is_cut || length > max_len, "a fence of {length} was cut");
    }
    Ok(())
}

fn continues(first: &Chunk<'_>, second: &Chunk<'_>) -> bool {
    (first.heading, first.level, first.part + 1) == (second.heading, second.level, second.part)
}

/// Returns the positions of headings and fences, found in the simplest way.
fn headings_and_fences(text: &str) -> (Vec<usize>, Vec<std::ops::Range<usize>>) {
    let mut headings = Vec::new();
    let mut fences = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_ascii();
        match &open {
            Some((from, marker)) => {
                let only_marker = bare.chars().all(|c| marker.starts_with(c));
                if !bare.is_empty() && only_marker && bare.len() >= marker.len() {
                    fences.push(*from..start + line.len());
                    open = None;
                }
            }
            None => {
                let bare = bare.strip_prefix("- ").unwrap_or(bare).trim_ascii_start();
                let marker: String = bare
                    .chars()
                    .take_while(|c| bare.starts_with(*c) && "`~".contains(*c))
                    .collect();
                let is_inline = marker.starts_with('`') && bare[marker.len()..].contains('`');
                if marker.len() >= 3 && !is_inline {
                    open = Some((start, marker));
                } else if ["# ", "## ", "### "].iter().any(|heading| line.starts_with(heading)) {
                    headings.push(start);
                }
            }
        }
        start += line.len();
    }
    fences.extend(open.map(|(from, _)| from..text.len()));
    (headings, fences)
}

fn markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("# A".to_owned()),
        Just("## B | `c`".to_owned()),
        Just("### ".to_owned()),
        Just("#### d".to_owned()),
        Just("#e".to_owned()),
        Just(String::new()),
        Just(" \t".to_owned()),
        Just("```".to_owned()),
        Just("````rust".to_owned()),
        Just("~~~".to_owned()),
        Just("- ```".to_owned()),
        Just("```x```".to_owned()),
        Just("\r".to_owned()),
        "[a-z ä€😀\u{301}]{0,40}",
    ];
    let end = prop_oneof![Just("\n"), Just("\n"), Just("\r\n"), Just("")];
    proptest::collection::vec((line, end), 0..40)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn keeps_its_promises_for_markdown(text in markdown(), max_len in 2_usize..80) {
        promises(&text, max_len)?;
    }

    #[test]
    fn keeps_its_promises_for_anything(text in "(?s).{0,200}", max_len in 2_usize..30) {
        promises(&text, max_len)?;
    }
}
