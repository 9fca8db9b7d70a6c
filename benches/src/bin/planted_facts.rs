//! Measures whether `search_tool_output` finds facts that were planted in long tool results.
//!
//! Usage: `planted_facts [MEGABYTES] [SEED] [tuned | held | confusable] [--missed]` (1, 1,
//! `tuned`). Prints for each form of text how many of 100 questions are answered by the passages
//! that the tool returns, how long the queries took, how long the answers are, and, where asked
//! for, the questions that were not answered and the page that answers them.

use std::time::{Duration, Instant};

use rockbot_benches::planted::{Fact, Form, Questions, plant};
use rockbot_benches::search::Searched;

/// Number of pages that are searched for a fact that the first does not show.
const MAX_PAGES: usize = 20;

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(1);
    let questions = match arguments.get(2).map(String::as_str) {
        Some("held") => Questions::HeldOut,
        Some("confusable") => Questions::Confusable,
        _ => Questions::Tuned,
    };
    let shows_missed = arguments.iter().any(|argument| argument == "--missed");
    let mut all = 0;
    for form in Form::ALL {
        let planted = plant(form, number(0) as usize * 1_000_000, number(1), questions);
        let searched = Searched::keep(&planted.text).await;
        let mut missed = Vec::new();
        let mut times = Vec::new();
        let mut length = 0;
        for fact in &planted.facts {
            let started = Instant::now();
            let shown = searched.search(&fact.question, 1).await;
            times.push(started.elapsed());
            length += shown.chars().count();
            if !shown.contains(&fact.written) {
                missed.push(fact);
            }
        }
        let found = planted.facts.len() - missed.len();
        all += found;
        let (first, later) = times.split_at(1);
        println!(
            "{form:?}: {found} of {}; first query {:?}, later mean {:?}, max {:?}; {} characters",
            planted.facts.len(),
            first[0],
            later.iter().sum::<Duration>() / later.len() as u32,
            later.iter().max().expect("there are more queries"),
            length / planted.facts.len(),
        );
        for fact in missed.iter().filter(|_| shows_missed) {
            show(fact, &searched).await;
        }
    }
    println!("all: {all} of {}", Form::ALL.len() * rockbot_benches::planted::FACTS);
}

/// Prints a question that is not answered by the first page, and the page that answers it.
async fn show(fact: &Fact, searched: &Searched) {
    let mut page = 2;
    while page <= MAX_PAGES && !searched.search(&fact.question, page).await.contains(&fact.written) {
        page += 1;
    }
    let page = if page > MAX_PAGES {
        "no page".to_owned()
    } else {
        format!("page {page}")
    };
    println!(
        "  {} ({page})\n    {}",
        fact.question,
        fact.written.replace('\n', "\n    ")
    );
}
