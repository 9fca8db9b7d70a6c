//! Runs to write into journals, and journals that misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::testing::ManualClock;
use rockbot_core::turn::{
    Acceptance, Claim, HolderRequests, JournalError, RunAccepted, RunBody, RunKey, RunQuery, RunRecord, StoredRun,
    TurnJournal,
};
use rockbot_core::{Clock, Digest, TurnId};
use serde_json::value::RawValue;

/// Actions before and after each write of a journal.
#[async_trait]
pub(crate) trait Around: std::fmt::Debug + Send + Sync + 'static {
    /// Runs before the write with this number, from 1 on. An error becomes that of the write, which
    /// does not happen.
    async fn before(&self, write: usize) -> Result<(), JournalError> {
        let _ = write;
        Ok(())
    }

    /// Runs before each read of a run. An error becomes that of the read.
    async fn before_read(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Runs before the end of each run is written.
    async fn before_end(&self) {}

    /// Runs before each release of a claim.
    async fn before_release(&self) {}

    /// Runs after the write.
    async fn after(&self, write: usize) {
        let _ = write;
    }
}

/// A journal that counts its writes: acceptances, appends, and ends.
#[derive(Debug)]
pub(crate) struct Counting<J, A> {
    inner: J,
    around: A,
    writes: AtomicUsize,
}

impl<J, A> Counting<J, A> {
    pub(crate) fn new(inner: J, around: A) -> Self {
        Self {
            inner,
            around,
            writes: AtomicUsize::new(0),
        }
    }
}

impl<J: TurnJournal, A: Around> Counting<J, A> {
    async fn write<T: Send>(
        &self,
        write: impl Future<Output = Result<T, JournalError>> + Send,
    ) -> Result<T, JournalError> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        self.around.before(number).await?;
        let written = write.await?;
        self.around.after(number).await;
        Ok(written)
    }
}

#[async_trait]
impl<J: TurnJournal, A: Around> TurnJournal for Counting<J, A> {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        self.write(self.inner.accept(accepted, owner, lease)).await
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        self.write(self.inner.append(claim, records)).await
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        self.around.before_end().await;
        self.write(self.inner.finish(claim, outcome)).await
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        self.inner.claim(run, owner, lease).await
    }

    async fn release(&self, claim: Claim) {
        self.around.before_release().await;
        self.inner.release(claim).await;
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        self.around.before_read().await?;
        self.inner.read(run).await
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        self.inner.request_cancel(run).await
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        self.inner.unfinished(query).await
    }
}

/// The disk is full from this write on, for so many writes.
#[derive(Debug, Clone)]
pub(crate) struct DiskFull(pub(crate) usize, pub(crate) usize);

#[async_trait]
impl Around for DiskFull {
    async fn before(&self, write: usize) -> Result<(), JournalError> {
        if (self.0..self.0 + self.1).contains(&write) {
            return Err(StoreError::new(StoreErrorKind::Full, "no space left").into());
        }
        Ok(())
    }
}

/// The database of the journal is away from this write on, for so many writes.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseAway(pub(crate) usize, pub(crate) usize);

#[async_trait]
impl Around for DatabaseAway {
    async fn before(&self, write: usize) -> Result<(), JournalError> {
        if (self.0..self.0 + self.1).contains(&write) {
            let error = StoreError::new(StoreErrorKind::Unavailable, "a record cannot be written");
            return Err(error.with_cause("the leader of the cluster changes").into());
        }
        Ok(())
    }
}

/// The next reads fail, so many of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct BadReads(pub(crate) Arc<AtomicUsize>);

#[async_trait]
impl Around for BadReads {
    async fn before_read(&self) -> Result<(), JournalError> {
        let left = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Err(_) => Ok(()),
            Ok(_) => Err(StoreError::new(StoreErrorKind::Damaged, "a bad sector").into()),
        }
    }
}

/// Each write takes a while after it was made, as a sync does.
#[derive(Debug, Clone)]
pub(crate) struct SlowDisk(pub(crate) Arc<tokio::sync::Semaphore>);

#[async_trait]
impl Around for SlowDisk {
    async fn before_release(&self) {
        tokio::task::yield_now().await;
    }

    async fn after(&self, _: usize) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// Returns a body of this JSON.
pub(crate) fn raw(json: &str) -> RunBody {
    RawValue::from_string(json.to_owned()).unwrap().into()
}

/// Returns the JSON of a body.
pub(crate) fn json(body: &RunBody) -> String {
    body.to_json().unwrap().get().to_owned()
}

/// A run as it is accepted, named after its message.
pub(crate) fn run(name: &str, clock: &ManualClock) -> RunAccepted {
    RunAccepted::new(
        TurnId::from(name),
        RunKey::new("local".into(), "session", name),
        Digest::of([name]),
        clock.now(),
        raw(r#"{"text":"zwölf"}"#),
    )
}

/// Something that happened to a run.
pub(crate) fn record(clock: &ManualClock, body: &str) -> RunRecord {
    RunRecord::new(clock.now(), raw(body))
}
