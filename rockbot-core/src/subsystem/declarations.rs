//! The declarations of subsystems: their parts, requirements and handlers.
//!
//! A subsystem provides its parts while it declares (`Declarations::provide`), and takes the
//! parts of others when it starts (`Parts`): all slots are filled before anything runs.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{AgentSpec, PartCost, Parts};
use crate::BoxError;
use crate::messaging::{Message, MessageHandler, MessageRoute, SubscribeOptions};
use crate::recall::ContextSource;
use crate::tool::{Tool, ToolGuide};
use crate::turn::TurnObserver;

/// The collector that every subsystem of a host declares to, one after the other.
///
/// A subsystem calls its methods in [`Subsystem::declare`](super::Subsystem::declare):
/// [`provide`](Self::provide) for the parts that other subsystems use, [`require`](Self::require)
/// for the parts that it cannot do without, and one method for each kind of extension that the
/// host serves, such as [`tool`](Self::tool) and [`handle`](Self::handle). Requirements are
/// checked after the last declaration, so the order of subsystems does not matter.
///
/// A test of a subsystem creates one itself:
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::store::FeedbackStore;
/// use rockbot_core::subsystem::{Declarations, Parts};
/// use rockbot_core::{AgentIdentity, SystemClock};
///
/// let parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// declarations.begin("reports");
/// declarations.require::<dyn FeedbackStore>("add a memory subsystem");
///
/// let merged = declarations.merge();
/// assert_eq!(merged.missing[0].by, "reports");
/// assert_eq!(merged.missing[0].advice, "add a memory subsystem");
/// ```
pub struct Declarations {
    parts: Parts,
    /// The name of the subsystem that declares now.
    declaring: String,
    requirements: Vec<MissingPart>,
    tools: Vec<Tool>,
    agents: Vec<(String, AgentSpec)>,
    guides: Vec<Arc<dyn ToolGuide>>,
    sources: Vec<Arc<dyn ContextSource>>,
    observers: Vec<Arc<dyn TurnObserver>>,
    routes: Vec<MessageRoute>,
    subscriptions: Vec<(String, SubscribeOptions)>,
    shared_subscriptions: Vec<SharedSubscription>,
    costs: Vec<(String, PartCost)>,
    defaults: Vec<DefaultPart>,
    conflicts: Vec<String>,
    serves_tools: bool,
}

/// A part for a slot that no subsystem fills: provided when all have declared, with the name of
/// its subsystem.
struct DefaultPart {
    slot: TypeId,
    by: String,
    provide: ProvideDefault,
}

type ProvideDefault = Box<dyn FnOnce(&mut Parts) -> Result<(), BoxError> + Send>;

/// A subscription under a name that hosts of several names share.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SharedSubscription {
    /// The topic pattern.
    pub pattern: String,
    /// The name of the subscription.
    pub name: String,
    /// The options of the subscription.
    pub options: SubscribeOptions,
}

/// An error for a part that a subsystem requires and no subsystem provides, with advice for the
/// user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{by}` needs a `{part}`: {advice}")]
pub struct MissingPart {
    slot: TypeId,
    /// The name of the subsystem that requires the part.
    pub by: String,
    /// The type of the part.
    pub part: &'static str,
    /// The advice to the user: the part to add to the host.
    pub advice: String,
}

