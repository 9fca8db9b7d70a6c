//! The conformance suite of [`ConversationMemory`].

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::chat::Role;
use crate::content::{Content, ContentPart, Provenance};
use crate::context::Trust;
use crate::store::{CallRound, ConversationMemory, ConversationQuery, ConversationTurn, EndorsedValue, PastCall};
use crate::{Principal, SessionId, Timestamp, TurnId};

/// Checks that the values that `make` creates keep the contract of [`ConversationMemory`].
///
/// The memory must be empty and must keep at least 12 entries of a session.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn conversation_memory<M: ConversationMemory>(make: impl AsyncFn() -> M) {
    returns_the_last_entries_oldest_first(&make().await).await;
    does_not_add_a_turn_twice(&make().await).await;
    keeps_sessions_and_principals_apart(&make().await).await;
    forgets_one_session_only(&make().await).await;
    lists_sessions_in_order(&make().await).await;
    a_cleared_session_begins_anew(&make().await).await;
    flushing_changes_nothing(&make().await).await;
    keeps_every_append_of_many_at_once(&make().await).await;
    keeps_calls_with_their_results(&make().await).await;
    is_read_by_pages(&make().await).await;
    is_read_by_dates(&make().await).await;
}

async fn returns_the_last_entries_oldest_first(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    assert_eq!(
        recent(memory, &me, &session, 10).await,
        [] as [&str; 0],
        "an unknown session is empty"
    );
    append(memory, &me, &session, &[entry("t1", "a"), entry("t1", "b")]).await;
    append(memory, &me, &session, &[entry("t2", "c")]).await;
    assert_eq!(
        recent(memory, &me, &session, 10).await,
        ["a", "b", "c"],
        "entries come in the order they were added"
    );
    assert_eq!(
        recent(memory, &me, &session, 2).await,
        ["b", "c"],
        "a limit keeps the last entries"
    );
    assert_eq!(
        recent(memory, &me, &session, 0).await,
        [] as [&str; 0],
        "a limit of 0 keeps none"
    );
    let whole = memory.recent(&me, &session, 1).await.expect("the memory can be read");
    assert_eq!(whole, [entry("t2", "c")], "an entry comes back whole");
}

async fn does_not_add_a_turn_twice(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    let turn = [entry("t1", "question"), entry("t1", "answer")];
    append(memory, &me, &session, &turn).await;
    append(memory, &me, &session, &turn).await;
    assert_eq!(
        recent(memory, &me, &session, 10).await,
        ["question", "answer"],
        "a turn stands there once"
    );
}

async fn keeps_sessions_and_principals_apart(memory: &impl ConversationMemory) {
    let owners = ["local", "other"].map(Principal::from);
    for principal in &owners {
        for session in hostile_ids() {
            let text = format!("{principal} {session}");
            append(memory, principal, &session, &[entry("t", &text)]).await;
        }
    }
    for principal in &owners {
        for session in hostile_ids() {
            let text = format!("{principal} {session}");
            let found = recent(memory, principal, &session, 10).await;
            assert_eq!(found, [text], "sessions and principals must not share entries");
        }
    }
}

async fn forgets_one_session_only(memory: &impl ConversationMemory) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    let sessions = hostile_ids();
    for session in &sessions {
        append(memory, &me, session, &[entry("t", "mine")]).await;
        append(memory, &other, session, &[entry("t", "theirs")]).await;
    }
    let (forgotten, kept) = sessions.split_first().expect("there are several ids");
    memory.clear(&me, forgotten).await.expect("the memory can be written");
    memory
        .clear(&me, &SessionId::from("unknown"))
        .await
        .expect("clearing an unknown session is no error");
    assert_eq!(
        recent(memory, &me, forgotten, 10).await,
        [] as [&str; 0],
        "a cleared session is empty"
    );
    assert_eq!(
        recent(memory, &other, forgotten, 10).await,
        ["theirs"],
        "another principal's session is untouched"
    );
    for session in kept {
        assert_eq!(
            recent(memory, &me, session, 10).await,
            ["mine"],
            "another session is untouched"
        );
    }
    let listed = memory.sessions(&me).await.expect("the memory can be read");
    assert!(!listed.contains(forgotten), "a cleared session is not listed");
}

