//! The journal of turns in a database, with claims, leases and fencing there.
//!
//! Every change of a turn is one statement, and so one transaction: it checks the fence of the
//! caller and writes, or does neither. Two changes of the row of a turn wait for each other, and
//! the later one sees what the earlier one wrote. Leases are measured by the clock of the database,
//! so the clocks of the processes need not agree.
//!
//! An append locks no row, which makes it as cheap as an insert. It takes the next number of the
//! turn's records, and so does a claim: of an append and a claim at the same time one gets the
//! number, and the other one is refused and looks again. The rows of claims outlive the end of the
//! turn, so that the append of an owner that was paused finds its number taken then, too.
//!
//! A connection may break after the server committed and before the answer came. So every
//! statement can be sent again: an acceptance and a claim carry a random token, an append carries
//! its number, and an end its outcome.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::store::StoreError;
use rockbot_core::turn::{
    Acceptance, Claim, ClusterJournal, Fence, FreeRun, HolderRequests, JournalError, RunAccepted, RunBody, RunKey,
    RunQuery, RunRecord, RunState, StoredRun, TurnJournal,
};
use rockbot_core::{Clock, Digest, IdSource, RandomIds, TurnId};
use serde_json::value::RawValue;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::storage::row::{column, from_column, number, parse};
use super::storage::{Database, QueryError, now, statements};

/// Retention of the outcome of a finished turn in milliseconds, to answer redeliveries: a day.
macro_rules! kept {
    () => {
        "86400000"
    };
}

/// The number of a turn's next row of records.
macro_rules! next {
    () => {
        "(SELECT coalesce(max(turn_record.number) + 1, 0) FROM turn_record WHERE turn = id)"
    };
}

/// The row of records that a claim writes: none.
macro_rules! claimed {
    () => {
        "'[]'"
    };
}

/// Number of times that a statement is sent whose connection broke.
const ATTEMPTS: u32 = 3;

/// Wait before a statement is sent again.
const PAUSE: Duration = Duration::from_millis(200);

/// Shortest lease: a busy server must not cost a process its turns.
const MIN_LEASE: Duration = Duration::from_secs(3);

/// Longest lease.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of acceptances between two removals of old outcomes, the first one included. Each removes up to four times as many,
/// so that the table cannot outgrow a day of turns.
const PURGE_EVERY: u64 = 250;

