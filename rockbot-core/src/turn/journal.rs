//! The write-ahead journal of turns: each step is recorded before it takes effect.
//!
//! A journal keeps *runs*: a run is accepted once, gets records appended, and is finished. The
//! journal does not interpret the bodies of records; the engine that runs them does. Turns are
//! runs, and so are later batches and occurrences of a schedule.
//!
//! Claims carry a lease and a fencing token ([`Fence`]), so that a process that was paused for
//! longer than its lease cannot write to a run that another process has taken over.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::RunBody;
use crate::shared::share;
use crate::store::StoreError;
use crate::{Digest, MessageId, Principal, SessionId, Timestamp, TurnId};

/// A durable store of runs, with leases and fencing.
///
/// Contract: an appended record survives the death of the process. The records of a run are
/// returned in the order of their appends. Only the holder of a run's [`Claim`] can append to it.
/// The outcome of a finished run is kept for at least 24 hours, to answer redeliveries.
#[async_trait]
pub trait TurnJournal: fmt::Debug + Send + Sync + 'static {
    /// Accepts a run, or returns the state of the run that was accepted before under the same id. The
    /// caller holds a new run as `owner` for `lease`, which each append renews.
    ///
    /// # Errors
    ///
    /// Returns [`JournalError::Conflict`] if the known run has another digest, and when the journal
    /// cannot be written.
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError>;

    /// Appends records to a run, all in one write, and renews the lease of the claim. Returns the
    /// requests that others made of the run's holder since its acceptance.
    ///
    /// # Errors
    ///
    /// Returns [`JournalError::Fenced`] if another owner has claimed the run since, and an error if
    /// the journal cannot be written. In both cases the caller must not perform the act that the
    /// record announces.
    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError>;

    /// Asks the holder of an unfinished run to cancel it, whichever process that is: its next
    /// append returns so. Returns `false` if the run is finished or unknown. The request lasts
    /// until the run is finished; a journal of a single process may forget the request with that
    /// process.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written.
    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError>;

    /// Finishes a run: keeps `outcome`, to answer redeliveries, and releases the claim.
    ///
    /// # Errors
    ///
    /// Returns an error as [`TurnJournal::append`] does. The caller then still holds the claim, and
    /// [releases](TurnJournal::release) it.
    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError>;

    /// Claims an unfinished run that has no holder, or whose holder's lease has expired. Returns
    /// `None` if the run is held, finished or unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError>;

    /// Releases a run without finishing it, such as a run that waits for an approval, or that a
    /// shutdown interrupted.
    async fn release(&self, claim: Claim);

    /// Returns the stored run: all its records while it is unfinished, its outcome afterwards; `None`
    /// if it is unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError>;

    /// Returns the ids of the unfinished runs of `query`, oldest first.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError>;

    /// Returns what the journal does for several processes that use it at the same time. Default
    /// `None`: one process uses it.
    fn cluster(&self) -> Option<&dyn ClusterJournal> {
        None
    }
}

share! {
    TurnJournal {
        async accept<'a, 'b>(accepted: &'a RunAccepted, owner: &'b str, lease: Duration) -> Result<Acceptance, JournalError>;
        async append<'a, 'b>(claim: &'a Claim, records: &'b [RunRecord]) -> Result<HolderRequests, JournalError>;
        async request_cancel<'a>(run: &'a TurnId) -> Result<bool, JournalError>;
        async finish<'a, 'b>(claim: &'a Claim, outcome: &'b RunBody) -> Result<(), JournalError>;
        async claim<'a, 'b>(run: &'a TurnId, owner: &'b str, lease: Duration) -> Result<Option<Claim>, JournalError>;
        async release(claim: Claim);
        async read<'a>(run: &'a TurnId) -> Result<Option<StoredRun>, JournalError>;
        async unfinished<'a>(query: &'a RunQuery) -> Result<Vec<TurnId>, JournalError>;
        fn cluster() -> Option<&dyn ClusterJournal>;
    }
}

/// The part of a [`TurnJournal`] that several processes need: short leases, which heartbeats renew,
/// and one order of the runs of a session.
///
/// An [ordered](RunAccepted::is_ordered) run has a place in its session from its acceptance until it
/// is finished. Places are given in the order of the acceptances, whichever processes accept.
#[async_trait]
pub trait ClusterJournal: Send + Sync {
    /// Returns the lease with which processes claim runs: how long a process may be silent before
    /// another one takes over its runs.
    fn lease(&self) -> Duration;

    /// Renews the leases of those of `runs` that `owner` holds. Returns the runs among them that others
    /// asked to cancel.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written.
    async fn renew(&self, owner: &str, runs: &[TurnId]) -> Result<Vec<TurnId>, JournalError>;

