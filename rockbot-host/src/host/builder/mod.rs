//! [`AgentHostBuilder`]: the setters of a host, and the way from them to the host.
//!
//! Setters only assign. `collect` merges the declarations of subsystems and checks the message
//! side, `open` opens the stores, `assemble` creates the parts and connects them, `checks` looks
//! at names and limits, `settings_check` at settings without an effect, and `error` has the
//! problems that all report.

mod agents;
mod assemble;
mod checks;
mod collect;
mod error;
mod hooks;
mod layers;
mod messages;
mod open;
mod policies;
mod settings_check;
mod stores;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatClient, ChatResponse, Ledger, Pricing};
use rockbot_core::config::Config;
use rockbot_core::recall::ContextSource;
use rockbot_core::store::MediaStore;
use rockbot_core::subsystem::{AgentSpec, Declarations, Subsystem};
use rockbot_core::tool::{Tool, ToolGuide, ToolInvocation, ToolInvokeResponse, ToolRegistry};
use rockbot_core::turn::{Budget, TierSelector, TurnJournal, TurnOutcome};
use rockbot_core::{AgentIdentity, Clock, IdSource, Principal, RandomIds, SystemClock};
use rockbot_store::file::{ConversationOptions, Durability};

use collect::MessageSettings;
pub use error::BuildError;
pub use messages::MessageOptions;
pub use policies::TurnPolicies;
pub use stores::Stores;

use crate::answer::AnswerFilter;
use crate::behavior::ModelBehaviors;
use crate::driver::{ContextBudget, Hooks};
use crate::engine::{Briefing, HistoryOptions, TurnCall};
use crate::large_result::LargeResultPolicy;
use crate::layer::Layers;
use crate::live::BacklogLimits;
use crate::media_library::MEDIA_RETENTION;
use crate::profile::{AgentProfileOptions, DefaultSystemPromptBuilder, SystemPromptBuilder};
use crate::routing::RoutingLog;
use crate::settings::HostSettings;
use crate::telemetry::{TraceBridge, Traces};
use crate::tool::ToolLimits;
use crate::turn::PolicySnapshot;

