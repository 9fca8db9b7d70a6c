//! Child processes of other programs, with bounds on all that they see, write and leave behind.
//!
//! A [`Command`] describes how a program is started. [`Command::output`] runs it to its end,
//! within a time limit, and [`Command::spawn`] returns a [`Child`] with pipes, for a program that
//! is spoken to while it runs. Both differ from the standard library's in four points:
//!
//! * No shell reads the command, and the process sees a few harmless variables of this process
//!   alone.
//! * On Unix the process leads a process group of its own. When it ends, or its `Child` is
//!   dropped, every process of the group is killed, so nothing that it started stays behind. A
//!   process that leaves the group escapes that; on other systems the program alone is killed.
//! * Its standard error is read all the time, and its last bytes are kept: a full pipe never
//!   blocks the process, and a process that writes without end needs no more memory.
//! * A process that does not end when it is told to is killed.
//!
//! None of this isolates a program that is hostile: it has the rights of this process on the
//! machine.
//!
//! A child process is ours, not the client library's: the library kills the direct child alone,
//! and its children inherit environment and standard error.

mod child;
mod command;
mod exit;
mod group;

pub use child::Child;
pub use command::{Command, Output};
pub use exit::ProcessExit;
