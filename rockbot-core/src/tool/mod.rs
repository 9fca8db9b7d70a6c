//! Tools: what an agent can do.
//!
//! A tool is a [`ToolRegistration`] (what the model reads) and a [`ToolExecutor`] (what runs). Most tools are
//! written as an async closure over a struct, with [`tool`]:
//!
//! ```
//! use rockbot_core::tool::tool;
//!
//! /// Adds two numbers.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! let add = tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure();
//! assert_eq!(add.registration.description, "Adds two numbers.");
//! ```
//!
//! Tools live in a [`ToolRegistry`], which hands out immutable [`ToolSnapshot`]s.

mod arguments;
mod builder;
mod effect;
mod error;
mod executor;
mod guide;
mod guides;
mod invoke;
mod message;
mod registration;
mod registry;
mod remote;
mod schema;
mod typed;

pub use arguments::{ArgumentError, ArgumentSchema, MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, SchemaError};
pub use builder::Tool;
pub use effect::Effect;
pub use error::{ToolError, ToolErrorCode};
pub use executor::{Recovery, ToolExecutor};
pub use guide::{StaticGuide, ToolGuide};
pub use guides::{GuideError, GuideSnapshot, ToolGuides};
pub use invoke::{ToolInvocation, ToolInvokeRequest, ToolInvokeResponse};
pub use message::ToolErrorMessage;
pub use registration::{ToolHints, ToolRegistration};
pub use registry::{InMemoryToolRegistry, Owner, RegistryError, ToolEntry, ToolRegistry, ToolSnapshot, ToolView};
pub use remote::{RemoteToolExecutor, remote_tool};
pub use schema::schema_of;
pub use typed::{IntoToolOutput, Json, State, StatefulToolFn, ToolFn, stateful_tool, tool};
