//! Found by words, found by meaning: over any store, whatever becomes of the model.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatError, ChatErrorKind, Provenance};
use rockbot_core::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};
use rockbot_core::search::Ranked;
use rockbot_core::store::{
    InMemoryLongTermMemory, LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, Remembered, StoreError,
    StorePath,
};
use rockbot_core::testing::{HashedEmbeddings, conformance};
use rockbot_core::{MemoryId, Principal, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::FileLongTermMemory;

/// A memory whose embedder works as long as it lives, and which searches when all vectors are
/// there.
#[derive(Debug)]
struct Settled {
    memory: SemanticMemory,
    stop: CancellationToken,
    work: AbortOnDropHandle<()>,
}

impl Settled {
    fn open(store: Arc<dyn LongTermMemory>, client: impl EmbeddingClient, options: SemanticMemoryOptions) -> Self {
        let (memory, embedder) = SemanticMemory::open(store, client, options).unwrap();
        let stop = CancellationToken::new();
        let work = AbortOnDropHandle::new(tokio::spawn(embedder.run(stop.clone())));
        Self { memory, stop, work }
    }

    async fn settle(&self, principal: &Principal) {
        while self.memory.pending(principal).await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the next process open its folders.
    async fn close(self) {
        self.stop.cancel();
        self.work.await.unwrap();
    }
}

#[async_trait]
impl LongTermMemory for Settled {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.memory.get(principal, id).await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        self.memory.save(principal, entry).await
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        self.memory.remember(principal, entry).await
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        self.memory.replace(principal, before, after).await
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.memory.delete(principal, id).await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.memory.purge(before).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.memory.list(principal).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        self.settle(principal).await;
        self.memory.search(principal, query).await
    }

    async fn similar(
        &self,
        principal: &Principal,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.settle(principal).await;
        self.memory.similar(principal, text, limit).await
    }
}

/// The client's action on a call instead of answering.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    None,
    Fails(ChatErrorKind),
    Hangs,
    /// Refuses texts with the word `poison`.
    Picky,
    /// Makes vectors of two numbers.
    OtherDimension,
    /// Hangs when it is asked for more than this many.
    Slow(usize),
}

/// A client that has trouble when it is told to.
#[derive(Debug, Clone)]
struct Troubled {
    client: HashedEmbeddings,
    trouble: Arc<Mutex<Trouble>>,
    calls: Arc<AtomicUsize>,
}

impl Troubled {
    fn new(trouble: Trouble) -> Self {
        Self {
            client: words(),
            trouble: Arc::new(Mutex::new(trouble)),
            calls: Arc::default(),
        }
    }

    fn has(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = trouble;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl EmbeddingClient for Troubled {
    fn model(&self) -> &str {
        self.client.model()
    }

    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let trouble = *self.trouble.lock().unwrap();
        match trouble {
            Trouble::Fails(kind) => Err(ChatError::new(kind, "the model is in trouble").into()),
            Trouble::Hangs => std::future::pending().await,
            Trouble::Picky if call.texts.iter().any(|text| text.contains("poison")) => {
                Err(ChatError::new(ChatErrorKind::ContextOverflow, "too long").into())
            }
            Trouble::OtherDimension => Ok(vec![Embedding::new(vec![1.0, 1.0]).unwrap(); call.texts.len()]),
            Trouble::Slow(most) if call.texts.len() > most => std::future::pending().await,
            Trouble::None | Trouble::Picky | Trouble::Slow(_) => self.client.embed(call).await,
        }
    }
}

fn words() -> HashedEmbeddings {
    HashedEmbeddings::new().same("cat", "feline").same("sleeps", "rests")
}

fn fact(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry::new(id, content, Timestamp::from_millis(1), Provenance::USER)
}

fn in_folder(folder: &Path) -> SemanticMemoryOptions {
    SemanticMemoryOptions {
        folder: Some(folder.join("embeddings")),
        ..SemanticMemoryOptions::default()
    }
}

fn in_memory(client: impl EmbeddingClient) -> Settled {
    Settled::open(
        Arc::new(InMemoryLongTermMemory::new()),
        client,
        SemanticMemoryOptions::default(),
    )
}

async fn save(memory: &dyn LongTermMemory, facts: &[(&str, &str)]) {
    for (id, content) in facts {
        memory.save(&Principal::default(), fact(id, content)).await.unwrap();
    }
}

async fn found(memory: &dyn LongTermMemory, query: MemoryQuery) -> Vec<String> {
    let found = memory.search(&Principal::default(), &query).await.unwrap();
    found.iter().map(|hit| hit.item.id.to_string()).collect()
}

async fn check(memory: &dyn LongTermMemory, query: impl Into<String>, expected: &[&str]) {
    assert_eq!(found(memory, MemoryQuery::new(query)).await, expected);
}

/// Asks for the cat without a word that is in the fact.
const PARAPHRASE: &str = "feline rests";
const CAT: (&str, &str) = ("cat", "The cat sleeps.");
const DOG: (&str, &str) = ("dog", "A dog barks.");

#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory_over_any_store() {
    conformance::long_term_memory(async || in_memory(HashedEmbeddings::new())).await;
    let folder = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let in_files = async || {
        let folder = folder.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
        let store = FileLongTermMemory::open(folder.join("memory")).unwrap();
        Settled::open(Arc::new(store), HashedEmbeddings::new(), in_folder(&folder))
    };
    conformance::long_term_memory(in_files).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory_over_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let in_database = async || {
        let folder = folder.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&folder).unwrap();
        let store = crate::SqliteMemory::open(folder.join("agent.db")).unwrap().long_term;
        Settled::open(Arc::new(store), HashedEmbeddings::new(), in_folder(&folder))
    };
    conformance::long_term_memory(in_database).await;
}

