//! Conversation memories that fail: a turn that was answered is in its conversation, once and in
//! its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::store::{
    ConversationMemory, ConversationTurn, InMemoryConversationMemory, StoreError, StoreErrorKind,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::turn::{InMemoryTurnJournal, TurnRequest};
use rockbot_core::{Principal, SessionId};
use rockbot_host::{AgentHost, Stores};

use crate::support::journal::{Counting, DiskFull};
use crate::support::{host_of, transcript};

const FOREVER: usize = usize::MAX;

/// A memory whose next writes fail.
#[derive(Debug, Default)]
struct Failing {
    inner: InMemoryConversationMemory,
    failures: AtomicUsize,
    panics: bool,
}

#[async_trait]
impl ConversationMemory for Failing {
    async fn append(
        &self,
        me: &Principal,
        session: &SessionId,
        turns: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let left = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) if self.panics => panic!("out of order"),
            Ok(_) => Err(StoreError::new(StoreErrorKind::Full, "no space left")),
            Err(_) => self.inner.append(me, session, turns).await,
        }
    }

    async fn recent(
        &self,
        me: &Principal,
        session: &SessionId,
        max: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        self.inner.recent(me, session, max).await
    }

    async fn clear(&self, me: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.inner.clear(me, session).await
    }

    async fn sessions(&self, me: &Principal) -> Result<Vec<SessionId>, StoreError> {
        self.inner.sessions(me).await
    }
}

/// The stores of processes, one after the other.
#[derive(Default)]
struct Kept {
    journal: Arc<InMemoryTurnJournal>,
    memory: Arc<Failing>,
}

impl Kept {
    fn failing(failures: usize, panics: bool) -> Self {
        let memory = Failing {
            failures: failures.into(),
            panics,
            ..Failing::default()
        };
        Self {
            memory: Arc::new(memory),
            ..Self::default()
        }
    }

    fn host(&self, model: &ScriptedModel) -> AgentHost {
        let stores = Stores::new()
            .with_journal(self.journal.clone())
            .with_conversation_memory(self.memory.clone());
        host_of(model).stores(stores).build().unwrap()
    }

    /// Returns the texts that the memory itself has.
    async fn texts(&self, session: &str) -> Vec<String> {
        let me = Principal::default();
        let session = session.into();
        texts(&self.memory.inner.recent(&me, &session, 99).await.unwrap())
    }
}

fn texts(entries: &[ConversationTurn]) -> Vec<String> {
    entries.iter().map(|entry| entry.content.text().into_owned()).collect()
}

async fn history(host: &AgentHost) -> Vec<String> {
    texts(&host.agent().history("s").await.unwrap())
}

async fn ask(host: &AgentHost, model: &ScriptedModel, n: usize) {
    let _ = model.clone().says(format!("a{n}"));
    assert_eq!(
        host.agent().ask("s", format!("q{n}")).await.unwrap().text,
        format!("a{n}")
    );
}

