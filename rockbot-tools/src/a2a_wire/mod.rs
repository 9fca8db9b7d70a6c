//! The objects of the A2A protocol over HTTP, as they are on the wire in version 1.0. `v03`
//! converts the objects of version 0.3 at the edge of a server, `v03_client` at the edge of a
//! client.
//!
//! Written here and not taken from the protocol's own crate: its parts silently drop a second
//! content and members of a wrong type, its metadata are maps of values that cost many times their
//! text, and it knows nothing of 0.3. Unread members are skipped without being kept, lists are
//! bounded while they are read, and data stays the text that it came as.

mod error;
mod message;
mod push;
mod request;
mod task;
pub(crate) mod v03;
pub(crate) mod v03_client;

pub(crate) use error::{A2aError, ErrorKind};
pub(crate) use message::{Message, Part, PartContent, Role, bounded_list, reference};
pub(crate) use push::{ListedPushes, OldPushParams, OldPushQuery, PushConfig, PushQuery, old_push};
pub(crate) use request::{ListTasks, SendConfiguration, SendMessage, SendMetadata, TaskQuery};
pub(crate) use task::{Artifact, ArtifactUpdate, ListedTasks, StatusUpdate, StreamItem, Task, TaskState, TaskStatus};