#[tokio::test]
async fn keeps_the_promises_of_a_long_term_memory_without_a_model() {
    conformance::long_term_memory(async || {
        let client = Troubled::new(Trouble::Fails(ChatErrorKind::Unreachable));
        let options = SemanticMemoryOptions::default();
        // No embedder runs.
        SemanticMemory::open(Arc::new(InMemoryLongTermMemory::new()), client, options)
            .unwrap()
            .0
    })
    .await;
}

#[tokio::test]
async fn what_means_the_same_is_found_without_its_words() {
    let store = Arc::new(InMemoryLongTermMemory::new());
    let memory = Settled::open(store.clone(), words(), SemanticMemoryOptions::default());
    save(&memory, &[CAT, DOG]).await;
    check(&*store, PARAPHRASE, &[]).await;
    check(&memory, PARAPHRASE, &["cat"]).await;
    check(&memory, "feline or dog", &["dog", "cat"]).await;
    check(&memory, "unheard", &[]).await;
}

#[tokio::test]
async fn what_says_the_same_in_other_words_is_known_as_similar() {
    let store = Arc::new(InMemoryLongTermMemory::new());
    let memory = Settled::open(store.clone(), words(), SemanticMemoryOptions::default());
    save(&memory, &[CAT, DOG, ("some", "The feline rests beside the old stove.")]).await;
    let me = Principal::default();
    let similar = async |memory: &dyn LongTermMemory, text: &str, limit: usize| -> Vec<String> {
        let similar = memory.similar(&me, text, limit).await.unwrap();
        similar.iter().map(|entry| entry.id.to_string()).collect()
    };
    assert_eq!(similar(&memory, "The feline rests.", 3).await, ["cat"]);
    assert!(
        similar(&memory, "A feline barks.", 3).await.is_empty(),
        "near, but not the same"
    );
    assert!(similar(&memory, " ", 3).await.is_empty());
    assert!(similar(&memory, "The feline rests.", 0).await.is_empty());
    assert!(similar(&*store, "The feline rests.", 3).await.is_empty(), "words alone");
    let shared: Arc<dyn LongTermMemory> = Arc::new(memory);
    assert_eq!(similar(&shared, "The feline rests.", 3).await, ["cat"]);
    let now = Timestamp::from_millis(2);
    shared.archive(&me, &"cat".into(), "wrong", now).await.unwrap();
    assert!(similar(&shared, "The feline rests.", 3).await.is_empty());
}

