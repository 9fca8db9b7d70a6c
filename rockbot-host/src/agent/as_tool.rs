//! An agent as a tool of another agent.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ModelTier, OutputSchema};
use rockbot_core::content::{Content, Provenance};
use rockbot_core::tool::{
    Recovery, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolFilter, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration,
};
use rockbot_core::turn::{
    ApprovalRequest, Budget, Delegation, ProgressSink, TurnOutcome, TurnProgress, TurnRequest, TurnStatus,
};
use rockbot_core::{SessionId, ToolName};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::answer::Typed;
use super::{Agent, SharedAgent};
use crate::engine::{TurnCall, TurnError};

/// Default maximum number of agents below the first one.
const MAX_DEPTH: u32 = 3;

/// Default maximum duration of a call. The budget of the called agent's turn usually ends it
/// earlier.
const TIME_LIMIT: Duration = Duration::from_secs(60 * 60);

/// An agent as a tool of another agent, or of itself. [`Agent::as_tool`](super::Agent::as_tool)
/// creates one, and a host takes it as a [`Tool`].
///
/// A call runs a turn of the agent, and its answer is the result, with its images and files. The
/// task is a text, unless [`with_input`](Self::with_input) sets arguments of the program's own. The
/// turn has
///
/// - the principal of the caller, and no more trust than everything that the calling model has
///   read;
/// - a slice of the caller's budget, and what it spends counts for the caller, too;
/// - a session of its own, derived from the calling turn, whose conversation is not kept;
/// - the calling turn as its parent. It is cancelled with it, and its tool calls are reported as
///   progress of the call.
///
/// The call is mutating unless the tool is declared otherwise, for example with [`Tool::pure`]:
/// then calls of one answer run concurrently. After a crash the turn is resumed by its own host,
/// and a mutating call gets its result then.
///
/// A turn of the caller's own host that needs a person's approval asks the user of the top turn,
/// with the agents on the way
/// ([`ApprovalRequest::asked_by`](rockbot_core::turn::ApprovalRequest::asked_by)), and the call
/// waits for the decision within the caller's budget. A turn of another host cannot ask: it is
/// cancelled, and the caller reads an error that names the tool.
///
/// # Examples
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_core::turn::Budget;
/// use rockbot_host::AgentHost;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let librarian = AgentHost::builder("librarian")
///     .chat(ScriptedModel::new().says("It is on shelf 7."))
///     .build()?;
/// let find_book = librarian
///     .agent()
///     .as_tool("find_book", "Asks the librarian where a book is.")
///     .with_budget(Budget::default().with_max_model_calls(5));
///
/// let model = ScriptedModel::new()
///     .calls("find_book", json!({"task": "Where is `Emma`?"}))
///     .says("Look on shelf 7.");
/// let host = AgentHost::builder("host").chat(model).tool(find_book).build()?;
/// let answer = host.agent().ask("desk", "I want to read Emma.").await?;
/// assert_eq!(answer.to_string(), "Look on shelf 7.");
/// assert_eq!(answer.model_calls, 3, "two of the host, one of the librarian");
/// # Ok(())
/// # }
/// ```
///
/// With arguments and an answer of types of the program's own:
///
/// ```
/// use rockbot_core::chat::ModelTier;
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::AgentHost;
/// use serde_json::json;
///
/// /// A text to translate.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Translate { text: String, language: String }
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Translation { text: String, is_literal: bool }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = ScriptedModel::new().says(r#"{"text": "Hallo", "is_literal": true}"#);
/// # let translator = AgentHost::builder("translator").chat(model).build()?;
/// let translate = translator
///     .agent()
///     .as_tool("translate", "Asks the translator.")
///     .with_tier(ModelTier::Low)
///     .with_instructions("Keep names as they are.")
///     .with_input(|Translate { text, language }| format!("Into {language}: {text}"))
///     .with_output::<Translation>();
/// # let model = ScriptedModel::new().calls("translate", json!({"text": "Hello", "language": "German"})).says("Hallo");
/// # let host = AgentHost::builder("host").chat(model.clone()).tool(translate).build()?;
/// # host.agent().ask("desk", "Hello in German?").await?;
/// # assert!(model.requests()[1].messages.last().is_some_and(|result| result.text().contains(r#""is_literal": true"#)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct AgentTool {
    registration: ToolRegistration,
    executor: AgentExecutor,
}

