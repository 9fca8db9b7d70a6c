//! Assembly of a host: subsystems declare, all problems are reported at once, and only then are
//! the parts created and connected.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::config::ConfigError;
use rockbot_core::messaging::Bus;
use rockbot_core::recall::ContextSource;
use rockbot_core::service::ServiceSources;
use rockbot_core::store::{ConversationLog, ConversationMemory, MediaStore, RulesStore, WorkingMemory};
use rockbot_core::subsystem::{Declarations, MergedDeclarations, PartCost, Parts, Stage};
use rockbot_core::tool::{
    CallTranslator, InMemoryToolRegistry, OutsideTools, Owner, PendingTools, Tool, ToolGuides, ToolRegistry,
};
use rockbot_core::turn::{TurnJournal, TurnObserver, TurnRunner};
use rockbot_core::{AgentIdentity, BoxError, IdSource, ToolName};

use super::AgentHostBuilder;
use super::agents::{AgentBeside, agents_of};
use super::collect::Patterns;
use super::error::{BuildError, FailedDeclaration, NoChat, NoPrice, note};
use super::settings_check::check_settings;
use crate::agent::Agent;
use crate::behavior::ModelBehaviorClient;
use crate::chat::{BackgroundClient, GuardedChat};
use crate::driver::{ContextSources, LargeResults};
use crate::effects::EffectLedger;
use crate::engine::{EngineDeps, HostTurns, ResolvedBriefing, TurnEngine, TurnLayers, TurnService, owner_of};
use crate::host::AgentHost;
use crate::host::lifecycle::Lifecycle;
use crate::large_result::result_readers;
use crate::media_library::MediaLibrary;
use crate::profile::SystemPrompt;
use crate::text_calling::TextCallFallback;
use crate::tool::{GuardedOutsideTools, ToolDispatcher, plan_tool};
use crate::workers::Announcer;

/// The chat client of a host without a model, which only handles messages and serves tools.
#[derive(Debug)]
struct NoModel;

#[async_trait]
impl ChatClient for NoModel {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        Err(ChatError::new(ChatErrorKind::Other, NoChat.to_string()))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// The parts of the host before it is assembled.
struct HostDeps {
    turns: TurnDeps,
    parts: Parts,
    patterns: Patterns,
    costs: Vec<PartCost>,
    /// The record of mutating calls of others, of a host that serves its tools.
    effects: Option<Arc<EffectLedger>>,
    /// The tools that the host adds for its own models.
    own_tools: HashSet<ToolName>,
}

/// The part of it that the engine works with.
struct TurnDeps {
    chat: Arc<dyn ChatClient>,
    beside: Vec<AgentBeside>,
    prompt: Arc<SystemPrompt>,
    briefing: ResolvedBriefing,
    journal: Arc<dyn TurnJournal>,
    memory: Arc<dyn ConversationMemory>,
    media: Arc<MediaLibrary>,
    sources: Vec<Arc<dyn ContextSource>>,
    observers: Vec<Arc<dyn TurnObserver>>,
}

impl AgentHostBuilder {
    /// Builds the host.
    ///
    /// Its [`Agent`] can be asked at once. Its subsystems and subscriptions begin with
    /// [`AgentHost::start`] or [`AgentHost::run_until`].
    ///
    /// # Errors
    ///
    /// Returns an error if there is no chat client, if a tool cannot be registered, if the data
    /// folder or the profile cannot be used, if a subsystem requires a part that is not provided,
    /// or if no part reads a name in the [settings](Self::settings). The error lists every problem.
    pub fn build(mut self) -> Result<AgentHost, BuildError> {
        let registry = self.registry.take();
        let registry = registry.unwrap_or_else(|| Arc::new(InMemoryToolRegistry::new()));
        let identity = self.identity.take().unwrap_or_else(|| {
            // From the host's own source, so that a test can predict it.
            AgentIdentity::new(&*self.name).with_instance_id(self.ids.next_id())
        });
        let owner = Owner::new(identity.name());
        let mut problems: Vec<BoxError> = self.check(identity.name()).collect();
        let built = match self.gather(&identity, &registry, &owner, &mut problems) {
            Some(deps) if problems.is_empty() => self.assemble(identity, deps, &registry, &owner),
            _ => Err(BuildError { problems }),
        };
        built.map_err(|mut error| {
            // The registry may be shared: tools that this host registered would collide with the
            // tools of the next host.
            let left = registry.replace_source(&owner, Vec::new());
            error.problems.extend(left.err().map(BoxError::from));
            error
        })
    }

