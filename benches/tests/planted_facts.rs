//! Facts in long tool results are found by natural questions: a part of what `planted_facts`
//! measures.

use rockbot_benches::planted::{Form, Questions, plant};
use rockbot_benches::search::Searched;

/// Number of questions that are passed over for each that is asked: a search of a build without
/// optimization is slow.
const STEP: usize = 10;

#[tokio::test]
async fn planted_facts_are_found_in_a_megabyte_of_each_form() {
    let mut missed = Vec::new();
    for form in Form::ALL {
        let planted = plant(form, 1_000_000, 2, Questions::HeldOut);
        let searched = Searched::keep(&planted.text).await;
        for fact in planted.facts.iter().step_by(STEP) {
            assert!(planted.text.contains(&fact.written), "{form:?}: {fact:?}");
            if !searched.search(&fact.question, 1).await.contains(&fact.written) {
                missed.push((form, fact.question.clone()));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
