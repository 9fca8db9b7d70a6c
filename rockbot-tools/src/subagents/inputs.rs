//! Copies of entries of working memory for a subagent. They are beside the subagent's own
//! namespace, which holds only its findings.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::store::{Access, Namespace, StorePath, WorkingEntry, WorkingMemory, WorkingNote};
use rockbot_core::support::nearest_names;
use rockbot_core::tool::ToolError;

/// Time that copies are kept.
const TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of inputs.
const MAX_INPUTS: usize = 20;

/// A copy for the subagent.
pub(super) struct Input {
    pub(super) key: StorePath,
}

/// Returns the entries of these keys. A key is in the spawner's namespace, or is a whole path
/// that the spawner may read.
pub(super) async fn find(
    memory: Option<&dyn WorkingMemory>,
    keys: &[String],
    cx: &CallContext,
) -> Result<Vec<Arc<WorkingEntry>>, ToolError> {
    if keys.len() > MAX_INPUTS {
        return Err(ToolError::invalid_arguments(format!(
            "`inputs` has at most {MAX_INPUTS} keys"
        )));
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let memory =
        memory.ok_or_else(|| ToolError::invalid_arguments("this agent has no working memory: leave out `inputs`"))?;
    let mut found = Vec::new();
    for key in keys {
        let path = Namespace::of(cx).resolve(key);
        let path = path.map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let is_readable = Namespace::access(cx, &path) > Access::None;
        let entry = if is_readable {
            memory.get(cx.principal(), &path).await.map_err(failed)?
        } else {
            None
        };
        match entry {
            Some(entry) => found.push(entry),
            None => return Err(missing(memory, &path, cx).await),
        }
    }
    Ok(found)
}

/// Copies entries to the namespace of the subagent's inputs.
pub(super) async fn copy(
    memory: Option<&dyn WorkingMemory>,
    entries: Vec<Arc<WorkingEntry>>,
    id: &str,
    cx: &CallContext,
) -> Result<Vec<Input>, ToolError> {
    let Some(memory) = memory.filter(|_| !entries.is_empty()) else {
        return Ok(Vec::new());
    };
    let (mut notes, mut inputs): (Vec<WorkingNote>, Vec<Input>) = Default::default();
    for (number, entry) in entries.iter().enumerate() {
        let last = entry.key.segments().last().unwrap_or_default();
        let is_taken = inputs.iter().any(|input| input.key.segments().last() == Some(last));
        let name = if is_taken {
            format!("{last}-{}", number + 1)
        } else {
            last.to_owned()
        };
        let key = StorePath::new(&format!("subagent-inputs/{id}/{name}"));
        let key = key.map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let note = WorkingNote::new(key.clone(), entry.value.clone(), entry.provenance.clone());
        notes.push(note.with_ttl(TTL).with_tags(entry.tags.clone()));
        inputs.push(Input { key });
    }
    memory.put(cx.principal(), notes).await.map_err(failed)?;
    Ok(inputs)
}

async fn missing(memory: &dyn WorkingMemory, path: &StorePath, cx: &CallContext) -> ToolError {
    let known = memory.list(cx.principal(), None).await.unwrap_or_default();
    let readable = known.iter().map(|entry| &entry.key);
    let readable: Vec<_> = readable
        .filter(|key| Namespace::access(cx, key) > Access::None)
        .collect();
    let near = nearest_names(path.as_str(), readable.iter().map(|key| key.as_str()), 3);
    let hint = match &*near {
        [] => "list_working_memory shows the keys".to_owned(),
        near => format!("did you mean `{}`?", near.join("`, `")),
    };
    ToolError::invalid_arguments(format!("there is no entry `{path}` in working memory: {hint}"))
}

fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError::execution_failed(error.to_string())
}