    /// Collects the parts of the host, and adds the problems that it finds to `problems`. Returns
    /// `None` if a part is missing.
    ///
    /// It continues after a problem, so that the error lists all of them.
    fn gather(
        &mut self,
        identity: &AgentIdentity,
        registry: &Arc<dyn ToolRegistry>,
        owner: &Owner,
        problems: &mut Vec<BoxError>,
    ) -> Option<HostDeps> {
        let mut declared = self.declare(identity, registry, problems);
        let costs = self.costs(take(&mut declared.costs));
        let beside = self.agents_beside(take(&mut declared.agents), identity.name());
        let mut beside = note(beside, problems)?;
        declared
            .tools
            .extend(beside.iter_mut().flat_map(AgentBeside::take_tools));
        let own_tools = self.register_tools(&mut declared, registry, owner, problems);
        self.messages.translates_calls = declared.parts.get::<dyn CallTranslator>().is_some();
        let effects = note(self.open_effects(), problems)?;
        let patterns = self.messages.patterns(identity, &mut declared, problems);
        let chat: Option<Arc<dyn ChatClient>> = match self.chat.take() {
            None if self.messages.need_no_model(declared.serves_tools) => Some(Arc::new(NoModel)),
            chat => note(chat.ok_or(NoChat), problems),
        };
        if let Some(chat) = &chat {
            problems.extend(self.unpriced(&**chat).map(BoxError::from));
        }
        let prompt = note(self.prompt(identity), problems);
        let rules = declared.parts.get::<dyn RulesStore>();
        let briefing = note(ResolvedBriefing::new(self.briefing.clone(), rules), problems);
        let journal = note(self.open_journal(identity, &declared.parts), problems);
        let memory = match declared.parts.get::<dyn ConversationMemory>() {
            Some(memory) => Some(memory),
            None => note(self.open_conversations(), problems),
        };
        let media = self.media(&declared.parts);
        let turns = TurnDeps {
            chat: chat?,
            beside,
            prompt: Arc::new(prompt?),
            briefing: briefing?,
            journal: journal?,
            memory: memory?,
            media,
            sources: self.sources.drain(..).chain(declared.sources).collect(),
            observers: declared.observers,
        };
        Some(HostDeps {
            turns,
            parts: declared.parts,
            patterns,
            costs,
            effects,
            own_tools,
        })
    }

    /// Returns the stated costs, and entries for the subsystems that state no cost.
    fn costs(&self, stated: Vec<(String, PartCost)>) -> Vec<PartCost> {
        let has_stated = |name: &str| stated.iter().any(|(by, _)| by == name);
        let silent = self.subsystems.iter().map(|subsystem| subsystem.name());
        let silent = silent.filter(|name| !has_stated(name));
        let unknown = silent.map(|name| PartCost::on(name.to_owned()).with_model_calls("unknown, it states no cost"));
        let unknown: Vec<_> = unknown.collect();
        stated.into_iter().map(|(_, cost)| cost).chain(unknown).collect()
    }

    /// Registers the program's tools first, then the tools of subsystems, the guides' readers and
    /// the result readers. Returns the names of the last two.
    fn register_tools(
        &mut self,
        declared: &mut MergedDeclarations,
        registry: &Arc<dyn ToolRegistry>,
        owner: &Owner,
        problems: &mut Vec<BoxError>,
    ) -> HashSet<ToolName> {
        let guide_tools = self.guides(declared, problems);
        let memory = declared.parts.get::<dyn WorkingMemory>();
        let readers = memory.into_iter().flat_map(result_readers);
        let plan = self.limits.plans_effects.then(plan_tool);
        let own: Vec<_> = guide_tools.into_iter().chain(readers).chain(plan).collect();
        let names = own.iter().map(|tool| tool.registration.name.clone()).collect();
        let tools = take(&mut self.tools).into_iter().chain(declared.tools.drain(..));
        for tool in tools.chain(own) {
            note(registry.register(owner, tool), problems);
        }
        names
    }

    /// Returns the models whose price must be known, because turns have a limit in money, and is not.
    fn unpriced(&self, chat: &dyn ChatClient) -> impl Iterator<Item = NoPrice> {
        let has_limit = self.policy.budget.max_cost.is_some();
        let tiers = ModelTier::ALL.into_iter().filter(move |_| has_limit);
        tiers.filter_map(|tier| match chat.describe(tier).model {
            Some(model) => (!self.ledger.knows(&model)).then_some(NoPrice { tier, model }),
            None => {
                let tier = tier.name();
                tracing::warn!(
                    tier,
                    "turns have a limit in money, and the chat client does not name the model that it asks: \
                    a turn ends at its first answer whose price is unknown; implement `ChatClient::describe`"
                );
                None
            }
        })
    }

