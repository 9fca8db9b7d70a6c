//! Tools from async closures: the arguments are a struct, its doc comments are what the model reads.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ArgumentSchema, Effect, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};
use crate::{BoxError, CallContext};

/// A tool named `name` that calls `run` with its arguments.
///
/// `run` is an async closure or `async fn` of the arguments, or of the arguments and the [`CallContext`]. The
/// arguments are a struct with `serde::Deserialize` and `schemars::JsonSchema`: its doc comment is the
/// description of the tool, those of its fields the descriptions of the arguments. `run` returns text, a number,
/// a [`Json`] value, or a `Result` of one of these: see [`IntoToolOutput`].
///
/// A tool is taken to be [`Effect::Mutating`] unless it says otherwise. Arguments that do not fit are answered
/// with what was wrong and the expected shape, and `run` is not called. That holds also for what the schema says
/// beyond the types, such as `#[schemars(range(min = 1, max = 5))]`: with such limits, what only serde would take,
/// as an `alias`, is refused too. `pattern` and `format` are left to the tool.
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

/// A tool as [`tool`] makes it, whose closure also gets `state`, shared by all its calls.
///
/// `run` is an async closure or `async fn` of the [`State`] and the arguments, or of these and the [`CallContext`].
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use rockbot_core::tool::{stateful_tool, State};
///
/// /// Counts how often it was called.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {}
///
/// let count = stateful_tool("count", AtomicU32::new(0), |calls: State<AtomicU32>, _: Count| async move {
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
    let state = State(Arc::new(state));
    typed(name, move |args, cx: &CallContext| run.start(state.clone(), args, cx))
}

/// What all calls of a [`stateful_tool`] share. Reads as the state itself.
#[derive(Debug)]
pub struct State<S>(Arc<S>);

impl<S> Clone for State<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// A tool that is ready to be added to a host or a registry.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it says about itself.
    pub registration: ToolRegistration,
    /// What runs its calls.
    pub executor: Arc<dyn ToolExecutor>,
}

impl Tool {
    /// A tool whose calls `executor` runs.
    pub fn new(registration: ToolRegistration, executor: impl ToolExecutor) -> Self {
        Self {
            registration,
            executor: Arc::new(executor),
        }
    }

    /// With this description instead of the doc comment on the arguments.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.registration.description = description.into();
        self
    }

    /// From this source instead of `local`.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.registration.source = source.into();
        self
    }

    /// Only reads: [`Effect::Pure`].
    #[must_use]
    pub fn pure(self) -> Self {
        self.effect(Effect::Pure)
    }

    /// May run again without harm: [`Effect::Idempotent`].
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.effect(Effect::Idempotent)
    }

    /// With this effect.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.registration.effect = effect;
        self
    }

    /// Each call must be approved first.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.registration.hints.needs_approval = true;
        self
    }

    /// A call may take this long.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.registration.hints.time_limit = Some(limit);
        self
    }

    /// At most this many calls run at once.
    #[must_use]
    pub fn max_concurrency(mut self, calls: u32) -> Self {
        self.registration.hints.max_concurrency = Some(calls);
        self
    }

    /// Its results stay in the conversation as they are: it reads what was taken out of it, or returns long texts in
    /// parts itself.
    #[must_use]
    pub fn keeps_results_whole(mut self) -> Self {
        self.registration.hints.keeps_results_whole = true;
        self
    }

    /// Marks the tool as one that delegates: a call hands its work to another agent, which reports the result later.
    ///
    /// Before a turn ends, the host may judge whether its calls have done what the user asked for. The calls of a turn that
    /// delegates cannot show that yet, so the host does not judge such a turn.
    ///
    /// ```
    /// use rockbot_core::tool::tool;
    ///
    /// /// Starts a subagent, which reports its result in a later message.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Spawn { task: String }
    ///
    /// let spawn = tool("spawn_subagent", |Spawn { task }: Spawn| async move { format!("started: {task}") }).delegates();
    /// assert!(spawn.registration.hints.delegates);
    /// ```
    #[must_use]
    pub fn delegates(mut self) -> Self {
        self.registration.hints.delegates = true;
        self
    }
}

