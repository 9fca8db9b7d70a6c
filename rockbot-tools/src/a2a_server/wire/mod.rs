//! The protocol's objects of version 1.0, as they are on the wire; `v03` converts the objects of
//! version 0.3 at the edge.
//!
//! Written here and not taken from the protocol's own crate: its parts silently drop a second
//! content and members of a wrong type, its metadata are maps of values that cost many times their
//! text, and it knows nothing of 0.3. Unread members are skipped without being kept, lists are
//! bounded while they are read, and data stays the text that it came as.

mod error;
mod message;
mod request;
mod task;
pub(super) mod v03;

pub(super) use error::{A2aError, ErrorKind};
pub(super) use message::{Message, Part, PartContent, Role};
pub(super) use request::{ListTasks, SendConfiguration, SendMessage, TaskQuery};
pub(super) use task::{
    Artifact, ArtifactUpdate, ListedTasks, SendResult, StatusUpdate, StreamItem, Task, TaskState, TaskStatus,
};