statements! {
    ACCEPT = "WITH session AS (
            INSERT INTO turn_session (id, at) SELECT $10::text, ", now!("$9"), " WHERE $10::text IS NOT NULL
            ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING id
        ) INSERT INTO turn (id, agent, digest, header, request, token, owner, fence, lease, until, session, place)
        SELECT $1, $2, $3, $4, $5, $6, $7, nextval('claim_number'), $8, ", now!("$9"), " + $8, session.id,
            CASE WHEN session.id IS NULL THEN NULL ELSE nextval('place_number') END
        FROM (SELECT 1) AS one LEFT JOIN session ON true
        ON CONFLICT (id) DO NOTHING RETURNING fence";
    KNOWN = "SELECT digest, outcome, fence, token = $2 AND outcome IS NULL,
            outcome IS NOT NULL AND finished_at <= ", now!("$3"), " - ", kept!(), " FROM turn WHERE id = $1";
    FORGET = "WITH old AS (
            DELETE FROM turn WHERE id = $1 AND outcome IS NOT NULL AND finished_at <= ", now!("$2"), " - ", kept!(), "
            RETURNING id
        ) DELETE FROM turn_record USING old WHERE turn_record.turn = old.id";
    /// Both parts see the turn as it was when the statement began; if it was claimed since, the number
    /// is taken. The last column says that a third of the lease is over.
    APPEND = "WITH held AS (
            SELECT id, cancel, until < ", now!("$5"), " + lease * 2 / 3 FROM turn
            WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL
        ), written AS (
            INSERT INTO turn_record (turn, number, json) SELECT id, $3, $4 FROM held
        ) SELECT * FROM held";
    RENEW_ALL = "UPDATE turn SET until = ", now!("$2"), " + lease
        WHERE owner = $1 AND id = ANY($3) AND outcome IS NULL RETURNING id, cancel";
    FREE = "SELECT id, waits FROM turn WHERE outcome IS NULL AND (owner IS NULL OR until <= ", now!("$2"), ")
            AND ($1::text IS NULL OR agent = $1) ORDER BY number";
    IS_NEXT = "SELECT session IS NULL OR place IS NOT NULL, NOT EXISTS (
            SELECT FROM turn other WHERE other.session = turn.session AND other.place < turn.place
                AND other.outcome IS NULL AND other.until > ", now!("$3"), " - 10 * other.lease
        ) FROM turn WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL";
    /// Places are given under the lock of the session's row, as at an acceptance.
    TAKE_PLACE = "WITH session AS (
            INSERT INTO turn_session (id, at) SELECT session, ", now!("$3"), " FROM turn
            WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL AND session IS NOT NULL
            ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING id
        ) UPDATE turn SET place = nextval('place_number') FROM session
        WHERE turn.id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL AND place IS NULL";
    LEAVE = "UPDATE turn SET place = NULL, waits = true
        WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL RETURNING id";
    PURGE_SESSIONS = "DELETE FROM turn_session WHERE at <= ", now!("$1"), " - ", kept!();
    RENEW = "UPDATE turn SET until = ", now!("$3"), " + lease
        WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL RETURNING cancel";
    HELD = "SELECT ", next!(), ", cancel, (SELECT json FROM turn_record WHERE turn = id AND turn_record.number = $3) FROM turn
        WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL";
    CANCEL = "UPDATE turn SET cancel = true WHERE id = $1 AND outcome IS NULL RETURNING id";
    FINISH = "WITH ended AS (
            UPDATE turn SET outcome = $3, finished_at = ", now!("$4"), ", owner = NULL, request = NULL
            WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND outcome IS NULL RETURNING id
        ), gone AS (
            DELETE FROM turn_record USING ended WHERE turn_record.turn = ended.id AND json <> ", claimed!(), "
        ) SELECT id FROM ended";
    FINISHED = "SELECT id FROM turn WHERE id = $1 AND fence = $2 AND outcome = $3";
    /// Many processes may claim and release a turn that none of them can run. The rows of claims
    /// before the last 10 000 are as old as no statement becomes.
    CLAIM = "WITH claimed AS (
            UPDATE turn SET fence = greatest(fence + 1, nextval('claim_number')), token = $2, owner = $3, lease = $4,
                until = ", now!("$5"), " + $4, waits = false
            WHERE id = $1 AND outcome IS NULL AND (owner IS NULL OR until <= ", now!("$5"), ") RETURNING id, fence
        ), written AS (
            INSERT INTO turn_record (turn, number, json) SELECT id, ", next!(), ", ", claimed!(), " FROM claimed
            RETURNING number
        ), gone AS (
            DELETE FROM turn_record USING claimed WHERE turn_record.turn = claimed.id AND json = ", claimed!(), "
                AND turn_record.number < ", next!(), " - 10000
        ) SELECT fence, number + 1 FROM claimed, written";
    CLAIMED = "SELECT fence, ", next!(), " FROM turn WHERE id = $1 AND token = $2 AND owner IS NOT NULL AND outcome IS NULL";
    RELEASE = "UPDATE turn SET owner = NULL WHERE id = $1 AND fence = $2";
    READ = "SELECT header, request, outcome, ARRAY(
            SELECT json FROM turn_record WHERE turn = id AND json <> ", claimed!(), " ORDER BY turn_record.number
        ) FROM turn WHERE id = $1";
    UNFINISHED = "SELECT id FROM turn WHERE outcome IS NULL AND ($1::text IS NULL OR agent = $1) ORDER BY number";
    PURGE = "WITH old AS (
            DELETE FROM turn WHERE id IN (
                SELECT id FROM turn WHERE outcome IS NOT NULL AND finished_at <= ", now!("$1"), " - ", kept!(), "
                ORDER BY finished_at LIMIT 1000
            ) RETURNING id
        ) DELETE FROM turn_record USING old WHERE turn_record.turn = old.id";
}

