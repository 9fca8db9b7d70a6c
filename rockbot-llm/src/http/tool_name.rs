//! Names of tools, as every provider accepts them.

use std::borrow::Cow;

use rockbot_core::ToolName;

/// Returns a name that providers accept. A model may invent a name that its own provider rejects
/// in the next request, and then no later request of the conversation would succeed.
pub(crate) fn sendable_name(name: &ToolName) -> Cow<'_, str> {
    if name.is_valid() {
        return Cow::Borrowed(name.as_str());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name = name.as_str().chars().map(|c| if allowed(c) { c } else { '_' });
    let name: String = name.take(ToolName::MAX_LEN).collect();
    Cow::Owned(if name.is_empty() { "_".into() } else { name })
}
