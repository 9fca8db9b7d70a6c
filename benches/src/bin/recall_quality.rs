//! Measures the quality of recall: how many of the questions in `benches/data/recall.txt` have their text among the
//! first ten hits, with the original's analyzer and with the default one.
//!
//! Usage: `recall_quality [--missed]`. Stop words and stemming were chosen by the odd questions only; the even ones
//! are held out.

use std::sync::Arc;

use rockbot_benches::talk::{Question, Talk};
use rockbot_core::search::{Analyzer, Bm25Index, SeedAnalyzer, UnicodeAnalyzer};

/// Number of hits among which the right text counts as found (the k of recall@k).
const AMONG: usize = 10;

fn main() {
    let talk = Talk::load();
    println!("{} texts, {} questions", talk.texts.len(), talk.questions.len());
    let seed = found(&talk, Arc::new(SeedAnalyzer));
    let default = found(&talk, Arc::new(UnicodeAnalyzer));
    let report = |name: &str, belongs: &dyn Fn(usize) -> bool| {
        let all = count(&talk, belongs, &[]);
        let share = |found: &[bool]| 100.0 * count(&talk, belongs, found) as f64 / all as f64;
        println!(
            "{name:12} {all:4} questions  original {:5.1} %  default {:5.1} %",
            share(&seed),
            share(&default)
        );
    };
    for section in talk.sections() {
        report(section, &|question| talk.questions[question].section == section);
    }
    report("odd", &|question| question % 2 == 0);
    report("held out", &|question| question % 2 == 1);
    report("all", &|_| true);
    if std::env::args().any(|argument| argument == "--missed") {
        let missed = talk.questions.iter().zip(&default).filter(|(_, found)| !**found);
        missed.for_each(|(question, _)| println!("{}", question.text));
    }
}

/// Reports for each question whether its text is among the first hits.
fn found(talk: &Talk<'_>, analyzer: Arc<dyn Analyzer>) -> Vec<bool> {
    let mut index = Bm25Index::new(analyzer);
    for (number, text) in talk.texts.iter().enumerate() {
        index.insert(number, text);
    }
    let is_found = |question: &Question<'_>| {
        let hits = index.search(question.text, AMONG);
        hits.iter().any(|hit| hit.item == question.answer)
    };
    talk.questions.iter().map(is_found).collect()
}

/// Counts the questions found among those that belong; questions without a section belong everywhere.
fn count(talk: &Talk<'_>, belongs: &dyn Fn(usize) -> bool, found: &[bool]) -> usize {
    let questions = (0..talk.questions.len()).filter(|question| belongs(*question));
    questions
        .filter(|question| found.get(*question).copied().unwrap_or(found.is_empty()))
        .count()
}
