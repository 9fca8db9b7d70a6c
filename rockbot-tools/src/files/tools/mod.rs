//! The tools: a file for tools that read and a file for tools that change.

mod change;
mod look;

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::tool::{Tool, ToolError, ToolGroup, stateful_tool};
use tokio::sync::Mutex;

use super::folder::{Folder, Version};
use super::ledger::Ledger;
use super::path::{FilePath, PathError};
use super::text;
use crate::agent_files::AgentFiles;

/// State of the tools.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    pub(super) folder: Arc<Folder>,
    pub(super) ledger: Arc<Ledger>,
    /// Held while a file changes, so that no change is based on a version that another change
    /// replaces.
    pub(super) changing: Arc<Mutex<()>>,
}

/// Returns the tools. A tool that only reports its own effect returns no outside text.
pub(super) fn tools(state: &FileState) -> [Tool; 6] {
    let group =
        ToolGroup::new("files", "read, write and search text files").with_guide(include_str!("../guides/files.md"));
    [
        stateful_tool("file_read", state.clone(), look::read)
            .pure()
            .keeps_results_whole(),
        stateful_tool("file_list", state.clone(), look::list).pure(),
        stateful_tool("file_search", state.clone(), look::search).pure(),
        stateful_tool("file_write", state.clone(), change::write).idempotent(),
        stateful_tool("file_edit", state.clone(), change::edit),
        stateful_tool("file_delete", state.clone(), change::delete),
    ]
    .map(|tool| tool.source("files").internal().on_demand(&group))
}

impl FileState {
    /// Runs `work` on the folder, on a thread for blocking work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let folder = self.folder.clone();
        let done = tokio::task::spawn_blocking(move || work(&folder)).await;
        done.map_err(|_| ToolError::execution_failed("the work on the files failed"))?
    }
}

#[async_trait]
impl AgentFiles for FileState {
    async fn read(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        let path = FilePath::parse(path).map_err(|error| invalid(&error))?;
        self.blocking(move |folder| Ok(present(folder, &path)?.bytes)).await
    }
}

/// Returns the version of a file, and an error that names files of the same name if there is none.
fn present(folder: &Folder, path: &FilePath) -> Result<Version, ToolError> {
    if let Some(version) = folder.read(path).map_err(|error| failed(path, &error))? {
        return Ok(version);
    }
    let (listed, _) = folder.list("").unwrap_or_default();
    let end = format!("/{}", path.name());
    let similar = listed
        .iter()
        .map(|file| file.path.as_str())
        .filter(|other| *other == path.name() || other.ends_with(&end));
    let similar: Vec<_> = similar.take(5).map(|other| format!("`{other}`")).collect();
    let hint = match &*similar {
        [] => "file_list shows all files".to_owned(),
        similar => format!("there is {}", similar.join(", ")),
    };
    Err(ToolError::execution_failed(format!(
        "there is no file `{path}`: {hint}"
    )))
}

fn text_of(path: &FilePath, version: &Version) -> Result<(String, text::Encoding), ToolError> {
    let not_text = || ToolError::execution_failed(format!("`{path}` is not text, or in an encoding that is not known"));
    text::decode(&version.bytes).ok_or_else(not_text)
}

fn invalid(error: &PathError) -> ToolError {
    ToolError::invalid_arguments(error.to_string())
}

fn failed(path: &FilePath, error: &io::Error) -> ToolError {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it may not be read or changed, or a link leads out of the folder".to_owned()
        }
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => error.to_string(),
    };
    ToolError::execution_failed(format!("`{path}`: {reason}"))
}