    /// Returns the unfinished runs of `query` that can be claimed now, oldest first.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    async fn free(&self, query: &RunQuery) -> Result<Vec<FreeRun>, JournalError>;

    /// Returns `true` if no unfinished run has a place before this run in its session. A run without
    /// a place gets the last one. A run without a holder for ten leases counts no more.
    ///
    /// # Errors
    ///
    /// Returns [`JournalError::Fenced`] if another owner has claimed the run since, and an error if
    /// the journal cannot be written.
    async fn enter_session(&self, claim: &Claim) -> Result<bool, JournalError>;

    /// Gives up the place of a run in its session: it waits for a person, or has joined another run.
    /// The run [waits](FreeRun::is_waiting) until it is claimed again.
    ///
    /// # Errors
    ///
    /// Returns an error as [`ClusterJournal::enter_session`] does.
    async fn leave_session(&self, claim: &Claim) -> Result<(), JournalError>;
}

/// An unfinished run that can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreeRun {
    /// Id of the run.
    pub run: TurnId,
    /// `true` if the last holder left the run's session: the run waits for a person or another run.
    pub is_waiting: bool,
}

impl FreeRun {
    /// Creates a run that can be claimed.
    pub fn new(run: impl Into<TurnId>, is_waiting: bool) -> Self {
        let run = run.into();
        Self { run, is_waiting }
    }
}

/// A query for runs. By default all match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RunQuery {
    /// Agent of the runs, as [`RunKey::agent`] names it; `None` means any, or none.
    pub agent: Option<String>,
}

impl RunQuery {
    /// Creates a query that all runs match.
    pub fn all() -> Self {
        Self::default()
    }

    /// Sets the agent of the runs. Default any, or none.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Returns `true` if a run with this key matches.
    pub fn matches(&self, key: &RunKey) -> bool {
        self.agent.is_none() || self.agent == key.agent
    }
}

/// Requests that others made of the holder of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HolderRequests {
    /// `true` if the run is to be cancelled.
    pub cancel: bool,
}

impl HolderRequests {
    /// Sets whether the run is to be cancelled. Default `false`.
    #[must_use]
    pub fn with_cancel(mut self, cancel: bool) -> Self {
        self.cancel = cancel;
        self
    }
}

/// The identity of a message: two deliveries with an equal key are the same message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunKey {
    /// Agent that the message is for, in a journal that several agents share; `None` in a journal of
    /// one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Principal on whose behalf the message was sent.
    pub principal: Principal,
    /// Program that sent the message; empty by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Session that the message belongs to.
    pub session: SessionId,
    /// Id of the message.
    pub message: MessageId,
}

impl RunKey {
    /// Creates the identity of a message whose sending program is not named.
    pub fn new(principal: Principal, session: impl Into<SessionId>, message: impl Into<MessageId>) -> Self {
        Self {
            agent: None,
            principal,
            source: String::new(),
            session: session.into(),
            message: message.into(),
        }
    }

    /// Sets the agent that the message is for. Default `None`.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<Option<String>>) -> Self {
        self.agent = agent.into();
        self
    }

    /// Sets the program that sent the message; empty by default.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }
}

/// A run at the time of its acceptance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunAccepted {
    /// Id of the run, derived from its key.
    pub run: TurnId,
    /// Identity of the message that started the run.
    pub key: RunKey,
    /// Digest of the content of the message: a different digest under the same key is a conflict.
    pub digest: Digest,
    /// Time of the acceptance.
    pub at: Timestamp,
    /// `true` if the run waits for earlier runs of its session, also for those of other processes.
    /// Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ordered: bool,
    /// Request and everything else that a resume needs.
    pub body: RunBody,
}

impl RunAccepted {
    /// Creates the acceptance of a run.
    pub fn new(run: impl Into<TurnId>, key: RunKey, digest: Digest, at: Timestamp, body: impl Into<RunBody>) -> Self {
        Self {
            run: run.into(),
            key,
            digest,
            at,
            is_ordered: false,
            body: body.into(),
        }
    }

    /// Sets whether the run waits for earlier runs of its session. Default `false`.
    #[must_use]
    pub fn with_ordered(mut self, is_ordered: bool) -> Self {
        self.is_ordered = is_ordered;
        self
    }
}

/// A record of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunRecord {
    /// Time of the event.
    pub at: Timestamp,
    /// `true` if the run is about to change something outside of the process: the record must be
    /// durable first. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// Event.
    pub body: RunBody,
}

