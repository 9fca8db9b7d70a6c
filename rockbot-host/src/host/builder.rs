//! Putting a host together.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatClient, ChatResponse};
use rockbot_core::store::{ConversationMemory, InMemoryConversationMemory};
use rockbot_core::tool::{
    InMemoryToolRegistry, Owner, RegistryError, Tool, ToolInvocation, ToolInvokeResponse, ToolRegistry,
};
use rockbot_core::turn::{Budget, InMemoryTurnJournal, JournalError, TurnJournal, TurnOutcome};
use rockbot_core::{BoxError, Clock, IdSource, RandomIds, SystemClock};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

use super::AgentHost;
use crate::agent::Agent;
use crate::chat::ChatDoor;
use crate::driver::TurnDriver;
use crate::engine::{TurnCall, TurnEngine, TurnService};
use crate::journal::{Durability, FileTurnJournal, JournalOptions};
use crate::layer::{Layers, Stack};
use crate::tool::{ToolDispatcher, ToolLimits};
use crate::turn::PolicySnapshot;

/// Puts an [`AgentHost`] together. The order of the calls does not matter, but that of layers of one kind: the
/// first one added sees the request first.
///
/// Without other settings a host keeps its turns and conversations in memory, has no tools, and lets a turn
/// spend what [`Budget::default`] says. Only the chat client has no default.
#[must_use]
pub struct AgentHostBuilder {
    name: String,
    instructions: Option<String>,
    chat: Option<Arc<dyn ChatClient>>,
    tools: Vec<Tool>,
    registry: Option<Arc<dyn ToolRegistry>>,
    memory: Option<Arc<dyn ConversationMemory>>,
    journal: Option<Arc<dyn TurnJournal>>,
    data_dir: Option<PathBuf>,
    durability: Durability,
    policy: PolicySnapshot,
    limits: ToolLimits,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    chat_layers: Layers<ChatCall, ChatResponse>,
    tool_layers: Layers<ToolInvocation, ToolInvokeResponse>,
    turn_layers: Layers<TurnCall, TurnOutcome>,
}

impl fmt::Debug for AgentHostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.registration.name).collect();
        f.debug_struct("AgentHostBuilder")
            .field("name", &self.name)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

/// What keeps a host from being built. All of it is reported at once.
#[derive(Debug, thiserror::Error)]
#[error("the agent host cannot be built: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct BuildError {
    /// Each thing that is missing or wrong.
    pub problems: Vec<BoxError>,
}

/// No model was given.
#[derive(Debug, thiserror::Error)]
#[error("it has no model to ask: call `.chat(…)`, for example with `ChatTiers::from_env()?`")]
struct NoChat;

