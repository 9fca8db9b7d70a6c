//! Leases of workers: who offers what, and for how long; and what an agent makes of an offer.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::messaging::{Delivery, Disposition, MessageSubscriberExt as _, headers};
use rockbot_core::tool::{ToolErrorCode, ToolInvokeRequest, ToolRegistration};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::directory::{Change, Directory};
use super::questions::Questions;
use super::remote_worker::Caller;
use super::wire::{AnnouncedGuide, ToolsAnnounced, ToolsWithdrawn, WorkerHeartbeat};
use crate::bus::InProcessBus;

const LEASE: Duration = Duration::from_secs(15);

fn announced(instance: &str, revision: u64, tools: &[&str]) -> ToolsAnnounced {
    let registration = |name: &&str| ToolRegistration::new(*name, "Works.", json!({"type": "object"}));
    ToolsAnnounced {
        worker: "w".to_owned(),
        instance: instance.to_owned(),
        revision,
        lease_ms: 15_000,
        topic: "tool.invoke.w".to_owned(),
        tools: tools.iter().map(registration).collect(),
        guides: Vec::new(),
    }
}

fn heartbeat(instance: &str, revision: u64) -> WorkerHeartbeat {
    WorkerHeartbeat {
        worker: "w".to_owned(),
        instance: instance.to_owned(),
        revision,
        lease_ms: 15_000,
    }
}

fn withdrawn(instance: &str) -> ToolsWithdrawn {
    ToolsWithdrawn {
        worker: "w".to_owned(),
        instance: instance.to_owned(),
    }
}

