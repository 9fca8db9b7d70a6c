//! The file `known-agents.json`: the agents that announced themselves or were registered, as the
//! original writes it.

use std::path::Path;

use rockbot_core::Timestamp;
use rockbot_core::files::DataFolder;
use rockbot_core::service::AgentCard;
use rockbot_core::support::json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::cards::admitted;
use super::wire::AnnouncedCard;

/// Name of the file in the data folder.
const FILE: &str = "known-agents.json";

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 32 << 20;

/// An agent that announced itself, or was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenAgent {
    pub(super) card: AgentCard,
    /// Time of the last sign of life.
    pub(super) last_seen: Timestamp,
    /// `true` if the agent stays until it is unregistered.
    pub(super) is_registered: bool,
}

/// The file, if the host has a data folder.
#[derive(Debug, Default)]
pub(super) struct KnownFile(Option<DataFolder>);

/// An entry of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    card: AnnouncedCard,
    #[serde(with = "rockbot_core::rfc3339")]
    last_seen_at: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_registered: bool,
}

impl KnownFile {
    /// Opens the file of a data folder, and returns the agents in it. A file that cannot be read is
    /// put aside.
    pub(super) fn open(data: Option<&Path>) -> (Self, Vec<SeenAgent>) {
        let Some(data) = data else {
            return Default::default();
        };
        let folder = DataFolder::unheld(data);
        let agents = match folder.read(FILE, MAX_BYTES) {
            Ok(bytes) => bytes.map_or(Some(Vec::new()), |bytes| read(&bytes)),
            Err(error) => {
                tracing::warn!(%error, "known agents unreadable; they are known again when they announce themselves");
                Some(Vec::new())
            }
        };
        let agents = agents.unwrap_or_else(|| {
            let aside = folder.quarantine(FILE).unwrap_or_default();
            tracing::warn!(aside, "known agents unreadable; the file is put aside");
            Vec::new()
        });
        (Self(Some(folder)), agents)
    }

    /// Replaces the file. A failure is logged: agents announce themselves again.
    pub(super) fn save<'a>(&self, agents: impl Iterator<Item = &'a SeenAgent>) {
        let Some(folder) = &self.0 else { return };
        let entries: Vec<_> = agents.map(Entry::of).collect();
        let json = serde_json::to_vec_pretty(&entries).expect("cards have no maps with keys that are no text");
        if let Err(error) = folder.replace(FILE, &json) {
            tracing::warn!(%error, "known agents not written; they are known again when they announce themselves");
        }
    }
}

impl Entry {
    fn of(agent: &SeenAgent) -> Self {
        Self {
            card: AnnouncedCard::of(&agent.card),
            last_seen_at: agent.last_seen,
            is_registered: agent.is_registered,
        }
    }
}

/// Reads the valid entries; `None` if the file is no list at all. The original writes well-known
/// agents with a time before all times, and they are known from their own file.
fn read(bytes: &[u8]) -> Option<Vec<SeenAgent>> {
    let entries: Vec<Box<RawValue>> = serde_json::from_slice(bytes).ok()?;
    let agents = entries.iter().filter_map(|entry| {
        let entry: Entry = json::read_any_case(entry.get().as_bytes()).ok()?;
        Some(SeenAgent {
            card: admitted(entry.card)?,
            last_seen: entry.last_seen_at,
            is_registered: entry.is_registered,
        })
    });
    Some(agents.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_s_file_is_read_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"[
            {"card": {"agentName": "Bob", "description": "Sells.", "version": null, "skills": null},
             "lastSeenAt": "2026-11-27T10:00:00.0000000+00:00"},
            {"Card": {"AgentName": "Ann", "Skills": [{"Id": "s", "Name": "S", "Tags": null}]},
             "LastSeenAt": "2026-11-27T10:00:00Z"},
            {"card": {"agentName": "Named"}, "lastSeenAt": "0001-01-01T00:00:00+00:00"},
            {"card": null}, 7]"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let (file, agents) = KnownFile::open(Some(folder.path()));
        let names: Vec<_> = agents.iter().map(|agent| agent.card.agent_name.as_str()).collect();
        assert_eq!(names, ["Bob", "Ann"]);
        assert_eq!(agents[1].card.skills[0].name, "S");
        file.save(agents[..1].iter());
        let written = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let expected = r#"[
  {
    "card": {
      "agentName": "Bob",
      "description": "Sells.",
      "version": null,
      "skills": [],
      "isDeregistering": false
    },
    "lastSeenAt": "2026-11-27T10:00:00.000Z"
  }
]"#;
        assert_eq!(written, expected);
        assert_eq!(KnownFile::open(Some(folder.path())).1, agents[..1]);
    }

    #[test]
    fn a_damaged_file_is_put_aside_and_none_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(KnownFile::open(Some(folder.path())).1, []);
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert_eq!(KnownFile::open(Some(folder.path())).1, []);
        assert!(!folder.path().join(FILE).exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
