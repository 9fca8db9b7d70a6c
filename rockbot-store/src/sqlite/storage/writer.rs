//! The writer thread: group commit over a bounded queue.
//!
//! A commit costs a disk sync, however many rows it has. So the thread takes all queued writes at
//! once, up to a bound, and commits them in one transaction; while it waits for the disk, the
//! next batch gathers in the queue. Each write has a savepoint of its own, so that a write that
//! fails is rolled back alone.

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::error::QueryError;

/// Maximum number of writes in one transaction.
const MAX_BATCH: usize = 256;

/// Capacity of the queue. When it is full, callers wait for room (backpressure).
pub(in crate::sqlite) const QUEUE_LEN: usize = 256;

/// A queued write.
pub(in crate::sqlite) trait WriteJob: Send {
    /// Executes the write inside its savepoint of the shared transaction.
    fn write(&mut self, connection: &Connection) -> Result<(), QueryError>;

    /// Reports the outcome to the waiting caller, once the transaction was committed or failed.
    fn end(self: Box<Self>, committed: Result<(), QueryError>);
}

/// Executes queued writes until the queue is closed and empty.
pub(in crate::sqlite) fn run(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn WriteJob>>) {
    let mut batch = Vec::new();
    while jobs.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let committed = write(&mut connection, &mut batch);
        for job in batch.drain(..) {
            job.end(committed.clone());
        }
    }
}

/// Executes a batch in one transaction.
fn write(connection: &mut Connection, batch: &mut [Box<dyn WriteJob>]) -> Result<(), QueryError> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in batch {
        let part = transaction.savepoint()?;
        match job.write(&part) {
            Ok(()) => part.commit()?,
            Err(error) => {
                // Dropping a savepoint rolls it back.
                drop(part);
                // Some errors, such as a full disk, roll back the whole transaction: then the entire batch has
                // failed.
                if transaction.is_autocommit() {
                    return Err(error);
                }
            }
        }
    }
    Ok(transaction.commit()?)
}

/// A write with the channel to its caller.
pub(in crate::sqlite) struct PendingWrite<W, T, R, S> {
    pub(in crate::sqlite) work: Option<W>,
    pub(in crate::sqlite) written: Option<Result<R, QueryError>>,
    pub(in crate::sqlite) then: T,
    pub(in crate::sqlite) answer: oneshot::Sender<Result<S, QueryError>>,
}

impl<W, T, R, S> WriteJob for PendingWrite<W, T, R, S>
where
    W: FnOnce(&Connection) -> Result<R, QueryError> + Send,
    T: FnOnce(R) -> S + Send,
    R: Send,
    S: Send,
{
    fn write(&mut self, connection: &Connection) -> Result<(), QueryError> {
        let written = self
            .work
            .take()
            .map_or(Err(QueryError::CLOSED), |work| work(connection));
        let outcome = written.as_ref().map(drop).map_err(Clone::clone);
        self.written = Some(written);
        outcome
    }

    fn end(self: Box<Self>, committed: Result<(), QueryError>) {
        let written = self.written.unwrap_or(Err(QueryError::CLOSED));
        let result = committed.and(written).map(self.then);
        // The caller may have been cancelled; the write is committed nevertheless.
        let _ = self.answer.send(result);
    }
}
