//! Tools: the actions of an agent, from an async closure to a tool in another program.
//!
//! [`tool`] and [`stateful_tool`] turn an async closure over a struct into a [`Tool`]: the doc
//! comment of the struct is the description that the model reads, its fields are the arguments.
//! The effect ([`Tool::pure`], [`Tool::idempotent`], mutating unless stated) decides whether
//! calls run in parallel, are retried, and run again after a crash. A [`ToolRegistry`] holds the
//! tools of a host and can change while it runs; a [`ToolExecutor`] is the trait behind every
//! tool, for tools whose schema is not a Rust type; [`remote_tool`] calls a tool over a bus, and
//! [`RemoteTools`] takes in the tools that workers announce there. Large results are stored in
//! chunks that the model reads on demand ([`LargeResultPolicy`]).
//!
//! ```
//! use rockbot::prelude::*;
//! use rockbot::tool::Effect;
//!
//! /// Tells how many pieces of a product are in stock.
//! #[derive(Deserialize, JsonSchema)]
//! struct Stock {
//!     /// The product in the singular, such as `table`.
//!     product: String,
//! }
//!
//! let stock = tool("stock", |Stock { product }: Stock| async move { format!("3 pieces of {product}") }).pure();
//! assert_eq!(stock.registration.description, "Tells how many pieces of a product are in stock.");
//! assert_eq!(stock.registration.effect, Effect::Pure);
//! ```
//!
#![doc = include_str!("../docs/security.md")]

#[doc(inline)]
pub use rockbot_core::tool::{
    ArgumentRole, AwaitedTools, Effect, JsonOutput, Recovery, RemoteToolExecutor, ResultChunks, StaticGuide, Tool,
    ToolError, ToolErrorCode, ToolExecutor, ToolFilter, ToolGroup, ToolGuide, ToolHints, ToolInvocation,
    ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, ToolRegistry, ToolState, remote_tool, stateful_tool, tool,
};
#[doc(inline)]
pub use rockbot_host::large_result::LargeResultPolicy;
#[doc(inline)]
pub use rockbot_host::tool::ToolLimits;
#[doc(inline)]
pub use rockbot_host::workers::RemoteTools;
