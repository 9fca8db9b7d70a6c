//! The prompts of behaviors in files, reloaded after a change.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::longest_match;

/// Time until the files are read again.
const REFRESH_AFTER: Duration = Duration::from_secs(30);

/// Maximum size of a file in bytes. A longer file is ignored: it would fill the context window of
/// every request.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Maximum depth of nested folders: model ids have a few segments, and a link could form a circle.
const MAX_DEPTH: usize = 4;

/// The prompts for models whose ids have a common prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts {
    pub(super) additional_system_prompt: Option<Arc<str>>,
    pub(super) pre_tool_loop_prompt: Option<Arc<str>>,
}

/// A folder of behaviors, with one folder for each prefix of model ids.
pub(super) struct BehaviorFolder(Arc<FolderState>);

impl fmt::Debug for BehaviorFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BehaviorFolder").field(&self.0.path).finish()
    }
}

struct FolderState {
    path: PathBuf,
    texts: ArcSwap<BTreeMap<String, Texts>>,
    read_at: Mutex<Instant>,
    is_reading: AtomicBool,
}

impl BehaviorFolder {
    /// Reads the folder `path`. A folder that does not exist has no prompts, until it is created.
    pub(super) fn new(path: PathBuf) -> Self {
        let texts = ArcSwap::from_pointee(read(&path));
        Self(Arc::new(FolderState {
            path,
            texts,
            read_at: Mutex::new(Instant::now()),
            is_reading: AtomicBool::new(false),
        }))
    }

    /// Returns the prompts for the model `id`, which is in lower case.
    ///
    /// Stale prompts are returned, too, and read again in the background: a turn never waits for the
    /// file system.
    pub(super) fn of(&self, id: &str) -> Option<Texts> {
        self.0.refresh();
        longest_match(&self.0.texts.load(), id).cloned()
    }
}

impl FolderState {
    fn refresh(self: &Arc<Self>) {
        // The lock protects one value, which is valid at every moment, so a poisoned lock is usable.
        let is_fresh = self.read_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < REFRESH_AFTER;
        // The swap admits one reader at a time. Acquire pairs with the release below: the next
        // reader sees the time of the last reader.
        if is_fresh || self.is_reading.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            state.texts.store(Arc::new(read(&state.path)));
            *state.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            state.is_reading.store(false, Ordering::Release);
        });
    }
}

/// Reads all prompts in the folder. Missing folders and files are skipped.
fn read(path: &Path) -> BTreeMap<String, Texts> {
    let mut texts = BTreeMap::new();
    read_into(path, "", MAX_DEPTH, &mut texts);
    texts
}

fn read_into(path: &Path, prefix: &str, depth: usize, texts: &mut BTreeMap<String, Texts>) {
    let prompts = Texts {
        additional_system_prompt: read_text(&path.join("additional-system-prompt.md")),
        pre_tool_loop_prompt: read_text(&path.join("pre-tool-loop-prompt.md")),
    };
    if prompts != Texts::default() && !prefix.is_empty() {
        texts.insert(prefix.to_owned(), prompts);
    }
    let Some(folders) = std::fs::read_dir(path).ok().filter(|_| depth > 0) else {
        return;
    };
    for folder in folders
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    {
        let name = folder.file_name().to_string_lossy().to_lowercase();
        let prefix = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        read_into(&folder.path(), &prefix, depth - 1, texts);
    }
}

/// Reads the text of a file. A file that cannot be used is logged, and treated as missing.
fn read_text(path: &Path) -> Option<Arc<str>> {
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    match file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= MAX_FILE_BYTES => {}
        Ok(_) => {
            tracing::warn!(path = %path.display(), "a model's prompt file exceeds 64 KiB and is ignored; shorten it");
            return None;
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a model's prompt file cannot be read and is ignored");
            return None;
        }
    }
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stale_prompts_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("DeepSeek/additional-system-prompt.md", " Be brief.\n");
        write("vendor/gpt/pre-tool-loop-prompt.md", "Look first.");
        let behaviors = BehaviorFolder::new(folder.path().to_owned());
        let brief = |id: &str| behaviors.of(id).and_then(|texts| texts.additional_system_prompt);
        assert_eq!(brief("deepseek-v3").as_deref(), Some("Be brief."));
        let gpt = behaviors.of("vendor/gpt-4").unwrap();
        assert_eq!(gpt.pre_tool_loop_prompt.as_deref(), Some("Look first."));
        write("DeepSeek/additional-system-prompt.md", "Be kind.");
        assert_eq!(brief("deepseek-v3").as_deref(), Some("Be brief."), "not read again yet");
        tokio::time::advance(REFRESH_AFTER).await;
        brief("deepseek-v3");
        while brief("deepseek-v3").as_deref() != Some("Be kind.") {
            tokio::task::yield_now().await;
        }
    }
}
