//! The file format of an entry.

use std::fmt;

use rockbot_core::Timestamp;
use rockbot_core::chat::{Content, Role};
use rockbot_core::store::ConversationTurn;
use rockbot_core::trust::Label;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A message of a conversation with the unknown members that another program wrote.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredEntry {
    pub(super) message: ConversationTurn,
    /// Unknown members. They are written back unchanged, so that a newer program loses nothing.
    other: Map<String, Value>,
}

impl From<ConversationTurn> for StoredEntry {
    fn from(message: ConversationTurn) -> Self {
        Self {
            message,
            other: Map::new(),
        }
    }
}

/// Name of the member with the tool calls of an entry.
const ROUNDS: &str = "rounds";

/// Name of the member with the groups of tools that were active.
const ACTIVE_TOOLS: &str = "activeTools";

/// Name of the member with the values that the user has endorsed.
const ENDORSED: &str = "endorsed";

/// Name of the member with the label of the entry's sources.
const LABEL: &str = "label";

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
struct Rfc3339(#[serde(with = "rockbot_core::rfc3339")] Timestamp);

impl Serialize for StoredEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = &self.message;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &message.role)?;
        map.serialize_entry("content", &message.content)?;
        map.serialize_entry("timestamp", &Rfc3339(message.timestamp))?;
        map.serialize_entry("turn", &message.turn)?;
        if !message.rounds.is_empty() {
            map.serialize_entry(ROUNDS, &message.rounds)?;
        }
        if !message.active_tools.is_empty() {
            map.serialize_entry(ACTIVE_TOOLS, &message.active_tools)?;
        }
        if !message.endorsed.is_empty() {
            map.serialize_entry(ENDORSED, &message.endorsed)?;
        }
        if let Some(label) = &message.label {
            map.serialize_entry(LABEL, label)?;
        }
        self.other
            .iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// Parses the entries of a document or of a line of a log. Entries without a turn id get one by
/// their position.
pub(super) fn parse(json: &[u8]) -> serde_json::Result<Vec<StoredEntry>> {
    let mut entries: Vec<StoredEntry> = serde_json::from_slice(json)?;
    for (at, entry) in entries.iter_mut().enumerate() {
        if entry.message.turn == "" {
            entry.message.turn = format!("imported-{at}").into();
        }
    }
    Ok(entries)
}

impl<'de> Deserialize<'de> for StoredEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

/// The visitor of an entry. Written by hand: a derived implementation with a flattened map
/// buffers all members first, including known members.
struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = StoredEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with role, content and timestamp")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredEntry, A::Error> {
        let mut role = None;
        let mut content = None;
        let mut timestamp = None;
        let mut turn = None;
        let mut rounds = Vec::new();
        let mut active = Vec::new();
        let mut endorsed = Vec::new();
        let mut label = None;
        let mut other = Map::new();
        while let Some(name) = map.next_key::<MemberName>()? {
            match name {
                MemberName::Role => role = Some(map.next_value::<Role>()?),
                MemberName::Content => content = Some(map.next_value::<Content>()?),
                MemberName::Timestamp => timestamp = Some(map.next_value::<Rfc3339>()?.0),
                MemberName::Turn => turn = Some(map.next_value::<String>()?),
                // An unreadable list must not cost the text, so it is kept as an unknown member.
                MemberName::Rounds => match read_list(map.next_value()?) {
                    Ok(read) => rounds = read,
                    Err(value) => drop(other.insert(ROUNDS.to_owned(), value)),
                },
                MemberName::ActiveTools => match read_list(map.next_value()?) {
                    Ok(read) => active = read,
                    Err(value) => drop(other.insert(ACTIVE_TOOLS.to_owned(), value)),
                },
                MemberName::Endorsed => match read_list(map.next_value()?) {
                    Ok(read) => endorsed = read,
                    Err(value) => drop(other.insert(ENDORSED.to_owned(), value)),
                },
                // A label that cannot be read counts as missing, which is the most restrictive
                // label.
                MemberName::Label => label = Label::deserialize(&map.next_value::<Value>()?).ok(),
                MemberName::Other(name) => {
                    other.insert(name, map.next_value()?);
                }
            }
        }
        let role = role.ok_or_else(|| de::Error::missing_field("role"))?;
        let content = content.ok_or_else(|| de::Error::missing_field("content"))?;
        let timestamp = timestamp.ok_or_else(|| de::Error::missing_field("timestamp"))?;
        let message = ConversationTurn::new(role, content, timestamp, turn.unwrap_or_default())
            .with_rounds(rounds)
            .with_active_tools(active)
            .with_endorsed(endorsed)
            .with_label(label);
        Ok(StoredEntry { message, other })
    }
}

/// Reads a list, or returns the value that is no list.
fn read_list<T: DeserializeOwned>(value: Value) -> Result<Vec<T>, Value> {
    Vec::deserialize(&value).map_err(|_| value)
}

enum MemberName {
    Role,
    Content,
    Timestamp,
    Turn,
    Rounds,
    ActiveTools,
    Endorsed,
    Label,
    Other(String),
}

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = MemberName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<MemberName, E> {
                Ok(match name {
                    "role" => MemberName::Role,
                    "content" => MemberName::Content,
                    "timestamp" => MemberName::Timestamp,
                    "turn" => MemberName::Turn,
                    ROUNDS => MemberName::Rounds,
                    ACTIVE_TOOLS => MemberName::ActiveTools,
                    ENDORSED => MemberName::Endorsed,
                    LABEL => MemberName::Label,
                    other => MemberName::Other(other.to_owned()),
                })
            }
        }

        deserializer.deserialize_identifier(Text)
    }
}
