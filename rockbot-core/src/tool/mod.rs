//! Tools: the functions that a model can call.
//!
//! A [`Tool`] is a [`ToolRegistration`], which the model and the host read, and a
//! [`ToolExecutor`], which runs the calls. Most tools are written as an async closure over a
//! struct of arguments, with [`tool`]:
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
//! The parts of this module work together like this:
//!
//! * [`tool`] and [`stateful_tool`] make a [`Tool`] of a closure; its setters, such as
//!   [`Tool::pure`], describe it to the host. [`remote_tool`] makes a tool whose calls run in
//!   another program.
//! * A [`ToolRegistry`] holds the tools by name and hands out immutable [`ToolSnapshot`]s. A
//!   [`ToolView`] is a model's view of a snapshot: JSON that only grows during a turn, so that
//!   prompt caching works.
//! * A call is a [`ToolInvokeRequest`]. The host guards it (arguments by [`ArgumentSchema`],
//!   approval, time limit, concurrency, panics) and passes it to the executor, which answers with
//!   a [`ToolInvokeResponse`] or a [`ToolError`].
//! * A [`ToolGroup`] is shown to the model on demand, by the [`ToolExposure`] of its tools; a
//!   [`ToolGuide`] explains tools, on demand as well.

mod builder;
mod chunks;
mod effect;
mod endorsement;
mod error;
mod executor;
mod exposure;
mod filter;
mod guide;
mod guides;
mod invoke;
mod message;
mod outside;
mod pending;
mod registration;
mod registry;
mod remote;
#[cfg(test)]
mod tests;
mod translator;
mod typed;

pub use builder::Tool;
pub use chunks::ResultChunks;
pub use effect::Effect;
pub use error::{ToolError, ToolErrorCode};
pub use executor::{Recovery, ToolExecutor};
pub use exposure::{ToolExposure, ToolGroup};
pub use filter::{ToolFilter, ToolSelector};
pub use guide::{StaticGuide, ToolGuide};
pub use guides::{GuideError, GuideSnapshot, ToolGuides};
pub use invoke::{ToolInvocation, ToolInvokeRequest, ToolInvokeResponse};
pub use message::{ToolErrorMessage, ToolOutcomeRequest};
pub use outside::OutsideTools;
pub use pending::{AwaitedTools, PendingTools};
pub use registration::{ToolHints, ToolRegistration};
pub use registry::{InMemoryToolRegistry, Owner, RegistryError, ToolEntry, ToolRegistry, ToolSnapshot, ToolView};
pub use remote::{RemoteToolExecutor, remote_tool};
pub use rockbot_provenance::ArgumentRole;
pub use rockbot_schema::{
    ArgumentError, ArgumentSchema, MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, NotStrict, SchemaError, StrictSchema,
    schema_of, without_optional_nulls,
};
pub use translator::CallTranslator;
pub use typed::{IntoToolOutput, JsonOutput, StatefulToolFn, ToolFn, ToolState, stateful_tool, tool};
