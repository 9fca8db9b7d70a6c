//! The condition for showing a tool to a model: always, or only once the tool's group is active.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ToolName;

/// The condition for a tool to stand in the requests to a model.
///
/// Each definition costs tokens in every request, and the more tools a model sees, the worse it
/// chooses among them. A tool that few conversations need is shown on demand: in a host with such
/// tools the model has `activate_tools`, whose description has a line for each group. A group
/// stays active to the end of its conversation. A tool that the model does not see can still be
/// called.
///
/// ```
/// use rockbot_core::tool::{ToolExposure, ToolGroup, tool};
///
/// /// Renames a playlist.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Rename { old: String, new: String }
///
/// let playlists = ToolGroup::new("playlists", "creating, renaming and sharing playlists");
/// let rename = tool("rename_playlist", |Rename { old, new }: Rename| async move { format!("{old} is {new} now") });
/// let rename = rename.on_demand(&playlists);
/// assert_eq!(rename.registration.hints.exposure, ToolExposure::OnDemand(playlists));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ToolExposure {
    /// The tool stands in every request.
    #[default]
    Always,
    /// The tool stands in the requests of conversations where its group is active. The model can
    /// activate the group.
    OnDemand(ToolGroup),
    /// The tool stands in the requests of conversations where the group of this name is active. No
    /// model activates such a group: a call of [`Tool::activates`](super::Tool::activates) or a
    /// [`ContextItem`](crate::recall::ContextItem) does, when it shows something that the tool is
    /// needed for.
    WhenNeeded(ToolName),
}

impl ToolExposure {
    /// Returns the group of the tool, or `None` if the tool is always shown.
    pub fn group(&self) -> Option<&ToolName> {
        match self {
            Self::Always => None,
            Self::OnDemand(group) => Some(&group.name),
            Self::WhenNeeded(name) => Some(name),
        }
    }

    /// Returns `true` if the tool is always shown.
    pub fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

/// A group of tools that a model activates together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolGroup {
    /// Name of the group, 1 to 64 characters of `A-Z a-z 0-9 _ -`. The model activates the group by
    /// it.
    pub name: ToolName,
    /// Purpose of the group in a few words, for the model. It stands in every request.
    pub summary: Cow<'static, str>,
    /// Instructions that the model reads when it activates the group, in Markdown. Empty by default.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub guide: Cow<'static, str>,
}

impl ToolGroup {
    /// The name of the group of the tools that read stored texts, such as long tool results that the
    /// host took out of the conversation. The host activates it when there is such a text.
    pub const STORED_TEXTS: &'static str = "stored-texts";

    /// Creates a group without instructions.
    pub fn new(name: impl Into<ToolName>, summary: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
            guide: Cow::Borrowed(""),
        }
    }

    /// Sets the instructions that the model reads when it activates the group.
    #[must_use]
    pub fn with_guide(mut self, guide: impl Into<Cow<'static, str>>) -> Self {
        self.guide = guide.into();
        self
    }
}