#[tokio::test(start_paused = true)]
async fn each_turn_is_in_its_conversation_once_however_often_the_memory_failed() {
    for failures in [1, 2, 3, 5, 8, FOREVER] {
        for panics in [false, true] {
            let kept = Kept::failing(failures, panics);
            let model = ScriptedModel::new();
            let host = kept.host(&model);
            let mut expected = Vec::new();
            for n in 1..=4 {
                ask(&host, &model, n).await;
                // The model reads all that was said before, in its order.
                let read = transcript(model.requests().last().unwrap());
                let said = read
                    .iter()
                    .filter_map(|line| line.split_once(": "))
                    .map(|(_, text)| text);
                let said: Vec<_> = said
                    .filter(|text| text.starts_with(['q', 'a']) && text.len() == 2)
                    .collect();
                assert_eq!(said[..said.len() - 1], expected, "{failures} {panics}");
                expected.extend([format!("q{n}"), format!("a{n}")]);
                assert_eq!(history(&host).await, expected, "{failures} {panics}");
            }
            assert_eq!(host.agent().sessions().await.unwrap(), ["s"]);
            host.shutdown(Duration::from_secs(5)).await;
            drop(host);

            kept.memory.failures.store(0, Ordering::SeqCst);
            let host = kept.host(&model);
            let resumed = host.resume().await.unwrap();
            assert_eq!((resumed.running.len(), resumed.parked.len()), (0, 0));
            assert_eq!(kept.texts("s").await, expected, "{failures} {panics}");
            let _ = host.resume().await.unwrap();
            assert_eq!(kept.texts("s").await, expected, "{failures} {panics}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn entries_are_written_a_little_later_without_another_turn() {
    let kept = Kept::failing(FOREVER, false);
    let model = ScriptedModel::new();
    let host = kept.host(&model);
    ask(&host, &model, 1).await;
    let problem = host.readiness().unwrap_err().to_string();
    let waiting = "1 turns wait for their conversations, whose memory fails; see the log";
    assert!(problem.contains(waiting), "{problem}");
    kept.memory.failures.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(kept.texts("s").await, ["q1", "a1"]);
    let problem = host.readiness().unwrap_err().to_string();
    assert!(!problem.contains("turns wait"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_cleared_stays_clear() {
    let kept = Kept::failing(FOREVER, false);
    let model = ScriptedModel::new();
    let host = kept.host(&model);
    ask(&host, &model, 1).await;
    host.agent().reset("s").await.unwrap();
    assert_eq!(history(&host).await, [] as [&str; 0]);
    drop(host);
    kept.memory.failures.store(0, Ordering::SeqCst);
    let host = kept.host(&model);
    host.resume().await.unwrap();
    assert_eq!(history(&host).await, [] as [&str; 0]);
}

/// Entries that wait are on the disk, in the journal of the data folder.
#[tokio::test]
async fn entries_outlive_the_process_in_the_journal_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::failing(FOREVER, false);
    let model = ScriptedModel::new();
    let in_folder = || {
        let stores = Stores::new().with_conversation_memory(kept.memory.clone());
        let host = host_of(&model).data_dir(folder.path()).stores(stores);
        host.build().unwrap()
    };
    let host = in_folder();
    ask(&host, &model, 1).await;
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);
    kept.memory.failures.store(0, Ordering::SeqCst);
    let host = in_folder();
    host.resume().await.unwrap();
    assert_eq!(kept.texts("s").await, ["q1", "a1"]);
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);
    // The run has ended: nothing is left to be written by the next one.
    kept.memory
        .inner
        .clear(&Principal::default(), &"s".into())
        .await
        .unwrap();
    let host = in_folder();
    host.resume().await.unwrap();
    assert_eq!(kept.texts("s").await, [] as [&str; 0]);
}

/// A turn whose entries neither the memory nor the journal takes ends once more, with the same
/// outcome.
#[tokio::test(start_paused = true)]
async fn a_turn_that_nothing_takes_ends_once_more() {
    // The third write is the outbox's, after the acceptance and the answer.
    for full_from in 2..=5 {
        let kept = Kept::failing(1, false);
        let stores = Stores::new()
            .with_journal(Counting::new(kept.journal.clone(), DiskFull(full_from, 1)))
            .with_conversation_memory(kept.memory.clone());
        let model = ScriptedModel::new().says("a1").says("a1");
        let host = host_of(&model).stores(stores).build().unwrap();
        let request = TurnRequest::new("s", "m", "q1");
        let told = host.agent().run(request.clone()).await.map(|outcome| outcome.text).ok();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let outcome = host.agent().outcome(&request.turn_id()).await.unwrap();
        if let Some(told) = told {
            assert_eq!(told, outcome.text, "{full_from}");
        }
        let expected: &[&str] = if outcome.is_answer() { &["q1", "a1"] } else { &[] };
        assert_eq!(kept.texts("s").await, expected, "{full_from}");
    }
}