async fn lists_sessions_in_order(memory: &impl ConversationMemory) {
    let me = Principal::from("me");
    for session in hostile_ids() {
        append(memory, &me, &session, &[entry("t", "text")]).await;
    }
    append(
        memory,
        &Principal::from("other"),
        &SessionId::from("theirs"),
        &[entry("t", "text")],
    )
    .await;
    let mut expected = hostile_ids();
    expected.sort();
    let listed = memory.sessions(&me).await.expect("the memory can be read");
    assert_eq!(
        listed, expected,
        "the sessions of one principal, in the order of their ids"
    );
}

async fn a_cleared_session_begins_anew(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    append(memory, &me, &session, &[entry("t1", "before")]).await;
    memory.clear(&me, &session).await.expect("the memory can be written");
    append(memory, &me, &session, &[entry("t1", "after")]).await;
    assert_eq!(
        recent(memory, &me, &session, 10).await,
        ["after"],
        "a cleared session knows none of its turns"
    );
}

async fn flushing_changes_nothing(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    for turn in ["t1", "t2"] {
        append(memory, &me, &session, &[entry(turn, turn)]).await;
        memory.flush().await.expect("the memory can be written");
        append(memory, &me, &session, &[entry(turn, "again")]).await;
    }
    assert_eq!(
        recent(memory, &me, &session, 10).await,
        ["t1", "t2"],
        "what was flushed is still there"
    );
}

async fn keeps_every_append_of_many_at_once(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let sessions = ["one", "two"].map(SessionId::from);
    let append_from = async |writer: &str| {
        for session in &sessions {
            for at in 0..2 {
                let turn = format!("{writer}{at}");
                append(memory, &me, session, &[entry(&turn, &turn), entry(&turn, &turn)]).await;
            }
        }
    };
    let writers = ["a", "b", "c"].map(|writer| Box::pin(append_from(writer)));
    all_at_once(writers.into()).await;
    for session in &sessions {
        let found = recent(memory, &me, session, 100).await;
        assert!(
            found.chunks(2).all(|pair| pair[0] == pair[1]),
            "the entries of one append stand together, got {found:?}"
        );
        for writer in ["a", "b", "c"] {
            let of_writer: Vec<_> = found.iter().filter(|text| text.starts_with(writer)).collect();
            assert!(
                of_writer.is_sorted(),
                "the appends of one writer keep their order, got {found:?}"
            );
        }
        assert_eq!(found.len(), 12, "every append is there, got {found:?}");
    }
}

async fn keeps_calls_with_their_results(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    let page = ContentPart::text("Bread costs 3.").with_provenance(Provenance::new("tool:web", Trust::Untrusted));
    let rounds = vec![
        CallRound::new(vec![
            PastCall::new("shops", "{}", ""),
            PastCall::new("clock", "{\"zone\":", "noon"),
        ]),
        CallRound::new(vec![PastCall::new("web", "{\"url\":\"a\"}", Content::from(page))]),
    ];
    let called = entry("t1", "It costs 3.")
        .with_rounds(rounds)
        .with_active_tools(vec!["web".into(), "mail".into()])
        .with_endorsed(vec![EndorsedValue::new("send_mail", "to", "ann@known.example")]);
    append(memory, &me, &session, &[called.clone(), entry("t2", "thanks")]).await;
    memory.flush().await.expect("the memory can be written");
    let found = memory.recent(&me, &session, 10).await.expect("the memory can be read");
    assert_eq!(
        found,
        [called, entry("t2", "thanks")],
        "calls, results, their origins, active tools and endorsed values come back whole"
    );
}

