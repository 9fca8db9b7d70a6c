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
        uuid::Uuid::new_v4().simple().to_string()
    }
}