/// What [`tool`] accepts: async functions of the arguments, or of the arguments and the [`CallContext`].
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a tool is called with",
    label = "a tool is `|args: A| async move {{ … }}` or `|args: A, cx: CallContext| async move {{ … }}`",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait ToolFn<A, M>: Send + Sync + 'static {
    /// A call in progress: a future whose output is [`IntoToolOutput`].
    type Running;

    /// Starts one call.
    fn start(&self, args: A, cx: &CallContext) -> Self::Running;
}

/// What [`stateful_tool`] accepts: async functions of the [`State`] and the arguments, or of these and the
/// [`CallContext`].
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a stateful tool is called with",
    label = "a stateful tool is `|state: State<S>, args: A| async move {{ … }}`, with `cx: CallContext` last if it wants it",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait StatefulToolFn<S, A, M>: Send + Sync + 'static {
    /// A call in progress: a future whose output is [`IntoToolOutput`].
    type Running;

    /// Starts one call.
    fn start(&self, state: State<S>, args: A, cx: &CallContext) -> Self::Running;
}

/// Marks closures that do not take the context.
#[derive(Debug)]
pub enum WithoutContext {}

/// Marks closures that take the context.
#[derive(Debug)]
pub enum WithContext {}

// That the result is a future with a fitting output is asked by `tool`, not here: so the compiler says which of the
// two it is not, instead of that no kind of closure fits.
impl<A, F, R> ToolFn<A, WithoutContext> for F
where
    F: Fn(A) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, args: A, _: &CallContext) -> R {
        self(args)
    }
}

impl<A, F, R> ToolFn<A, WithContext> for F
where
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, args: A, cx: &CallContext) -> R {
        self(args, cx.clone())
    }
}

impl<S, A, F, R> StatefulToolFn<S, A, WithoutContext> for F
where
    F: Fn(State<S>, A) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: State<S>, args: A, _: &CallContext) -> R {
        self(state, args)
    }
}

impl<S, A, F, R> StatefulToolFn<S, A, WithContext> for F
where
    F: Fn(State<S>, A, CallContext) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: State<S>, args: A, cx: &CallContext) -> R {
        self(state, args, cx.clone())
    }
}

/// What a tool may return: text, a number, a `bool`, [`Json`], or a `Result` of one of these. `()` reads `done`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool's output",
    label = "the model cannot read `{Self}`",
    note = "return text, a number, `Json(value)`, or a `Result` of these"
)]
pub trait IntoToolOutput {
    /// The text that the model reads, or the error that it should act on.
    ///
    /// # Errors
    ///
    /// Fails when the tool failed.
    fn into_tool_output(self) -> Result<String, ToolError>;
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<String, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for &'static str {
    fn into_tool_output(self) -> Result<String, ToolError> {
        Ok(self.to_owned())
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<String, ToolError> {
        Ok("done".to_owned())
    }
}

macro_rules! output_as_displayed {
    ($($type:ty)*) => {$(
        impl IntoToolOutput for $type {
            fn into_tool_output(self) -> Result<String, ToolError> {
                Ok(self.to_string())
            }
        }
    )*};
}

output_as_displayed!(bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl<T: IntoToolOutput, E: Into<BoxError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<String, ToolError> {
        self.map_err(|error| ToolError::from(error.into()))?.into_tool_output()
    }
}

/// A tool's output that the model reads as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<String, ToolError> {
        serde_json::to_string(&self.0).map_err(|error| {
            ToolError::execution_failed("the tool's output cannot be written as JSON").with_source(error)
        })
    }
}

/// The JSON Schema of `T` as models like it: draft 2020-12, nothing about the schema itself, subschemas inline.
///
/// ```
/// # use rockbot_core::tool::schema_of;
/// #[derive(schemars::JsonSchema)]
/// struct Add { a: u8 }
/// assert_eq!(schema_of::<Add>()["properties"]["a"]["type"], "integer");
/// ```
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
    }
    schema
}

