//! Putting a host together.

mod assemble;
mod collect;
mod layers;
mod messages;
mod stores;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatClient, ChatResponse, Ledger, Pricing, TierSelector};
use rockbot_core::config::Config;
use rockbot_core::recall::ContextSource;
use rockbot_core::subsystem::{Declarations, Subsystem};
use rockbot_core::tool::{Tool, ToolGuide, ToolInvocation, ToolInvokeResponse, ToolRegistry};
use rockbot_core::turn::{Budget, TurnJournal, TurnOutcome};
use rockbot_core::{AgentIdentity, Clock, IdSource, RandomIds, SystemClock};

pub use assemble::BuildError;
use collect::MessageSettings;

use crate::answer::AnswerFilter;
use crate::behavior::ModelBehaviors;
use crate::conversation::ConversationOptions;
use crate::driver::ContextBudget;
use crate::engine::{Briefing, TurnCall};
use crate::journal::Durability;
use crate::large_result::LargeResultPolicy;
use crate::layer::Layers;
use crate::profile::{AgentProfileOptions, DefaultSystemPromptBuilder, SystemPromptBuilder};
use crate::routing::RoutingLog;
use crate::settings::HostSettings;
use crate::tool::ToolLimits;
use crate::turn::{ContextEconomy, Evaluation, Nudges, PolicySnapshot};

/// Puts an [`AgentHost`](super::AgentHost) together. The order of the calls does not matter, with two exceptions: what is
/// set twice is as it was said last ([`settings`](Self::settings) sets several things at once), and of layers of one kind
/// the first one added sees the request first.
///
/// Without other settings a host keeps its turns and conversations in memory, has no tools, and lets a turn
/// spend what [`Budget::default`] says. Only the chat client has no default; a host with a bus that serves no users
/// can do without.
///
/// What [`briefing`](Self::briefing), [`evaluation`](Self::evaluation), [`nudges`](Self::nudges),
/// [`large_results`](Self::large_results), [`context_economy`](Self::context_economy) and
/// [`tier_selector`](Self::tier_selector) bring depends on the model, and each costs something. The example `evaluate`
/// runs tasks against your model with each of them on and off; `BENCHMARKS.md` has the few figures taken so far.
/// Nobody briefs, judges or selects a tier unless told to; of the nudges those are on that [`Nudges`] says.
///
/// For those who know the original's builder:
///
/// | there | here |
/// |---|---|
/// | `WithIdentity(name)` | [`AgentHost::builder(name)`](super::AgentHost::builder), [`identity`](Self::identity) |
/// | `WithProfile()` | [`profile`](Self::profile) |
/// | `WithConversationMemory()` | [`conversation_memory`](Self::conversation_memory); [`data_dir`](Self::data_dir) alone keeps conversations on disk |
/// | `WithLongTermMemory()` | [`long_term_memory`](Self::long_term_memory) |
/// | `WithWorkingMemory()` | [`working_memory`](Self::working_memory) |
/// | `WithMemory()` | [`memory`](Self::memory): these three, not the log |
/// | `WithConversationLog()` | [`conversation_log`](Self::conversation_log) |
/// | `WithRules()` | [`rules`](Self::rules) |
/// | `WithFeedback()` | [`feedback`](Self::feedback) |
/// | `WithSkills()` | [`skills`](Self::skills) |
/// | `HandleMessage<M, H>()` | [`handle`](Self::handle), [`handle_named`](Self::handle_named), [`serve_users`](Self::serve_users) |
/// | `SubscribeTo(topic)` | [`subscribe_to`](Self::subscribe_to), [`subscribe_with`](Self::subscribe_with) |
/// | `UseMiddleware<T>()` | [`layer`](Self::layer); logging, tracing, metrics and error handling are always there |
/// | `AddToolHandler()` | [`serve_tools`](Self::serve_tools), [`guide`](Self::guide); the agent's own calls need nothing |
/// | any other `With…`, `Add…` | [`add`](Self::add) with a [`Subsystem`] |
///
/// Working memory keeps long results of tools. The stores of long-term memory, rules and skills are given to whatever
/// asks for them: a [`Subsystem`] such as `rockbot_memory::Memory`, which brings the tools that use them, or a tool.
#[must_use]
pub struct AgentHostBuilder {
    name: String,
    identity: Option<AgentIdentity>,
    instructions: Option<String>,
    profile: Option<(AgentProfileOptions, Arc<dyn SystemPromptBuilder>)>,
    chat: Option<Arc<dyn ChatClient>>,
    tools: Vec<Tool>,
    guides: Vec<Arc<dyn ToolGuide>>,
    sources: Vec<Arc<dyn ContextSource>>,
    context_budget: ContextBudget,
    registry: Option<Arc<dyn ToolRegistry>>,
    journal: Option<Arc<dyn TurnJournal>>,
    data_dir: Option<PathBuf>,
    config: Option<Config>,
    conversations: Conversations,
    durability: Durability,
    policy: PolicySnapshot,
    briefing: Briefing,
    behaviors: Arc<ModelBehaviors>,
    selector: Option<Arc<dyn TierSelector>>,
    routing_log: Option<RoutingLog>,
    ledger: Ledger,
    filter: Option<Arc<dyn AnswerFilter>>,
    limits: ToolLimits,
    captures_content: bool,
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

/// Where conversations are kept in the data folder, and how.
struct Conversations {
    folder: PathBuf,
    window: usize,
    idle_timeout: Duration,
}

impl Default for Conversations {
    fn default() -> Self {
        let options = ConversationOptions::default();
        Self {
            folder: "conversations".into(),
            window: options.window,
            idle_timeout: options.idle_timeout,
        }
    }
}

/// Gives the host a part.
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
            guides: Vec::new(),
            sources: Vec::new(),
            context_budget: ContextBudget::default(),
            registry: None,
            journal: None,
            data_dir: None,
            config: None,
            conversations: Conversations::default(),
            durability: Durability::default(),
            policy: PolicySnapshot::default(),
            briefing: Briefing::none(),
            behaviors: Arc::default(),
            selector: None,
            routing_log: None,
            ledger: Ledger::new(()),
            filter: None,
            limits: ToolLimits::default(),
            captures_content: false,
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

