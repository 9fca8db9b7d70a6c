//! The texts of behaviors in files, read again when they change.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::longest;

/// How long texts are used before their files are looked at again.
const FRESH: Duration = Duration::from_secs(30);

/// How much of a file is read, in bytes, and how deep folders may be nested.
const MOST: u64 = 64 * 1024;
const DEPTH: usize = 4;

/// The texts for models whose ids begin alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts {
    pub(super) additional_system_prompt: Option<Arc<str>>,
    pub(super) pre_tool_loop_prompt: Option<Arc<str>>,
}

/// A folder of behaviors.
pub(super) struct BehaviorFolder(Arc<State>);

impl fmt::Debug for BehaviorFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BehaviorFolder").field(&self.0.path).finish()
    }
}

struct State {
    path: PathBuf,
    texts: ArcSwap<BTreeMap<String, Texts>>,
    read_at: Mutex<Instant>,
    is_reading: AtomicBool,
}

impl BehaviorFolder {
    /// The folder `path`, read at once.
    pub(super) fn new(path: PathBuf) -> Self {
        let texts = ArcSwap::from_pointee(read(&path));
        Self(Arc::new(State {
            path,
            texts,
            read_at: Mutex::new(Instant::now()),
            is_reading: AtomicBool::new(false),
        }))
    }

    /// The texts for the model `id`, in lower case. Old ones are read again in the background, and used meanwhile.
    pub(super) fn of(&self, id: &str) -> Option<Texts> {
        self.0.refresh();
        longest(&self.0.texts.load(), id).cloned()
    }
}

impl State {
    fn refresh(self: &Arc<Self>) {
        // What stands under the lock is one value, whole at every moment.
        let is_fresh = self.read_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < FRESH;
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

/// Everything in the folder; what is not there is not there.
fn read(path: &Path) -> BTreeMap<String, Texts> {
    let mut texts = BTreeMap::new();
    read_into(path, "", DEPTH, &mut texts);
    texts
}

fn read_into(path: &Path, prefix: &str, depth: usize, texts: &mut BTreeMap<String, Texts>) {
    let found = Texts {
        additional_system_prompt: read_text(&path.join("additional-system-prompt.md")),
        pre_tool_loop_prompt: read_text(&path.join("pre-tool-loop-prompt.md")),
    };
    if found != Texts::default() && !prefix.is_empty() {
        texts.insert(prefix.to_owned(), found);
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

/// The text of a file; one that cannot be used is told, and as if it were not there.
fn read_text(path: &Path) -> Option<Arc<str>> {
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    match file.take(MOST + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= MOST => {}
        Ok(_) => {
            tracing::warn!(path = %path.display(), "a prompt for models is longer than 64 KiB, and not used");
            return None;
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a prompt for models cannot be read, and is not used");
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
    async fn texts_are_read_again_when_they_are_old() {
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
        assert_eq!(brief("deepseek-v3").as_deref(), Some("Be brief."), "not looked at yet");
        tokio::time::advance(FRESH).await;
        brief("deepseek-v3");
        while brief("deepseek-v3").as_deref() != Some("Be kind.") {
            tokio::task::yield_now().await;
        }
    }
}
