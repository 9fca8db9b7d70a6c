//! Process groups: a process with everything that it started.

/// A process group, named by the id of its first process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Option<u32>);

impl Group {
    /// Tells all processes of the group to terminate.
    pub(super) fn terminate(self) {
        self.signal(false);
    }

    /// Kills all processes of the group.
    pub(super) fn kill(self) {
        self.signal(true);
    }

    #[cfg(unix)]
    fn signal(self, kill: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = self.0.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let signal = if kill { Signal::KILL } else { Signal::TERM };
        // An error means that the group is empty.
        let _ = group.map(|group| kill_process_group(group, signal));
    }

    #[cfg(not(unix))]
    fn signal(self, _: bool) {
        let _ = self.0;
    }
}