async fn is_read_by_pages(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    assert_eq!(
        pages(memory, &me, &session, 2).await,
        [[""; 0]],
        "an unknown session is one empty page"
    );
    for turn in ["t1", "t2", "t3"] {
        let exchange = [
            entry(turn, &format!("{turn} asked")),
            entry(turn, &format!("{turn} said")),
        ];
        append(memory, &me, &session, &exchange).await;
    }
    append(memory, &me, &SessionId::from("other"), &[entry("t4", "elsewhere")]).await;
    let turns = [
        ["t1 asked", "t1 said"],
        ["t2 asked", "t2 said"],
        ["t3 asked", "t3 said"],
    ];
    for limit in [0, 1, 2] {
        let found = pages(memory, &me, &session, limit).await;
        assert_eq!(
            found, turns,
            "a page of {limit} is a whole turn, and the pages are the whole conversation"
        );
    }
    let found = pages(memory, &me, &session, 3).await;
    assert_eq!(
        found,
        [turns[..1].concat(), turns[1..].concat()],
        "a page is longer by the rest of its first turn"
    );
    assert_eq!(
        pages(memory, &me, &session, 6).await,
        [turns.concat()],
        "a full page is the last one if nothing is before it"
    );

    let gone = ConversationQuery::new().with_before(TurnId::from("t9"));
    let page = memory.page(&me, &session, &gone).await.expect("the memory can be read");
    assert_eq!(
        (page.entries.len(), page.earlier),
        (0, None),
        "nothing is before a turn that is not there"
    );
}

async fn is_read_by_dates(memory: &impl ConversationMemory) {
    let me = Principal::default();
    let session = SessionId::from("session");
    for (turn, second) in [("t1", 1), ("t2", 2), ("t3", 3), ("t4", 4)] {
        let entry = ConversationTurn::new(Role::User, turn, Timestamp::from_millis(1_000 * second), turn);
        append(memory, &me, &session, &[entry]).await;
    }
    let at = |second: u64| Timestamp::from_millis(1_000 * second);
    let query = ConversationQuery::new();
    for (query, expected) in [
        (query.clone().with_from(at(3)), &["t3", "t4"][..]),
        (query.clone().with_until(at(3)), &["t1", "t2"]),
        (query.clone().with_from(at(2)).with_until(at(4)), &["t2", "t3"]),
        (query.clone().with_from(at(5)), &[]),
    ] {
        let page = memory
            .page(&me, &session, &query)
            .await
            .expect("the memory can be read");
        assert_eq!(
            (words(page.entries), page.earlier),
            (owned(expected), None),
            "{query:?}"
        );
    }
    let first = query.clone().with_from(at(2)).with_limit(2);
    let page = memory
        .page(&me, &session, &first)
        .await
        .expect("the memory can be read");
    assert_eq!(words(page.entries), ["t3", "t4"], "dates have pages");
    let page = memory.page(&me, &session, &first.with_before(page.earlier)).await;
    let page = page.expect("the memory can be read");
    assert_eq!(
        (words(page.entries), page.earlier),
        (owned(&["t2"]), None),
        "no page is before the dates"
    );
}

/// Returns the texts of all pages, the earliest page first.
async fn pages(
    memory: &impl ConversationMemory,
    principal: &Principal,
    session: &SessionId,
    limit: usize,
) -> Vec<Vec<String>> {
    let mut query = ConversationQuery::new().with_limit(limit);
    let mut pages = Vec::new();
    loop {
        let page = memory
            .page(principal, session, &query)
            .await
            .expect("the memory can be read");
        pages.insert(0, words(page.entries));
        query.before = page.earlier;
        if query.before.is_none() {
            return pages;
        }
    }
}

fn words(entries: Vec<ConversationTurn>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.content.into_words()).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Polls all of them until all have ended.
async fn all_at_once<F: Future<Output = ()>>(mut futures: Vec<Pin<Box<F>>>) {
    poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Ids that a careless store would confuse, or let out of its folder.
fn hostile_ids() -> Vec<SessionId> {
    let long = "x".repeat(300);
    [
        "a", "A", "a/b", "a_b", "a%2Fb", "../a", ".", "..", "CON", "a.", "a ", "ä", "a\u{308}", "a\nb", "a\0b", &long,
    ]
    .map(SessionId::from)
    .to_vec()
}

fn entry(turn: &str, content: &str) -> ConversationTurn {
    ConversationTurn::new(Role::User, content, Timestamp::from_millis(1_000), turn)
}

async fn append(
    memory: &impl ConversationMemory,
    principal: &Principal,
    session: &SessionId,
    entries: &[ConversationTurn],
) {
    let added = memory.append(principal, session, entries.to_vec()).await;
    added.expect("the memory can be written");
}

async fn recent(
    memory: &impl ConversationMemory,
    principal: &Principal,
    session: &SessionId,
    limit: usize,
) -> Vec<String> {
    let found = memory.recent(principal, session, limit).await;
    words(found.expect("the memory can be read"))
}
