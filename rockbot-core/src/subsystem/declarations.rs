//! What a subsystem declares.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Parts;
use crate::messaging::{Message, MessageHandler, MessageRoute, SubscribeOptions};
use crate::recall::ContextSource;
use crate::tool::{Tool, ToolGuide};
use crate::turn::TurnObserver;

/// What the subsystems of a host declare: what they give and need, their tools, handlers and subscriptions.
pub struct Declarations {
    parts: Parts,
    declaring: String,
    wants: Vec<MissingPart>,
    tools: Vec<Tool>,
    guides: Vec<Arc<dyn ToolGuide>>,
    sources: Vec<Arc<dyn ContextSource>>,
    observers: Vec<Arc<dyn TurnObserver>>,
    routes: Vec<MessageRoute>,
    subscriptions: Vec<(String, SubscribeOptions)>,
    conflicts: Vec<String>,
}

/// A need, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{by}` needs a `{part}`: {advice}")]
pub struct MissingPart {
    slot: TypeId,
    /// Which subsystem needs it.
    pub by: String,
    /// What it needs.
    pub part: &'static str,
    /// What to add.
    pub advice: String,
}

impl Declarations {
    /// Nothing declared yet; `parts` are there already.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            declaring: String::new(),
            wants: Vec::new(),
            tools: Vec::new(),
            guides: Vec::new(),
            sources: Vec::new(),
            observers: Vec::new(),
            routes: Vec::new(),
            subscriptions: Vec::new(),
            conflicts: Vec::new(),
        }
    }

    /// What is said from now on, the subsystem `name` says. For hosts.
    pub fn declaring(&mut self, name: &str) {
        name.clone_into(&mut self.declaring);
    }

    /// The identity, clock and folder of the host, and the parts that were given so far. Others may follow: what a
    /// subsystem needs it takes when it starts.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Gives the others the part of type `T`. Two of one type are an error.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&mut self, part: Arc<T>) {
        if !self.parts.provide(part) {
            let (by, part) = (&self.declaring, type_name::<T>());
            let conflicts = format!("`{by}` gives a `{part}`, and the host has one already: add only one of them");
            self.conflicts.push(conflicts);
        }
    }

    /// Declarations somebody to give the part of type `T`; `advice` says what to add when nobody does.
    pub fn require<T: ?Sized + 'static>(&mut self, advice: impl Into<String>) {
        self.wants.push(MissingPart {
            slot: TypeId::of::<T>(),
            by: self.declaring.clone(),
            part: type_name::<T>(),
            advice: advice.into(),
        });
    }

    /// A tool that the agent can call.
    pub fn tool(&mut self, tool: Tool) {
        self.tools.push(tool);
    }

    /// A guide to tools, for the model to read.
    pub fn guide(&mut self, guide: impl ToolGuide) {
        self.guides.push(Arc::new(guide));
    }

    /// Knows something that may help with a message.
    pub fn context(&mut self, source: impl ContextSource) {
        self.sources.push(Arc::new(source));
    }

    /// Looks at turns that have ended.
    pub fn observe(&mut self, observer: impl TurnObserver) {
        self.observers.push(Arc::new(observer));
    }

    /// Handles messages of type `M`.
    pub fn handle<M, H>(&mut self, handler: H)
    where
        M: Message + DeserializeOwned + Send + 'static,
        H: MessageHandler<M>,
    {
        self.routes.push(MessageRoute::of::<M, H>(handler));
    }

    /// Takes the messages of all topics that match `pattern`.
    pub fn subscribe_to(&mut self, pattern: impl Into<String>, options: SubscribeOptions) {
        self.subscriptions.push((pattern.into(), options));
    }

    /// What everybody said.
    pub fn into_declared(self) -> Declared {
        let missing = self.wants.into_iter().filter(|want| !self.parts.has(want.slot));
        Declared {
            missing: missing.collect(),
            conflicts: self.conflicts,
            parts: self.parts,
            tools: self.tools,
            guides: self.guides,
            sources: self.sources,
            observers: self.observers,
            routes: self.routes,
            subscriptions: self.subscriptions,
        }
    }
}

/// What all subsystems of a host declared together.
#[derive(Debug)]
pub struct Declared {
    /// What somebody needs and nobody gives.
    pub missing: Vec<MissingPart>,
    /// What more than one of them gives.
    pub conflicts: Vec<String>,
    /// What they give.
    pub parts: Parts,
    /// Their tools.
    pub tools: Vec<Tool>,
    /// Their guides to them.
    pub guides: Vec<Arc<dyn ToolGuide>>,
    /// What they know that may help with messages.
    pub sources: Vec<Arc<dyn ContextSource>>,
    /// Those of them who look at turns that have ended.
    pub observers: Vec<Arc<dyn TurnObserver>>,
    /// Their handlers.
    pub routes: Vec<MessageRoute>,
    /// Their subscriptions: patterns, and how they are served.
    pub subscriptions: Vec<(String, SubscribeOptions)>,
}

impl fmt::Debug for Declarations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declarations")
            .field("parts", &self.parts)
            .field("wants", &self.wants)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