    /// The agent's name, and which of its instances this is. Default: the name that the builder was begun with, and a
    /// fresh instance.
    pub fn identity(mut self, identity: AgentIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// What the agent is told to be, as the first message of every request. Default: its name.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// What the agent is told to be comes from the files that `options` name, put together by `builder`
    /// ([`DefaultSystemPromptBuilder`](crate::profile::DefaultSystemPromptBuilder)). Takes the place of
    /// [`AgentHostBuilder::instructions`]. [`AgentHost::reload_profile`](super::AgentHost::reload_profile) reads them
    /// again.
    pub fn profile(mut self, options: AgentProfileOptions, builder: impl SystemPromptBuilder) -> Self {
        self.profile = Some((options, Arc::new(builder)));
        self
    }

    /// The models that the agent asks.
    pub fn chat(mut self, client: impl ChatClient) -> Self {
        self.chat = Some(Arc::new(client));
        self
    }

    /// A tool that the agent can call. Later ones are added with
    /// [`AgentHost::add_tool`](super::AgentHost::add_tool).
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// A guide to a group of tools, for the model to read when it needs them. With the first one the agent gets the
    /// tools `list_tool_guides` and `get_tool_guide`.
    pub fn guide(mut self, guide: impl ToolGuide) -> Self {
        self.guides.push(Arc::new(guide));
        self
    }

    /// The registry of tools. Default: an empty one of the host's own.
    pub fn registry(mut self, registry: Arc<dyn ToolRegistry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// A part of the host with tools, stores, handlers or work of its own.
    #[allow(clippy::should_implement_trait, reason = "hosts are not added up")]
    pub fn add(mut self, subsystem: impl Subsystem) -> Self {
        self.subsystems.push(Box::new(subsystem));
        self
    }

    /// Where turns are written down. Default: in memory, or in the data folder if there is one.
    pub fn journal(mut self, journal: impl TurnJournal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// The folder for everything that must outlive the process. It is made if it is missing. Turns go to its
    /// folder `turns`, conversations to `conversations`.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// What the configuration says: the data folder, the profile in it, what a turn may spend, how often it looks at its
    /// own answer again, and how conversations are kept. Subsystems get all of it, and read the sections that are their own;
    /// what they are told in code wins. [`settings`](crate::settings) says which settings have an effect.
    pub fn settings(mut self, settings: &HostSettings) -> Self {
        self.config = Some(settings.config().clone());
        let profile = &settings.agent_profile;
        if profile.is_there() {
            self = self.profile(profile.options.clone(), DefaultSystemPromptBuilder);
        }
        // Below the data folder, wherever that will be.
        let conversations = &settings.conversation_memory.base_path;
        let folder = conversations.strip_prefix(profile.base_path()).unwrap_or(conversations);
        self.conversations = Conversations {
            folder: folder.to_owned(),
            window: settings.conversation_memory.max_turns_per_session.get() as usize,
            idle_timeout: settings.conversation_memory.session_idle_timeout,
        };
        self.data_dir(profile.base_path())
            .budget(settings.budget())
            .evaluation(settings.evaluation())
            .context_economy(settings.context_economy())
            .model_behaviors(settings.model_behaviors.clone())
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

    /// What every turn's model is told besides its instructions: the time, and how to work. Default
    /// [`Briefing::none`]: a program that embeds an agent says what it wants said.
    pub fn briefing(mut self, briefing: Briefing) -> Self {
        self.policy.task_list = briefing.task_list;
        self.briefing = briefing;
        self
    }

    /// How often a turn may look at its own answer again. Default [`Evaluation::OFF`].
    pub fn evaluation(mut self, evaluation: Evaluation) -> Self {
        self.policy.evaluation = evaluation;
        self
    }

    /// Something that the agent knows and that may help with messages. Everything that sources know is asked before each
    /// turn, and shown to the model as far as there is room. Subsystems bring sources of their own.
    pub fn context_source(mut self, source: impl ContextSource) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// How much of what the agent knows is shown with a message.
    pub fn context_budget(mut self, budget: ContextBudget) -> Self {
        self.context_budget = budget;
        self
    }

    /// When something of a conversation is left out, so that it costs less and the model takes it. Default: nothing,
    /// until a model refuses a request as too long.
    pub fn context_economy(mut self, economy: ContextEconomy) -> Self {
        self.policy.economy = economy;
        self
    }

    /// Who chooses the tier of messages that name none, such as `KeywordTierSelector`. Default: nobody; they go to
    /// the balanced one. A turn that turns out harder than its message looked goes on with a higher tier, as
    /// [`TierSelector::escalate`] says; what its model is told at the beginning stays.
    ///
    /// The newest 200 decisions and what came of them stand in the
    /// [routing log](super::AgentHost::routing_log).
    pub fn tier_selector(mut self, selector: impl TierSelector) -> Self {
        self.selector = Some(Arc::new(selector));
        self
    }

    /// Where decisions about tiers are noted, once their turn has ended. Default: in the file `tier-routing-log.jsonl`
    /// of the data folder, with the beginnings of the messages, or in memory where there is no folder.
    pub fn routing_log(mut self, log: RoutingLog) -> Self {
        self.routing_log = Some(log);
        self
    }

    /// What models cost, such as a `PriceTable`: for answers of which the provider does not say it. Default: nobody
    /// knows, and what such answers cost is not known, which is not zero.
    ///
    /// With a [`Budget::max_cost`] the host needs a price of each model that its chat client
    /// [names](ChatClient::model_of), also where the provider is expected to report its own.
    pub fn prices(mut self, prices: impl Pricing) -> Self {
        self.ledger = Ledger::new(prices);
        self
    }

    /// How particular models are treated. Default: all alike.
    pub fn model_behaviors(mut self, behaviors: impl Into<Arc<ModelBehaviors>>) -> Self {
        self.behaviors = behaviors.into();
        self
    }

    /// Which weaknesses of the model are answered with a nudge.
    pub fn nudges(mut self, nudges: Nudges) -> Self {
        self.policy.nudges = nudges;
        self
    }

    /// What looks at answers before people see them, such as [`SafeLinks`](crate::answer::SafeLinks). Default: nothing;
    /// whoever renders answers should set it.
    pub fn answer_filter(mut self, filter: impl AnswerFilter) -> Self {
        self.filter = Some(Arc::new(filter));
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

    /// When a tool's result is too long for the conversation. It is then kept in the agent's
    /// [`working_memory`](Self::working_memory) in chunks, and the model reads an index and gets tools to read the
    /// chunks with; without a working memory the model reads its beginning.
    pub fn large_results(mut self, policy: LargeResultPolicy) -> Self {
        self.large_results = policy;
        self
    }

    /// Whether spans hold what is said: messages to and from models, arguments and results of tools. Whoever can read
    /// the traces can then read the conversations. Default: they do not; [`telemetry`](crate::telemetry) says what they
    /// hold.
    pub fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
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
}