/// The argument of a call without an input of the program's own.
#[derive(Deserialize, JsonSchema)]
struct Task {
    /// The task, with everything that is needed to do it: the agent sees nothing else of this
    /// conversation.
    task: String,
}

/// Runs a turn of the agent for each call.
#[derive(Clone)]
struct AgentExecutor {
    /// Weak, since the tool may be one of the same host: it must not keep its own host alive.
    agent: Weak<SharedAgent>,
    /// The name of the agent, if it is one beside the host's own.
    called: Option<Arc<str>>,
    input: Input,
    output: Option<Output>,
    tier: Option<ModelTier>,
    tools: ToolFilter,
    instructions: Option<String>,
    budget: Option<Budget>,
    max_depth: u32,
}

/// Makes the message of a call from its arguments, JSON text.
type Input = Arc<dyn Fn(&str) -> serde_json::Result<Content> + Send + Sync>;

/// The form of a call's answer.
#[derive(Debug, Clone)]
struct Output {
    schema: OutputSchema,
    /// `true` if the JSON of the answer is `{"value": …}`.
    is_wrapped: bool,
}

impl AgentTool {
    pub(super) fn new(agent: &Agent, name: ToolName, description: String) -> Self {
        let mut registration = ToolRegistration::of::<Task>(name);
        registration.description = description;
        registration.hints.time_limit = Some(TIME_LIMIT);
        registration.hints.runs_turn = true;
        // What the agent had read is the label of its answer.
        registration.hints.own_output = true;
        Self {
            registration,
            executor: AgentExecutor {
                agent: Arc::downgrade(&agent.shared),
                called: agent.name.clone(),
                input: input(|Task { task }| task),
                output: None,
                tier: None,
                tools: ToolFilter::all(),
                instructions: None,
                budget: None,
                max_depth: MAX_DEPTH,
            },
        }
    }

    /// Sets the arguments of a call, and the function that makes the message of its turn from them.
    /// Default: one text, the task.
    ///
    /// The arguments are a struct that derives `serde::Deserialize` and `schemars::JsonSchema`, as
    /// those of a [`tool`](rockbot_core::tool::tool). The function must return the same message for
    /// the same arguments, since a call that is repeated after a restart is the same turn. A
    /// message can have images, such as one that the arguments name.
    pub fn with_input<A, C>(mut self, message: impl Fn(A) -> C + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        C: Into<Content>,
    {
        let registration = ToolRegistration::of::<A>(self.registration.name.clone());
        self.registration.parameters_schema = registration.parameters_schema;
        self.executor.input = input(message);
        self
    }

    /// Makes the result of a call JSON of type `T`, as
    /// [`AgentRequest::output`](super::AgentRequest::output) does for a request. Default: the
    /// answer in the agent's words. A refusal stays in words.
    pub fn with_output<T>(mut self) -> Self
    where
        T: DeserializeOwned + JsonSchema,
    {
        let (answer, schema) = Typed::<T>::new();
        let is_wrapped = answer.is_wrapped();
        self.executor.output = Some(Output { schema, is_wrapped });
        self
    }

    /// Sets the tier of the model in a call's turn. By default the called host's tier selector
    /// decides.
    pub fn with_tier(mut self, tier: ModelTier) -> Self {
        self.executor.tier = Some(tier);
        self
    }

    /// Sets the filter of the tools of a call's turn. Default all tools of the called host. A turn
    /// that an agent gives to itself has no tool that the calling turn lacks.
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::tool::{ToolFilter, ToolSelector};
    /// use rockbot_host::AgentHost;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = ScriptedModel::new();
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let helper = host.agent().as_tool("ask_helper", "Does a part of the work.");
    /// host.add_tool(helper.with_tools(ToolFilter::all().without(["ask_helper"])))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_tools(mut self, tools: ToolFilter) -> Self {
        self.executor.tools = tools;
        self
    }

    /// Sets instructions for the turns of calls, beside those of the agent. Default none.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.executor.instructions = Some(instructions.into());
        self
    }

    /// Sets the maximum budget of a call's turn. Default: all that is left of the caller's, which
    /// bounds it in any case. Calls that run concurrently share it equally.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.executor.budget = Some(budget);
        self
    }

    /// Sets the maximum number of agents below the first one, for agents that call each other or
    /// themselves. Default 3.
    pub fn with_max_depth(mut self, max_depth: u32) -> Self {
        self.executor.max_depth = max_depth;
        self
    }

    /// Converts it into a [`Tool`], whose setters describe it further, such as [`Tool::pure`].
    #[must_use]
    pub fn into_tool(self) -> Tool {
        Tool::new(self.registration, self.executor)
    }
}