impl AgentHostBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            instructions: None,
            chat: None,
            tools: Vec::new(),
            registry: None,
            memory: None,
            journal: None,
            data_dir: None,
            durability: Durability::default(),
            policy: PolicySnapshot::default(),
            limits: ToolLimits::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            chat_layers: Layers::default(),
            tool_layers: Layers::default(),
            turn_layers: Layers::default(),
        }
    }

    /// What the agent is told to be, as the first message of every request. Default: its name.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The models that the agent asks.
    pub fn chat(mut self, client: impl ChatClient) -> Self {
        self.chat = Some(Arc::new(client));
        self
    }

    /// A tool that the agent can call. Later ones are added with [`AgentHost::add_tool`].
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// The registry of tools. Default: an empty one of the host's own.
    pub fn registry(mut self, registry: Arc<dyn ToolRegistry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Where conversations are remembered. Default: in memory.
    pub fn memory(mut self, memory: impl ConversationMemory) -> Self {
        self.memory = Some(Arc::new(memory));
        self
    }

    /// Where turns are written down. Default: in memory, or in the data folder if there is one.
    pub fn journal(mut self, journal: impl TurnJournal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// The folder for everything that must outlive the process. It is made if it is missing. Turns go to its
    /// folder `turns`.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// What a record in the data folder survives. Default [`Durability::Process`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What a turn may spend.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.policy.budget = budget;
        self
    }

    /// How long a turn waits for a person. Default 7 days.
    pub fn approval_expiry(mut self, expiry: Duration) -> Self {
        self.policy.approval_expiry = expiry;
        self
    }

    /// How long and how many tool calls may run.
    pub fn tool_limits(mut self, limits: ToolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The wall clock. Default: the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where fresh ids come from. Default: the system's randomness.
    pub fn ids(mut self, ids: impl IdSource) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// A tower layer around model calls. It holds until the answer is complete, also when it is streamed: a limit
    /// counts running answers, a time-out ends them.
    ///
    /// The first layer added sees the call first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use std::time::Duration;
    /// use rockbot_core::chat::{ChatCall, ModelTier};
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    /// use tower::limit::ConcurrencyLimitLayer;
    /// use tower::timeout::TimeoutLayer;
    /// use tower::util::MapRequestLayer;
    ///
    /// let model = ScriptedModel::new().says("Hello.");
    /// let host = AgentHost::in_memory()
    ///     .chat(model.clone())
    ///     // At most four answers are being written at any time …
    ///     .chat_layer(ConcurrencyLimitLayer::new(4))
    ///     // … each of them within a minute, not counting the wait for the limit …
    ///     .chat_layer(TimeoutLayer::new(Duration::from_secs(60)))
    ///     // … and all of them by the dearest model.
    ///     .chat_layer(MapRequestLayer::new(|mut call: ChatCall| {
    ///         let mut request = (*call.request).clone();
    ///         request.tier = Some(ModelTier::High);
    ///         call.request = request.into();
    ///         call
    ///     }))
    ///     .build()?;
    ///
    /// host.agent().ask("session", "Hi!").await?;
    /// assert_eq!(model.requests()[0].tier, Some(ModelTier::High));
    /// # Ok(())
    /// # }
    /// ```
    pub fn chat_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Stack<ChatCall, ChatResponse>> + Send + 'static,
        L::Service: Service<ChatCall, Response = ChatResponse, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.chat_layers.add(layer);
        self
    }

    /// A tower layer around tool calls. A call that failed is a response with `is_error`, so a layer that counts
    /// failures looks at responses.
    ///
    /// The first layer added sees the call first, and its response last.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::tool::{ToolInvokeResponse, tool};
    /// use rockbot_host::AgentHost;
    /// use tower::util::MapResponseLayer;
    ///
    /// /// Shows the account.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Account {}
    ///
    /// let model = ScriptedModel::new().calls("account", serde_json::json!({})).says("Done.");
    /// let host = AgentHost::in_memory()
    ///     .chat(model.clone())
    ///     .tool(tool("account", |_: Account| async { "balance 10, PIN 1234" }).pure())
    ///     .tool_layer(MapResponseLayer::new(|mut response: ToolInvokeResponse| {
    ///         response.content = response.content.replace("1234", "****");
    ///         response
    ///     }))
    ///     .build()?;
    ///
    /// host.agent().ask("session", "How much is left?").await?;
    /// assert_eq!(model.requests()[1].messages[3].text(), "balance 10, PIN ****");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tool_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Stack<ToolInvocation, ToolInvokeResponse>> + Send + 'static,
        L::Service: Service<ToolInvocation, Response = ToolInvokeResponse, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.tool_layers.add(layer);
        self
    }

    /// A tower layer around turns: from the message to its outcome, or to where the turn waits for a person.
    ///
    /// The first layer added sees the message first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::{AgentHost, TurnCall};
    /// use tower::util::MapRequestLayer;
    ///
    /// let says = |what: &'static str| {
    ///     MapRequestLayer::new(move |mut turn: TurnCall| {
    ///         turn.request.text.push_str(what);
    ///         turn
    ///     })
    /// };
    /// let model = ScriptedModel::new().says("Hello.");
    /// let host = AgentHost::in_memory().chat(model.clone()).turn_layer(says(" first")).turn_layer(says(" second")).build()?;
    ///
    /// host.agent().ask("session", "Hi!").await?;
    /// assert_eq!(model.requests()[0].messages[1].text(), "Hi! first second");
    /// # Ok(())
    /// # }
    /// ```
    pub fn turn_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Stack<TurnCall, TurnOutcome>> + Send + 'static,
        L::Service: Service<TurnCall, Response = TurnOutcome, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.turn_layers.add(layer);
        self
    }

    /// Builds the host.
    ///
    /// # Errors
    ///
    /// Fails when there is no chat client, a tool cannot be registered, or the data folder cannot be used. The
    /// error lists every problem.
    pub fn build(mut self) -> Result<AgentHost, BuildError> {
        let mut problems: Vec<BoxError> = Vec::new();
        let registry = self
            .registry
            .take()
            .unwrap_or_else(|| Arc::new(InMemoryToolRegistry::new()));
        let owner = Owner::new(&self.name);
        problems.extend(self.register(&*registry, &owner).map(BoxError::from));
        let chat = self.chat.take();
        if chat.is_none() {
            problems.push(NoChat.into());
        }
        let journal = self.open_journal().map_err(|error| problems.push(error.into())).ok();
        match (chat, journal) {
            (Some(chat), Some(journal)) if problems.is_empty() => Ok(self.assemble(chat, registry, owner, journal)),
            _ => {
                // The registry may be shared: what this host put into it would stand in the next one's way.
                problems.extend(registry.replace_source(&owner, Vec::new()).err().map(BoxError::from));
                Err(BuildError { problems })
            }
        }
    }

    fn register(&mut self, registry: &dyn ToolRegistry, owner: &Owner) -> impl Iterator<Item = RegistryError> {
        let tools = std::mem::take(&mut self.tools);
        tools
            .into_iter()
            .filter_map(move |tool| registry.register(owner, tool).err())
    }

    fn open_journal(&mut self) -> Result<Arc<dyn TurnJournal>, JournalError> {
        let clock = self.clock.clone();
        match (self.journal.take(), &self.data_dir) {
            (Some(journal), _) => Ok(journal),
            (None, None) => Ok(Arc::new(InMemoryTurnJournal::new(clock))),
            (None, Some(folder)) => {
                let options = JournalOptions {
                    durability: self.durability,
                    clock,
                    ..JournalOptions::default()
                };
                Ok(Arc::new(FileTurnJournal::open_with(folder.join("turns"), options)?))
            }
        }
    }

    fn assemble(
        self,
        chat: Arc<dyn ChatClient>,
        registry: Arc<dyn ToolRegistry>,
        tool_owner: Owner,
        journal: Arc<dyn TurnJournal>,
    ) -> AgentHost {
        let instructions = self.instructions.unwrap_or_else(|| format!("You are {}.", self.name));
        let driver = TurnDriver {
            chat: ChatDoor::new(chat, self.chat_layers),
            tools: ToolDispatcher::with_layers(registry.clone(), self.limits, self.tool_layers),
            journal: journal.clone(),
            clock: self.clock,
            halt: CancellationToken::new(),
        };
        let memory = self
            .memory
            .unwrap_or_else(|| Arc::new(InMemoryConversationMemory::new()));
        let owner = format!("{}/{}", self.name, self.ids.next_id());
        let engine = Arc::new(TurnEngine::new(driver, memory, instructions.into(), self.policy, owner));
        let turns = TurnService::new(engine, self.turn_layers);
        let agent = Agent::new(turns.clone(), self.ids);
        AgentHost {
            agent,
            turns,
            registry,
            tool_owner,
            journal,
        }
    }
}