/// A builder of an [`AgentHost`](super::AgentHost).
///
/// Without other settings a host keeps its turns and conversations in memory, has no tools, and
/// lets a turn spend what [`Budget::default`] allows. Only the chat client has no default; a host
/// with a bus that serves no users needs none. [`build`](Self::build) checks everything, and
/// reports all problems at once.
///
/// The order of the calls does not matter, with two exceptions. If a setter is called twice, the
/// last call counts ([`settings`](Self::settings) sets several things). If there are several
/// layers of a kind, the first layer sees the request first.
///
/// | group | methods |
/// |---|---|
/// | the agent: who it is, what it asks, what it can do | [`identity`](Self::identity), [`instructions`](Self::instructions), [`profile`](Self::profile), [`briefing`](Self::briefing), [`history`](Self::history), [`chat`](Self::chat), [`tool`](Self::tool), [`agent`](Self::agent), [`guide`](Self::guide), [`registry`](Self::registry), [`context_source`](Self::context_source), [`answer_filter`](Self::answer_filter) |
/// | decisions: how a turn decides, what it may spend | [`policies`](Self::policies), [`budget`](Self::budget), [`prices`](Self::prices), [`tier_selector`](Self::tier_selector) |
/// | storage: where it remembers | [`data_dir`](Self::data_dir), [`without_data_dir`](Self::without_data_dir), [`stores`](Self::stores) |
/// | messages: the bus and its handlers | [`bus`](Self::bus), [`shared_bus`](Self::shared_bus), [`subscribe_to`](Self::subscribe_to), [`subscribe_with`](Self::subscribe_with), [`handle`](Self::handle), [`handle_named`](Self::handle_named), [`serve_users`](Self::serve_users), [`serve_tools`](Self::serve_tools), [`message_options`](Self::message_options) |
/// | hooks: async functions of your own that turns ask | [`input_guardrail`](Self::input_guardrail), [`loop_policy`](Self::loop_policy), [`output_validator`](Self::output_validator), [`history_processor`](Self::history_processor) |
/// | layers: tower middleware of your own | [`layer`](Self::layer), [`turn_layer`](Self::turn_layer), [`chat_layer`](Self::chat_layer), [`tool_layer`](Self::tool_layer) |
/// | composition: parts from elsewhere | [`settings`](Self::settings), [`add`](Self::add), [`give`](Self::give) |
/// | environment: what tests replace, what traces contain | [`clock`](Self::clock), [`ids`](Self::ids), [`capture_content`](Self::capture_content), [`trace_bridge`](Self::trace_bridge) |
///
/// # For users of the original RockBot
///
/// Each method has a counterpart that does the whole: store, tools, recall and background work.
/// `Memory` and `SessionEvaluation` are subsystems of `rockbot-memory`; several of them in one
/// host share their stores.
///
/// | there | here |
/// |---|---|
/// | `AddRockBotHost(…)` | `AgentHost::from_config(file)` of the facade: every part that the configuration names |
/// | `WithIdentity(name)` | [`AgentHost::builder(name)`](super::AgentHost::builder), [`identity`](Self::identity) |
/// | `WithProfile()` | [`profile`](Self::profile) |
/// | `WithConversationMemory()` | nothing: conversations are always kept, on disk with a [`data_dir`](Self::data_dir) |
/// | `WithLongTermMemory()` | `.add(Memory::none().with_long_term())` |
/// | `WithWorkingMemory()` | `.add(Memory::none().with_working())` |
/// | `WithMemory()` | `.add(Memory::none().with_long_term().with_working())` |
/// | `WithRules()` | `.add(Memory::none().with_rules())` |
/// | `WithSkills()` | `.add(Memory::none().with_skills())` |
/// | the four above | `.add(Memory::default())` |
/// | `WithConversationLog()` | `.add(Memory::none().with_conversation_log())` |
/// | `WithFeedback()` | `.add(SessionEvaluation::default())`; `.add(FeedbackSignals::new())` records corrections and failing tools, too |
/// | `WithDreaming(opts)` | `.add(Dreaming::new())`, or `.add(Dreaming::new().with_options(opts))` |
/// | `HandleMessage<M, H>()` | [`handle`](Self::handle), [`handle_named`](Self::handle_named), [`serve_users`](Self::serve_users) |
/// | `SubscribeTo(topic)` | [`subscribe_to`](Self::subscribe_to), [`subscribe_with`](Self::subscribe_with) |
/// | `UseMiddleware<T>()` | [`layer`](Self::layer); logging, tracing, metrics and error handling are always present |
/// | `AddToolHandler()` | [`serve_tools`](Self::serve_tools), [`guide`](Self::guide); the agent's own calls need nothing |
/// | `AddSubagents()` | `.add(Subagents::new())` |
/// | `AddWisps(opts)` | `.add(Wisps::new())`; `.add(Workers::new())` runs batches of small tasks, `.add(Pipeline::new(…))` a procedure of the program |
/// | `AddA2ACaller(opts)` | `.add(A2aCaller::new())`; `.add(A2aReceiver::new())` takes tasks of other agents |
/// | `AddSchedulingTools()` | `.add(Scheduling::new())` |
/// | the gateway for A2A over HTTP, a program of its own there | `.add(A2aServer::new().listen("127.0.0.1:8940"))` |
/// | `AddLocalScriptRunner()` | `.add(Scripts::new())`: in a sandbox; without one by `Scripts::unsafe_local()` |
/// | `AddRemoteScriptRunner(name)` | `.add(Scripts::remote())`, under the name of the agent; the program `rockbot-scripts-manager` runs the scripts |
/// | a store of your own | [`stores`](Self::stores), and the setters of `Memory` |
/// | any other `With…`, `Add…` | [`add`](Self::add) with a [`Subsystem`] |
#[must_use]
pub struct AgentHostBuilder {
    name: String,
    identity: Option<AgentIdentity>,
    instructions: Option<String>,
    profile: Option<(AgentProfileOptions, Arc<dyn SystemPromptBuilder>)>,
    chat: Option<Arc<dyn ChatClient>>,
    tools: Vec<Tool>,
    agents: Vec<(String, AgentSpec)>,
    guides: Vec<Arc<dyn ToolGuide>>,
    sources: Vec<Arc<dyn ContextSource>>,
    context_budget: ContextBudget,
    registry: Option<Arc<dyn ToolRegistry>>,
    journal: Option<Arc<dyn TurnJournal>>,
    shared_journal: Option<Arc<dyn TurnJournal>>,
    data_dir: Option<PathBuf>,
    config: Option<Config>,
    denies_unread: bool,
    conversations: ConversationSettings,
    durability: Durability,
    media: Option<Arc<dyn MediaStore>>,
    media_retention: Duration,
    policy: PolicySnapshot,
    backlog: BacklogLimits,
    briefing: Briefing,
    history: HistoryOptions,
    approvers: Vec<Principal>,
    behaviors: Arc<ModelBehaviors>,
    text_call_fallback: bool,
    tools_on_demand: bool,
    selector: Option<Arc<dyn TierSelector>>,
    routing_log: Option<RoutingLog>,
    ledger: Ledger,
    filter: Option<Arc<dyn AnswerFilter>>,
    hooks: Hooks,
    limits: ToolLimits,
    captures_content: bool,
    traces: Traces,
    large_results: LargeResultPolicy,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    given: Vec<Give>,
    subsystems: Vec<Box<dyn Subsystem>>,
    messages: MessageSettings,
    chat_layers: Layers<ChatCall, ChatResponse>,
    tool_layers: Layers<ToolInvocation, ToolInvokeResponse>,
    turn_layers: Layers<TurnCall, TurnOutcome>,
}

