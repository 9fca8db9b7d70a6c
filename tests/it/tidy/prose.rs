//! The language of comments: doc comments name who acts, and begin with a verb or a noun.

use std::path::{Path, PathBuf};

use super::source::{root, rust_files};

/// Indefinite persons: a sentence about one of them leaves open who acts.
const INDEFINITE: [&str; 9] = [
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "whoever",
    "nobody's",
    "somebody's",
    "anybody's",
    "everybody's",
];

/// Openings that make a riddle of the first line of an item's documentation.
const QUESTIONS: [&str; 7] = ["What", "How", "Whether", "Where", "Who", "Why", "Which"];

/// A comment line, and the place where it stands.
struct Comment {
    place: String,
    text: String,
    /// It is the first line of a doc comment of an item.
    opens_item: bool,
}

#[test]
fn comments_name_who_acts() {
    let vague = |comment: &Comment| words(&comment.text).any(|word| INDEFINITE.contains(&word.as_str()));
    assert_none("comments about an indefinite person; name who acts", vague);
}

#[test]
fn docs_of_items_do_not_begin_with_a_question() {
    let question = |comment: &Comment| {
        let first = comment.text.split(|c: char| !c.is_alphanumeric()).next();
        comment.opens_item && first.is_some_and(|word| QUESTIONS.contains(&word))
    };
    assert_none(
        "first doc lines that ask; begin with a verb (functions) or a noun (types, fields)",
        question,
    );
}

/// Fails with the places of all comments for which `is_wrong` holds.
fn assert_none(problem: &str, is_wrong: impl Fn(&Comment) -> bool) {
    let comments = all_comments();
    assert!(comments.len() > 5_000, "the comments of the sources were found");
    let wrong: Vec<_> = comments.iter().filter(|comment| is_wrong(comment)).collect();
    let lines: Vec<_> = wrong
        .iter()
        .map(|comment| format!("{}: {}", comment.place, comment.text))
        .collect();
    assert!(lines.is_empty(), "{} {problem}:\n{}", lines.len(), lines.join("\n"));
}

/// Returns every comment of the libraries, examples, benches and tests.
fn all_comments() -> Vec<Comment> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [
        "src",
        "examples",
        "benches",
        "tests",
        "rockbot-bus",
        "rockbot-core",
        "rockbot-host",
        "rockbot-json",
        "rockbot-llm",
        "rockbot-mcp",
        "rockbot-memory",
        "rockbot-pages",
        "rockbot-provenance",
        "rockbot-remote",
        "rockbot-schema",
        "rockbot-search",
        "rockbot-store",
        "rockbot-text-calls",
        "rockbot-tools",
    ] {
        files.extend(rust_files(&root().join(folder)));
    }
    files.iter().flat_map(|file| comments_of(file)).collect()
}

fn comments_of(file: &Path) -> Vec<Comment> {
    let source = std::fs::read_to_string(file).expect("a source file");
    let name = file.strip_prefix(root()).unwrap_or(file).display().to_string();
    let mut inside_doc = false;
    let mut comments = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let line = line.trim();
        let Some(comment) = line.strip_prefix("//") else {
            inside_doc = false;
            continue;
        };
        let is_item_doc = comment.starts_with('/');
        comments.push(Comment {
            place: format!("{name}:{}", number + 1),
            text: comment.trim_start_matches(['/', '!']).trim().to_owned(),
            opens_item: is_item_doc && !inside_doc,
        });
        inside_doc = is_item_doc;
    }
    comments
}

/// Returns the words of a line in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .map(str::to_lowercase)
}
