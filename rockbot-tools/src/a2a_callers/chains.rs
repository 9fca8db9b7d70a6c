//! The chains of agents through which tasks came: no task goes round in a circle.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::{Principal, SessionId};

use super::is_agent_name;

/// Header with the names of the agents through which a task came, from the first caller on. The
/// original has none.
pub(crate) const HEADER: &str = "rb-agent-chain";

/// Maximum number of agents of a chain: the callers and the called agent.
pub(crate) const MAX_AGENTS: usize = 5;

/// The chains of the tasks that this host does for other agents. Each door provides them to
/// the caller of the same host.
#[derive(Debug, Default)]
pub(crate) struct Chains(Mutex<HashMap<(Principal, SessionId), Vec<String>>>);

impl Chains {
    /// Notes the chain of the task in a session.
    pub(crate) fn set(&self, principal: Principal, session: SessionId, chain: Vec<String>) {
        self.lock().insert((principal, session), chain);
    }

    /// Forgets the chain of a session.
    pub(crate) fn remove(&self, principal: Principal, session: SessionId) {
        self.lock().remove(&(principal, session));
    }

    /// Returns the agents through which the task in a session came; `None` if the session has no
    /// task of another agent.
    pub(crate) fn of(&self, principal: &Principal, session: &SessionId) -> Option<Vec<String>> {
        self.lock().get(&(principal.clone(), session.clone())).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Principal, SessionId), Vec<String>>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the chain that a message of `source` names, with commas: its last agent is always the
/// sender.
pub(crate) fn read(written: Option<&str>, source: &str) -> Vec<String> {
    let names = written
        .unwrap_or_default()
        .split(',')
        .filter(|name| is_agent_name(name));
    // One agent more than is allowed tells that the chain is too long.
    let mut chain: Vec<_> = names.take(MAX_AGENTS).map(str::to_owned).collect();
    if chain.last().is_none_or(|last| !last.eq_ignore_ascii_case(source)) {
        chain.push(source.to_owned());
    }
    chain
}

/// Checks that `called` may be called at the end of `chain`.
///
/// # Errors
///
/// Returns the reason why the call is refused, in words for a model.
pub(crate) fn check(chain: &[String], called: &str) -> Result<(), String> {
    let shown = || format!("{} → {called}", chain.join(" → "));
    if chain.iter().any(|agent| agent.eq_ignore_ascii_case(called)) {
        return Err(format!(
            "`{called}` waits for this task itself, and the agents would go round in a circle ({}): answer with what you \
             have",
            shown()
        ));
    }
    if chain.len() >= MAX_AGENTS {
        return Err(format!(
            "the task went through too many agents already ({}, at most {MAX_AGENTS}): answer with what you have",
            shown()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_the_last_agent_of_a_chain_whatever_it_writes() {
        assert_eq!(read(None, "bob"), ["bob"]);
        assert_eq!(read(Some("ann,bob"), "bob"), ["ann", "bob"]);
        assert_eq!(read(Some("ann,x y,,*"), "bob"), ["ann", "bob"]);
        assert_eq!(read(Some(&"a,".repeat(100_000)), "bob").len(), MAX_AGENTS + 1);
    }

    #[test]
    fn circles_and_long_chains_are_refused_with_their_agents() {
        let chain = ["ann", "bob"].map(str::to_owned);
        assert_eq!(check(&chain, "carl"), Ok(()));
        let circle = check(&chain, "Ann").unwrap_err();
        assert!(circle.contains("(ann → bob → Ann)"), "{circle}");
        let long = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert!(check(&long, "f").unwrap_err().contains("at most 5"));
        assert_eq!(check(&long[1..], "f"), Ok(()));
    }
}