/// The place of conversations in the data folder, and their limits.
struct ConversationSettings {
    folder: PathBuf,
    window: usize,
    idle_timeout: Duration,
}

impl Default for ConversationSettings {
    fn default() -> Self {
        let options = ConversationOptions::default();
        Self {
            folder: "conversations".into(),
            window: options.window,
            idle_timeout: options.idle_timeout,
        }
    }
}

/// A part that [`AgentHostBuilder::give`] provides to subsystems, until they declare.
type Give = Box<dyn FnOnce(&mut Declarations) + Send>;

impl fmt::Debug for AgentHostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.registration.name).collect();
        f.debug_struct("AgentHostBuilder")
            .field("name", &self.name)
            .field("identity", &self.identity)
            .field("tools", &tools)
            .field("subsystems", &self.subsystems)
            .field("routes", &self.messages.routes)
            .finish_non_exhaustive()
    }
}

impl AgentHostBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: None,
            instructions: None,
            profile: None,
            chat: None,
            tools: Vec::new(),
            agents: Vec::new(),
            guides: Vec::new(),
            sources: Vec::new(),
            context_budget: ContextBudget::default(),
            registry: None,
            journal: None,
            shared_journal: None,
            data_dir: None,
            config: None,
            denies_unread: false,
            conversations: ConversationSettings::default(),
            durability: Durability::default(),
            media: None,
            media_retention: MEDIA_RETENTION,
            policy: PolicySnapshot::default(),
            backlog: BacklogLimits::default(),
            briefing: Briefing::none(),
            history: HistoryOptions::default(),
            approvers: Vec::new(),
            behaviors: Arc::default(),
            text_call_fallback: true,
            tools_on_demand: true,
            selector: None,
            routing_log: None,
            ledger: Ledger::new(()),
            filter: None,
            hooks: Hooks::default(),
            limits: ToolLimits::default(),
            captures_content: false,
            traces: Traces::default(),
            large_results: LargeResultPolicy::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            given: Vec::new(),
            subsystems: Vec::new(),
            messages: MessageSettings::default(),
            chat_layers: Layers::default(),
            tool_layers: Layers::default(),
            turn_layers: Layers::default(),
        }
    }
}

