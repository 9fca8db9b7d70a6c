//! Plans of skills, rules and tiers in processes that are killed at each write.

use super::super::PlanState;
use super::*;

/// A pass with the answer of its model, and the number of writes of its plan.
const PLANS: [(DreamPass, &str, usize); 4] = [
    (
        DreamPass::SkillGap,
        r#"{"toSave": [{"name": "reports", "content": "1. Collect.", "sourceIds": ["s1", "s2"]}]}"#,
        1,
    ),
    (
        DreamPass::SkillConsolidation,
        r#"{"toSave": [{"name": "mail", "content": "Open mail, sort it by date, answer the urgent one first.", "sourceNames": ["mail", "post"]}]}"#,
        2,
    ),
    (
        DreamPass::SkillOptimization,
        r#"{"content": "open mail, sort it by date, the newest first"}"#,
        1,
    ),
    (
        DreamPass::RuleProposals,
        r#"{"rules": [{"rule": "Write dates as day.month.", "sourceIds": ["f1", "f2"]}]}"#,
        1,
    ),
];

/// Runs a process to its end: what it has begun dies with its runtime.
fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// Fills the stores with all that the passes need.
async fn knowing(world: &World) {
    world.says("one", "Write the weekly report.").await;
    world.says("two", "The weekly report again, please.").await;
    world.corrected("f1", "one", "No, the newest first.").await;
    world.corrected("f2", "two", "Day first, please!").await;
    world.can("mail", "open mail, sort it by date").await;
    world
        .can("post", "open mail, sort it, answer the urgent one first")
        .await;
    world.uses("mail", "one").await;
}

/// Returns the live skills and the rules.
async fn knowledge(world: &World) -> Vec<String> {
    let me = Principal::default();
    let skills = world.skills.list(&me).await.unwrap();
    let live = skills.iter().filter(|skill| skill.is_live());
    let rules = world.rules.list(&me).await.unwrap();
    live.map(|skill| format!("{}: {}", skill.name, skill.content))
        .chain(rules.iter().map(|rule| rule.to_string()))
        .collect()
}

/// Does `work`, or is killed in it.
async fn or_killed<T>(work: impl Future<Output = T>) {
    let _ = tokio::time::timeout(Duration::from_secs(60), work).await;
}

/// Waits until the only plan of the process has this state.
async fn settled(process: &Process, state: PlanState) {
    for _ in 0..100 {
        if process.plans()[0].state == state {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the plan is {:?}, and not {state:?}", process.plans()[0].state);
}

#[test]
fn plans_of_skills_and_rules_survive_a_kill_at_each_write() {
    for (pass, answer, writes) in PLANS {
        let whole = killed(pass, answer, 0, 0);
        assert_ne!(whole[0], whole[1], "{pass} changes something");
        assert_eq!(whole[0], whole[2], "{pass} is undone");
        for point in 1..=2 * writes {
            assert_eq!(
                killed(pass, answer, point, 0),
                whole,
                "{pass}, applied up to point {point}"
            );
            assert_eq!(
                killed(pass, answer, 0, point),
                whole,
                "{pass}, undone up to point {point}"
            );
        }
    }
}

/// Applies a plan and undoes it, with a process for each that is killed at a point. Returns the
/// knowledge before, when the plan is applied, and when it is undone.
fn killed(pass: DreamPass, answer: &str, applying: usize, undoing: usize) -> [Vec<String>; 3] {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(ScriptedModel::new().says(answer)).only(&[pass]);
    let begins = async || world.start(Some(folder.path())).await;
    let (id, before) = process(async {
        knowing(&world).await;
        let process = begins().await;
        process.dream().await;
        let before = knowledge(&world).await;
        let id = process.plans()[0].id.clone();
        world.writes.hang_at(applying);
        or_killed(process.dreams.apply(&id)).await;
        let is_killed = process.plans()[0].state == PlanState::Applying;
        assert_eq!(is_killed, applying > 0);
        (id, before)
    });
    world.writes.hang_at(0);
    let applied = process(async {
        let process = begins().await;
        settled(&process, PlanState::Applied).await;
        let applied = knowledge(&world).await;
        world.writes.hang_at(undoing);
        or_killed(process.dreams.undo(&id)).await;
        let is_killed = process.plans()[0].state == PlanState::Undoing;
        assert_eq!(is_killed, undoing > 0);
        applied
    });
    world.writes.hang_at(0);
    let undone = process(async {
        settled(&begins().await, PlanState::Undone).await;
        knowledge(&world).await
    });
    [before, applied, undone]
}

/// The rules of the tier selector are one file, which is replaced as a whole: a killed process
/// leaves the old file or the new file, and the state of its plan.
#[test]
fn a_plan_of_tiers_survives_a_kill_before_and_after_its_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let line = r#"{"tier":"Low","complexityScore":0.1,"promptPreview":"x"}"#;
    std::fs::write(path("tier-routing-log.jsonl"), format!("{line}\n").repeat(10)).unwrap();
    let old = r#"{"lowCeiling":0.2}"#;
    std::fs::write(path("tier-selector.json"), old).unwrap();
    let world = World::asking(ScriptedModel::new().says(r#"{"lowCeiling": 0.22}"#));
    let world = world.only(&[DreamPass::TierRoutingReview]);
    let plan = process(async {
        let process = world.start(Some(folder.path())).await;
        process.dream().await;
        process.dreams.apply(&process.plans()[0].id).await.unwrap()
    });
    let new = std::fs::read_to_string(path("tier-selector.json")).unwrap();
    assert_ne!(new, old);
    let plan = path(&format!("dreams/{}.json", plan.id));
    let written = std::fs::read_to_string(&plan).unwrap();
    for (killed, ends, expected) in [
        ("applying", PlanState::Applied, new.as_str()),
        ("undoing", PlanState::Undone, old),
    ] {
        for left in [old, new.as_str()] {
            std::fs::write(&plan, written.replace("\"applied\"", &format!("\"{killed}\""))).unwrap();
            std::fs::write(path("tier-selector.json"), left).unwrap();
            process(async { settled(&world.start(Some(folder.path())).await, ends).await });
            let rules = std::fs::read_to_string(path("tier-selector.json")).unwrap();
            assert_eq!(rules, expected, "{killed}, with {left}");
        }
    }
}
