//! The agents that call this agent, over the bus and over HTTP: what they may use (`trust`), the
//! settings that say so (`settings`), and the chains that keep their tasks from going round.

pub(crate) mod chains;
pub(crate) mod settings;
mod trust;

pub use trust::CallerTrust;

/// Maximum length of the name of an agent, in bytes.
const MAX_NAME: usize = 64;

/// Returns `true` if `name` can be the name of an agent. Names are parts of topics, and stand in
/// lists.
pub(crate) fn is_agent_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // The topics of an agent of such a name would be the topics of all statuses and cancellations.
    let is_taken = ["status", "cancel"].contains(&name);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_legal) && !is_taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_agents_are_parts_of_topics() {
        let names = [
            "ResearchAgent",
            "a-b_1",
            "Status",
            "",
            "a b",
            "a.b",
            "*",
            "status",
            &"x".repeat(65),
        ];
        let expected = [true, true, true, false, false, false, false, false, false];
        assert_eq!(names.map(is_agent_name), expected);
    }
}
