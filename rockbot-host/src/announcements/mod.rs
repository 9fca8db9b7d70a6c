//! Announcements of an agent, kept in the turn journal until a program takes them.
//!
//! An announcement is a run of the journal, like the entries that a conversation memory refuses.
//! It survives the process, and a single process delivers it. It ends once its taker asks for the
//! next announcement, or once the bus has it.

mod index;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::counter;
use rockbot_core::support::loggable;
use rockbot_core::turn::{Announcement, JournalError, TurnJournal};
use rockbot_core::{Clock, Principal, TurnId};
use serde::de::IgnoredAny;
use tokio::sync::watch;

use crate::waiting_runs::WaitingRuns;
use index::Index;

/// Maximum number of announcements that wait for one principal. The oldest goes first.
const MAX_WAITING: usize = 1000;

/// Maximum age of an announcement.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Beginning of the ids of runs that hold announcements.
const PREFIX: &str = "announcement-";

/// The announcements of a host.
pub(crate) struct Announcements {
    runs: WaitingRuns,
    clock: Arc<dyn Clock>,
    index: Mutex<Index>,
    /// Notifies the readers that wait for an announcement, and the inboxes.
    added: watch::Sender<()>,
}

/// An announcement that a taker has. Dropping it puts it back.
#[derive(Debug)]
pub(crate) struct Taken {
    place: Place,
    pub(crate) announcement: Announcement,
}

/// The place of an announcement that is being taken or is taken.
struct Place {
    announcements: Arc<Announcements>,
    principal: Principal,
    run: TurnId,
}

/// A reader of a principal's announcements: the bus does not deliver them meanwhile.
pub(crate) struct Reader {
    announcements: Arc<Announcements>,
    principal: Principal,
}

