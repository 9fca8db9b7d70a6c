//! The conformance suite of [`ConversationLog`].

use crate::chat::Role;
use crate::store::{ConversationLog, LogBatch, LogEntry, LogOffset};
use crate::trust::{Label, Trust};
use crate::{Principal, Timestamp};

/// Checks that the values that `make` creates keep the contract of [`ConversationLog`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn conversation_log<L: ConversationLog>(make: impl AsyncFn() -> L) {
    each_reader_has_its_own_position(&make().await).await;
    reads_again_what_was_not_committed(&make().await).await;
    a_position_only_moves_forward(&make().await).await;
    trimming_loses_nothing_that_was_appended_since(&make().await).await;
    keeps_principals_apart(&make().await).await;
    keeps_an_entry_whole(&make().await).await;
}

async fn keeps_an_entry_whole(log: &impl ConversationLog) {
    let me = Principal::default();
    let answer = LogEntry::new(
        "session",
        Role::Assistant,
        "It says:\n\"Hi\"",
        Timestamp::from_millis(1001),
    );
    let appended = vec![
        entry("of unknown origin"),
        entry("of the user").with_label(Label::USER).with_trust(Trust::User),
        answer.with_label(Label::untrusted("tool:web")).with_trust(Trust::Host),
    ];
    log.append(&me, appended.clone()).await.expect("the log can be written");
    let batch = log.read(&me, "dream", 10).await.expect("the log can be read");
    assert_eq!(batch.entries, appended, "an entry is read as it was appended");
}

async fn each_reader_has_its_own_position(log: &impl ConversationLog) {
    let me = Principal::default();
    append(log, &me, &["a", "b"]).await;
    append(log, &me, &["c"]).await;
    let batch = check(log, &me, ("dream", 2), &["a", "b"]).await;
    commit(log, &me, "dream", batch.next).await;
    check(log, &me, ("dream", 10), &["c"]).await;
    check(log, &me, ("skills", 10), &["a", "b", "c"]).await;
}

async fn reads_again_what_was_not_committed(log: &impl ConversationLog) {
    let me = Principal::default();
    let empty = check(log, &me, ("dream", 10), &[]).await;
    commit(log, &me, "dream", empty.next).await;
    append(log, &me, &["a"]).await;
    check(log, &me, ("dream", 10), &["a"]).await;
    append(log, &me, &["b"]).await;
    check(log, &me, ("dream", 10), &["a", "b"]).await;
    check(log, &me, ("dream", 0), &[]).await;
}

async fn a_position_only_moves_forward(log: &impl ConversationLog) {
    let me = Principal::default();
    append(log, &me, &["a", "b"]).await;
    let first = check(log, &me, ("dream", 1), &["a"]).await;
    let all = check(log, &me, ("dream", 10), &["a", "b"]).await;
    commit(log, &me, "dream", all.next).await;
    commit(log, &me, "dream", first.next).await;
    check(log, &me, ("dream", 10), &[]).await;
    commit(log, &me, "dream", LogOffset(all.next.0 + 100)).await;
    append(log, &me, &["c"]).await;
    check(log, &me, ("dream", 10), &["c"]).await;
}

async fn trimming_loses_nothing_that_was_appended_since(log: &impl ConversationLog) {
    let me = Principal::default();
    append(log, &me, &["a", "b"]).await;
    let batch = check(log, &me, ("dream", 10), &["a", "b"]).await;
    append(log, &me, &["c"]).await;
    commit(log, &me, "dream", batch.next).await;
    log.trim(&me, batch.next).await.expect("the log can be written");
    check(log, &me, ("dream", 10), &["c"]).await;
    check(log, &me, ("late", 10), &["c"]).await;
    log.trim(&me, batch.next).await.expect("the log can be written");
    check(log, &me, ("late", 10), &["c"]).await;
}

async fn keeps_principals_apart(log: &impl ConversationLog) {
    let me = Principal::from("me");
    let other = Principal::from("other");
    append(log, &me, &["mine"]).await;
    check(log, &other, ("dream", 10), &[]).await;
    append(log, &other, &["theirs"]).await;
    let batch = check(log, &me, ("dream", 10), &["mine"]).await;
    commit(log, &me, "dream", batch.next).await;
    log.trim(&me, batch.next).await.expect("the log can be written");
    check(log, &other, ("dream", 10), &["theirs"]).await;
}

fn entry(content: &str) -> LogEntry {
    LogEntry::new("session", Role::User, content, Timestamp::from_millis(1000))
}

fn entries(contents: &[&str]) -> Vec<LogEntry> {
    contents.iter().map(|content| entry(content)).collect()
}

async fn append(log: &impl ConversationLog, principal: &Principal, contents: &[&str]) {
    log.append(principal, entries(contents))
        .await
        .expect("the log can be written");
}

async fn commit(log: &impl ConversationLog, principal: &Principal, reader: &str, offset: LogOffset) {
    log.commit(principal, reader, offset)
        .await
        .expect("the position can be written");
}

async fn check(
    log: &impl ConversationLog,
    principal: &Principal,
    (reader, limit): (&str, usize),
    expected: &[&str],
) -> LogBatch {
    let batch = log.read(principal, reader, limit).await.expect("the log can be read");
    assert_eq!(
        batch.entries,
        entries(expected),
        "what `{reader}` reads for {principal}"
    );
    batch
}