    /// Merges the declarations of the builder and of all subsystems, and adds missing parts and
    /// conflicts to `problems`.
    fn declare(
        &mut self,
        identity: &AgentIdentity,
        registry: &Arc<dyn ToolRegistry>,
        problems: &mut Vec<BoxError>,
    ) -> MergedDeclarations {
        let mut parts = Parts::new(identity.clone(), self.clock.clone(), self.data_dir.clone());
        parts.provide::<dyn ToolRegistry>(registry.clone());
        parts.provide::<dyn IdSource>(self.ids.clone());
        // Filled once all subsystems have declared theirs.
        parts.provide(Arc::new(ToolGuides::new()));
        parts.provide(Arc::new(ServiceSources::default()));
        let config = self.config.take();
        if let Some(config) = &config {
            parts.provide(Arc::new(config.clone()));
        }
        if let Some(bus) = &self.messages.bus {
            parts.provide::<dyn Bus>(bus.clone());
        }
        let mut declarations = Declarations::new(parts);
        declarations.begin("the builder");
        for give in std::mem::take(&mut self.given) {
            give(&mut declarations);
        }
        let failed = self.declare_subsystems(&mut declarations);
        let mut declared = declarations.merge();
        let have_all_declared = failed.is_empty();
        let is_setting_wrong = failed.iter().any(|failed| failed.cause.is::<ConfigError>());
        problems.extend(failed.into_iter().map(BoxError::from));
        // With the right setting, the subsystem would have provided the parts that are missing now.
        if !is_setting_wrong {
            problems.extend(declared.missing.drain(..).map(BoxError::from));
        }
        // A subsystem that failed has not read all of its settings.
        if let Some(config) = config.filter(|_| have_all_declared) {
            let has_bus = self.messages.bus.is_some();
            problems.extend(check_settings(&config, self.denies_unread, has_bus));
        }
        problems.extend(declared.conflicts.drain(..).map(BoxError::from));
        declared
    }

    /// Lets each subsystem declare, and returns the errors. One error of several subsystems, such
    /// as the error of a setting that all of them read, is one problem.
    fn declare_subsystems(&mut self, declarations: &mut Declarations) -> Vec<FailedDeclaration> {
        let mut failed: Vec<FailedDeclaration> = Vec::new();
        // Stores before what uses them: a subsystem that finds no store opens one of its own.
        let mut subsystems: Vec<_> = self.subsystems.iter_mut().collect();
        subsystems.sort_by_key(|subsystem| subsystem.stage() != Stage::Memory);
        for subsystem in subsystems {
            let name = format!("`{}`", subsystem.name());
            declarations.begin(subsystem.name());
            let Err(cause) = subsystem.declare(declarations) else {
                continue;
            };
            let text = cause.to_string();
            match failed.iter_mut().find(|other| other.cause.to_string() == text) {
                Some(other) => other.names = format!("{}, {name}", other.names),
                None => failed.push(FailedDeclaration { names: name, cause }),
            }
        }
        failed
    }

    /// Registers the guides, and returns the tools that read them; none without a guide, or where a
    /// subsystem's does.
    fn guides(&mut self, declared: &mut MergedDeclarations, problems: &mut Vec<BoxError>) -> Vec<Tool> {
        let guides = declared.parts.get::<ToolGuides>().unwrap_or_default();
        for guide in self.guides.drain(..).chain(declared.guides.drain(..)) {
            note(guides.add(guide), problems);
        }
        let mut tools = self.tools.iter().chain(&declared.tools);
        let are_read = tools.any(|tool| tool.registration.hints.reads_guides);
        if are_read || guides.snapshot().is_empty() {
            Vec::new()
        } else {
            guides.tools().into()
        }
    }

    /// Builds the entry points to models and tools, each behind the user's layers.
    fn entry_points(
        &mut self,
        chat: Arc<dyn ChatClient>,
        registry: &Arc<dyn ToolRegistry>,
    ) -> (GuardedChat, ToolDispatcher) {
        let native: Arc<dyn ChatClient> = if self.text_call_fallback {
            Arc::new(TextCallFallback::new(chat.clone()))
        } else {
            chat.clone()
        };
        let chat = if self.behaviors.is_empty() {
            native
        } else {
            Arc::new(ModelBehaviorClient::new(chat, self.behaviors.clone()).with_native(native))
        };
        let chat_layers = take(&mut self.chat_layers);
        let tool_layers = take(&mut self.tool_layers);
        let chat = GuardedChat::new(chat, chat_layers).capture_content(self.captures_content);
        let tools = ToolDispatcher::with_layers(registry.clone(), self.limits, tool_layers, self.tools_on_demand)
            .capture_content(self.captures_content)
            .traces(self.traces.clone());
        (chat, tools)
    }

