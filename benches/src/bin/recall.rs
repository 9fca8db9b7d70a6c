//! How well texts are found: of the questions in `benches/data/recall.txt`, how many have their text among the first
//! ten, with the words of the original and with those of the default.
//!
//! Usage: `recall [--missed]`. Words that are left out and endings that are cut were chosen by the odd questions only;
//! the even ones are held out.

use std::sync::Arc;

use rockbot_core::search::{Analyzer, Bm25Index, SeedAnalyzer, UnicodeAnalyzer};

/// Among how many texts the right one counts as found.
const AMONG: usize = 10;

fn main() {
    let data = Data::parse(include_str!("../../data/recall.txt"));
    println!("{} texts, {} questions", data.texts.len(), data.questions.len());
    let seed = found(&data, Arc::new(SeedAnalyzer));
    let default = found(&data, Arc::new(UnicodeAnalyzer));
    let report = |name: &str, belongs: &dyn Fn(usize) -> bool| {
        let count = data.count(belongs, &[]);
        let share = |found: &[bool]| 100.0 * data.count(belongs, found) as f64 / count as f64;
        println!(
            "{name:12} {count:4} questions  original {:5.1} %  default {:5.1} %",
            share(&seed),
            share(&default)
        );
    };
    for section in data.sections() {
        report(section, &|question| data.questions[question].section == section);
    }
    report("odd", &|question| question % 2 == 0);
    report("held out", &|question| question % 2 == 1);
    report("all", &|_| true);
    if std::env::args().any(|argument| argument == "--missed") {
        let missed = data.questions.iter().zip(&default).filter(|(_, found)| !**found);
        missed.for_each(|(question, _)| println!("{}", question.text));
    }
}

/// Which questions have their text among the first ones.
fn found(data: &Data<'_>, analyzer: Arc<dyn Analyzer>) -> Vec<bool> {
    let mut index = Bm25Index::new(analyzer);
    for (number, text) in data.texts.iter().enumerate() {
        index.insert(number, text);
    }
    let is_found = |question: &Question<'_>| {
        let hits = index.search(question.text, AMONG);
        hits.iter().any(|hit| hit.item == question.answer)
    };
    data.questions.iter().map(is_found).collect()
}

/// What was said, and what is asked about it.
#[derive(Default)]
struct Data<'a> {
    texts: Vec<String>,
    questions: Vec<Question<'a>>,
}

struct Question<'a> {
    section: &'a str,
    text: &'a str,
    /// The number of the text that answers it.
    answer: usize,
}

impl<'a> Data<'a> {
    fn parse(file: &'a str) -> Self {
        let mut data = Self::default();
        let (mut section, mut names, mut topics) = ("", Vec::new(), Vec::new());
        for line in file.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match kind {
                "=" => data.texts.push(rest.to_owned()),
                "?" => data.questions.push(Question {
                    section,
                    text: rest,
                    answer: data.texts.len() - 1,
                }),
                "names" => names = rest.split(", ").collect(),
                "topics" => topics = rest.split(", ").collect(),
                "~" => data.texts.extend(small_talk(rest, &names, &topics)),
                _ if line.starts_with('[') => section = line.trim_matches(['[', ']']),
                _ => {}
            }
        }
        data
    }

    fn sections(&self) -> Vec<&'a str> {
        let mut sections: Vec<_> = self.questions.iter().map(|question| question.section).collect();
        sections.dedup();
        sections
    }

    /// How many of the questions that belong there were found; all of them when nothing is said about that.
    fn count(&self, belongs: &dyn Fn(usize) -> bool, found: &[bool]) -> usize {
        let questions = (0..self.questions.len()).filter(|question| belongs(*question));
        questions
            .filter(|question| found.get(*question).copied().unwrap_or(found.is_empty()))
            .count()
    }
}

/// One text for each name and topic.
fn small_talk(frame: &str, names: &[&str], topics: &[&str]) -> Vec<String> {
    let fill = |name: &&str, topic: &str| frame.replace("{name}", name).replace("{topic}", topic);
    let texts = topics
        .iter()
        .flat_map(|topic| names.iter().map(move |name| fill(name, topic)));
    texts.collect()
}
