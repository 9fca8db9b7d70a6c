//! The guides of a host, and the tools with which a model reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{State, Tool, ToolError, ToolGuide, stateful_tool};
use crate::ToolName;

/// How many names an error lists at most.
const LISTED: usize = 40;

/// Guides to tools, by their names. Cheap to clone; all clones are one collection.
///
/// Guides come and go while the host runs; the tools show those that are there when they are called.
///
/// ```
/// use rockbot_core::tool::{StaticGuide, ToolGuides};
///
/// let guides = ToolGuides::new();
/// guides.add(StaticGuide::new("web", "Searching and reading the web.", "Search first, then read."))?;
/// let names = guides.tools().map(|tool| tool.registration.name);
/// assert_eq!(names, ["list_tool_guides", "get_tool_guide"]);
/// # Ok::<(), rockbot_core::tool::GuideError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolGuides(Arc<Mutex<GuideSnapshot>>);

/// All guides at one moment, ordered by name.
pub type GuideSnapshot = Arc<BTreeMap<ToolName, Arc<dyn ToolGuide>>>;

/// Why a guide cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuideError {
    /// The name is taken.
    #[error("a tool guide named `{0}` is there already: remove it first or choose another name")]
    Duplicate(ToolName),
    /// The name has other characters, none, or too many.
    #[error("`{0}` cannot name a tool guide: use 1 to 64 characters of A-Z a-z 0-9 _ -")]
    InvalidName(ToolName),
}

impl ToolGuides {
    /// No guides.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a guide.
    ///
    /// # Errors
    ///
    /// Fails when the name is taken or not valid.
    pub fn add(&self, guide: impl ToolGuide) -> Result<(), GuideError> {
        let name = ToolName::from(guide.name());
        if !name.is_valid() {
            return Err(GuideError::InvalidName(name));
        }
        let mut guides = self.lock();
        if guides.contains_key(&name) {
            return Err(GuideError::Duplicate(name));
        }
        // Whoever reads a snapshot keeps it: the map is copied then.
        Arc::make_mut(&mut guides).insert(name, Arc::new(guide));
        Ok(())
    }

    /// Removes the guide of this name. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        // Taken out under the lock, but dropped after it: what a guide does then is its own affair.
        let removed = Arc::make_mut(&mut self.lock()).remove(name);
        removed.is_some()
    }

    /// The guides that are there now.
    pub fn snapshot(&self) -> GuideSnapshot {
        self.lock().clone()
    }

    /// The tools `list_tool_guides` and `get_tool_guide`. Both only read.
    pub fn tools(&self) -> [Tool; 2] {
        let list = |guides: State<Self>, _: ListToolGuides| async move { list(&guides.snapshot()) };
        let get = |guides: State<Self>, GetToolGuide { name }| async move { get(&guides.snapshot(), &name) };
        [
            stateful_tool("list_tool_guides", self.clone(), list).pure(),
            stateful_tool("get_tool_guide", self.clone(), get).pure(),
        ]
    }

    fn lock(&self) -> MutexGuard<'_, GuideSnapshot> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists the guides to tools. Read one with get_tool_guide before you first use the tools that it is about.
#[derive(Deserialize, JsonSchema)]
struct ListToolGuides {}

/// Reads a guide: how to use a group of tools well.
#[derive(Deserialize, JsonSchema)]
struct GetToolGuide {
    /// The guide's name, as list_tool_guides shows it.
    name: String,
}

fn list(guides: &GuideSnapshot) -> String {
    if guides.is_empty() {
        return "There are no tool guides.".to_owned();
    }
    let line = |(name, guide): (&ToolName, &Arc<dyn ToolGuide>)| {
        let words: Vec<_> = guide.summary().split_whitespace().collect();
        format!("{name}: {}", words.join(" "))
    };
    guides.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn get(guides: &GuideSnapshot, name: &str) -> Result<String, ToolError> {
    guides
        .get(name)
        .map(|guide| guide.document().into_owned())
        .ok_or_else(|| not_found(guides, name))
}

fn not_found(guides: &GuideSnapshot, name: &str) -> ToolError {
    if guides.is_empty() {
        return ToolError::invalid_arguments(format!("there is no guide `{name}`: there are no tool guides"));
    }
    let names: Vec<_> = guides.keys().map(ToolName::as_str).take(LISTED).collect();
    let names = names.join(", ");
    ToolError::invalid_arguments(format!("there is no guide `{name}`. The guides are: {names}"))
}
