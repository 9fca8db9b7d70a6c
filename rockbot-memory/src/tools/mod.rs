//! The tools that let a model use the agent's memory: one file for each family.

mod edit;
mod groups;
pub(crate) mod long_term;
pub(crate) mod rules;
pub(crate) mod skills;
mod taint;
mod time_zone;
pub(crate) mod working;

use std::sync::Arc;

use rockbot_core::store::{PathError, StoreError, StorePath};
use rockbot_core::support::reference;
use rockbot_core::tool::ToolError;
use rockbot_core::{Clock, Timestamp};

pub(crate) use groups::KNOWN_SKILLS;
pub(crate) use taint::{is_untrusted_source, shown_origin};

/// Maximum number of tags of an entry.
const MAX_TAGS: usize = 20;

/// The dependencies of all families.
#[derive(Debug, Clone)]
pub(crate) struct ToolDeps {
    pub(crate) clock: Arc<dyn Clock>,
}

/// Parses a list of tags, separated by commas.
fn tags(list: Option<&str>) -> Vec<String> {
    let tags = list.unwrap_or_default().split(',').map(str::trim);
    let tags = tags.filter(|tag| !tag.is_empty()).take(MAX_TAGS);
    tags.map(str::to_owned).collect()
}

/// Parses the name of a category; a blank name means no category.
fn category(name: Option<&str>) -> Result<Option<StorePath>, ToolError> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    name.map(path).transpose()
}

fn path(name: &str) -> Result<StorePath, ToolError> {
    StorePath::new(name).map_err(|error: PathError| invalid(&error))
}

/// Converts an error into a tool error that asks the model to correct its arguments.
fn invalid(error: &impl ToString) -> ToolError {
    ToolError::invalid_arguments(error.to_string())
}

/// Converts the error of a store, keeping whether a retry may help.
fn failed(error: StoreError) -> ToolError {
    let is_retryable = error.retry_helps();
    let reference = reference(&error);
    tracing::warn!(reference, %error, "memory store failed; the model is told the reference");
    ToolError::execution_failed(format!(
        "the memory cannot be read or written now (reference {reference})"
    ))
    .with_retryable(is_retryable)
    .with_source(error)
}

/// The reason why a change of an entry was not stored.
enum ChangeError {
    /// The store failed.
    Store(StoreError),
    /// A check of the tool rejected the change, with the text for the model.
    Rejected(ToolError),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl ChangeError {
    fn into_error(self) -> ToolError {
        match self {
            Self::Store(error) => failed(error),
            Self::Rejected(error) => error,
        }
    }
}

/// Formats the age of a timestamp in days.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    match now.since(then).as_secs() / (24 * 60 * 60) {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    }
}