/// A tool that parses its arguments as `A`.
fn typed<A, R, F>(name: &str, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
    F: Fn(A, &CallContext) -> R + Send + Sync + 'static,
{
    let registration = ToolRegistration::of::<A>(name);
    let arguments = ArgumentSchema::compile(&registration.parameters_schema).ok();
    let executor = Typed {
        run,
        arguments,
        marker: PhantomData,
    };
    Tool::new(registration, executor)
}

struct Typed<F, A, R> {
    run: F,
    /// `None` when the schema is beyond our bounds: then the registry refuses the tool anyway.
    arguments: Option<ArgumentSchema>,
    marker: PhantomData<fn(A) -> R>,
}

impl<F, A, R> fmt::Debug for Typed<F, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

#[async_trait]
impl<F, A, R> ToolExecutor for Typed<F, A, R>
where
    F: Fn(A, &CallContext) -> R + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
{
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args = parse(&request.arguments).map_err(|problem| self.teach(&request, problem))?;
        self.check_limits(&request)?;
        let running = (self.run)(args, cx);
        let output = running.await.into_tool_output()?;
        Ok(request.succeed(output))
    }

    fn checks_arguments(&self) -> bool {
        true
    }
}

impl<F, A, R> Typed<F, A, R> {
    /// What the schema says beyond the types. Most schemas say nothing, and cost nothing here.
    fn check_limits(&self, request: &ToolInvokeRequest) -> Result<(), ToolError> {
        let limits = self.arguments.as_ref().filter(|schema| schema.adds_to_types());
        let checked = limits.map_or(Ok(()), |schema| schema.check(&request.arguments).map(drop));
        checked.map_err(|error| error.into_tool_error(&request.tool_name))
    }

    /// What was wrong with the arguments: found by the schema where it can, else in the words of `problem`.
    fn teach(&self, request: &ToolInvokeRequest, problem: String) -> ToolError {
        let Some(schema) = &self.arguments else {
            return ToolError::invalid_arguments(problem);
        };
        let found = schema.check(&request.arguments).err();
        found
            .unwrap_or_else(|| schema.explain(problem))
            .into_tool_error(&request.tool_name)
    }
}