/// The agent: its identity, its models and its tools.
impl AgentHostBuilder {
    /// Sets the agent's name and the id of this instance. Default: the name that the builder was
    /// created with, and a fresh instance id.
    pub fn identity(mut self, identity: AgentIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the agent's instructions, the first message of every request. Default: its name, and
    /// three sentences on answering briefly, calling tools and naming the work that was not done.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Takes the agent's instructions from the files that `options` name, assembled by `builder`
    /// ([`DefaultSystemPromptBuilder`]). Replaces [`AgentHostBuilder::instructions`].
    ///
    /// [`AgentHost::reload_profile`](super::AgentHost::reload_profile) reads the files again while
    /// the host runs.
    pub fn profile(mut self, options: AgentProfileOptions, builder: impl SystemPromptBuilder) -> Self {
        self.profile = Some((options, Arc::new(builder)));
        self
    }

    /// Sets the texts that the model of every turn reads besides the instructions: the time, and a
    /// working method. Default [`Briefing::none`], since a program that embeds an agent knows best
    /// which texts its model must read.
    pub fn briefing(mut self, briefing: Briefing) -> Self {
        self.policy.task_list = briefing.task_list;
        self.briefing = briefing;
        self
    }

    /// Sets the part that tool calls have in conversations. By default conversations keep them,
    /// shortened, and the model sees in later turns only the calls that it wrote as text
    /// ([`HistoryOptions::show_calls`]).
    pub fn history(mut self, options: HistoryOptions) -> Self {
        self.history = options;
        self
    }

    /// Adds a principal that decides about tool calls of all turns. By default only the principal of
    /// a turn decides about its calls.
    pub fn approver(mut self, principal: impl Into<Principal>) -> Self {
        self.approvers.push(principal.into());
        self
    }

    /// Sets the client of the models that the agent asks.
    pub fn chat(mut self, client: impl ChatClient) -> Self {
        self.chat = Some(Arc::new(client));
        self
    }

    /// Adds an agent beside the host's own, with instructions, a model and tools of its own. It
    /// shares the host's journal, stores, bus, ledger and lifecycle.
    /// [`AgentHost::agent_called`](crate::AgentHost::agent_called) returns its handle.
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::builder("writer")
    ///     .chat(ScriptedModel::new().says("Once upon a time."))
    ///     .agent("reviewer", |reviewer| {
    ///         reviewer
    ///             .instructions("You review texts.")
    ///             .chat(ScriptedModel::new().says("Too short."))
    ///     })
    ///     .build()?;
    /// let text = host.agent().ask("story", "Begin a story.").await?;
    /// let reviewer = host.agent_called("reviewer").expect("it was added");
    /// assert_eq!(reviewer.ask("story", text.to_string()).await?.to_string(), "Too short.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn agent(mut self, name: &str, describe: impl FnOnce(AgentSpec) -> AgentSpec) -> Self {
        self.agents.push((name.to_owned(), describe(AgentSpec::new())));
        self
    }

    /// Adds a tool that the agent can call. [`AgentHost::add_tool`](super::AgentHost::add_tool) adds
    /// one later.
    pub fn tool(mut self, tool: impl Into<Tool>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Adds a guide to a group of tools, which the model reads when it needs them. With the first
    /// guide the agent gets the tools `list_tool_guides` and `get_tool_guide`, unless a subsystem has
    /// a tool that reads guides, such as `get_skill` of `Memory`.
    pub fn guide(mut self, guide: impl ToolGuide) -> Self {
        self.guides.push(Arc::new(guide));
        self
    }

    /// Sets the registry of tools. Default: an empty registry that the host owns.
    pub fn registry(mut self, registry: Arc<dyn ToolRegistry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Adds a source of knowledge that may help with messages.
    ///
    /// Every source is asked before each turn, and the entries are shown to the model as far as
    /// [`TurnPolicies::context_budget`] allows. Subsystems bring sources of their own.
    pub fn context_source(mut self, source: impl ContextSource) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Sets the filter that answers pass before users read them, such as
    /// [`SafeLinks`](crate::answer::SafeLinks). Default: none. Set it where answers are rendered:
    /// an untrusted source can make the model write a link that carries data out.
    pub fn answer_filter(mut self, filter: impl AnswerFilter) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }
}

/// Decisions: the rules and the budget of a turn.
impl AgentHostBuilder {
    /// Sets the budget of a turn. A request with a budget of its own replaces it. Default
    /// [`Budget::default`].
    pub fn budget(mut self, budget: Budget) -> Self {
        self.policy.budget = budget;
        self
    }

    /// Sets the prices of models, such as a `PriceTable`, for answers whose price the provider does
    /// not report. Default: none; the cost of such answers is then unknown, which is not zero.
    ///
    /// With a [`Budget::max_cost`] the host needs a price of each model that its chat client
    /// [names](ChatClient::describe), also where the provider is expected to report its own.
    pub fn prices(mut self, prices: impl Pricing) -> Self {
        self.ledger = Ledger::new(prices);
        self
    }

