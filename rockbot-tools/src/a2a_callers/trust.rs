//! The trust in a calling agent: which of the tools that the operator names for it its tasks have.

use std::str::FromStr;

use rockbot_core::tool::{Effect, ToolFilter, ToolRegistry, ToolSelector};

/// Source of the tools that change the caller's own memory.
const MEMORY: &str = "memory";

/// The trust in a calling agent, as the original grades it. It narrows the tools that the operator
/// names for the agent.
///
/// | | tools that only read | memory of its own | tools that change something |
/// |---|---|---|---|
/// | `Observe` | yes | no | no |
/// | `Learn` | yes | yes | no |
/// | `Propose` | yes | yes | each call waits for the operator; on a host without one the answer proposes it |
/// | `Act` | yes | yes | yes |
///
/// A call of a tool that needs an approval asks the operator, whatever the trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum CallerTrust {
    /// Reads alone.
    Observe,
    /// Reads, and remembers for its own tasks.
    Learn,
    /// Changes only what the operator approves.
    Propose,
    /// Does what the tools do that the operator names.
    #[default]
    Act,
}

impl CallerTrust {
    /// Narrows the filter of a task's tools. `registry` has the tools of the host, of which the
    /// pure tools are known now.
    pub(crate) fn narrowed(self, filter: ToolFilter, registry: &dyn ToolRegistry) -> ToolFilter {
        let tools = registry.snapshot();
        let pure = tools.entries().iter().map(|entry| entry.registration());
        let pure = pure
            .filter(|tool| tool.effect == Effect::Pure)
            .map(|tool| ToolSelector::from(tool.name.clone()));
        match self {
            Self::Observe => filter.and(&ToolFilter::only(pure)),
            Self::Learn => filter.and(&ToolFilter::only(pure.chain([ToolSelector::source(MEMORY)]))),
            Self::Propose | Self::Act => filter,
        }
    }

    /// Returns `true` if a task only informs: its turn changes nothing outside that no person
    /// approves, at any depth of delegation.
    pub(crate) fn only_informs(self) -> bool {
        self < Self::Act
    }
}

impl FromStr for CallerTrust {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [
            ("observe", Self::Observe),
            ("learn", Self::Learn),
            ("propose", Self::Propose),
            ("act", Self::Act),
        ];
        let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
        found.map(|(_, trust)| *trust).ok_or(())
    }
}
