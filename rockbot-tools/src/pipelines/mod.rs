//! Pipelines: procedures of a program as async functions, whose steps are calls of a journalled
//! turn.

mod error;
mod question;
mod replay;
mod round;
mod step;
mod steps;
mod value;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::subsystem::{AgentSpec, Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::ToolFilter;
use rockbot_core::turn::{Budget, TurnRunner};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::StepError;
pub use steps::Steps;

/// A procedure of a program that survives a crash: an async function of [`Steps`], which runs as
/// the turns of an agent.
///
/// A step calls a tool, or asks a model or another agent. Conditions and loops are written in
/// Rust, and steps that are awaited together, with `join_all` or `tokio::join!`, run side by side
/// as far as their tools allow. Each run is a turn: its steps are journalled, guarded, approved
/// and limited as the calls of a model are. After a crash the host goes on with the first step
/// that has not ended, and no step that ended runs again.
///
/// To go on, the function is called anew and gets the recorded results of its earlier steps. So
/// between its steps it must do the same each time: work that depends on the time, on chance or
/// on the outside is a step of its own, and nothing else is awaited. A run whose function makes
/// other steps than before fails and says so. Give a pipeline a new name when its steps change
/// while runs of it may be open.
///
/// The message of a run is JSON of the function's second argument, or plain text for a `String`;
/// the answer is the text that the function returns, or JSON of another type. An error ends the
/// run as a failed turn. A pipeline is asked as any agent, `host.agent_called(NAME)`, and can be
/// a tool of a model (`Agent::as_tool`).
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::pipelines::{Pipeline, Steps};
/// use serde_json::json;
///
/// let restock = Pipeline::new("restock", |steps: Steps, item: String| async move {
///     let left: u32 = steps.call("count", json!({"item": item})).await?;
///     if left > 10 {
///         return Ok(format!("{left} of {item} are enough."));
///     }
///     let amount: u32 = steps.ask(format!("{left} of {item} are left. How many do we order?")).await?;
///     Ok(steps.call("order", json!({"item": item, "amount": amount})).await?)
/// });
/// # let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// # let mut declarations = Declarations::new(parts);
/// # let mut restock = restock;
/// // A host calls this for `.add(restock)`.
/// restock.declare(&mut declarations)?;
/// assert_eq!(declarations.merge().agents[0].0, "restock");
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Pipeline {
    name: String,
    run: Run,
    tools: ToolFilter,
    budget: Budget,
    turns: Arc<OnceLock<Arc<dyn TurnRunner>>>,
}

/// The function of a pipeline, which reads the message and returns the text of the answer.
type Run = Arc<dyn Fn(Steps, &str) -> Procedure + Send + Sync>;

/// A run of the function.
type Procedure = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

impl Pipeline {
    /// Creates a pipeline from its name, which is the name of the agent, and its function. The name
    /// has letters, digits, `-` and `_`, 40 characters at most.
    pub fn new<I, O, F>(name: impl Into<String>, run: impl Fn(Steps, I) -> F + Send + Sync + 'static) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Future<Output = Result<O, BoxError>> + Send + 'static,
    {
        let run = move |steps: Steps, message: &str| -> Procedure {
            match value::parse::<I>(message) {
                Ok(input) => {
                    let running = run(steps, input);
                    Box::pin(async move { Ok(value::text(&running.await?)?) })
                }
                Err(error) => Box::pin(async move { Err(format!("the message does not fit: {error}").into()) }),
            }
        };
        Self {
            name: name.into(),
            run: Arc::new(run),
            tools: ToolFilter::all(),
            budget: Budget::default(),
            turns: Arc::default(),
        }
    }

    /// Sets the filter of the host's tools that the steps may call. Default: all tools.
    pub fn with_tools(mut self, tools: ToolFilter) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the budget of a run whose request has none. Default: [`Budget::default`], which allows
    /// 200 steps and 10 minutes.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

#[async_trait]
impl Subsystem for Pipeline {
    fn name(&self) -> &str {
        &self.name
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(is_legal) {
            return Err(format!(
                "the name of a pipeline has 1 to 40 letters, digits, `-` and `_`, not {:?}",
                self.name
            )
            .into());
        }
        let asking = question::tool(&self.name, &self.turns);
        let cost = PartCost::on(self.name.clone()).with_switch("leave out `.add(Pipeline)`");
        declarations.cost(cost.with_model_calls("those of the turns that steps ask for"));
        let interpreter = Interpreter {
            name: self.name.clone(),
            run: self.run.clone(),
        };
        let agent = AgentSpec::new().program(interpreter).tool(asking);
        declarations.agent(&*self.name, agent.tools(self.tools.clone()).budget(self.budget));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        // A subsystem starts once.
        let _ = self.turns.set(parts.require::<dyn TurnRunner>()?);
        Ok(Box::new(Idle))
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// The model of a pipeline's turns. Asked with the conversation so far, it answers with the next
/// steps.
struct Interpreter {
    name: String,
    run: Run,
}

#[async_trait]
impl ChatClient for Interpreter {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        replay::answer(&self.name, &call.request, |steps, message| (self.run)(steps, message))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
