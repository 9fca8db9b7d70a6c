//! The names of things: small, cheap to clone, and never mixed up with each other.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&$name> for $name {
            fn from(id: &Self) -> Self {
                id.clone()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}

ids! {
    /// One conversation. Untrusted text: it may come from a channel, so it is encoded before it names a file.
    SessionId;
    /// One run of the turn engine.
    TurnId;
    /// One message, as its sender named it: the same id again is the same message delivered again.
    MessageId;
    /// One tool call inside a turn, as the model named it.
    CallId;
    /// On whose behalf work is done. Stores never read across principals.
    Principal;
    /// One entry of long-term memory.
    MemoryId;
    /// A tool's name, unique in its registry: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    ToolName;
}

impl ToolName {
    /// The longest name that model providers accept.
    pub const MAX_LEN: usize = 64;

    /// Whether every model provider accepts this name.
    ///
    /// ```
    /// # use rockbot_core::ToolName;
    /// assert!(ToolName::from("web_search").is_valid());
    /// assert!(!ToolName::from("web search").is_valid());
    /// ```
    pub fn is_valid(&self) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=Self::MAX_LEN).contains(&self.0.len()) && self.0.bytes().all(allowed)
    }
}

impl Default for Principal {
    /// The principal of a process that serves one person: `local`.
    fn default() -> Self {
        Self::from("local")
    }
}

/// Where fresh ids come from: the seam that makes a host's ids predictable in a test.
pub trait IdSource: fmt::Debug + Send + Sync + 'static {
    /// A text that was never returned before.
    fn next_id(&self) -> String;
}

/// Ids from the operating system's randomness: 32 hexadecimal digits.
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_id(&self) -> String {
        random_id()
    }
}

/// An id from the operating system's randomness, written once to where it is to stand.
pub(crate) fn random_id<T: for<'a> From<&'a str>>() -> T {
    let mut digits = uuid::Uuid::encode_buffer();
    let digits: &str = uuid::Uuid::new_v4().simple().encode_lower(&mut digits);
    T::from(digits)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::SequentialIds;

    #[test]
    fn an_id_is_its_text_in_json_and_as_a_key() {
        let id = SessionId::from("a \"b\"");
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""a \"b\"""#);
        assert_eq!(serde_json::from_str::<SessionId>(r#""a \"b\"""#).unwrap(), id);
        assert_eq!(
            (id.to_string().as_str(), format!("{id:?}").as_str()),
            ("a \"b\"", r#""a \"b\"""#)
        );
        assert!(HashSet::from([id]).contains("a \"b\""));
    }

    #[test]
    fn a_tool_name_is_what_every_provider_accepts() {
        for name in ["a", "A-z_0", &"x".repeat(64)] {
            assert!(ToolName::from(name).is_valid(), "{name:?}");
        }
        for name in ["", "a b", "a.b", "ä", "a\n", "a/b", &"x".repeat(65)] {
            assert!(!ToolName::from(name).is_valid(), "{name:?}");
        }
    }

    #[test]
    fn random_ids_differ_and_sequential_ids_count() {
        let random: HashSet<_> = (0..1_000).map(|_| RandomIds.next_id()).collect();
        assert_eq!(random.len(), 1_000);
        assert!(
            random
                .iter()
                .all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        );
        let ids = SequentialIds::new();
        assert_eq!(
            [ids.next_id(), ids.clone().next_id(), ids.next_id()],
            ["id-1", "id-2", "id-3"]
        );
    }
}