#[tokio::test]
async fn filters_hold_for_meanings_as_for_words() {
    let memory = in_memory(words());
    let me = Principal::default();
    let mut filed = fact("filed", "The cat sleeps.");
    filed.category = StorePath::new("pets").ok();
    filed.tags = vec!["home".to_owned()];
    let mut strange = fact("strange", "The cat rests now.");
    strange.provenance = Provenance::TOOL;
    for entry in [filed, strange] {
        memory.save(&me, entry).await.unwrap();
    }
    let ask = || MemoryQuery::new(PARAPHRASE);
    assert_eq!(found(&memory, ask()).await, ["strange", "filed"]);
    let category = StorePath::new("pets").ok();
    assert_eq!(found(&memory, ask().with_category(category)).await, ["filed"]);
    let tags = vec!["HOME".to_owned()];
    assert_eq!(found(&memory, ask().with_tags(tags)).await, ["filed"]);
    assert_eq!(found(&memory, ask().with_source("tool")).await, ["strange"]);
    assert_eq!(found(&memory, ask().with_limit(1)).await, ["strange"]);
    let found_by_others = memory.search(&"other".into(), &ask()).await.unwrap();
    assert_eq!(found_by_others, []);
    memory
        .archive(&me, &"filed".into(), "wrong", Timestamp::from_millis(2))
        .await
        .unwrap();
    assert_eq!(found(&memory, ask()).await, ["strange"]);
    memory.restore(&me, &"filed".into()).await.unwrap();
    assert_eq!(found(&memory, ask()).await, ["strange", "filed"]);
}

#[tokio::test]
async fn each_principal_has_vectors_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryLongTermMemory::new());
    let memory = Settled::open(store, words(), in_folder(folder.path()));
    let other = Principal::from("other");
    save(&memory, &[CAT]).await;
    memory.save(&other, fact("dog", "The cat rests.")).await.unwrap();
    check(&memory, PARAPHRASE, &["cat"]).await;
    let found = memory.search(&other, &MemoryQuery::new("feline sleeps")).await.unwrap();
    assert_eq!(
        found.iter().map(|hit| hit.item.id.as_str()).collect::<Vec<_>>(),
        ["dog"]
    );
    memory.close().await;
    for file in ["vectors.jsonl", "@other/vectors.jsonl"] {
        let text = std::fs::read_to_string(folder.path().join("embeddings").join(file)).unwrap();
        assert_eq!(text.lines().count(), 1, "{file}");
    }
}

#[tokio::test]
async fn writing_never_waits_for_the_model() {
    let memory = in_memory(Troubled::new(Trouble::Hangs));
    save(&memory.memory, &[CAT, DOG]).await;
    check(&memory.memory, "cat", &["cat"]).await;
    assert_eq!(memory.memory.pending(&Principal::default()).await.unwrap(), 2);
    // The call that hangs does not hold up the end either.
    memory.close().await;
}

/// Returns the texts that are embedded when the folder is opened with `client`, and the cat is
/// found.
async fn reopened(folder: &Path, store: &Arc<InMemoryLongTermMemory>, client: HashedEmbeddings) -> Vec<String> {
    let memory = Settled::open(store.clone(), client.clone(), in_folder(folder));
    memory.settle(&Principal::default()).await;
    let mut texts = client.texts();
    texts.sort();
    check(&memory, PARAPHRASE, &["cat"]).await;
    memory.close().await;
    texts
}

#[tokio::test]
async fn nothing_is_embedded_anew_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryLongTermMemory::new());
    let path = folder.path();
    save(&*store, &[CAT, DOG]).await;
    assert_eq!(
        reopened(path, &store, words()).await,
        ["A dog barks.", "The cat sleeps."]
    );
    assert_eq!(reopened(path, &store, words()).await, [] as [&str; 0]);
    save(&*store, &[("dog", "A dog growls.")]).await;
    assert_eq!(reopened(path, &store, words()).await, ["A dog growls."]);
    let mut filed = fact("cat", "The cat sleeps.");
    filed.category = StorePath::new("pets").ok();
    store.save(&Principal::default(), filed).await.unwrap();
    assert_eq!(reopened(path, &store, words()).await, [] as [&str; 0]);
}

