//! Tools written as async closures. The arguments are a struct, and the model reads its doc
//! comments.

mod executor;
mod function;
mod output;
#[cfg(test)]
mod tests;

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use function::{StatefulToolFn, ToolFn, ToolState};
pub use output::{IntoToolOutput, JsonOutput};

use super::Tool;
use crate::CallContext;
use executor::typed;

/// Creates a tool named `name` whose calls run the closure `run`.
///
/// `run` is an async closure or an `async fn` of the arguments, or of the arguments and the
/// [`CallContext`]. The arguments are a struct that derives `serde::Deserialize` and
/// `schemars::JsonSchema`: its doc comment becomes the description of the tool, those of its
/// fields the descriptions of the arguments. `run` returns text, a number, a [`JsonOutput`]
/// value, or a `Result` of one of these: see [`IntoToolOutput`].
///
/// A tool is [`Effect::Mutating`](super::Effect::Mutating) unless a setter says otherwise, such
/// as [`Tool::pure`].
///
/// Arguments that do not match are answered with an error that names the problem and the expected
/// shape, and `run` is not called. This includes constraints of the schema beyond the types, such
/// as `#[schemars(range(min = 1, max = 5))]`. With such constraints, input that only serde would
/// accept, such as an `alias`, is refused as well. `pattern` and `format` are not validated;
/// check them in the tool.
///
/// ```
/// use rockbot_core::tool::{tool, ToolError};
///
/// /// Says how long a text is.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Measure {
///     /// The text to measure.
///     text: String,
/// }
///
/// async fn measure(args: Measure) -> Result<String, ToolError> {
///     Ok(format!("{} bytes", args.text.len()))
/// }
///
/// let tool = tool("measure", measure).pure();
/// ```
pub fn tool<A, M, F>(name: &str, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: ToolFn<A, M>,
    F::Running: Future<Output: IntoToolOutput> + Send + 'static,
{
    typed(name, move |args, cx: &CallContext| run.start(args, cx))
}

/// Creates a tool as [`tool`] does, with a `state` that all its calls share.
///
/// `run` is an async closure or an `async fn` of the [`ToolState`] and the arguments, or of these
/// and the [`CallContext`]. Use it for clients, pools, caches and counters; the state needs no
/// `Arc` of its own.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use rockbot_core::tool::{stateful_tool, ToolState};
///
/// /// Counts how often it was called.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {}
///
/// let count = stateful_tool("count", AtomicU32::new(0), |calls: ToolState<AtomicU32>, _: Count| async move {
///     (calls.fetch_add(1, Ordering::Relaxed) + 1).to_string()
/// });
/// ```
pub fn stateful_tool<S, A, M, F>(name: &str, state: S, run: F) -> Tool
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: StatefulToolFn<S, A, M>,
    F::Running: Future<Output: IntoToolOutput> + Send + 'static,
{
    let state = ToolState::new(state);
    typed(name, move |args, cx: &CallContext| run.start(state.clone(), args, cx))
}