impl RunRecord {
    /// Creates a record that need not be durable at once.
    pub fn new(at: Timestamp, body: impl Into<RunBody>) -> Self {
        Self {
            at,
            critical: false,
            body: body.into(),
        }
    }

    /// Sets whether the record must be durable before the run goes on. Default `false`.
    #[must_use]
    pub fn with_critical(mut self, critical: bool) -> Self {
        self.critical = critical;
        self
    }
}

/// The result of accepting a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Acceptance {
    /// The run is new, and the caller holds it.
    New(Claim),
    /// The run was accepted before; its message was redelivered.
    Known(RunState),
}

/// The state of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunState {
    /// Accepted and not finished.
    Unfinished,
    /// Finished, with this outcome.
    Finished(RunBody),
}

/// A run with its records, as the journal stores it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredRun {
    /// Run at the time of its acceptance.
    pub accepted: RunAccepted,
    /// Records since the acceptance, in order. A journal may drop the records of a finished run.
    pub records: Vec<RunRecord>,
    /// State of the run, with the outcome if it is finished.
    pub state: RunState,
}

impl StoredRun {
    /// Creates a run, as a journal returns it.
    pub fn new(accepted: RunAccepted, records: Vec<RunRecord>, state: RunState) -> Self {
        Self {
            accepted,
            records,
            state,
        }
    }
}

/// A fencing token: the number of claims of a run. A claim with an older fence than the current
/// one cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// The right to write to a run, held by one owner at a time.
#[derive(Debug)]
pub struct Claim {
    run: TurnId,
    fence: Fence,
    /// Slot of the run in the table of claims that made this claim.
    slot: Option<u32>,
}

impl PartialEq for Claim {
    /// Compares run and fence: the slot only says where to look.
    fn eq(&self, other: &Self) -> bool {
        (&self.run, self.fence) == (&other.run, other.fence)
    }
}

impl Eq for Claim {}

impl Claim {
    /// Creates a claim of `run`, for implementations of journals; all other code gets claims from a
    /// journal.
    pub fn new(run: TurnId, fence: Fence) -> Self {
        Self { run, fence, slot: None }
    }

    pub(super) fn with_slot(self, slot: u32) -> Self {
        let slot = Some(slot);
        Self { slot, ..self }
    }

    pub(super) fn slot(&self) -> Option<u32> {
        self.slot
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &TurnId {
        &self.run
    }

    /// Returns the fencing token of the claim.
    pub fn fence(&self) -> Fence {
        self.fence
    }
}

/// The error of a [`TurnJournal`]. The text contains the cause, so the [source](Error::source) is
/// the cause's own.
///
/// # Examples
///
/// A journal in a database states which of the database's errors pass. The host waits for the end
/// of such an error, and goes on with the turn:
///
/// ```
/// use rockbot_core::store::{StoreError, StoreErrorKind};
/// use rockbot_core::turn::JournalError;
///
/// # fn is_passing(_: &std::fmt::Error) -> bool { true }
/// fn failed(error: std::fmt::Error) -> JournalError {
///     let kind = if is_passing(&error) { StoreErrorKind::Unavailable } else { StoreErrorKind::Io };
///     StoreError::new(kind, "a record cannot be written").with_cause(error).into()
/// }
///
/// assert!(failed(std::fmt::Error).retry_helps());
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// A message with other content came under the identity of a known run.
    Conflict {
        /// Session of the message.
        session: SessionId,
        /// Id of the message.
        message: MessageId,
    },
    /// Another owner has claimed the run since.
    Fenced(TurnId),
    /// Another process has the journal open.
    Locked(String),
    /// The journal cannot be read or written, for a reason of this [kind](StoreError::kind).
    Store(StoreError),
}

impl JournalError {
    /// Returns `true` if the same call may succeed when it is repeated, with nothing else done:
    /// that is so for [`JournalError::Store`] alone, if its error [says
    /// so](StoreError::retry_helps). All other errors last until the user, the operator or another
    /// process has acted.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Store(error) if error.retry_helps())
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { session, message } => write!(
                f,
                "message `{message}` of session `{session}` was received before with other content: give each message its own id"
            ),
            Self::Fenced(turn) => write!(
                f,
                "turn {turn} was taken over by another process: this one must not go on with it"
            ),
            Self::Locked(folder) => write!(
                f,
                "the turn journal in `{folder}` is in use: end the process that has it open, or drop the other host of this one with all of its `Agent`s, or use another data folder"
            ),
            Self::Store(error) => write!(f, "the turn journal cannot be used: {error}"),
        }
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::Conflict { .. } | Self::Fenced(_) | Self::Locked(_) => None,
        }
    }
}
