//! The time that a cycle takes over many memories. Measured, never asserted.

use super::*;

/// `cargo test --release --all-features -p rockbot-memory --lib ten_thousand -- --ignored
/// --nocapture` prints the time.
#[tokio::test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a measurement prints its result")]
async fn a_cycle_over_ten_thousand_memories() {
    let answers = (0..20).fold(ScriptedModel::new(), |model, _| model.says("{}"));
    let mut world = World::asking(answers);
    world.options = world.options.with_disabled([]);
    let nouns = [
        "cat", "garden", "car", "report", "tea", "boat", "window", "letter", "meeting", "recipe",
    ];
    for number in 0..10_000_usize {
        let noun = nouns[number % 10];
        let other = nouns[(number / 10) % 10];
        let text = format!(
            "Person{} keeps the {noun} near the {other} of room {} on day {}.",
            number % 97,
            number % 31,
            number % 4_000
        );
        // Every tenth is said twice.
        let text = if number % 10 == 1 {
            "Person keeps the same garden.".to_owned() + &(number / 20).to_string()
        } else {
            text
        };
        world
            .remembers(&format!("m{number}"), &text, (number % 300) as u32)
            .await;
    }
    let process = world.start(None).await;
    let begin = std::time::Instant::now();
    process.dreams.dream().await.unwrap();
    println!(
        "a cycle over 10 000 memories took {:?}, with {} plans",
        begin.elapsed(),
        process.plans().len()
    );
}
