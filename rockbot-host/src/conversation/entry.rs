//! One entry as it stands in a file.

use std::fmt;

use rockbot_core::Timestamp;
use rockbot_core::chat::Role;
use rockbot_core::store::ConversationTurn;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// What was said, and what another program wrote beside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) said: ConversationTurn,
    /// Members that we do not know. They are kept, and decide nothing.
    other: Map<String, Value>,
}

impl From<ConversationTurn> for Entry {
    fn from(said: ConversationTurn) -> Self {
        Self {
            said,
            other: Map::new(),
        }
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
struct Moment(#[serde(with = "rockbot_core::rfc3339")] Timestamp);

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ConversationTurn {
            role,
            content,
            timestamp,
            turn,
        } = &self.said;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role)?;
        map.serialize_entry("content", content)?;
        map.serialize_entry("timestamp", &Moment(*timestamp))?;
        map.serialize_entry("turn", turn)?;
        self.other
            .iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// Reads the entries of a document or of a line. Those without a turn get one by their position.
pub(super) fn parse(json: &[u8]) -> serde_json::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = serde_json::from_slice(json)?;
    for (at, entry) in entries.iter_mut().enumerate() {
        if entry.said.turn == "" {
            entry.said.turn = format!("imported-{at}").into();
        }
    }
    Ok(entries)
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// By hand, since a derived reader that keeps unknown members first copies all of them.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with role, content and timestamp")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let (mut role, mut content, mut timestamp, mut turn) = (None, None, None, None);
        let mut other = Map::new();
        while let Some(name) = map.next_key::<Name>()? {
            match name {
                Name::Role => role = Some(map.next_value::<Role>()?),
                Name::Content => content = Some(map.next_value::<String>()?),
                Name::Timestamp => timestamp = Some(map.next_value::<Moment>()?.0),
                Name::Turn => turn = Some(map.next_value::<String>()?),
                Name::Other(name) => {
                    other.insert(name, map.next_value()?);
                }
            }
        }
        let said = ConversationTurn {
            role: role.ok_or_else(|| de::Error::missing_field("role"))?,
            content: content.ok_or_else(|| de::Error::missing_field("content"))?,
            timestamp: timestamp.ok_or_else(|| de::Error::missing_field("timestamp"))?,
            turn: turn.unwrap_or_default().into(),
        };
        Ok(Entry { said, other })
    }
}

enum Name {
    Role,
    Content,
    Timestamp,
    Turn,
    Other(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "role" => Name::Role,
                    "content" => Name::Content,
                    "timestamp" => Name::Timestamp,
                    "turn" => Name::Turn,
                    other => Name::Other(other.to_owned()),
                })
            }
        }

        deserializer.deserialize_identifier(Text)
    }
}
