//! The guides of a host, and the tools that read them to a model.
//!
//! A tool of a subsystem reads guides (`ToolHints::reads_guides`): skills and guides are one
//! thing for the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, ToolError, ToolGuide, ToolState, stateful_tool};
use crate::ToolName;

/// Maximum number of guide names in an error message.
const LISTED: usize = 40;

/// A collection of tool guides, by name. Cheap to clone; all clones share one collection.
///
/// Guides can be added and removed while the host runs. The tools that list and read them
/// ([`ToolGuides::tools`]) use the guides that are there at the time of the call.
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

/// A snapshot of all guides, ordered by name.
pub type GuideSnapshot = Arc<BTreeMap<ToolName, Arc<dyn ToolGuide>>>;

/// An error of adding a guide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuideError {
    /// The name is taken.
    #[error("a tool guide named `{0}` is there already: remove it first or choose another name")]
    Duplicate(ToolName),
    /// The name is empty, too long, or has other characters.
    #[error("`{0}` cannot name a tool guide: use 1 to 64 characters of A-Z a-z 0-9 _ -")]
    InvalidName(ToolName),
}

impl ToolGuides {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a guide.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is taken or invalid.
    pub fn add(&self, guide: impl ToolGuide) -> Result<(), GuideError> {
        let name = ToolName::from(guide.name());
        if !name.is_valid() {
            return Err(GuideError::InvalidName(name));
        }
        let mut guides = self.lock();
        if guides.contains_key(&name) {
            return Err(GuideError::Duplicate(name));
        }
        // Copy on write: a reader that holds a snapshot keeps it unchanged.
        Arc::make_mut(&mut guides).insert(name, Arc::new(guide));
        Ok(())
    }

    /// Removes the guide of this name. Returns `true` if there was one.
    pub fn remove(&self, name: &str) -> bool {
        // Removed under the lock, but dropped after it, because the guide's own `Drop` may run any code.
        let removed = Arc::make_mut(&mut self.lock()).remove(name);
        removed.is_some()
    }

    /// Returns the guides that are there now.
    pub fn snapshot(&self) -> GuideSnapshot {
        self.lock().clone()
    }

    /// Returns the tools `list_tool_guides` and `get_tool_guide`. Both are pure.
    pub fn tools(&self) -> [Tool; 2] {
        let list = |guides: ToolState<Self>, _: ListToolGuides| async move { list(&guides.snapshot()) };
        let get = |guides: ToolState<Self>, GetToolGuide { name }| async move { get(&guides.snapshot(), &name) };
        [
            stateful_tool("list_tool_guides", self.clone(), list).pure(),
            stateful_tool("get_tool_guide", self.clone(), get).pure(),
        ]
        .map(Tool::own_output)
    }

    fn lock(&self) -> MutexGuard<'_, GuideSnapshot> {
        // The lock guards a map of pointers. No code that can panic runs under it, so a poisoned lock is
        // as good as new.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists the guides to tools. Read one with get_tool_guide before you first use the tools that it
/// is about.
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