impl Announcements {
    /// Creates an empty list; `owner` is the name of this process in the journal.
    pub(crate) fn new(journal: Arc<dyn TurnJournal>, owner: String, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            runs: WaitingRuns::new(journal, owner, PREFIX),
            clock,
            index: Mutex::default(),
            added: watch::Sender::new(()),
        })
    }

    /// Returns `true` for the id of a run that holds an announcement: it is no turn.
    pub(crate) fn holds(run: &TurnId) -> bool {
        run.as_str().starts_with(PREFIX)
    }

    /// Returns a receiver that is notified when an announcement is added, put back or dismissed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.added.subscribe()
    }

    /// Adds a reader of the announcements to `principal`.
    pub(crate) fn reader(self: &Arc<Self>, principal: Principal) -> Reader {
        self.lock().add_reader(&principal);
        Reader {
            announcements: self.clone(),
            principal,
        }
    }

    /// Keeps an announcement until it is taken. The same `id` is the same announcement.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal does not take it.
    pub(crate) async fn append(&self, id: &str, mut announcement: Announcement) -> Result<(), JournalError> {
        announcement.at = self.clock.now();
        let principal = announcement.principal.clone();
        let session = announcement.session.clone();
        let at = announcement.at;
        if let Some(run) = self.runs.keep((&principal, &session), id, at, announcement).await? {
            self.note(principal, run).await;
        }
        Ok(())
    }

    /// Takes over the runs that an earlier process has left, oldest first.
    pub(crate) async fn resume(&self, runs: Vec<TurnId>) {
        let known = self.lock().runs();
        for run in runs.into_iter().filter(|run| !known.contains(run)) {
            match self.runs.read::<IgnoredAny>(&run).await {
                Ok(Some(waiting)) => self.note(waiting.principal, run).await,
                Ok(None) => {}
                Err(error) => unreadable(&run, &error),
            }
        }
    }

    /// Takes the oldest announcement to `principal`; with `None` the oldest one to a principal
    /// without a reader. Returns `None` if there is none.
    pub(crate) async fn take(self: &Arc<Self>, principal: Option<&Principal>) -> Option<Taken> {
        loop {
            let (principal, run) = self.lock().take(principal)?;
            let place = Place {
                announcements: self.clone(),
                principal,
                run,
            };
            match self.open(&place.run).await {
                Ok(Some(announcement)) => return Some(Taken { place, announcement }),
                // Another process has it, or it was dropped.
                Ok(None) => {}
                Err(error) => unreadable(&place.run, &error),
            }
            self.lock().remove(&place.principal, &place.run);
        }
    }

    /// Returns the announcements that wait for a principal, oldest first.
    pub(crate) fn ids(&self, principal: &Principal) -> Vec<TurnId> {
        self.lock().ids(principal)
    }

    /// Returns an announcement that waits for a principal, and goes on waiting.
    pub(crate) async fn peek(&self, principal: &Principal, run: &TurnId) -> Result<Option<Announcement>, JournalError> {
        if !self.lock().ids(principal).contains(run) {
            return Ok(None);
        }
        let waiting = self.runs.read::<Announcement>(run).await?;
        let announcement = waiting.and_then(|waiting| waiting.content.ok());
        Ok(announcement.filter(|announcement| self.clock.now().since(announcement.at) <= MAX_AGE))
    }

    /// Ends an announcement that waits for a principal. Returns `false` if it does not wait.
    pub(crate) async fn dismiss(self: &Arc<Self>, principal: &Principal, run: &TurnId) -> bool {
        if !self.lock().take_run(principal, run) {
            return false;
        }
        let place = Place {
            announcements: self.clone(),
            principal: principal.clone(),
            run: run.clone(),
        };
        self.delivered(&place).await;
        self.added.send_replace(());
        true
    }

    /// Ends an announcement that was delivered.
    async fn delivered(&self, place: &Place) {
        self.finish(&place.run).await;
        self.lock().remove(&place.principal, &place.run);
    }

    /// Claims and reads an announcement that is to be delivered.
    async fn open(&self, run: &TurnId) -> Result<Option<Announcement>, JournalError> {
        if !self.lock().is_claimed(run) {
            let Some(claim) = self.runs.claim(run).await? else {
                return Ok(None);
            };
            self.lock().claimed(run, claim);
        }
        let Some(waiting) = self.runs.read::<Announcement>(run).await? else {
            return Ok(None);
        };
        let why = match waiting.content {
            Ok(announcement) if self.clock.now().since(announcement.at) <= MAX_AGE => return Ok(Some(announcement)),
            Ok(_) => "it is older than 7 days",
            Err(_) => "it is unreadable",
        };
        self.give_up(&waiting.principal, run, why).await;
        Ok(None)
    }

    /// Adds a run to the index, and drops the oldest run of a principal who has too many.
    async fn note(&self, principal: Principal, run: TurnId) {
        let oldest = self.lock().add(&principal, run, MAX_WAITING);
        if let Some(oldest) = oldest {
            self.give_up(&principal, &oldest, "1 000 newer ones wait").await;
        }
        self.added.send_replace(());
    }

    /// Ends an announcement that is never told.
    async fn give_up(&self, principal: &Principal, run: &TurnId, why: &str) {
        counter!("rockbot.announcements.dropped").increment(1);
        let principal = loggable(principal.as_str());
        tracing::warn!(%run, %principal, "announcement dropped: {why}");
        self.finish(run).await;
    }

    /// Ends a run. After a failure it is told once more, at the next start.
    async fn finish(&self, run: &TurnId) {
        let claim = self.lock().take_claim(run);
        let finished = match claim {
            Some(claim) => self.runs.finish_claimed(claim).await,
            None => self.runs.finish(run).await,
        };
        if let Err(error) = finished {
            tracing::error!(%run, error = %loggable(&error.to_string()), "journal write failed; an announcement is told again at the next start");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        // No code that can panic runs under the lock.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Ends the announcement: it was delivered.
    pub(crate) async fn delivered(self) {
        self.place.announcements.delivered(&self.place).await;
    }

    /// Returns the id of the announcement, which is the same each time that it is delivered.
    pub(crate) fn id(&self) -> &TurnId {
        &self.place.run
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Does nothing after a delivery, which removed it.
        if self.announcements.lock().put_back(&self.principal, &self.run) {
            self.announcements.added.send_replace(());
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.announcements.lock().remove_reader(&self.principal);
        // The bus may deliver the announcements that the reader left.
        self.announcements.added.send_replace(());
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.fmt(f)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.principal).finish()
    }
}

impl fmt::Debug for Announcements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcements")
            .field("index", &self.lock())
            .finish_non_exhaustive()
    }
}

fn unreadable(run: &TurnId, error: &JournalError) {
    tracing::error!(%run, error = %loggable(&error.to_string()), "journal unreadable; an announcement waits for the next start");
}
