//! Measures the quality of recall: how much of what answers a question is among the first ten hits.
//!
//! Usage: `recall_quality [--missed]` asks the questions in `benches/data/recall.txt`,
//! `recall_quality --dialogues FILE` those of a data set in LoCoMo's format. Both compare the
//! original's analyzer and weights with the default ones, and the second also what is injected
//! before a turn with what a search finds. Parameters were chosen by the odd questions and by the
//! first four dialogues only; the others are held out.

use std::sync::Arc;

use rockbot_benches::dialogues::{self, Dialogue, DialogueQuestion};
use rockbot_benches::talk::{Question, Talk};
use rockbot_core::chat::Provenance;
use rockbot_core::recall::{ContextQuery, ContextSource};
use rockbot_core::search::{Analyzer, Bm25Index, Bm25Weights, SeedAnalyzer, UnicodeAnalyzer};
use rockbot_core::store::{InMemoryLongTermMemory, LongTermMemory, MemoryEntry};
use rockbot_core::testing::ManualClock;
use rockbot_core::{BoxError, Principal, Timestamp};
use rockbot_memory::recall::MemoryRecall;

/// Number of hits among which the right text counts as found (the k of recall@k).
const AMONG: usize = 10;

/// Number of dialogues by which parameters were chosen.
const CHOSEN_BY: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--dialogues") => {
            let file = arguments.next().ok_or("usage: recall_quality --dialogues FILE")?;
            measure_dialogues(&dialogues::parse(&std::fs::read_to_string(file)?)?).await
        }
        argument => {
            measure_talk(argument == Some("--missed"));
            Ok(())
        }
    }
}

fn index_of(texts: &[String], analyzer: Arc<dyn Analyzer>, weights: Bm25Weights) -> Bm25Index<usize> {
    let mut index = Bm25Index::new(analyzer).with_weights(weights);
    for (number, text) in texts.iter().enumerate() {
        index.insert(number, text);
    }
    index
}

fn original(texts: &[String]) -> Bm25Index<usize> {
    index_of(texts, Arc::new(SeedAnalyzer), Bm25Weights::ORIGINAL)
}

fn default(texts: &[String]) -> Bm25Index<usize> {
    index_of(texts, Arc::new(UnicodeAnalyzer), Bm25Weights::default())
}

async fn measure_dialogues(dialogues: &[Dialogue]) -> Result<(), BoxError> {
    let (chosen_by, held_out) = dialogues.split_at(CHOSEN_BY.min(dialogues.len()));
    for (name, some) in [("chosen by", chosen_by), ("held out", held_out), ("all", dialogues)] {
        let mut rows = [
            ("original", Share::default()),
            ("default", Share::default()),
            ("injected", Share::default()),
        ];
        for dialogue in some {
            let original = original(&dialogue.turns);
            let default = default(&dialogue.turns);
            let memory = Injection::new(&dialogue.turns).await?;
            for question in &dialogue.questions {
                let found =
                    |index: &Bm25Index<usize>| index.search(&question.text, AMONG).iter().map(|hit| hit.item).collect();
                rows[0].1.add(question, found(&original));
                rows[1].1.add(question, found(&default));
                rows[2].1.add(question, memory.shown(&question.text).await?);
            }
        }
        for (ranking, share) in rows {
            let of = share.questions.max(1) as f64;
            let recall = share.recall / of;
            let any = share.any as f64 / of;
            let rank = share.reciprocal_rank / of;
            println!(
                "{name:10} {ranking:9} {:5} questions  recall@{AMONG} {recall:.3}  any {any:.3}  mrr {rank:.3}",
                share.questions
            );
        }
    }
    Ok(())
}

/// Results, summed over questions.
#[derive(Debug, Default)]
struct Share {
    questions: usize,
    /// Share of the evidence that was found.
    recall: f64,
    /// Number of questions with any evidence found.
    any: usize,
    reciprocal_rank: f64,
}

impl Share {
    fn add(&mut self, question: &DialogueQuestion, found: Vec<usize>) {
        let right = question.evidence.iter().filter(|turn| found.contains(turn)).count();
        let rank = found.iter().position(|turn| question.evidence.contains(turn));
        self.questions += 1;
        self.recall += right as f64 / question.evidence.len() as f64;
        self.any += usize::from(right > 0);
        self.reciprocal_rank += rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
    }
}

/// The memories that are injected before the first turn of a conversation.
struct Injection(MemoryRecall);

impl Injection {
    async fn new(turns: &[String]) -> Result<Self, BoxError> {
        let memory = InMemoryLongTermMemory::new();
        for (number, turn) in turns.iter().enumerate() {
            // The age decides between equal texts only, as the order does in an index.
            let entry = MemoryEntry::new(format!("m{number:05}"), turn, Timestamp::default(), Provenance::USER);
            memory.save(&Principal::default(), entry).await?;
        }
        let clock = Arc::new(ManualClock::new(Timestamp::default()));
        Ok(Self(
            MemoryRecall::new(Arc::new(memory), clock).with_max_memories(AMONG),
        ))
    }

    async fn shown(&self, question: &str) -> Result<Vec<usize>, BoxError> {
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), question);
        let items = self.0.gather(&query).await?;
        // Each text begins with `- [m00042]`.
        let number = |text: &str| text.get(4..9).and_then(|number| number.parse().ok());
        Ok(items.iter().filter_map(|item| number(&item.text)).collect())
    }
}

fn measure_talk(shows_missed: bool) {
    let talk = Talk::load();
    println!("{} texts, {} questions", talk.texts.len(), talk.questions.len());
    let seed = found(&talk, &original(&talk.texts));
    let default = found(&talk, &default(&talk.texts));
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
    if shows_missed {
        let missed = talk.questions.iter().zip(&default).filter(|(_, found)| !**found);
        missed.for_each(|(question, _)| println!("{}", question.text));
    }
}

/// Reports for each question whether its text is among the first hits.
fn found(talk: &Talk<'_>, index: &Bm25Index<usize>) -> Vec<bool> {
    let is_found = |question: &Question<'_>| {
        let hits = index.search(question.text, AMONG);
        hits.iter().any(|hit| hit.item == question.answer)
    };
    talk.questions.iter().map(is_found).collect()
}

/// Counts the questions found among those that belong; questions without a section belong
/// everywhere.
fn count(talk: &Talk<'_>, belongs: &dyn Fn(usize) -> bool, found: &[bool]) -> usize {
    let questions = (0..talk.questions.len()).filter(|question| belongs(*question));
    questions
        .filter(|question| found.get(*question).copied().unwrap_or(found.is_empty()))
        .count()
}