    /// Sets the selector of the tier of messages that name none, such as `KeywordTierSelector`.
    /// Default: none; they go to the balanced tier.
    ///
    /// A turn that turns out harder than its message looked continues on a higher tier, as
    /// [`TierSelector::escalate`] decides. The newest 200 decisions and their outcomes are in the
    /// [routing log](super::AgentHost::routing_log).
    pub fn tier_selector(mut self, selector: impl TierSelector) -> Self {
        self.selector = Some(Arc::new(selector));
        self
    }
}

/// Composition: parts from elsewhere.
impl AgentHostBuilder {
    /// Adds a part of the host with tools, stores, handlers or background work of its own.
    #[allow(clippy::should_implement_trait, reason = "hosts are not added up")]
    pub fn add(mut self, subsystem: impl Subsystem) -> Self {
        self.subsystems.push(Box::new(subsystem));
        self
    }

    /// Sets the folder for everything that must outlive the process. It is created if it is missing.
    /// Turns go to its folder `turns`, conversations to `conversations`, images and files to `media`.
    /// Default: none; everything is kept in memory.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Keeps everything in memory, whatever the settings say of a data folder: the host can be
    /// built beside a running host, such as to list its [costs](super::AgentHost::costs).
    pub fn without_data_dir(mut self) -> Self {
        self.data_dir = None;
        self
    }

    /// Applies a configuration: the data folder, the profile in it, the budget and the policies of
    /// turns, and the options of conversations.
    ///
    /// Subsystems get the whole configuration, and read the sections that are their own; settings
    /// in code take precedence. The module [`settings`](crate::settings) lists the settings and
    /// their effects. A name that is no setting keeps the host from being built.
    pub fn settings(mut self, settings: &HostSettings) -> Self {
        self.config = Some(settings.config().clone());
        self.denies_unread = settings.denies_unread();
        let profile = &settings.agent_profile;
        if profile.is_there() {
            self = self.profile(profile.options.clone(), DefaultSystemPromptBuilder);
        }
        // Relative to the data folder, since a later call of `data_dir` moves conversations with it.
        let conversations = &settings.conversation_memory.base_path;
        let folder = conversations.strip_prefix(profile.base_path()).unwrap_or(conversations);
        self.conversations = ConversationSettings {
            folder: folder.to_owned(),
            window: settings.conversation_memory.max_turns_per_session.get() as usize,
            idle_timeout: settings.conversation_memory.session_idle_timeout,
        };
        self.media_retention = settings.agent_host.media_retention;
        let messages = &mut self.messages.options;
        messages.users.max_reply_media_bytes = settings.agent_host.max_reply_media_bytes;
        messages.tool_lease = settings.agent_host.tool_lease;
        messages.effect_window = settings.agent_host.effect_window;
        self.history = settings.conversation_memory.history();
        self.briefing = settings.briefing();
        let policies = TurnPolicies::from(&settings.policies)
            .with_evaluation(settings.evaluation())
            .with_context_economy(settings.context_economy())
            .with_model_behaviors(settings.model_behaviors.clone())
            .with_text_call_fallback(settings.agent_host.text_call_fallback)
            .with_tools_on_demand(settings.agent_host.tools_on_demand)
            .with_backlog(settings.agent_host.backlog);
        self.data_dir(profile.base_path())
            .budget(settings.budget())
            .policies(policies)
    }
}

/// Environment: the parts that tests replace, and the contents of traces.
impl AgentHostBuilder {
    /// Sets whether spans contain messages, arguments and results of tools. Default `false`.
    ///
    /// With it, everyone with access to the traces can read the conversations. The module
    /// [`telemetry`](crate::telemetry) lists the fields.
    pub fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
        self
    }

    /// Sets the bridge to a tracing backend that assigns the ids of spans, such as OpenTelemetry's.
    /// Default none: the host assigns them, and other programs still become part of the trace.
    pub fn trace_bridge(mut self, bridge: impl TraceBridge) -> Self {
        self.traces = Traces::of(bridge);
        self
    }

    /// Sets the wall clock. Default: the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of fresh ids. Default: the system's randomness.
    pub fn ids(mut self, ids: impl IdSource) -> Self {
        self.ids = Arc::new(ids);
        self
    }
}
