//! The section `ConversationMemory`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::engine::HistoryOptions;

/// The options of conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationMemorySettings {
    /// `BasePath`: the folder of conversations. Default `conversations` below the base folder.
    pub base_path: PathBuf,
    /// `MaxTurnsPerSession`: maximum number of turns that a session keeps. Default 50.
    pub max_turns_per_session: NonZeroU32,
    /// `SessionIdleTimeout`: time that a session goes on and stays in memory after its last turn.
    /// Then it begins afresh, and the earlier messages are kept on disk. Default 1 hour.
    pub session_idle_timeout: Duration,
    /// `KeepCalls`: `true` if conversations keep tool calls with their results. They do not count as
    /// turns. Default `true`.
    pub keep_calls: bool,
    /// `ShowCalls`: `true` if the model sees the kept calls and results of earlier turns. Default
    /// `false`: only while it writes its calls as text.
    pub show_calls: bool,
    /// `MaxShownEntries`: maximum number of earlier entries that the model is shown; a question and
    /// its answer are two. Default 20, at least 4.
    pub max_shown_entries: NonZeroU32,
}

impl ConversationMemorySettings {
    pub(super) fn read(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let section = config.section("ConversationMemory")?;
        let max_shown = NonZeroU32::new(20).expect("20 is not zero");
        let max_turns = NonZeroU32::new(50).expect("50 is not zero");
        Ok(Self {
            base_path: section.folder("BasePath", "conversations", base)?,
            max_turns_per_session: section.get_or("MaxTurnsPerSession", max_turns)?,
            session_idle_timeout: section.interval("SessionIdleTimeout", Duration::from_secs(3600))?,
            keep_calls: section.get_or("KeepCalls", true)?,
            show_calls: section.get_or("ShowCalls", false)?,
            max_shown_entries: section.get_or("MaxShownEntries", max_shown)?,
        })
    }

    /// Returns the part of conversations that the model is shown.
    pub(crate) fn history(&self) -> HistoryOptions {
        HistoryOptions::new()
            .with_kept_calls(self.keep_calls)
            .with_shown_calls(self.show_calls)
            .with_max_entries(self.max_shown_entries.get() as usize)
            .with_idle_timeout(self.session_idle_timeout)
    }
}
