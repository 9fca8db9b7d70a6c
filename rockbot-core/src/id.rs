//! Identifiers: newtypes over shared text, cheap to clone, which the compiler does not let you
//! mix up.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of an id that can name a file, in bytes.
#[cfg_attr(
    not(feature = "files"),
    allow(unreachable_pub, reason = "the data folder alone uses it")
)]
pub const MAX_ID_BYTES: usize = 1024;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    // Shared, so that an absent id costs no allocation.
                    "" => Self(Arc::default()),
                    text => Self(text.into()),
                }
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
    /// The id of a conversation. It is untrusted text, because it may come from a channel: encode it
    /// before it names a file.
    SessionId;
    /// The id of one run of the turn engine.
    TurnId;
    /// The id of a message, as its sender chose it. The same id again is the same message, redelivered.
    MessageId;
    /// The id of a tool call inside a turn, as the model chose it.
    CallId;
    /// The identity on whose behalf work is done. Stores never read across principals.
    Principal;
    /// The id of an entry in long-term memory.
    MemoryId;
    /// The name of a tool, unique in its registry: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    ToolName;
}

impl ToolName {
    /// Maximum length of a name that model providers accept, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Returns `true` if every model provider accepts this name.
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
    /// Returns the principal of a process that serves one person: `local`.
    fn default() -> Self {
        Self::from("local")
    }
}

/// A source of fresh ids. A test injects a deterministic one, such as `testing::SequentialIds`.
pub trait IdSource: fmt::Debug + Send + Sync + 'static {
    /// Returns an id that this source has not returned before.
    fn next_id(&self) -> String;
}

impl<Shared: IdSource + ?Sized> IdSource for Arc<Shared> {
    fn next_id(&self) -> String {
        (**self).next_id()
    }
}

/// An [`IdSource`] of random ids from the operating system's random number generator: 32
/// hexadecimal digits.
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_id(&self) -> String {
        random_id()
    }
}

/// Returns a random id, converted directly from a buffer on the stack into the target type.
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
