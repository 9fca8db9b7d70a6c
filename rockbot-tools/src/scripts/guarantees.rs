//! The guarantees of a script runner.

use std::fmt;

/// The guarantees that a runner declares of the scripts that it runs.
///
/// A guarantee that is declared is tried with a script before the tool is offered: see
/// [`Scripts`](super::Scripts). The guide of the tool and each answer name them.
///
/// ```
/// use rockbot_tools::scripts::Guarantees;
///
/// assert!(Guarantees::ALL.to_string().starts_with("no network, no files of the host, "));
/// let mut few = Guarantees::NONE;
/// few.no_network = true;
/// assert!(few.to_string().starts_with("no network; NOT guaranteed: no files of the host, "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Guarantees {
    /// A script reaches no network, no server on the host's machine, and no socket of another
    /// process.
    pub no_network: bool,
    /// A script reads no file of the host but the installation of Python and its libraries, changes
    /// none, and gains no rights to do so.
    pub no_files: bool,
    /// A script sees no variable of the environment of the host or of another process.
    pub no_credentials: bool,
    /// Memory and CPU time of each process, the size of each file, and the number of processes are
    /// limited.
    pub limits: bool,
    /// When a run ends, however it ends, all processes that the script started are gone.
    pub cleanup: bool,
}

impl Guarantees {
    /// All guarantees.
    pub const ALL: Self = Self {
        no_network: true,
        no_files: true,
        no_credentials: true,
        limits: true,
        cleanup: true,
    };

    /// No guarantees: a script may do everything that the host's own process may do.
    pub const NONE: Self = Self {
        no_network: false,
        no_files: false,
        no_credentials: false,
        limits: false,
        cleanup: false,
    };

    /// Returns `true` if all of `required` are among these.
    ///
    /// ```
    /// use rockbot_tools::scripts::Guarantees;
    ///
    /// assert!(Guarantees::ALL.include(Guarantees::NONE) && !Guarantees::NONE.include(Guarantees::ALL));
    /// ```
    pub fn include(self, required: Self) -> bool {
        let own = self.keys();
        required.keys().iter().all(|key| own.contains(key))
    }

    /// Returns `true` if a script reaches nothing outside of its sandbox, so that running it has no
    /// effect.
    pub(super) fn are_walls(self) -> bool {
        self.no_network && self.no_files && self.no_credentials
    }

    /// Returns the guarantees that are not among these.
    fn missing(self) -> Self {
        Self {
            no_network: !self.no_network,
            no_files: !self.no_files,
            no_credentials: !self.no_credentials,
            limits: !self.limits,
            cleanup: !self.cleanup,
        }
    }

    /// Returns the names of the guarantees.
    pub(super) fn names(self) -> Vec<&'static str> {
        let named = self.list().into_iter();
        named.filter_map(|(holds, _, name)| holds.then_some(name)).collect()
    }

    /// Returns the keys of the guarantees: the names of the fields.
    pub(super) fn keys(self) -> Vec<&'static str> {
        let named = self.list().into_iter();
        named.filter_map(|(holds, key, _)| holds.then_some(key)).collect()
    }

    fn list(self) -> [(bool, &'static str, &'static str); 5] {
        [
            (self.no_network, "no_network", "no network"),
            (self.no_files, "no_files", "no files of the host"),
            (self.no_credentials, "no_credentials", "no credentials of the host"),
            (self.limits, "limits", "limited resources"),
            (self.cleanup, "cleanup", "no process left behind"),
        ]
    }
}

impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.names();
        let missing = self.missing().names();
        f.write_str(&given.join(", "))?;
        if !given.is_empty() && !missing.is_empty() {
            f.write_str("; ")?;
        }
        if !missing.is_empty() {
            write!(f, "NOT guaranteed: {}", missing.join(", "))?;
        }
        Ok(())
    }
}