impl Declarations {
    /// Creates a collector without declarations. The host has `parts` already, such as the parts
    /// that its builder was given.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            declaring: String::new(),
            requirements: Vec::new(),
            tools: Vec::new(),
            agents: Vec::new(),
            guides: Vec::new(),
            sources: Vec::new(),
            observers: Vec::new(),
            routes: Vec::new(),
            subscriptions: Vec::new(),
            shared_subscriptions: Vec::new(),
            costs: Vec::new(),
            defaults: Vec::new(),
            conflicts: Vec::new(),
            serves_tools: false,
        }
    }

    /// Begins the declarations of the subsystem `name`, which errors then name. Called by the host,
    /// not by subsystems.
    pub fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.declaring);
    }

    /// Returns the identity, clock and data directory of the host, and the parts provided so far.
    ///
    /// Subsystems that declare later may provide more: take a required part in
    /// [`Subsystem::start`](super::Subsystem::start), when all parts are there.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Provides the part of type `T` to the other subsystems.
    ///
    /// A host has one part of a type. Providing a second part of the type is a conflict, which
    /// keeps the host from being built.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&mut self, part: Arc<T>) {
        if !self.parts.provide(part) {
            let by = &self.declaring;
            let part = type_name::<T>();
            let conflict = format!("`{by}` provides a `{part}`, and the host has one already: add only one of them");
            self.conflicts.push(conflict);
        }
    }

    /// Provides the part of type `T` that `open` returns if neither the builder nor a subsystem
    /// provides such a part, however late it declares.
    ///
    /// An error of `open` keeps the host from being built.
    pub fn provide_default<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        open: impl FnOnce(&Parts) -> Result<Arc<T>, BoxError> + Send + 'static,
    ) {
        self.defaults.push(DefaultPart {
            slot: TypeId::of::<T>(),
            by: self.declaring.clone(),
            provide: Box::new(move |parts| open(parts).map(|part| _ = parts.provide(part))),
        });
    }

    /// Requires the part of type `T`.
    ///
    /// If neither the builder nor a subsystem provides it, building the host fails with a
    /// [`MissingPart`], and `advice` tells the user the part to add.
    pub fn require<T: ?Sized + 'static>(&mut self, advice: impl Into<String>) {
        self.requirements.push(MissingPart {
            slot: TypeId::of::<T>(),
            by: self.declaring.clone(),
            part: type_name::<T>(),
            advice: advice.into(),
        });
    }

    /// Adds a tool that the agent can call.
    pub fn tool(&mut self, tool: Tool) {
        self.tools.push(tool);
    }

    /// Adds an agent beside the host's own. An invalid name, or the name of another agent of the
    /// host, keeps the host from being built.
    pub fn agent(&mut self, name: impl Into<String>, agent: AgentSpec) {
        self.agents.push((name.into(), agent));
    }

    /// Adds a guide to a group of tools, which the model reads on demand.
    pub fn guide(&mut self, guide: impl ToolGuide) {
        self.guides.push(Arc::new(guide));
    }

    /// Adds a source of context, which the host asks before each turn.
    pub fn context_source(&mut self, source: impl ContextSource) {
        self.sources.push(Arc::new(source));
    }

    /// Adds an observer of turns that have ended.
    pub fn observe(&mut self, observer: impl TurnObserver) {
        self.observers.push(Arc::new(observer));
    }

    /// Adds the handler of messages of type `M`. A message type has one handler.
    pub fn handle<M, H>(&mut self, handler: H)
    where
        M: Message + DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        self.routes.push(MessageRoute::of::<M, H>(handler));
    }

    /// Subscribes the host to the topics that match `pattern`. Messages go to the handler of their
    /// type.
    pub fn subscribe_to(&mut self, pattern: impl Into<String>, options: SubscribeOptions) {
        self.subscriptions.push((pattern.into(), options));
    }

    /// Subscribes the host to the topics that match `pattern` under a `name` that hosts of other
    /// names use, too: each message goes to a single host. Messages go to the handler of their
    /// type.
    pub fn share_subscription(
        &mut self,
        pattern: impl Into<String>,
        name: impl Into<String>,
        options: SubscribeOptions,
    ) {
        self.shared_subscriptions.push(SharedSubscription {
            pattern: pattern.into(),
            name: name.into(),
            options,
        });
    }

    /// States the cost of a part of the subsystem, for [users who ask](PartCost). A subsystem that
    /// states nothing is listed with an unknown cost.
    pub fn cost(&mut self, cost: PartCost) {
        self.costs.push((self.declaring.clone(), cost));
    }

    /// States that the subsystem serves the host's tools to other programs: the host then needs no
    /// model of its own.
    pub fn serve_tools(&mut self) {
        self.serves_tools = true;
    }

    /// Merges the declarations of all subsystems and reports missing parts and conflicts.
    pub fn merge(mut self) -> MergedDeclarations {
        self.open_defaults();
        let missing = self.requirements.into_iter().filter(|part| !self.parts.has(part.slot));
        MergedDeclarations {
            missing: missing.collect(),
            conflicts: self.conflicts,
            parts: self.parts,
            tools: self.tools,
            agents: self.agents,
            guides: self.guides,
            sources: self.sources,
            observers: self.observers,
            routes: self.routes,
            subscriptions: self.subscriptions,
            shared_subscriptions: self.shared_subscriptions,
            costs: self.costs,
            serves_tools: self.serves_tools,
        }
    }

    fn open_defaults(&mut self) {
        for DefaultPart { slot, by, provide } in std::mem::take(&mut self.defaults) {
            if !self.parts.has(slot)
                && let Err(error) = provide(&mut self.parts)
            {
                self.conflicts.push(format!("`{by}`: {error}"));
            }
        }
    }
}

/// The declarations of all subsystems of a host, in the order of the calls. The host is built
/// from them.
#[derive(Debug)]
#[non_exhaustive]
pub struct MergedDeclarations {
    /// The parts that a subsystem requires and none provides.
    pub missing: Vec<MissingPart>,
    /// The parts that were provided twice, as error messages.
    pub conflicts: Vec<String>,
    /// The parts that subsystems and the builder provide.
    pub parts: Parts,
    /// The tools.
    pub tools: Vec<Tool>,
    /// The agents beside the host's own, by name.
    pub agents: Vec<(String, AgentSpec)>,
    /// The guides to tools.
    pub guides: Vec<Arc<dyn ToolGuide>>,
    /// The sources of context.
    pub sources: Vec<Arc<dyn ContextSource>>,
    /// The observers of turns that have ended.
    pub observers: Vec<Arc<dyn TurnObserver>>,
    /// The message handlers with their types.
    pub routes: Vec<MessageRoute>,
    /// The topic patterns to subscribe to, with the options of each subscription.
    pub subscriptions: Vec<(String, SubscribeOptions)>,
    /// The subscriptions that hosts of other names share.
    pub shared_subscriptions: Vec<SharedSubscription>,
    /// The costs of parts, each with the name of the subsystem that stated it.
    pub costs: Vec<(String, PartCost)>,
    /// `true` if a subsystem serves the host's tools to other programs.
    pub serves_tools: bool,
}

impl fmt::Debug for Declarations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declarations")
            .field("parts", &self.parts)
            .field("requirements", &self.requirements)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
