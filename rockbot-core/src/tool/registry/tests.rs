//! Tests of the registry under concurrent writers.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::testing::{conformance, mock_tool};

const THREADS: usize = 64;

fn tool(name: &str) -> Tool {
    mock_tool(name).0
}

fn names(snapshot: &ToolSnapshot) -> Vec<&str> {
    let entries = snapshot.entries().iter();
    entries.map(|entry| entry.registration().name.as_str()).collect()
}

/// Asserts what holds for every snapshot, whatever other threads write meanwhile.
fn check(snapshot: &ToolSnapshot) {
    let names = names(snapshot);
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "each name once: {names:?}");
    for (name, entry) in names.iter().zip(snapshot.entries()) {
        assert!(snapshot.find(name).is_some_and(|found| Arc::ptr_eq(found, entry)));
    }
    assert!(snapshot.view().names().eq(names));
    assert_eq!(snapshot.view().generation(), snapshot.generation());
}

/// Runs `work` in 64 threads that start together.
fn in_threads(work: impl Fn(usize, &Barrier) + Sync) {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                work(thread, barrier);
            });
        }
    });
}

#[tokio::test]
async fn keeps_the_promises_of_a_registry() {
    conformance::tool_registry(async || InMemoryToolRegistry::new()).await;
}

#[test]
fn no_change_is_lost_when_many_threads_write() {
    let registry = InMemoryToolRegistry::new();
    let shared_names: Vec<_> = (0..8).map(|n| format!("shared_{n}")).collect();
    let holders: Vec<_> = shared_names.iter().map(|_| AtomicUsize::new(0)).collect();
    let changes = AtomicU64::new(0);
    in_threads(|thread, _| {
        let owner = Owner::new("thread");
        registry.register(&owner, tool(&format!("own_{thread}"))).unwrap();
        changes.fetch_add(1, Ordering::Relaxed);
        let mut generation = 0;
        for round in 0..40 {
            let index = (thread + round) % shared_names.len();
            let name = &shared_names[index];
            match registry.register(&owner, tool(name)) {
                Ok(()) => {
                    assert_eq!(
                        holders[index].fetch_add(1, Ordering::SeqCst),
                        0,
                        "two threads hold {name}"
                    );
                    let snapshot = registry.snapshot();
                    assert_eq!(snapshot.find(name).map(|entry| entry.owner()), Some(&owner));
                    holders[index].fetch_sub(1, Ordering::SeqCst);
                    assert!(registry.unregister(&owner, &ToolName::from(&**name)).unwrap());
                    changes.fetch_add(2, Ordering::Relaxed);
                }
                Err(error) => assert!(matches!(error, RegistryError::Duplicate(taken) if taken == **name)),
            }
            let snapshot = registry.snapshot();
            check(&snapshot);
            assert!(snapshot.find(&format!("own_{thread}")).is_some());
            assert!(snapshot.generation() >= generation, "a reader never goes back");
            generation = snapshot.generation();
        }
    });
    let snapshot = registry.snapshot();
    let expected: BTreeSet<_> = (0..THREADS).map(|thread| format!("own_{thread}")).collect();
    let registered: BTreeSet<_> = names(&snapshot).into_iter().map(str::to_owned).collect();
    assert_eq!(registered, expected);
    assert_eq!(
        snapshot.generation(),
        changes.into_inner(),
        "every change made one generation"
    );
    assert_eq!(*registry.watch().borrow(), snapshot.generation());
}

#[test]
fn of_many_that_want_a_name_one_gets_it() {
    const ROUNDS: usize = 100;
    let registry = InMemoryToolRegistry::new();
    let winners: Vec<_> = (0..ROUNDS).map(|_| AtomicUsize::new(0)).collect();
    in_threads(|_, barrier| {
        let owner = Owner::new("thread");
        for (round, winners) in winners.iter().enumerate() {
            let name = format!("tool_{round}");
            barrier.wait();
            match registry.register(&owner, tool(&name)) {
                Ok(()) => drop(winners.fetch_add(1, Ordering::Relaxed)),
                Err(error) => assert!(matches!(error, RegistryError::Duplicate(taken) if taken == *name)),
            }
        }
    });
    let winners: Vec<_> = winners.into_iter().map(AtomicUsize::into_inner).collect();
    assert_eq!(winners, [1; ROUNDS]);
    assert_eq!(registry.snapshot().generation(), ROUNDS as u64);
}

#[test]
fn a_source_is_never_seen_half_replaced() {
    let registry = InMemoryToolRegistry::new();
    let sets = ["a", "b"].map(|set| (0..8).map(|n| format!("{set}_{n}")).collect::<Vec<_>>());
    in_threads(|thread, _| {
        // One thread writes, so the registry only holds its tools.
        if thread == 0 {
            let owner = Owner::new("writer");
            for round in 0..200 {
                let tools = sets[round % 2].iter().map(|name| tool(name)).collect();
                registry.replace_source(&owner, tools).unwrap();
            }
        } else {
            for _ in 0..50 {
                let snapshot = registry.snapshot();
                check(&snapshot);
                let seen = names(&snapshot);
                assert!(
                    seen.is_empty() || seen == sets[0] || seen == sets[1],
                    "half replaced: {seen:?}"
                );
                thread::yield_now();
            }
        }
    });
    assert_eq!(names(&registry.snapshot()), sets[1]);
}
