//! Tasks: their records, and their states, which follow from the turns of a host.

mod record;
mod state;
mod table;
#[cfg(test)]
mod tests;

pub(super) use record::{TaskPush, TaskRecord, TaskTurn};
pub(super) use state::{SessionTurns, Standing, refused, state_of, words_of};
pub(super) use table::TaskTable;
