//! The log of wisps: a JSON line for each wisp that has ended, in a file of the data folder, for
//! the model and for people.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::{Principal, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::definition::Definition;

/// Name of the file.
pub(super) const FILE: &str = "wisp-executions.jsonl";

/// Number of records that are kept, all principals together.
const MAX_RECORDS: usize = 500;

/// Maximum length of a line that is read, in bytes. No written line is as long.
const MAX_LINE: u64 = 64 << 10;

/// Maximum length of a definition that is kept, in bytes of its JSON.
pub(super) const MAX_DEFINITION: usize = 8 << 10;

/// A wisp that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Execution {
    pub(super) wisp_id: String,
    pub(super) batch_id: String,
    pub(super) principal: Principal,
    pub(super) session_id: SessionId,
    #[serde(with = "rockbot_core::rfc3339")]
    pub(super) timestamp: Timestamp,
    pub(super) description: String,
    pub(super) definition_hash: String,
    pub(super) succeeded: bool,
    /// `true` for a wisp of a scheduled task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_scheduled: bool,
    pub(super) steps_completed: usize,
    pub(super) step_count: usize,
    #[serde(default)]
    pub(super) duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure_category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error_message: Option<String>,
    /// The wisp that failed before with the same description, in the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_of: Option<String>,
    /// The definition of a wisp that succeeded, if it is not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) definition_body: Option<Definition>,
}

/// The newest wisps, in a file or, without a data folder, in memory alone.
///
/// The file has at most twice as many lines as are kept; then a file with the newest lines
/// replaces it. It is not synced: a power failure may lose its newest lines, and no run depends
/// on them.
#[derive(Debug, Default)]
pub(super) struct ExecutionLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    folder: Option<DataFolder>,
    newest: VecDeque<Execution>,
    /// Number of lines in the file.
    lines: usize,
}

impl ExecutionLog {
    /// Opens the log of a data folder. Lines that cannot be read are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn open(folder: Option<&Path>) -> Result<Self, FileError> {
        let mut state = State {
            folder: folder.map(DataFolder::unheld),
            ..State::default()
        };
        if let Some(folder) = &state.folder {
            let newest = &mut state.newest;
            let lines = &mut state.lines;
            folder.read_lines(FILE, MAX_LINE, |line| {
                *lines += 1;
                if let Ok(execution) = serde_json::from_slice(line) {
                    newest.push_back(execution);
                }
                newest.drain(..newest.len().saturating_sub(MAX_RECORDS));
            })?;
        }
        Ok(Self(Mutex::new(state)))
    }

    /// Appends a wisp, unless the log has it already: a recovered call reports its wisps again.
    /// Returns `true` if the wisp is new. If the file cannot be written, the error is logged and
    /// the wisp stays in memory.
    pub(super) fn append(&self, execution: Execution) -> bool {
        // The lock is held while writing: only one writer may replace the file.
        let mut state = self.lock();
        if state.newest.iter().any(|known| known.wisp_id == execution.wisp_id) {
            return false;
        }
        state.newest.push_back(execution);
        if state.newest.len() > MAX_RECORDS {
            state.newest.pop_front();
        }
        if let Err(error) = state.write() {
            tracing::warn!(%error, "log of wisps cannot be written; this one is missing in it");
        }
        true
    }

    /// Returns the newest wisp of a principal that `wanted` accepts.
    pub(super) fn find(&self, principal: &Principal, wanted: impl Fn(&Execution) -> bool) -> Option<Execution> {
        let state = self.lock();
        let mut newest = state.newest.iter().rev();
        let found = newest.find(|known| known.principal == *principal && wanted(known));
        found.cloned()
    }

    /// Returns the wisps of a principal, newest first.
    pub(super) fn of(&self, principal: &Principal) -> Vec<Execution> {
        let state = self.lock();
        let own = state.newest.iter().rev();
        own.filter(|known| known.principal == *principal).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Appends the newest wisp to the file, or rewrites the file.
    fn write(&mut self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.lines >= 2 * MAX_RECORDS {
            let all: Vec<u8> = self.newest.iter().flat_map(line).collect();
            folder.replace(FILE, &all)?;
            self.lines = self.newest.len();
        } else if let Some(newest) = self.newest.back() {
            folder.lines(FILE)?.append(&line(newest))?;
            self.lines += 1;
        }
        Ok(())
    }
}

fn line(execution: &Execution) -> Vec<u8> {
    let mut line = serde_json::to_vec(execution).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn execution(id: &str) -> Execution {
        Execution {
            wisp_id: id.to_owned(),
            batch_id: "batch".to_owned(),
            principal: Principal::default(),
            session_id: SessionId::from("main"),
            timestamp: Timestamp::from_millis(7),
            description: "Pay.".to_owned(),
            definition_hash: "h".to_owned(),
            succeeded: true,
            is_scheduled: false,
            steps_completed: 1,
            step_count: 1,
            duration_ms: 3,
            failure_category: None,
            error_message: None,
            retry_of: None,
            definition_body: None,
        }
    }

    #[test]
    fn a_log_is_read_as_it_was_written_and_has_each_wisp_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = ExecutionLog::open(Some(folder.path())).unwrap();
        assert!(log.append(execution("a")) && log.append(execution("b")));
        let log = ExecutionLog::open(Some(folder.path())).unwrap();
        assert!(!log.append(execution("a")));
        assert_eq!(log.of(&Principal::default()), [execution("b"), execution("a")]);
        assert_eq!(log.of(&Principal::from("ann")), []);
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let first = r#"{"wispId":"a","batchId":"batch","principal":"local","sessionId":"main","timestamp":"1970-01-01T00:00:00.007Z","description":"Pay.","definitionHash":"h","succeeded":true,"stepsCompleted":1,"stepCount":1,"durationMs":3}"#;
        assert_eq!(text.lines().next(), Some(first));
    }

    #[test]
    fn a_long_log_is_shortened_and_damaged_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let log = ExecutionLog::open(Some(folder.path())).unwrap();
        for n in 0..=2 * MAX_RECORDS {
            log.append(execution(&n.to_string()));
        }
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), MAX_RECORDS);
        std::fs::write(&path, format!("{{\"torn\n{text}")).unwrap();
        let log = ExecutionLog::open(Some(folder.path())).unwrap();
        let all = log.of(&Principal::default());
        let last = (2 * MAX_RECORDS).to_string();
        assert_eq!((all.len(), all[0].wisp_id.as_str()), (MAX_RECORDS, last.as_str()));
    }
}