impl From<AgentTool> for Tool {
    fn from(tool: AgentTool) -> Self {
        tool.into_tool()
    }
}

impl AgentExecutor {
    fn agent(&self) -> Result<Arc<SharedAgent>, ToolError> {
        let gone = || ToolError::execution_failed("the agent's host is gone: do the task without it");
        self.agent.upgrade().ok_or_else(gone)
    }

    /// Returns the message of a call. It is the same for the same call, so that a repeated call is
    /// the same turn.
    fn message(&self, call: &ToolInvokeRequest, cx: &CallContext) -> Result<TurnRequest, ToolError> {
        let content = (self.input)(&call.arguments)
            .map_err(|error| ToolError::new(ToolErrorCode::InvalidArguments, error.to_string()))?;
        let id = &call.tool_call_id;
        let scope = cx.turn().map_or(cx.session().as_str(), |turn| turn.as_str());
        let session = SessionId::from(format!("{}/{scope}/{id}", call.tool_name));
        let mut request = TurnRequest::new(session, id.as_str(), content)
            .with_caller(cx)
            .with_forgotten(true)
            .with_budget(self.budget);
        request.agent = self.called.as_deref().map(str::to_owned);
        request.tier = self.tier;
        let tools = self.tools_of(cx);
        request.tools = (tools != ToolFilter::all()).then(|| Arc::new(tools));
        request.instructions.clone_from(&self.instructions);
        request.output = self.output.as_ref().map(|output| output.schema.clone());
        Ok(request)
    }

    /// Returns the filter of the tools of a call's turn. A turn that an agent gives to itself has no
    /// tool that the caller lacks.
    fn tools_of(&self, cx: &CallContext) -> ToolFilter {
        let inherited = cx.extension::<Arc<ToolFilter>>().filter(|_| self.is_own(cx));
        match inherited {
            Some(inherited) => self.tools.clone().and(inherited),
            None => self.tools.clone(),
        }
    }

    /// Reports whether the agent calls itself.
    fn is_own(&self, cx: &CallContext) -> bool {
        let caller = self.agent.upgrade().zip(cx.turn());
        let caller = caller.and_then(|(agent, turn)| agent.turns.engine().find(turn));
        caller.is_some_and(|caller| caller.request().agent.as_deref() == self.called.as_deref())
    }

    /// Takes the value of an answer out of the object in which the model had to write it.
    fn unwrapped(&self, mut outcome: TurnOutcome) -> TurnOutcome {
        #[derive(Deserialize)]
        struct Wrapped<'a> {
            #[serde(borrow)]
            value: &'a RawValue,
        }
        if self.output.as_ref().is_some_and(|output| output.is_wrapped)
            && let Ok(Wrapped { value }) = serde_json::from_str(&outcome.text)
        {
            outcome.text = value.get().to_owned();
        }
        outcome
    }

    fn check_depth(&self, cx: &CallContext) -> Result<(), ToolError> {
        if cx.depth() < self.max_depth {
            return Ok(());
        }
        let message = format!(
            "not run: agents may call each other {} deep, and this one is there. Do the task yourself, with other tools.",
            self.max_depth
        );
        Err(ToolError::new(ToolErrorCode::Denied, message))
    }
}

impl fmt::Debug for AgentExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentExecutor")
            .field("output", &self.output)
            .field("tier", &self.tier)
            .field("tools", &self.tools)
            .field("instructions", &self.instructions)
            .field("budget", &self.budget)
            .field("max_depth", &self.max_depth)
            .finish_non_exhaustive()
    }
}