/// The bounds come first: serde alone would take an array for a struct.
fn parse<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    ArgumentSchema::check_bounds(arguments).map_err(|error| error.to_string())?;
    serde_json::from_str(arguments).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use serde_json::json;

    use super::*;
    use crate::tool::{ToolErrorCode, ToolHints};

    /// Books a table.
    ///
    /// It is paid on the spot.
    #[derive(serde::Deserialize, JsonSchema)]
    struct Book {
        /// How many come.
        guests: u8,
        /// What they want to eat.
        #[serde(default)]
        dishes: Vec<String>,
    }

    async fn call_as(tool: &Tool, arguments: &str, cx: &CallContext) -> Result<String, ToolError> {
        let request = ToolInvokeRequest {
            tool_call_id: "call_1".into(),
            tool_name: tool.registration.name.clone(),
            arguments: arguments.into(),
            session_id: cx.session().clone(),
        };
        let response = tool.executor.execute(request.clone(), cx).await?;
        assert_eq!(response, request.succeed(response.content.clone()));
        Ok(response.content)
    }

    async fn call(tool: &Tool, arguments: &str) -> Result<String, ToolError> {
        call_as(tool, arguments, &CallContext::new("session")).await
    }

    #[test]
    fn a_tool_describes_itself_by_the_doc_comments_of_its_arguments() {
        let tool = tool("book", |_: Book| async { "" });
        let schema = json!({
            "type": "object",
            "properties": {
                "guests": {"description": "How many come.", "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
                "dishes": {"description": "What they want to eat.", "type": "array", "items": {"type": "string"}, "default": []},
            },
            "required": ["guests"],
        });
        let description = "Books a table.\n\nIt is paid on the spot.";
        assert_eq!(tool.registration, ToolRegistration::new("book", description, schema));
        assert!(tool.executor.checks_arguments());
    }

    #[test]
    fn setters_change_what_the_host_knows() {
        let tool = tool("book", |_: Book| async { "" })
            .description("Books.")
            .source("restaurant")
            .idempotent()
            .needs_approval()
            .time_limit(Duration::from_secs(5))
            .max_concurrency(2)
            .keeps_results_whole()
            .delegates();
        let registration = ToolRegistration {
            source: "restaurant".to_owned(),
            effect: Effect::Idempotent,
            hints: ToolHints {
                needs_approval: true,
                time_limit: Some(Duration::from_secs(5)),
                max_concurrency: Some(2),
                keeps_results_whole: true,
                delegates: true,
            },
            ..ToolRegistration::new("book", "Books.", tool.registration.parameters_schema.clone())
        };
        assert_eq!(tool.registration, registration);
    }

    #[tokio::test]
    async fn a_tool_gets_its_arguments_and_the_context() {
        let tool = tool("book", |args: Book, cx: CallContext| async move {
            format!("{} of {} eat {:?}", args.guests, cx.session(), args.dishes)
        });
        let cx = CallContext::new("family");
        let output = call_as(&tool, r#"{"guests": 3, "dishes": ["soup"], "more": 1}"#, &cx).await;
        assert_eq!(output.unwrap(), r#"3 of family eat ["soup"]"#);
    }

    #[tokio::test]
    async fn calls_share_the_state() {
        let tool = stateful_tool(
            "book",
            AtomicU32::new(0),
            |sum: State<AtomicU32>, args: Book| async move {
                let guests = u32::from(args.guests);
                (sum.fetch_add(guests, Ordering::Relaxed) + guests).to_string()
            },
        );
        assert_eq!(call(&tool, r#"{"guests": 2}"#).await.unwrap(), "2");
        assert_eq!(call(&tool.clone(), r#"{"guests": 3}"#).await.unwrap(), "5");
    }

    #[tokio::test]
    async fn a_stateful_tool_gets_the_context_too() {
        let run = |sum: State<u32>, args: Book, cx: CallContext| async move {
            format!("{} for {}", *sum + u32::from(args.guests), cx.session())
        };
        let output = call_as(
            &stateful_tool("book", 5, run),
            r#"{"guests": 2}"#,
            &CallContext::new("family"),
        )
        .await;
        assert_eq!(output.unwrap(), "7 for family");
    }

    #[tokio::test]
    async fn numbers_truths_and_nothing_are_outputs() {
        let args = r#"{"guests": 2}"#;
        let count = tool("book", |args: Book| async move { args.guests });
        assert_eq!(call(&count, args).await.unwrap(), "2");
        let half = tool("book", |args: Book| async move { f64::from(args.guests) / 4.0 });
        assert_eq!(call(&half, args).await.unwrap(), "0.5");
        let many = tool("book", |args: Book| async move { Ok::<_, BoxError>(args.guests > 1) });
        assert_eq!(call(&many, args).await.unwrap(), "true");
        let nothing = tool("book", |_: Book| async {});
        assert_eq!(call(&nothing, args).await.unwrap(), "done");
    }

    #[tokio::test]
    async fn output_can_be_json() {
        let tool = tool("book", |args: Book| async move {
            Ok::<_, BoxError>(Json(json!({"guests": args.guests})))
        });
        assert_eq!(call(&tool, r#"{"guests": 2}"#).await.unwrap(), r#"{"guests":2}"#);
    }

    #[tokio::test]
    async fn any_error_becomes_a_failed_execution_and_keeps_its_source() {
        let tool = tool("book", |_: Book| async {
            Err::<String, _>(io::Error::other("the door is locked"))
        });
        let error = call(&tool, r#"{"guests": 2}"#).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (ToolErrorCode::ExecutionFailed, "the door is locked")
        );
        assert!(error.source().is_some_and(<dyn Error>::is::<io::Error>));
    }

    #[tokio::test]
    async fn a_tool_error_keeps_its_code_even_in_a_box() {
        let denied = || ToolError::new(ToolErrorCode::Denied, "members only").with_retryable(true);
        for tool in [
            tool("book", move |_: Book| async move { Err::<String, _>(denied()) }),
            tool("book", move |_: Book| async move {
                Err::<String, BoxError>(denied().into())
            }),
        ] {
            let error = call(&tool, r#"{"guests": 2}"#).await.unwrap_err();
            assert_eq!((error.code(), error.message()), (ToolErrorCode::Denied, "members only"));
            assert!(error.is_retryable());
        }
    }

    #[tokio::test]
    async fn wrong_arguments_are_explained_and_the_tool_is_not_called() {
        let tool = stateful_tool(
            "book",
            AtomicU32::new(0),
            |calls: State<AtomicU32>, _: Book| async move { calls.fetch_add(1, Ordering::Relaxed).to_string() },
        );
        let expected = "\nExpected: {\"dishes\"?: string[], \"guests\": integer (0..=255)}\n\
            Call the tool again with corrected arguments.";
        for (arguments, problem) in [
            (
                r#"{"guest": 2}"#,
                "`guests` is required and missing; did you mean it by `guest`?",
            ),
            (
                r#"{"guests": "two"}"#,
                "`guests` must be an integer, got the string \"two\"",
            ),
            (r#"{"guests": 256}"#, "`guests` must be at most 255, got 256"),
            ("[2, []]", "the arguments must be a JSON object, got an array"),
            // JSON Schema takes this for an integer, serde does not: then serde has the word.
            (
                r#"{"guests": 2.0}"#,
                "invalid type: floating point `2.0`, expected u8 at line 1 column 14",
            ),
        ] {
            let error = call(&tool, arguments).await.unwrap_err();
            assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
            assert_eq!(
                error.message(),
                format!("invalid arguments for `book`:\n- {problem}{expected}")
            );
        }
        assert_eq!(
            call(&tool, r#"{"guests": 2}"#).await.unwrap(),
            "0",
            "this is the first call"
        );
    }

    /// Orders.
    #[derive(serde::Deserialize, JsonSchema)]
    struct Order {
        /// How many.
        #[schemars(range(min = 1, max = 5))]
        count: u32,
        #[schemars(length(max = 3))]
        #[serde(default)]
        code: String,
        #[schemars(extend("enum" = ["red", "green"]))]
        #[serde(default = "red")]
        colour: String,
    }

    fn red() -> String {
        "red".to_owned()
    }

    #[tokio::test]
    async fn what_the_schema_says_beyond_the_types_is_checked_and_the_tool_is_not_called() {
        let run = |calls: State<AtomicU32>, args: Order| async move {
            calls.fetch_add(1, Ordering::Relaxed);
            format!("{} {} {}", args.count, args.code, args.colour)
        };
        let tool = stateful_tool("order", AtomicU32::new(0), run);
        for (arguments, problem) in [
            (r#"{"count": 500}"#, "`count` must be at most 5, got 500"),
            (r#"{"count": 0}"#, "`count` must be at least 1, got 0"),
            (
                r#"{"count": 1, "code": "abcd"}"#,
                "`code` must have at most 3 characters, got 4",
            ),
            (
                r#"{"count": 1, "colour": "grey"}"#,
                "`colour` must be \"red\" | \"green\", got the string \"grey\"",
            ),
        ] {
            let error = call(&tool, arguments).await.unwrap_err();
            assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
            let beginning = format!("invalid arguments for `order`:\n- {problem}\nExpected: ");
            assert!(error.message().starts_with(&beginning), "{}", error.message());
        }
        assert_eq!(call(&tool, r#"{"count": 5}"#).await.unwrap(), "5  red");
    }
}
