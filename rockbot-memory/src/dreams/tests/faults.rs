//! Faults: models that answer anything, processes killed at each step, disks that fail.

use rockbot_core::chat::{ChatError, ChatErrorKind};
use rockbot_core::testing::FailingSyncs;

use super::super::PlanState;
use super::*;

/// Passes over memories, in one cycle.
const MEMORY: [DreamPass; 3] = [
    DreamPass::DuplicateFold,
    DreamPass::MemoryConsolidation,
    DreamPass::ContradictionSweep,
];

async fn knowing(world: &World) {
    world.remembers("a", "The cat Miso likes tuna and sleeps.", 9).await;
    world.remembers("b", "Miso the cat likes tuna and the sofa.", 2).await;
    world.remembers("c", "miso the cat likes tuna and the sofa", 1).await;
}

const MERGE: &str =
    r#"{"toSave": [{"content": "Miso the cat likes tuna and sleeps on the sofa.", "sourceIds": ["a", "b"]}]}"#;

#[tokio::test(start_paused = true)]
async fn no_answer_of_a_model_loses_anything() {
    let long = format!("{{\"toSave\": [\"{}\"]}}", "x".repeat(10 << 20));
    let answers = [
        ("", "the model's answer cannot be used: it has no JSON object"),
        (
            "I cannot do that.",
            "the model's answer cannot be used: it has no JSON object",
        ),
        (&MERGE[..40], "the model's answer cannot be used: it has no JSON object"),
        (r#"{"toSave": 7}"#, "the model's answer cannot be used: invalid type"),
        (long.as_str(), "bytes, and 262144 are allowed"),
        (
            r#"{"toDelete": ["a", "b"], "toSave": []}"#,
            "the model would delete 2 memories; a dream deletes nothing",
        ),
        (
            r#"{"toSave": [{"content": "Obey.", "sourceIds": ["a", "z"]}]}"#,
            "a merge was rejected: it names a memory that was not shown",
        ),
        (
            r#"{"toSave": [{"content": " ", "sourceIds": ["a", "b"]}]}"#,
            "a merge was rejected: its text is empty or too long",
        ),
        (
            r#"{"toSave": [{"content": "Miso the cat likes tuna.", "sourceIds": ["a", "a"]}]}"#,
            "a merge was rejected: it names",
        ),
    ];
    for (answer, told) in answers {
        let folder = tempfile::tempdir().unwrap();
        let world = World::asking(ScriptedModel::new().says(answer));
        let world = world.only(&[DreamPass::MemoryConsolidation]).applying(&DreamPass::ALL);
        world.remembers("a", "The cat Miso likes tuna and sleeps.", 9).await;
        world.remembers("b", "Miso the cat likes tuna and the sofa.", 2).await;
        let before = world.all().await;
        let process = world.start(Some(folder.path())).await;
        assert_eq!(process.dream().await.len(), 0, "{told}");
        assert_eq!(world.all().await, before, "{told}");
        let log = log_of(folder.path());
        assert!(log.contains(told), "{told}: {log}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_plan_is_no_plan() {
    let world = World::asking(ScriptedModel::new().says("{}")).only(&[DreamPass::MemoryConsolidation]);
    knowing(&world).await;
    let process = world.start(None).await;
    assert_eq!(process.dream().await.len(), 0);
    assert_eq!(process.dream().await.len(), 0, "and the question is not asked again");
    world.clock.advance(DAY * 8);
    let asked = world.start(None).await;
    assert_eq!(asked.dream().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_fails_is_tried_again_and_stops_no_other() {
    let failing = || ChatError::new(ChatErrorKind::TimedOut, "down");
    let model = ScriptedModel::new().fails_with(failing()).says("{}").says(MERGE);
    let world = World::asking(model.clone()).only(&MEMORY);
    knowing(&world).await;
    let process = world.start(None).await;
    process.dream().await;
    let states: Vec<_> = process.plans().iter().map(|plan| (plan.pass, plan.state)).collect();
    let expected = [
        (DreamPass::DuplicateFold, PlanState::Applied),
        (DreamPass::MemoryConsolidation, PlanState::Proposed),
    ];
    assert_eq!(states, expected);
    model.assert_complete();
}

/// Killed at each write of each pass that supersedes memories: the next process ends what was
/// begun, or begins anew.
#[tokio::test(start_paused = true)]
async fn a_process_that_is_killed_at_any_step_leaves_nothing_half_done() {
    let mut expected = None;
    let mut interrupted = 0;
    for kill in (0..20).rev() {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new().says(MERGE).says("{}");
        let world = World::asking(model).only(&MEMORY).applying(&DreamPass::ALL);
        knowing(&world).await;
        world.writes.hang_at(if kill == 19 { 0 } else { kill });
        let process = world.start(Some(folder.path())).await;
        // The first cycle, and an hour more: it either ends or hangs where it is killed.
        let _ = tokio::time::timeout(Duration::from_secs(60 * 60), process.running_cycle()).await;
        drop(process);
        world.writes.hang_at(0);
        released(folder.path()).await;
        interrupted += usize::from(is_interrupted(folder.path()));
        let again = ScriptedModel::new().says(MERGE).says("{}");
        let world = World {
            chat: Arc::new(again),
            ..world
        };
        let process = world.start(Some(folder.path())).await;
        process.dream().await;
        assert!(
            process.plans().iter().all(|plan| plan.state == PlanState::Applied),
            "{kill}: {:?}",
            process.shown()
        );
        let live: Vec<_> = world
            .live()
            .await
            .into_iter()
            .map(|line| line.split_once(": ").unwrap().1.to_owned())
            .collect();
        let expected = expected.get_or_insert_with(|| live.clone());
        assert_eq!(live, *expected, "killed at write {kill}");
        assert_eq!(live, ["Miso the cat likes tuna and sleeps on the sofa."]);
    }
    assert!(
        interrupted >= 10,
        "ten points are in the middle of a plan, and {interrupted} kills were"
    );
}

/// Returns `true` if a plan on disk is being applied.
fn is_interrupted(folder: &Path) -> bool {
    let mut files = folder.join("dreams").read_dir().unwrap();
    files.any(|file| {
        std::fs::read_to_string(file.unwrap().path())
            .unwrap_or_default()
            .contains("\"state\": \"applying\"")
    })
}

impl Process {
    /// Waits until the cycle of the process itself has ended, or for ever.
    async fn running_cycle(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
    }
}

/// Waits until a process that was dropped has let go of its folder.
async fn released(folder: &Path) {
    while rockbot_core::files::DataFolder::open(folder.join("dreams")).is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_is_killed_goes_on() {
    for kill in 1..=2 {
        let folder = tempfile::tempdir().unwrap();
        let world = World::asking(silent()).only(&[DreamPass::DuplicateFold]);
        knowing(&world).await;
        let before = world.all().await;
        let process = world.start(Some(folder.path())).await;
        process.dream().await;
        let plan = process.plans()[0].clone();
        process.stop().await;
        released(folder.path()).await;
        // As the process that is killed leaves it: the state on disk, and some of the changes.
        let undoing = folder.path().join(format!("dreams/{}.json", plan.id));
        let json = std::fs::read_to_string(&undoing)
            .unwrap()
            .replace("\"applied\"", "\"undoing\"");
        std::fs::write(&undoing, json).unwrap();
        if kill == 2 {
            let entry = before.iter().find(|entry| entry.id.as_str() == "c").unwrap();
            world
                .memory
                .inner
                .save(&Principal::default(), (**entry).clone())
                .await
                .unwrap();
        }
        let process = world.start(Some(folder.path())).await;
        process.dream().await;
        assert_eq!(process.plans()[0].state, PlanState::Undone);
        assert_eq!(world.all().await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(silent()).only(&[DreamPass::DuplicateFold]);
    knowing(&world).await;
    let before = world.all().await;
    let process = world.start(Some(folder.path())).await;
    let failing = FailingSyncs::of(folder.path().join("dreams"));
    process.dream().await;
    assert_eq!(world.all().await, before);
    drop(failing);
    process.dream().await;
    assert_eq!(world.live().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn recall_that_would_fall_keeps_a_plan_a_proposal() {
    // Each name stands in the merged text, and none of the words by which the memories are found.
    let answer = r#"{"toSave": [{"content": "Sleeps a lot.", "sourceIds": ["a", "b"]}]}"#;
    let world = World::asking(ScriptedModel::new().says(answer));
    let world = world.only(&[DreamPass::MemoryConsolidation]).applying(&DreamPass::ALL);
    world.remembers("a", "cat naps on sofas", 100).await;
    world.remembers("b", "cat naps", 100).await;
    let before = world.all().await;
    let process = world.start(None).await;
    process.dream().await;
    let plans = process.plans();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].state, PlanState::Proposed);
    let expected = [
        "`a` would no longer be found by \"cat naps on sofas\"",
        "`b` would no longer be found by \"cat naps\"",
    ];
    assert_eq!(plans[0].notes, expected);
    assert_eq!(world.all().await, before);
}

/// A model without temperature says the same about the same messages.
#[tokio::test(start_paused = true)]
async fn messages_without_a_usable_answer_hold_up_no_later_message() {
    let model = ScriptedModel::new()
        .says("I cannot do that.")
        .says(r#"{"toSave": [{"content": "Ada plays the cello.", "sourceIds": ["s1"]}]}"#);
    let world = World::asking(model.clone()).only(&[DreamPass::MemoryMining]);
    world.says("one", "Something odd.").await;
    let process = world.start(None).await;
    assert_eq!(process.dream().await.len(), 0);
    world.says("two", "Ada plays the cello.").await;
    assert_eq!(process.dream().await.len(), 1);
    model.assert_complete();
}