#[tokio::test]
async fn what_is_damaged_or_gone_on_disk_is_embedded_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryLongTermMemory::new());
    let (path, file) = (folder.path(), folder.path().join("embeddings/vectors.jsonl"));
    save(&*store, &[CAT, DOG]).await;
    let both = ["A dog barks.", "The cat sleeps."];
    assert_eq!(reopened(path, &store, words()).await, both);
    let whole = std::fs::read_to_string(&file).unwrap();
    let (first, _) = whole.split_once('\n').unwrap();
    for (damage, expected) in [
        (String::new(), 2),
        ("no JSON\n".to_owned(), 2),
        // Cut in the middle of the second line, with an end and without.
        (format!("{first}\n{}", &first[..400]), 1),
        (format!("{first}\n{}\n", &first[..400]), 1),
        // Numbers that are no vector of length 1.
        (whole.replace("\"vector\":\"", "\"vector\":\"AACAPwAAgD8A"), 2),
        (whole.replace("\"vector\":\"", "\"vector\":\"AACAPwAAgD8AAIA/"), 2),
        (whole.clone(), 0),
    ] {
        std::fs::write(&file, &damage).unwrap();
        assert_eq!(
            reopened(path, &store, words()).await.len(),
            expected,
            "{}",
            damage.len()
        );
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(reopened(path, &store, words()).await, both);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(reopened(path, &store, words()).await, both);
    assert_eq!(reopened(path, &store, words()).await, [] as [&str; 0]);
}