/// Returns the function that parses arguments as `A` and makes the message of them.
fn input<A, C>(message: impl Fn(A) -> C + Send + Sync + 'static) -> Input
where
    A: DeserializeOwned,
    C: Into<Content>,
{
    Arc::new(move |arguments| serde_json::from_str(arguments).map(|arguments| message(arguments).into()))
}

#[async_trait]
impl ToolExecutor for AgentExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        self.check_depth(cx)?;
        let agent = self.agent()?;
        let message = self.message(&request, cx)?;
        match Delegation::run(message, cx, |message| agent.run_cancellable(message, cx)).await {
            Ok(outcome) => agent.answer(request, cx, self.unwrapped(outcome)).await,
            Err(error) => Err(ToolError::execution_failed(error.to_string()).with_source(error)),
        }
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let (Ok(agent), Ok(message)) = (self.agent(), self.message(request, cx)) else {
            return Recovery::Unknown;
        };
        match agent.turns.engine().outcome(&message.turn_id()).await {
            Ok(outcome) => {
                if let Some(delegation) = cx.extension::<Delegation>() {
                    delegation.enter(&outcome);
                }
                let answer = agent.answer(request.clone(), cx, self.unwrapped(outcome)).await;
                Recovery::Finished(answer.unwrap_or_else(|error| request.clone().fail(&error)))
            }
            // Its host has not resumed it yet.
            Err(TurnError::Interrupted(_)) => Recovery::Running,
            Err(_) => Recovery::Unknown,
        }
    }
}

impl SharedAgent {
    /// Runs the turn of a call. When the call is cancelled, the turn is, and its end is awaited.
    async fn run_cancellable(&self, message: TurnRequest, cx: &CallContext) -> Result<TurnOutcome, TurnError> {
        let turn = message.turn_id();
        let mut running = pin!(self.run(message, cx));
        if let Some(ended) = cx.cancellation().run_until_cancelled(running.as_mut()).await {
            return ended;
        }
        // Fails when the turn has ended meanwhile, or its host stops: `running` says so, too.
        let _ = self.turns.engine().cancel(&turn).await;
        running.await
    }

    /// Runs the turn of a call. In a call from a turn of the same host the user of that turn is asked
    /// for approvals.
    async fn run(&self, message: TurnRequest, cx: &CallContext) -> Result<TurnOutcome, TurnError> {
        let parent = message.parent.clone();
        let ended = self.turns.call(TurnCall::new(message, self.progress(cx))).await?;
        self.turns.engine().after_approvals(ended, parent.as_ref()).await
    }

    /// Returns the sink that reports the steps of a call's turn as progress of the call.
    fn progress(&self, cx: &CallContext) -> ProgressSink {
        let reporter = cx.progress().clone();
        if !reporter.is_open() {
            return ProgressSink::none();
        }
        let clock = self.turns.engine().clock.clone();
        ProgressSink::without_deltas(move |progress| match progress {
            TurnProgress::ToolStarted { tool, .. } => reporter.report(tool.as_str()),
            TurnProgress::ToolProgress { text, .. } | TurnProgress::Note(text) => reporter.report(text),
            TurnProgress::Waiting { until, why } => {
                reporter.waiting(until.map(|until| until.since(clock.now())), why);
            }
            _ => {}
        })
    }

    /// Converts the outcome of a call's turn into the result of the call.
    async fn answer(
        &self,
        request: ToolInvokeRequest,
        cx: &CallContext,
        mut outcome: TurnOutcome,
    ) -> Result<ToolInvokeResponse, ToolError> {
        let engine = self.turns.engine();
        if let TurnStatus::Parked(asks) = &outcome.status {
            // Nothing waits for the turn any more, so it must not wait for a person.
            let _ = engine.cancel(&outcome.turn).await;
            return Err(ApprovalRequest::unasked(asks));
        }
        // The caller's host has another store of media, so the bytes go with the answer.
        engine.media.load(cx.principal(), &mut outcome.media).await;
        let origin = Provenance::labelled("agent", &outcome.label);
        let is_answer = outcome.is_answer();
        if outcome.is_unfinished() {
            outcome.text.insert_str(0, "[ended in the middle of the work]\n");
        }
        match outcome.status {
            TurnStatus::Cancelled => return Err(ToolError::new(ToolErrorCode::Cancelled, outcome.text)),
            TurnStatus::Partial(limit) => {
                let early = format!("[stopped early: the {limit} for this task was used up]\n");
                outcome.text.insert_str(0, &early);
            }
            _ => {}
        }
        let answer = outcome.content();
        let parts = answer.parts().iter().cloned();
        let content = Content::from_iter(parts.map(|part| part.with_provenance(origin.clone())));
        if is_answer {
            Ok(request.succeed(content))
        } else {
            Ok(request
                .succeed(content)
                .with_error(true)
                .with_code(ToolErrorCode::ExecutionFailed))
        }
    }
}
