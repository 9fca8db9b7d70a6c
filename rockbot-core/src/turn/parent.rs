//! The turn that asked for another turn.

use serde::{Deserialize, Serialize};

use crate::TurnId;

/// The turn that asked for a turn, and the depth of the latter.
///
/// ```
/// use rockbot_core::turn::TurnParent;
///
/// let parent = TurnParent::new("turn-1", 2);
/// let json = serde_json::to_string(&parent)?;
/// assert_eq!(json, r#"{"turn":"turn-1","depth":2}"#);
/// // The form of the first versions.
/// assert_eq!(serde_json::from_str::<TurnParent>(r#"["turn-1",2]"#)?, parent);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
#[non_exhaustive]
pub struct TurnParent {
    /// Id of the turn that asked.
    pub turn: TurnId,
    /// Depth of the turn that was asked for: the number of turns above it.
    pub depth: u32,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Named { turn: TurnId, depth: u32 },
    Pair(TurnId, u32),
}

impl From<Written> for TurnParent {
    fn from(written: Written) -> Self {
        match written {
            Written::Named { turn, depth } | Written::Pair(turn, depth) => Self { turn, depth },
        }
    }
}

impl TurnParent {
    /// Creates the parent of a turn at `depth`.
    pub fn new(turn: impl Into<TurnId>, depth: u32) -> Self {
        let turn = turn.into();
        Self { turn, depth }
    }
}