#[tokio::test]
async fn vectors_of_another_dimension_are_embedded_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryLongTermMemory::new());
    save(&*store, &[CAT, DOG]).await;
    reopened(folder.path(), &store, words()).await;
    // The server has another model under the same name; it makes the same vector of all texts.
    let other = Troubled::new(Trouble::OtherDimension);
    let memory = Settled::open(store.clone(), other.clone(), in_folder(folder.path()));
    check(&memory, "feline", &[]).await;
    save(&memory, &[("owl", "An owl")]).await;
    check(&memory, "unheard", &["cat", "dog", "owl"]).await;
    memory.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_holds_a_search_up_once_and_for_a_moment() {
    let client = Troubled::new(Trouble::None);
    let memory = in_memory(client.clone());
    save(&memory, &[CAT, DOG]).await;
    memory.settle(&Principal::default()).await;
    client.has(Trouble::Hangs);
    let calls = client.calls();
    let began = tokio::time::Instant::now();
    check(&memory, "feline or dog", &["dog"]).await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    check(&memory, "feline or dog?", &["dog"]).await;
    assert_eq!((began.elapsed(), client.calls()), (Duration::from_secs(1), calls + 1));

    client.has(Trouble::None);
    tokio::time::advance(Duration::from_secs(30)).await;
    check(&memory, "feline or dog?", &["dog", "cat"]).await;
    // What was asked for a moment ago is known.
    client.has(Trouble::Hangs);
    check(&memory, "feline or dog?", &["dog", "cat"]).await;
    assert_eq!(client.calls(), calls + 2);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_tried_again_later_and_later() {
    let client = Troubled::new(Trouble::Fails(ChatErrorKind::Unreachable));
    let memory = in_memory(client.clone());
    save(&memory, &[CAT]).await;
    check(&memory.memory, "cat", &["cat"]).await;
    let began = tokio::time::Instant::now();
    for (calls, seconds) in [(1, 0), (2, 1), (3, 3), (4, 7), (10, 511), (12, 1111)] {
        while client.calls() < calls {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(began.elapsed().as_secs(), seconds, "call {calls}");
    }
    client.has(Trouble::None);
    while memory.memory.pending(&Principal::default()).await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    check(&memory, PARAPHRASE, &["cat"]).await;
}

#[tokio::test]
async fn a_text_that_the_model_refuses_is_found_by_its_words() {
    let memory = in_memory(Troubled::new(Trouble::Picky));
    save(&memory, &[CAT, ("poison", "The poison of a cat"), DOG]).await;
    check(&memory, PARAPHRASE, &["cat"]).await;
    check(&memory, "cat", &["cat", "poison"]).await;
    save(&memory, &[("poison", "The medicine of a cat")]).await;
    check(&memory, "feline medicine", &["poison", "cat"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_everything_is_not_worn_out_with_texts() {
    let client = Troubled::new(Trouble::Fails(ChatErrorKind::InvalidRequest));
    let memory = in_memory(client.clone());
    save(&memory.memory, &[CAT, DOG]).await;
    // Both together, then each of them; and once more a second later.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(client.calls(), 3);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.calls(), 6);
    client.has(Trouble::None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    check(&memory.memory, PARAPHRASE, &["cat"]).await;
}

const POISONS: [(&str, &str); 2] = [("first", "The poison"), ("second", "More poison")];

#[tokio::test(start_paused = true)]
async fn texts_that_the_model_refuses_are_not_asked_for_without_end_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemoryLongTermMemory::new());
    save(&*store, &[CAT]).await;
    reopened(folder.path(), &store, words()).await;
    // They are all that has no vector.
    save(&*store, &POISONS).await;
    let client = Troubled::new(Trouble::Picky);
    let memory = Settled::open(store, client.clone(), in_folder(folder.path()));
    assert_eq!(memory.memory.pending(&Principal::default()).await.unwrap(), 2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(memory.memory.pending(&Principal::default()).await.unwrap(), 0);
    assert_eq!(client.calls(), 3);
    check(&memory.memory, PARAPHRASE, &["cat"]).await;
    memory.close().await;
}

#[tokio::test(start_paused = true)]
async fn one_principal_whose_texts_are_refused_does_not_hold_up_others() {
    let memory = in_memory(Troubled::new(Trouble::Picky));
    let first = Principal::from("first");
    let second = Principal::from("second");
    for (id, content) in POISONS {
        memory.save(&first, fact(id, content)).await.unwrap();
    }
    memory.save(&second, fact(CAT.0, CAT.1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(memory.memory.pending(&second).await.unwrap(), 0);
    assert_eq!(memory.memory.pending(&first).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_model_is_asked_for_fewer_texts() {
    let client = Troubled::new(Trouble::Slow(8));
    let memory = in_memory(client.clone());
    for id in 0..20 {
        save(&memory.memory, &[(&id.to_string(), "The cat sleeps.")]).await;
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(memory.memory.pending(&Principal::default()).await.unwrap(), 0);
    // For 20, 10 and 5, which it makes; for the other 15, 7, and the last 8.
    assert_eq!(client.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_search_does_not_wait_long_until_vectors_are_loaded() {
    let store = Arc::new(InMemoryLongTermMemory::new());
    let me = Principal::default();
    save(&*store, &[CAT, DOG]).await;
    let options = SemanticMemoryOptions::default();
    let (memory, embedder) = SemanticMemory::open(store, words(), options).unwrap();
    let index = embedder.0.indexes.get_or_default(&me);
    // Another task loads them, and does not come to an end.
    let scan_lock = index.scan_lock.lock().await;
    let began = tokio::time::Instant::now();
    check(&memory, "feline or dog", &["dog"]).await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    drop(scan_lock);
    // No search runs, and yet they are loaded.
    let stop = CancellationToken::new();
    let work = AbortOnDropHandle::new(tokio::spawn(embedder.run(stop)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!index.is_empty());
    check(&memory, "feline or dog", &["dog", "cat"]).await;
    drop(work);
}

#[tokio::test(start_paused = true)]
async fn what_others_change_in_the_store_is_seen() {
    let store = Arc::new(InMemoryLongTermMemory::new());
    let memory = Settled::open(store.clone(), words(), SemanticMemoryOptions::default());
    save(&memory, &[CAT, DOG]).await;
    check(&memory, PARAPHRASE, &["cat"]).await;
    // Behind its back.
    save(&*store, &[("cat", "It barks."), ("new", "A cat that sleeps")]).await;
    store.delete(&Principal::default(), &"dog".into()).await.unwrap();
    check(&memory, PARAPHRASE, &[]).await;
    check(&memory, "barks", &["cat"]).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    check(&memory, PARAPHRASE, &["new"]).await;
}

#[tokio::test]
async fn the_file_does_not_grow_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let client = Troubled::new(Trouble::OtherDimension);
    let memory = Settled::open(
        Arc::new(InMemoryLongTermMemory::new()),
        client,
        in_folder(folder.path()),
    );
    let lines = || {
        let text = std::fs::read_to_string(folder.path().join("embeddings/vectors.jsonl"));
        text.unwrap_or_default().lines().count()
    };
    let mut most = 0;
    for edit in 0..1_100 {
        save(&memory, &[("cat", &format!("The cat is {edit}."))]).await;
        memory.settle(&Principal::default()).await;
        most = most.max(lines());
    }
    memory.close().await;
    assert!((1_000..=1_003).contains(&most), "{most}");
    assert!(lines() < 100, "{}", lines());
}
