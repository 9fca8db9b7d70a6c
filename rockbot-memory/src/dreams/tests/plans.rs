//! Cycles, plans and the hands of a person.

use rockbot_core::turn::{EndedTurn, TurnObserver as _};

use super::super::{DreamError, PlanState};
use super::*;

const FOLD: [DreamPass; 1] = [DreamPass::DuplicateFold];

async fn twins(world: &World) {
    world.remembers("a", "Likes tea.", 3).await;
    world.remembers("b", "likes  tea", 2).await;
    world.remembers("c", "Likes coffee.", 1).await;
}

#[tokio::test(start_paused = true)]
async fn duplicates_are_folded_at_once_and_come_back_by_undo() {
    let world = World::asking(silent()).only(&FOLD);
    twins(&world).await;
    let before = world.all().await;
    let process = world.start(None).await;
    let plan = "2027-01-15T08-00-00Z-duplicate-fold";
    let shown = format!(
        "{plan} (applied): fold 1 duplicates\n= [a] Likes tea. (learned 2 times)\n- [b] likes tea (superseded by a); the same words"
    );
    assert_eq!(process.dream().await, [shown]);
    assert_eq!(world.live().await, ["a: Likes tea.", "c: Likes coffee."]);
    let undone = process.dreams.undo(plan).await.unwrap();
    assert_eq!((undone.state, undone.notes.len()), (PlanState::Undone, 0));
    assert_eq!(world.all().await, before);
    // A person wants both.
    assert_eq!(process.dream().await.len(), 1);
    process.dreams.apply(plan).await.unwrap();
    assert_eq!(world.live().await, ["a: Likes tea.", "c: Likes coffee."]);
    let error = process.dreams.apply(plan).await.unwrap_err();
    assert_eq!(error.to_string(), "the plan is applied already");
    let error = process.dreams.of("ann").undo(plan).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no plan `{plan}`: list them"));
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_only_proposes_changes_nothing() {
    let world = World::asking(silent()).only(&FOLD).applying(&[]);
    twins(&world).await;
    let before = world.all().await;
    let process = world.start(None).await;
    process.dream().await;
    assert_eq!(process.plans()[0].state, PlanState::Proposed);
    assert_eq!(world.all().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_out_of_date_changes_nothing() {
    let world = World::asking(silent()).only(&FOLD).applying(&[]);
    twins(&world).await;
    let process = world.start(None).await;
    process.dream().await;
    world.remembers("b", "Likes tea with milk.", 0).await;
    let before = world.all().await;
    let error = process.dreams.apply(&process.plans()[0].id).await.unwrap_err();
    assert!(
        matches!(&error, DreamError::Stale(reason) if reason == "the memory `b` has changed"),
        "{error}"
    );
    assert_eq!(world.all().await, before);
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_since_stays_when_a_plan_is_undone() {
    let world = World::asking(silent()).only(&FOLD);
    twins(&world).await;
    let process = world.start(None).await;
    process.dream().await;
    world.remembers("a", "Likes tea, but not in the evening.", 0).await;
    let undone = process.dreams.undo(&process.plans()[0].id).await.unwrap();
    assert_eq!(undone.notes, ["the memory `a` was changed since, and stays"]);
    let expected = [
        "a: Likes tea, but not in the evening.",
        "b: likes  tea",
        "c: Likes coffee.",
    ];
    assert_eq!(world.live().await, expected);
}

#[tokio::test(start_paused = true)]
async fn cycles_begin_after_five_minutes_and_then_every_four_hours_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(silent()).only(&FOLD);
    twins(&world).await;
    let pass = async |minutes: u64| {
        for _ in 0..minutes {
            world.clock.advance(Duration::from_secs(60));
            tokio::time::sleep(Duration::from_secs(60)).await;
            // Files are written on threads of their own, for which a paused clock does not wait.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
    };
    let process = world.start(Some(folder.path())).await;
    pass(4).await;
    assert_eq!(process.plans().len(), 0);
    pass(2).await;
    while process.plans().is_empty() {
        tokio::task::yield_now().await;
    }
    process.stop().await;
    drop(world.start(Some(folder.path())).await);
    world.remembers("d", "likes coffee", 0).await;
    let process = loop {
        tokio::task::yield_now().await;
        if rockbot_core::files::DataFolder::open(folder.path().join("dreams")).is_ok() {
            break world.start(Some(folder.path())).await;
        }
    };
    pass(60).await;
    assert_eq!(process.plans().len(), 1, "the cycle before is known");
    pass(200).await;
    while process.plans().len() < 2 {
        tokio::task::yield_now().await;
    }
    let log = log_of(folder.path());
    assert!(log.contains("Z-duplicate-fold: fold 1 duplicates"), "{log}");
    assert_eq!(log.matches("duplicate-fold: applied 2027-01-15T").count(), 2, "{log}");
}

#[tokio::test(start_paused = true)]
async fn plans_are_files_that_a_later_process_undoes() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::asking(silent()).only(&FOLD);
    twins(&world).await;
    let before = world.all().await;
    let process = world.start(Some(folder.path())).await;
    process.dream().await;
    let plan = process.plans()[0].clone();
    process.stop().await;
    let file = folder.path().join(format!("dreams/{}.json", plan.id));
    let stored: DreamPlan = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(stored, *plan);
    std::fs::write(folder.path().join("dreams/2020-broken.json"), "{").unwrap();
    let process = world.start(Some(folder.path())).await;
    assert_eq!(process.plans(), std::slice::from_ref(&plan));
    process.dreams.undo(&plan.id).await.unwrap();
    assert_eq!(world.all().await, before);
    assert!(folder.path().join("dreams/2020-broken.json.damaged").exists());
}

#[tokio::test(start_paused = true)]
async fn dreams_that_are_off_say_so() {
    let config = rockbot_core::config::Config::new();
    let config = config.with_text("a.toml", "[Dream]\nEnabled = false").unwrap();
    let mut parts = Parts::new(
        AgentIdentity::new("test"),
        Arc::new(ManualClock::new(Timestamp::default())),
        None,
    );
    parts.provide(Arc::new(config));
    let mut needs = Declarations::new(parts);
    let mut dreaming = Box::new(Dreaming::new());
    dreaming.declare(&mut needs).unwrap();
    let declared = needs.merge();
    let running = dreaming.start(&declared.parts).await.unwrap();
    let error = declared.parts.require::<Dreams>().unwrap().plans().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the host does not dream: start it, and leave `Dream.Enabled` on"
    );
    assert!(running.check().is_ok() && declared.observers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_principal_that_wrote_is_cared_for() {
    let world = World::asking(silent()).only(&FOLD);
    let ann = Principal::from("ann");
    for (id, content) in [("x", "Likes tea."), ("y", "likes tea")] {
        let entry = MemoryEntry::new(id, content, world.clock.now(), Provenance::USER);
        world.memory.save(&ann, entry).await.unwrap();
    }
    let ledger = Arc::new(std::sync::Mutex::new(super::super::ledger::Ledger::default()));
    let listener = super::super::subsystem::Listener(ledger.clone());
    let request = rockbot_core::turn::TurnRequest::new("s", "m", "My key is sk-abcdefghijklmnopqrstuvwxyz123456.");
    let request = request.with_principal("ann");
    let outcome = rockbot_core::turn::TurnOutcome::new("t".into(), rockbot_core::turn::TurnStatus::Answered, "Yes.");
    listener.ended(&EndedTurn::new(&request, &outcome, world.clock.now()));
    let heard = ledger.lock().unwrap().clone();
    assert_eq!(heard.principals(), [ann.clone(), Principal::default()].into());
    assert!(!heard.queries[&ann][0].contains("sk-abc"), "{:?}", heard.queries);
}

/// Returns three o'clock after a time.
fn three_o_clock(after: Timestamp) -> Option<Timestamp> {
    let hour = 60 * 60 * 1_000;
    let day = (after.as_millis().saturating_sub(3 * hour)) / (24 * hour) + 1;
    Some(Timestamp::from_millis(day * 24 * hour + 3 * hour))
}

#[tokio::test(start_paused = true)]
async fn cycles_come_at_set_times_and_a_missed_time_is_made_up_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::asking(silent()).only(&FOLD);
    world.times = Some(three_o_clock);
    let pass = async |minutes: u32| {
        for _ in 0..minutes / 2 {
            world.clock.advance(Duration::from_secs(120));
            tokio::time::sleep(Duration::from_secs(120)).await;
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
    };
    let begins = async || {
        while rockbot_core::files::DataFolder::open(folder.path().join("dreams")).is_err() {
            tokio::task::yield_now().await;
        }
        world.start(Some(folder.path())).await
    };
    twins(&world).await;
    let process = begins().await;
    pass(10).await;
    assert_eq!(process.plans().len(), 1, "the first cycle comes after five minutes");
    world.remembers("d", "likes coffee", 0).await;
    pass(18 * 60).await;
    assert_eq!(process.plans().len(), 1, "it is shortly after two");
    pass(60).await;
    assert_eq!(process.plans().len(), 2, "it is shortly after three");
    process.stop().await;
    world.remembers("e", "likes  coffee", 0).await;
    world.clock.advance(DAY * 2);
    let process = begins().await;
    pass(4).await;
    assert_eq!(process.plans().len(), 2);
    pass(6).await;
    assert_eq!(
        process.plans().len(),
        3,
        "three o'clock has passed while no process ran"
    );
}
