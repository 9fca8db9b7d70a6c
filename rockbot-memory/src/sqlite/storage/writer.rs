//! The one thread that writes.

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::error::SqliteError;

/// How many writes share one commit at most.
const MAX_BATCH: usize = 256;

/// How many writes wait at most; others wait to be let in.
pub(in crate::sqlite) const QUEUE_LEN: usize = 256;

/// Something that is to be written.
pub(in crate::sqlite) trait WriteJob: Send {
    /// Writes it, in a transaction that others use too. What a failure has written is taken back.
    fn write(&mut self, connection: &Connection) -> Result<(), SqliteError>;

    /// Tells whoever waits for it, when it is known whether the transaction was committed.
    fn end(self: Box<Self>, committed: Result<(), SqliteError>);
}

/// Writes until nobody can ask for it any more.
pub(in crate::sqlite) fn run(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn WriteJob>>) {
    let mut batch = Vec::new();
    while jobs.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let committed = write(&mut connection, &mut batch);
        for job in batch.drain(..) {
            job.end(committed.clone());
        }
    }
}

fn write(connection: &mut Connection, batch: &mut [Box<dyn WriteJob>]) -> Result<(), SqliteError> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in batch {
        let part = transaction.savepoint()?;
        match job.write(&part) {
            Ok(()) => part.commit()?,
            Err(error) => {
                drop(part);
                // A full disk, for one, ends the whole transaction.
                if transaction.is_autocommit() {
                    return Err(error);
                }
            }
        }
    }
    Ok(transaction.commit()?)
}

/// A piece of work and whoever waits for it.
pub(in crate::sqlite) struct PendingWrite<W, T, R, S> {
    pub(in crate::sqlite) work: Option<W>,
    pub(in crate::sqlite) written: Option<Result<R, SqliteError>>,
    pub(in crate::sqlite) then: T,
    pub(in crate::sqlite) answer: oneshot::Sender<Result<S, SqliteError>>,
}

impl<W, T, R, S> WriteJob for PendingWrite<W, T, R, S>
where
    W: FnOnce(&Connection) -> Result<R, SqliteError> + Send,
    T: FnOnce(R) -> S + Send,
    R: Send,
    S: Send,
{
    fn write(&mut self, connection: &Connection) -> Result<(), SqliteError> {
        let written = self
            .work
            .take()
            .map_or(Err(SqliteError::Closed), |work| work(connection));
        let outcome = written.as_ref().map(drop).map_err(Clone::clone);
        self.written = Some(written);
        outcome
    }

    fn end(self: Box<Self>, committed: Result<(), SqliteError>) {
        let written = self.written.unwrap_or(Err(SqliteError::Closed));
        let result = committed.and(written).map(self.then);
        // Whoever waited may have gone.
        let _ = self.answer.send(result);
    }
}