    /// Builds the engine on the parts of the host.
    fn engine(
        &mut self,
        deps: TurnDeps,
        parts: &Parts,
        registry: &Arc<dyn ToolRegistry>,
        identity: &AgentIdentity,
    ) -> TurnEngine {
        let (chat, tools) = self.entry_points(deps.chat, registry);
        let hooks = Arc::new(take(&mut self.hooks));
        // With each turn the journal keeps which hooks it asks: a resume must decide as the turn began.
        self.policy.hooks.has_policies = !hooks.policies.is_empty();
        self.policy.hooks.has_validators = !hooks.validators.is_empty();
        let owner = owner_of(identity, &*deps.journal);
        TurnEngine::new(EngineDeps {
            journal: deps.journal,
            clock: self.clock.clone(),
            router: self.router().map(Arc::new),
            agents: Arc::new(agents_of(chat, deps.prompt, deps.beside)),
            tools: Arc::new(tools),
            pending_tools: parts.get::<dyn PendingTools>(),
            ledger: self.ledger.clone(),
            sources: Arc::new(ContextSources {
                sources: deps.sources,
                budget: self.context_budget,
            }),
            large: LargeResults {
                policy: take(&mut self.large_results),
                memory: parts.get::<dyn WorkingMemory>(),
            },
            filter: self.filter.take(),
            hooks,
            memory: deps.memory,
            media: deps.media.clone(),
            log: parts.get::<dyn ConversationLog>(),
            layers: TurnLayers::new(take(&mut self.turn_layers)),
            observers: deps.observers,
            briefing: deps.briefing,
            history: self.history,
            behaviors: self.behaviors.clone(),
            replies: self.messages.replies(identity, &deps.media),
            policy: self.policy,
            backlog: self.backlog,
            approvers: take(&mut self.approvers),
            owner,
            agent: identity.name().clone(),
            traces: self.traces.clone(),
        })
    }

    /// Returns the announcer of the host's tools, if they are to be announced.
    fn announcer(
        &self,
        identity: &AgentIdentity,
        hidden: HashSet<ToolName>,
        registry: &Arc<dyn ToolRegistry>,
        owner: &Owner,
        parts: &Parts,
    ) -> Option<Announcer> {
        let bus = self.messages.bus.clone().filter(|_| self.messages.announces_tools)?;
        Some(Announcer {
            bus,
            topic: self.messages.tool_topic(identity),
            lease: self.messages.options.tool_lease,
            identity: identity.clone(),
            registry: registry.clone(),
            owner: owner.clone(),
            guides: parts.get::<ToolGuides>().unwrap_or_default(),
            hidden,
        })
    }

    /// Puts the host together: the engine, the handlers of messages, the agent, and the lifecycle.
    fn assemble(
        mut self,
        identity: AgentIdentity,
        deps: HostDeps,
        registry: &Arc<dyn ToolRegistry>,
        owner: &Owner,
    ) -> Result<AgentHost, BuildError> {
        let mut parts = deps.parts;
        let journal = deps.turns.journal.clone();
        let prompt = deps.turns.prompt.clone();
        let engine = Arc::new(self.engine(deps.turns, &parts, registry, &identity));
        parts.provide::<dyn ChatClient>(Arc::new(BackgroundClient::of(&engine)));
        parts.provide::<dyn ConversationMemory>(engine.memory.clone());
        parts.provide(Arc::new(self.ledger.clone()));
        parts.provide::<dyn MediaStore>(engine.media.store().clone());
        let outside = GuardedOutsideTools::new(engine.tools.clone(), deps.own_tools.clone());
        parts.provide::<dyn OutsideTools>(Arc::new(outside));
        parts.provide::<dyn TurnRunner>(Arc::new(HostTurns::of(&engine)));
        let turns = TurnService::new(engine.clone());
        let routes = self.messages.host_routes(&turns, &parts, &self.ids, deps.effects);
        let announcer = self.announcer(&identity, deps.own_tools, registry, owner, &parts);
        let abort = engine.abort.clone();
        let unasked = self.messages.unasked(&identity, &engine.media);
        let bus = self
            .messages
            .connect(identity, deps.patterns, routes, announcer, abort, self.traces)?;
        let agent = Agent::new(turns.clone(), self.ids);
        parts.provide(Arc::new(agent.clone()));
        Ok(AgentHost {
            agent,
            registry: registry.clone(),
            tool_owner: owner.clone(),
            journal,
            prompt,
            declared_costs: deps.costs,
            lifecycle: Lifecycle::new(turns, parts, self.subsystems, bus, unasked),
        })
    }
}
