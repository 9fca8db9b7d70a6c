//! The entries of a configuration that are not used.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An entry of a configuration that is not used, with the reason. Values are never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The name of the server, or its place if it has none.
    pub server: String,
    /// The problem, and the remedy.
    pub problem: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server `{}` is not used: {}", self.server, self.problem)
    }
}

/// The problems of a host: problems of the program and its settings, which stay, and problems of
/// the file, which may change.
#[derive(Debug, Default)]
pub(crate) struct ConfigProblems(Mutex<[Vec<ConfigProblem>; 2]>);

impl ConfigProblems {
    pub(crate) fn set(&self, of_program: Vec<ConfigProblem>, of_file: Vec<ConfigProblem>) {
        *self.lock() = [of_program, of_file];
    }

    /// Replaces the problems of the file.
    pub(crate) fn set_of_file(&self, problems: Vec<ConfigProblem>) {
        self.lock()[1] = problems;
    }

    pub(crate) fn all(&self) -> Vec<ConfigProblem> {
        self.lock().concat()
    }

    fn lock(&self) -> MutexGuard<'_, [Vec<ConfigProblem>; 2]> {
        // Each change is one assignment, so a poisoned lock holds a consistent value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
