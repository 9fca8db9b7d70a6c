//! Measures whether `search_tool_output` finds facts that were planted in long tool results.
//!
//! Usage: `planted_facts [MEGABYTES] [SEED] [tuned | held] [--missed]` (1, 1, `tuned`). Prints for each form of text
//! how many of 100 questions are answered by the passages that the tool returns, and, where asked for, the others.

use rockbot_benches::planted::{Form, Questions, plant};
use rockbot_benches::search::Searched;

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(1);
    let questions = match arguments.get(2).map(String::as_str) {
        Some("held") => Questions::HeldOut,
        _ => Questions::Tuned,
    };
    let shows_missed = arguments.iter().any(|argument| argument == "--missed");
    let mut all = 0;
    for form in Form::ALL {
        let planted = plant(form, number(0) as usize * 1_000_000, number(1), questions);
        let searched = Searched::keep(&planted.text).await;
        let (mut found, mut missed) = (0, Vec::new());
        for fact in &planted.facts {
            match searched.search(&fact.question).await.contains(&fact.written) {
                true => found += 1,
                false => missed.push(fact),
            }
        }
        all += found;
        println!("{form:?}: {found} of {}", planted.facts.len());
        for fact in missed.iter().filter(|_| shows_missed) {
            println!("  {}\n    {}", fact.question, fact.written.replace('\n', "\n    "));
        }
    }
    println!("all: {all} of {}", Form::ALL.len() * rockbot_benches::planted::FACTS);
}