/// The names of the tools that are offered now, or the other consequence.
fn outcome(change: &Change) -> String {
    match change {
        Change::Offered(offer) => {
            let names: Vec<_> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("offered {}", names.join(" "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_lease_is_renewed_by_heartbeats_and_ends_without() {
    let mut known = Directory::default();
    let start = Instant::now();
    assert_eq!(outcome(&known.announced(announced("a", 1, &["t"]), start)), "offered t");
    assert_eq!(known.next_expiry(), Some(start + LEASE));
    let later = start + Duration::from_secs(10);
    assert_eq!(known.heartbeat(&heartbeat("a", 1), later), Change::None);
    assert_eq!(known.expire(start + LEASE), None);
    assert_eq!(known.expire(later + LEASE), Some(Change::Gone("w".to_owned())));
    assert_eq!((known.expire(later + LEASE), known.next_expiry()), (None, None));
}

#[test]
fn what_is_known_by_a_heartbeat_alone_is_asked_for() {
    let mut known = Directory::default();
    let now = Instant::now();
    assert_eq!(known.heartbeat(&heartbeat("a", 1), now), Change::Ask);
    known.announced(announced("a", 2, &["t"]), now);
    assert_eq!(known.heartbeat(&heartbeat("a", 1), now), Change::None, "an old one");
    assert_eq!(
        known.heartbeat(&heartbeat("a", 3), now),
        Change::Ask,
        "its announcement was lost"
    );
    assert_eq!(known.heartbeat(&heartbeat("b", 1), now), Change::Ask, "another process");
}

#[test]
fn announcements_that_change_nothing_or_come_late_have_no_consequence() {
    let mut known = Directory::default();
    let now = Instant::now();
    known.announced(announced("a", 2, &["t"]), now);
    for (late, expected) in [
        (announced("a", 2, &["t"]), "None"),
        (announced("a", 1, &["old"]), "None"),
        (announced("b", 1, &["t"]), "None"),
        (announced("b", 2, &["t", "u"]), "offered t u"),
        (announced("a", 2, &["t"]), "None"),
    ] {
        assert_eq!(outcome(&known.announced(late, now)), expected);
    }
}

#[test]
fn the_tools_of_a_name_go_with_its_last_process() {
    let mut known = Directory::default();
    let now = Instant::now();
    known.announced(announced("a", 1, &["t"]), now);
    known.announced(announced("b", 1, &["u"]), now);
    assert_eq!(
        known.withdrawn(&withdrawn("b")),
        Change::Ask,
        "the other may have other tools"
    );
    assert_eq!(outcome(&known.announced(announced("a", 1, &["t"]), now)), "offered t");
    assert_eq!(known.withdrawn(&withdrawn("b")), Change::None);
    assert_eq!(known.withdrawn(&withdrawn("a")), Change::Gone("w".to_owned()));
    assert_eq!(known.withdrawn(&withdrawn("a")), Change::None);
}

#[test]
fn leases_and_numbers_are_bounded() {
    let mut known = Directory::default();
    let now = Instant::now();
    for (lease, expected) in [(0, 1), (u64::MAX, 300)] {
        let announced = ToolsAnnounced {
            lease_ms: lease,
            ..announced("a", 1, &["t"])
        };
        known.announced(announced, now);
        assert_eq!(known.next_expiry(), Some(now + Duration::from_secs(expected)));
    }
    for number in 0..1000 {
        let announced = ToolsAnnounced {
            worker: format!("w{number}"),
            ..announced("a", 1, &["t"])
        };
        known.announced(announced, now);
    }
    let further = ToolsAnnounced {
        worker: "further".to_owned(),
        ..announced("a", 1, &["t"])
    };
    let refused = Change::Refused("there are too many workers");
    assert_eq!(known.announced(further, now), refused);
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_calls_may_exceed_that_of_requests() {
    let bus = InProcessBus::new();
    let limit = Duration::from_secs(20 * 60);
    let (asked, mut limits) = mpsc::unbounded_channel();
    let silent = move |delivery: Delivery| {
        asked.send(headers::timeout(&delivery.envelope.headers)).unwrap();
        async { Disposition::Ack }
    };
    let _worker = bus.on("tool.invoke.w", "w", silent).await.unwrap();
    let (abandoned, _given_up) = mpsc::channel(1);
    let caller = Caller::new(Arc::new(bus.clone()), "agent".into(), abandoned, limit);
    let tools = caller.tools_of(&announced("a", 1, &["t"]), false).unwrap();
    let began = Instant::now();
    let request = ToolInvokeRequest::new("1", "t", "{}");
    let cx = CallContext::new("s");
    let called = tools[0].executor.execute(request, &cx).await;
    assert_eq!(called.unwrap_err().code(), ToolErrorCode::OutcomeUnknown);
    assert_eq!(limits.recv().await, Some(Some(limit)));
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
}

#[test]
fn workers_beyond_the_bounds_are_not_asked_and_orphaned_offers_are() {
    let mut known = Directory::default();
    let now = Instant::now();
    known.announced(announced("a", 1, &["t"]), now);
    known.announced(announced("b", 1, &["u"]), now);
    assert_eq!(known.withdrawn(&withdrawn("b")), Change::Ask);
    assert_eq!(
        known.heartbeat(&heartbeat("a", 1), now),
        Change::Ask,
        "the answer was lost"
    );
    known.announced(announced("a", 1, &["t"]), now);
    assert_eq!(known.heartbeat(&heartbeat("a", 1), now), Change::None);
    for number in 0..1000 {
        let worker = format!("w{number}");
        known.announced(
            ToolsAnnounced {
                worker,
                ..announced("a", 1, &["t"])
            },
            now,
        );
        known.announced(announced(&format!("{number}"), 1, &["t"]), now);
    }
    let worker = "further".to_owned();
    let further = WorkerHeartbeat {
        worker,
        ..heartbeat("a", 1)
    };
    assert_eq!(known.heartbeat(&further, now), Change::None);
    assert_eq!(known.heartbeat(&heartbeat("further", 1), now), Change::None);
}

#[test]
fn the_texts_of_all_workers_are_bounded_together() {
    let mut known = Directory::default();
    let now = Instant::now();
    let guide = AnnouncedGuide {
        name: "g".to_owned(),
        summary: "s".to_owned(),
        document: "x".repeat(1024 * 1024),
    };
    let large = |worker: &str| ToolsAnnounced {
        worker: worker.to_owned(),
        guides: vec![guide.clone()],
        ..announced("a", 1, &["t"])
    };
    let outcomes: Vec<_> = (0..17)
        .map(|number| outcome(&known.announced(large(&format!("w{number}")), now)))
        .collect();
    assert_eq!(outcomes[..15], vec!["offered t"; 15]);
    assert_eq!(
        outcomes[15..],
        ["Refused(\"the descriptions of all workers together are too long\")"; 2]
    );
    assert_eq!(
        outcome(&known.announced(large("w3"), now)),
        "None",
        "its own text does not count twice"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_back_off_until_they_bring_tools() {
    let start = Instant::now();
    let mut questions = Questions::asked_at(start);
    let mut asked = Vec::new();
    for _ in 0..8 {
        questions.want(Instant::now());
        questions.want(Instant::now());
        sleep_until(questions.due().unwrap()).await;
        questions.asked(Instant::now());
        asked.push((Instant::now() - start).as_secs());
    }
    assert_eq!(asked, [1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(questions.due(), None);
    questions.answered();
    questions.want(Instant::now());
    sleep_until(questions.due().unwrap()).await;
    questions.asked(Instant::now());
    questions.want(Instant::now());
    assert_eq!(questions.due(), Some(Instant::now() + Duration::from_secs(2)));
}
