//! The samples of `tests/corpus`; the README there describes their format.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{TextAnswer, TextCallParser};

/// An answer and the expectations of it.
pub(super) struct Sample {
    title: String,
    pub(super) text: String,
    expected: Vec<String>,
}

/// Returns all samples with the names of their files.
pub(super) fn samples() -> Vec<(String, Sample)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let files = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files
        .flat_map(|file| {
            let dialect = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(file).unwrap();
            let samples: Vec<_> = text.split("=== ").filter(|text| !text.is_empty()).map(sample).collect();
            samples.into_iter().map(move |sample| (dialect.clone(), sample))
        })
        .collect()
}

fn sample(text: &str) -> Sample {
    let (title, text) = text.split_once('\n').unwrap();
    let (text, expected) = text.split_once("\n--- ").unwrap();
    Sample {
        title: title.to_owned(),
        text: text.to_owned(),
        expected: expected.split("\n--- ").map(|line| line.trim().to_owned()).collect(),
    }
}

/// Returns what was found, if it is not what is expected.
fn failure(parser: &TextCallParser, sample: &Sample) -> Option<String> {
    let text = |text: &str| format!("text {}", Value::from(text));
    let answer = parser.parse(&sample.text);
    let mut found = found(&answer);
    let mut expected: Vec<String> = sample.expected.iter().map(|line| canonical(line)).collect();
    if expected == ["none"] {
        expected = vec![text(&sample.text)];
    }
    if expected.iter().any(|line| line.starts_with("text ")) {
        found.push(text(&answer.text));
    }
    // Lines of one kind stay in their order.
    let kind = |line: &String| line.split(' ').next().map(str::to_owned);
    found.sort_by_key(kind);
    expected.sort_by_key(kind);
    (found != expected).then(|| format!("{found:#?}"))
}

fn found(answer: &TextAnswer) -> Vec<String> {
    let calls = answer
        .calls
        .iter()
        .map(|call| canonical(&format!("call {} {}", call.name, call.arguments)));
    let malformed = answer.malformed.iter();
    let malformed = malformed.map(|flaw| format!("malformed {:?} {}", flaw.kind, flaw.name.as_deref().unwrap_or("-")));
    calls
        .chain(malformed)
        .chain(answer.hallucinated_from.map(|_| "hallucinated".into()))
        .collect()
}

/// Returns a line with its JSON in canonical form.
fn canonical(line: &str) -> String {
    match line.split_once(" {") {
        Some((head, json)) if line.starts_with("call ") => {
            let json: Value = serde_json::from_str(&format!("{{{json}")).expect("arguments are JSON");
            format!("{head} {json}")
        }
        _ => line.to_owned(),
    }
}

#[test]
fn every_call_of_the_corpus_is_found_and_nothing_else() {
    let parser = super::parser();
    let samples = samples();
    let failed: Vec<_> = samples
        .iter()
        .filter_map(|(dialect, sample)| {
            let failure = failure(&parser, sample)?;
            Some(format!("{dialect}: {}\n{}\nfound {failure}", sample.title, sample.text))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        samples.len(),
        failed.join("\n\n")
    );
}

/// Prints the figures of the corpus: how many of the texts with calls are understood, and in how
/// many of the others a call is found.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are what the test is read for")]
fn all_calls_are_understood_and_none_is_false() {
    let parser = super::parser();
    let samples = samples();
    let with_calls = |sample: &Sample| sample.expected.iter().any(|line| line.starts_with("call "));
    let (calls, others): (Vec<_>, Vec<_>) = samples.iter().partition(|(_, sample)| with_calls(sample));
    let understood = calls.iter().filter(|(_, sample)| failure(&parser, sample).is_none());
    let false_ones = others
        .iter()
        .filter(|(_, sample)| !parser.parse(&sample.text).calls.is_empty());
    let understood = understood.count();
    let false_ones = false_ones.count();
    println!(
        "understood: {understood} of {}; false: {false_ones} of {}",
        calls.len(),
        others.len()
    );
    assert_eq!((understood, false_ones), (calls.len(), 0));
}

#[test]
fn the_corpus_is_large_enough() {
    let samples = samples();
    let negatives = samples.iter().filter(|(_, sample)| sample.expected == ["none"]).count();
    let mut dialects: Vec<_> = samples.iter().map(|(dialect, _)| dialect).collect();
    dialects.dedup();
    assert!(
        samples.len() - negatives >= 280,
        "{} positives",
        samples.len() - negatives
    );
    assert!(negatives >= 90, "{negatives} negatives");
    assert!(dialects.len() >= 30, "{dialects:?}");
}