/// The [`TurnJournal`] of a [`Postgres`](super::Postgres): processes on several machines share it.
///
/// All records are as durable as the server's `synchronous_commit` says, by default synced to its
/// disk. A finished turn keeps its identity and its outcome for 24 hours.
#[derive(Debug)]
pub struct PostgresTurnJournal {
    database: Arc<Database>,
    /// The clock of tests; the database's own without it.
    clock: Option<Arc<dyn Clock>>,
    lease: Duration,
    /// The number of appends of each turn that this process holds.
    held: Mutex<HashMap<TurnId, Held>>,
    accepted: AtomicU64,
}

/// A turn that this process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    fence: Fence,
    appended: i64,
}

impl PostgresTurnJournal {
    pub(super) fn new(database: Arc<Database>, lease: Duration, clock: Option<Arc<dyn Clock>>) -> Self {
        Self {
            database,
            clock,
            lease: lease.clamp(MIN_LEASE, MAX_LEASE),
            held: Mutex::default(),
            accepted: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| number(clock.now().as_millis()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Held>> {
        // No code that can panic runs under the lock, so a poisoned lock still guards consistent data.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a claim that this process got.
    fn hold(&self, run: &TurnId, fence: i64, appended: i64) -> Claim {
        let fence = Fence(u64::try_from(fence).unwrap_or_default());
        self.lock().insert(run.clone(), Held { fence, appended });
        Claim::new(run.clone(), fence)
    }

    fn forget(&self, claim: &Claim) {
        let mut held = self.lock();
        if held.get(claim.run()).is_some_and(|held| held.fence == claim.fence()) {
            held.remove(claim.run());
        }
    }

    fn fenced(&self, claim: &Claim) -> JournalError {
        self.forget(claim);
        JournalError::Fenced(claim.run().clone())
    }

    /// Runs a statement that can be sent again, and does so when its connection broke. Returns its
    /// rows, and whether an earlier attempt may have taken effect.
    async fn send(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<(Vec<Row>, bool), QueryError> {
        for attempt in 1.. {
            match self.database.query(sql, values).await {
                Err(error) if error.retry_helps() && attempt < ATTEMPTS => tokio::time::sleep(PAUSE * attempt).await,
                Err(error) => return Err(error),
                Ok(rows) => return Ok((rows, attempt > 1)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Runs a statement that can be sent again, and returns its rows.
    async fn run(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let sent = self.send(sql, values).await;
        sent.map(|(rows, _)| rows)
            .map_err(|error| self.database.unwritten(error))
    }

    /// Appends one row of records as number `at`, and renews the lease when a third of it is over.
    /// Returns `None` if the turn is not held, or has that number already.
    async fn write(&self, claim: &Claim, json: &str, at: i64) -> Result<Option<HolderRequests>, StoreError> {
        let (run, fence, now) = (column(claim.run().as_str()), number(claim.fence().0), self.now());
        let rows = match self.send(APPEND, &[&run, &fence, &at, &json, &now]).await {
            Err(error) if error.is_conflict() => return Ok(None),
            sent => sent.map_err(|error| self.database.unwritten(error))?.0,
        };
        let Some(row) = rows.first() else { return Ok(None) };
        if row.get(2) {
            // What is appended is appended: without a renewal the next append finds out.
            if let Err(error) = self.renew(claim).await {
                tracing::debug!(turn = %claim.run(), %error, "a lease was not renewed");
            }
        }
        Ok(Some(requests(row.get(1))))
    }

    /// Returns the number of appends of a held turn; with them the row of number `at`, if there is
    /// one.
    async fn held(&self, claim: &Claim, at: i64) -> Result<(i64, HolderRequests, Option<String>), JournalError> {
        let (run, fence) = (column(claim.run().as_str()), number(claim.fence().0));
        let rows = self.run(HELD, &[&run, &fence, &at]).await?;
        let row = rows.first().ok_or_else(|| self.fenced(claim))?;
        Ok((row.get(0), requests(row.get(1)), row.get(2)))
    }

    async fn renew(&self, claim: &Claim) -> Result<HolderRequests, JournalError> {
        let (run, fence, now) = (column(claim.run().as_str()), number(claim.fence().0), self.now());
        let rows = self.run(RENEW, &[&run, &fence, &now]).await?;
        let row = rows.first().ok_or_else(|| self.fenced(claim))?;
        Ok(requests(row.get(0)))
    }

    fn unreadable(&self, error: QueryError) -> JournalError {
        self.database.unreadable(error).into()
    }

    fn unwritable(&self, error: serde_json::Error) -> JournalError {
        self.database.unwritten(error.into()).into()
    }

    /// Removes outcomes that are too old, once in a while. A failure is left to the next time.
    async fn purge(&self) {
        if self
            .accepted
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(PURGE_EVERY)
        {
            for purge in [PURGE, PURGE_SESSIONS] {
                if let Err(error) = self.database.write(purge, &[&self.now()]).await {
                    tracing::warn!(%error, "old outcomes of turns could not be removed and stay until the next time");
                }
            }
        }
    }
}

#[async_trait]
impl TurnJournal for PostgresTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        self.purge().await;
        let run = column(accepted.run.as_str());
        let (agent, digest) = (accepted.key.agent.as_deref().map(column), accepted.digest.to_string());
        let (header, request) = split(accepted).map_err(|error| self.unwritable(error))?;
        let (token, lease, now) = (RandomIds.next_id(), number(lease.as_millis()), self.now());
        let session = accepted.is_ordered.then(|| session_of(&accepted.key));
        loop {
            let values: [&(dyn ToSql + Sync); 10] = [
                &run,
                &agent,
                &digest,
                &header,
                &request,
                &token,
                &column(owner),
                &lease,
                &now,
                &session,
            ];
            let rows = self.run(ACCEPT, &values).await?;
            if let Some(row) = rows.first() {
                return Ok(Acceptance::New(self.hold(&accepted.run, row.get(0), 0)));
            }
            let rows = self.run(KNOWN, &[&run, &token, &now]).await?;
            // Another process may have removed the old outcome between the two statements.
            let Some(known) = rows.first() else { continue };
            if known.get(4) {
                self.run(FORGET, &[&run, &now]).await?;
                continue;
            }
            if known.get::<_, &str>(0) != digest {
                let (session, message) = (accepted.key.session.clone(), accepted.key.message.clone());
                return Err(JournalError::Conflict { session, message });
            }
            // An earlier attempt of this very call was committed, and its answer was lost.
            if known.get(3) {
                return Ok(Acceptance::New(self.hold(&accepted.run, known.get(2), 0)));
            }
            return Ok(Acceptance::Known(
                state(&run, known.get(1)).map_err(|error| self.unreadable(error))?,
            ));
        }
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        if records.is_empty() {
            return self.renew(claim).await;
        }
        let json = serde_json::to_string(records).map_err(|error| self.unwritable(error))?;
        let known = self.lock().get(claim.run()).copied();
        let known = known.filter(|held| held.fence == claim.fence());
        let mut at = match known {
            Some(held) => held.appended,
            None => self.held(claim, -1).await?.0,
        };
        loop {
            let mut done = self.write(claim, &json, at).await?;
            if done.is_none() {
                let (appended, requests, same) = self.held(claim, at).await?;
                // An earlier attempt was committed, and its answer was lost.
                done = (appended == at + 1 && same.as_deref() == Some(&*json)).then_some(requests);
                at = if done.is_some() { at } else { appended };
            }
            if let Some(requests) = done {
                let (run, fence) = (claim.run().clone(), claim.fence());
                self.lock().insert(
                    run,
                    Held {
                        fence,
                        appended: at + 1,
                    },
                );
                return Ok(requests);
            }
        }
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        let rows = self.run(CANCEL, &[&column(run.as_str())]).await?;
        Ok(!rows.is_empty())
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        let json = outcome.to_json().map_err(|error| self.unwritable(error))?;
        let (run, fence, now) = (column(claim.run().as_str()), number(claim.fence().0), self.now());
        let mut rows = self.run(FINISH, &[&run, &fence, &json.get(), &now]).await?;
        if rows.is_empty() {
            rows = self.run(FINISHED, &[&run, &fence, &json.get()]).await?;
        }
        if rows.is_empty() {
            return Err(self.fenced(claim));
        }
        self.forget(claim);
        Ok(())
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        let (id, token, lease, now) = (
            column(run.as_str()),
            RandomIds.next_id(),
            number(lease.as_millis()),
            self.now(),
        );
        let mut had_conflict = false;
        let (mut rows, was_repeated) = loop {
            match self.send(CLAIM, &[&id, &token, &column(owner), &lease, &now]).await {
                // An append of the last holder was first.
                Err(error) if error.is_conflict() => had_conflict = true,
                sent => break sent.map_err(|error| self.database.unwritten(error))?,
            }
        };
        if rows.is_empty() && (was_repeated || had_conflict) {
            rows = self.run(CLAIMED, &[&id, &token]).await?;
        }
        Ok(rows.first().map(|row| self.hold(run, row.get(0), row.get(1))))
    }

    async fn release(&self, claim: Claim) {
        self.forget(&claim);
        let released = self
            .run(RELEASE, &[&column(claim.run().as_str()), &number(claim.fence().0)])
            .await;
        if let Err(error) = released {
            tracing::warn!(turn = %claim.run(), %error, "a turn could not be released; others can claim it when its lease ends");
        }
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        let rows = self.run(READ, &[&column(run.as_str())]).await?;
        let stored = rows.first().map(|row| stored(run.as_str(), row)).transpose();
        stored.map_err(|error| self.unreadable(error))
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        let rows = self.run(UNFINISHED, &[&query.agent.as_deref().map(column)]).await?;
        Ok(rows.iter().map(run_of).collect())
    }

    fn cluster(&self) -> Option<&dyn ClusterJournal> {
        Some(self)
    }
}

#[async_trait]
impl ClusterJournal for PostgresTurnJournal {
    fn lease(&self) -> Duration {
        self.lease
    }

    async fn renew(&self, owner: &str, runs: &[TurnId]) -> Result<Vec<TurnId>, JournalError> {
        let runs: Vec<_> = runs.iter().map(|run| column(run.as_str())).collect();
        let rows = self.run(RENEW_ALL, &[&column(owner), &self.now(), &runs]).await?;
        Ok(rows.iter().filter(|row| row.get(1)).map(run_of).collect())
    }

    async fn free(&self, query: &RunQuery) -> Result<Vec<FreeRun>, JournalError> {
        let rows = self
            .run(FREE, &[&query.agent.as_deref().map(column), &self.now()])
            .await?;
        Ok(rows.iter().map(|row| FreeRun::new(run_of(row), row.get(1))).collect())
    }

    async fn enter_session(&self, claim: &Claim) -> Result<bool, JournalError> {
        let (run, fence, now) = (column(claim.run().as_str()), number(claim.fence().0), self.now());
        let values: [&(dyn ToSql + Sync); 3] = [&run, &fence, &now];
        loop {
            let rows = self.run(IS_NEXT, &values).await?;
            let row = rows.first().ok_or_else(|| self.fenced(claim))?;
            if row.get(0) {
                return Ok(row.get(1));
            }
            self.run(TAKE_PLACE, &values).await?;
        }
    }

    async fn leave_session(&self, claim: &Claim) -> Result<(), JournalError> {
        let (run, fence) = (column(claim.run().as_str()), number(claim.fence().0));
        let rows = self.run(LEAVE, &[&run, &fence]).await?;
        rows.first().map(|_| ()).ok_or_else(|| self.fenced(claim))
    }
}

/// Returns the id of the order that a run takes part in.
fn session_of(key: &RunKey) -> String {
    let agent = key.agent.as_deref().unwrap_or_default();
    Digest::of([agent, key.principal.as_str(), key.session.as_str()]).to_string()
}

fn run_of(row: &Row) -> TurnId {
    TurnId::from(from_column(row.get(0)))
}

fn requests(cancel: bool) -> HolderRequests {
    HolderRequests::default().with_cancel(cancel)
}

/// Separates the identity of a turn, which is kept, from its request, which its end removes.
fn split(accepted: &RunAccepted) -> Result<(String, String), serde_json::Error> {
    let mut header = accepted.clone();
    header.body = RawValue::NULL.to_owned().into();
    let request = accepted.body.to_json()?;
    Ok((serde_json::to_string(&header)?, request.get().to_owned()))
}

/// Returns the state that an outcome means.
fn state(run: &str, outcome: Option<&str>) -> Result<RunState, QueryError> {
    Ok(match outcome {
        Some(outcome) => RunState::Finished(body(run, outcome)?),
        None => RunState::Unfinished,
    })
}

fn stored(run: &str, row: &Row) -> Result<StoredRun, QueryError> {
    let mut accepted: RunAccepted = parse("turn", run, row.get(0))?;
    if let Some(request) = row.get::<_, Option<&str>>(1) {
        accepted.body = body(run, request)?;
    }
    let mut records: Vec<RunRecord> = Vec::new();
    for json in row.get::<_, Vec<&str>>(3) {
        records.extend(parse::<Vec<RunRecord>>("record of turn", run, json)?);
    }
    Ok(StoredRun::new(accepted, records, state(run, row.get(2))?))
}

fn body(run: &str, json: &str) -> Result<RunBody, QueryError> {
    Ok(parse::<Box<RawValue>>("turn", run, json)?.into())
}

#[cfg(test)]
impl PostgresTurnJournal {
    /// Makes the journal believe that the answer to its last append never came.
    pub(super) fn lose_the_last_answer(&self, claim: &Claim) {
        if let Some(held) = self.lock().get_mut(claim.run()) {
            held.appended -= 1;
        }
    }

    /// Appends `json` by a statement that began before `meanwhile` and is carried out after it.
    /// Returns `false` if its number was taken.
    pub(super) async fn append_late(&self, claim: &Claim, json: &str, meanwhile: impl AsyncFnOnce()) -> bool {
        let (appended, ..) = self.held(claim, 0).await.unwrap();
        let mut client = self.database.client().await.unwrap();
        let begun = client
            .build_transaction()
            .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
        let begun = begun.start().await.unwrap();
        begun.query("SELECT", &[]).await.unwrap();
        meanwhile().await;
        let (run, fence) = (column(claim.run().as_str()), number(claim.fence().0));
        let values: [&(dyn ToSql + Sync); 5] = [&run, &fence, &appended, &json, &self.now()];
        match begun.query(APPEND, &values).await.map_err(QueryError::from) {
            Ok(rows) => {
                assert_eq!(rows.len(), 1, "the statement sees the turn as it was");
                begun.commit().await.unwrap();
                true
            }
            Err(error) if error.is_conflict() => false,
            Err(error) => panic!("{error:?}"),
        }
    }
}
