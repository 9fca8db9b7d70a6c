//! The journal: what a turn did, written before and after it did it.
//!
//! A journal keeps *runs*: a run is accepted once, gets records appended, and is finished. What the records
//! say is the business of whoever runs it. Turns are runs, so are later batches and schedule occurrences.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{BoxError, Digest, MessageId, Principal, SessionId, Timestamp, TurnId};

/// Keeps the runs of a host.
///
/// What a journal promises: a record that was appended is there after the process was killed; the records of
/// a run come back in the order in which they were appended; only the holder of a run's [`Claim`] can append
/// to it; a finished outcome is kept at least 24 hours.
#[async_trait]
pub trait TurnJournal: fmt::Debug + Send + Sync + 'static {
    /// Accepts a run, or finds the one that was accepted before under the same id.
    ///
    /// # Errors
    ///
    /// Fails with [`JournalError::Conflict`] when the known run has another digest, and when the journal cannot
    /// be written.
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError>;

    /// Appends records to a run, all in one write.
    ///
    /// # Errors
    ///
    /// Fails with [`JournalError::Fenced`] when somebody else has claimed the run since, and when the journal
    /// cannot be written; then the act that the record announces must not happen.
    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<(), JournalError>;

    /// Ends a run: keeps `outcome` to answer redeliveries, gives the claim back.
    ///
    /// # Errors
    ///
    /// Fails as [`TurnJournal::append`] does.
    async fn finish(&self, claim: Claim, outcome: &RawValue) -> Result<(), JournalError>;

    /// Takes over an unfinished run that nobody holds, or whose holder's lease has run out. `None` when somebody
    /// holds it, it is finished, or it is not known.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError>;

    /// Gives a run back without ending it: a parked one, or one that a shutdown interrupted.
    async fn release(&self, claim: Claim);

    /// What is known of a run: everything while it is unfinished, its outcome afterwards.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError>;

    /// The unfinished runs, oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the journal cannot be read.
    async fn unfinished(&self) -> Result<Vec<TurnId>, JournalError>;
}

/// What makes two deliveries the same message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunKey {
    /// On whose behalf.
    pub principal: Principal,
    /// Which program sent the message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The conversation.
    pub session: SessionId,
    /// The message.
    pub message: MessageId,
}

/// A run as it is accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAccepted {
    /// The run, named after its key.
    pub run: TurnId,
    /// What it is the same run by.
    pub key: RunKey,
    /// The digest of what was asked.
    pub digest: Digest,
    /// When.
    pub at: Timestamp,
    /// The request and everything else that a resume needs, as JSON text.
    pub body: Box<RawValue>,
}

/// One record of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// When it happened.
    pub at: Timestamp,
    /// Whether the run is about to change something in the world: the record must be safe first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// What happened, as JSON text.
    pub body: Box<RawValue>,
}

/// What became of an accepted run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Acceptance {
    /// It is new, and the caller holds it.
    New(Claim),
    /// It was accepted before.
    Known(RunState),
}

/// Where a run stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunState {
    /// Accepted, not finished.
    Unfinished,
    /// Finished, with this outcome as JSON text.
    Finished(Box<RawValue>),
}

/// A run as the journal holds it.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// As it was accepted.
    pub accepted: RunAccepted,
    /// What happened since. A journal may forget the records of a finished run.
    pub records: Vec<RunRecord>,
    /// Whether it is finished, and how.
    pub state: RunState,
}

/// Counts how often a run was claimed. An older fence than the current one writes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// The right to write to one run.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    run: TurnId,
    fence: Fence,
}

impl Claim {
    /// A claim of `run`. For journals: others get theirs from one.
    pub fn new(run: TurnId, fence: Fence) -> Self {
        Self { run, fence }
    }

    /// The run.
    pub fn run(&self) -> &TurnId {
        &self.run
    }

    /// How often the run had been claimed.
    pub fn fence(&self) -> Fence {
        self.fence
    }
}

/// Why a journal refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another body came under the identity of a known run.
    #[error(
        "message `{message}` of session `{session}` was received before with other content: give each message its own id"
    )]
    Conflict {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
    },
    /// Somebody else has claimed the run.
    #[error("turn {0} was taken over by another process: this one must not go on with it")]
    Fenced(TurnId),
    /// Another process has the journal open.
    #[error(
        "the turn journal in `{0}` is in use: end the process that has it open, or drop the other host of this one with all of its `Agent`s, or use another data folder"
    )]
    Locked(String),
    /// The journal cannot be read or written.
    #[error("the turn journal cannot be used: {context}: {source}")]
    Io {
        /// What was tried, and what to do.
        context: String,
        /// What the system said.
        source: BoxError,
    },
}
