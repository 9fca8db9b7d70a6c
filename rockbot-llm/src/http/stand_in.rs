//! Texts that stand in for missing parts of a conversation: a conversation that was shortened, or
//! began with another provider, may have lost a part that a server insists on.

/// Words of the user in front of a conversation that begins with the model's.
pub(crate) const OPENING: &str = "[The conversation begins here.]";

/// Result of a call whose own was never recorded.
pub(crate) const NO_RESULT: &str = "No result was recorded for this call.";

/// Words in front of a result whose call is not in the conversation any more.
pub(crate) const ORPHAN: &str = "Result of an earlier tool call:\n";

/// Words of the model between results and a message of the user: some servers refuse the user
/// there.
pub(crate) const RESULTS_READ: &str = "[Results received.]";
