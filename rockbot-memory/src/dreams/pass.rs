//! The passes of a dream cycle, with their names in settings, plans and files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A pass of a dream cycle: one kind of care for the agent's knowledge.
///
/// Passes run in the order of the variants. In the settings a pass has the name of its variant, as
/// in `Dream.MemoryConsolidationEnabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DreamPass {
    /// Folds memories with the same words into one. Asks no model.
    DuplicateFold,
    /// Merges memories that say nearly the same. Off by default. Directive `dream.md`.
    MemoryConsolidation,
    /// Finds statements of one speaker that contradict each other: the newer one wins. Directive
    /// `contradiction-dream.md`.
    ContradictionSweep,
    /// Infers preferences of the user from a week of the user's messages. Directive
    /// `pref-dream.md`.
    PreferenceInference,
    /// Notes mistakes not to repeat, from corrections and failing tools. Directive
    /// `anti-pattern-dream.md`.
    AntiPatterns,
    /// Writes skills for work that came up several times without a skill. Directive `skill-gap.md`.
    SkillGap,
    /// Merges skills that are for the same work. Directive `skill-dream.md`.
    SkillConsolidation,
    /// Improves skills that were used in sessions which went badly. Directive `skill-optimize.md`.
    SkillOptimization,
    /// Links skills that are used together. Asks no model.
    SeeAlso,
    /// Proposes rules from corrections that came up several times. Directive `rule-dream.md`.
    RuleProposals,
    /// Reviews the routing of messages to tiers. Directive `tier-routing-directive.md`.
    TierRoutingReview,
    /// Finds facts in the conversation log that were not saved. Directive `mining-dream.md`.
    MemoryMining,
}

impl DreamPass {
    /// All passes, in the order of their runs.
    pub const ALL: [Self; 12] = [
        Self::DuplicateFold,
        Self::MemoryConsolidation,
        Self::ContradictionSweep,
        Self::PreferenceInference,
        Self::AntiPatterns,
        Self::SkillGap,
        Self::SkillConsolidation,
        Self::SkillOptimization,
        Self::SeeAlso,
        Self::RuleProposals,
        Self::TierRoutingReview,
        Self::MemoryMining,
    ];

    /// Returns the name of the pass in plans, file names and the log, such as `duplicate-fold`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DuplicateFold => "duplicate-fold",
            Self::MemoryConsolidation => "memory-consolidation",
            Self::ContradictionSweep => "contradiction-sweep",
            Self::PreferenceInference => "preference-inference",
            Self::AntiPatterns => "anti-patterns",
            Self::SkillGap => "skill-gap",
            Self::SkillConsolidation => "skill-consolidation",
            Self::SkillOptimization => "skill-optimization",
            Self::SeeAlso => "see-also",
            Self::RuleProposals => "rule-proposals",
            Self::TierRoutingReview => "tier-routing-review",
            Self::MemoryMining => "memory-mining",
        }
    }

    /// Returns `true` if the pass asks a model. Its plans wait for a person by default.
    pub fn asks_model(self) -> bool {
        self.directive().is_some()
    }

    /// Returns the file with the instructions of the pass's model, below the data folder, and the
    /// default text; `None` for a pass that asks no model.
    pub(super) fn directive(self) -> Option<(&'static str, &'static str)> {
        let files = match self {
            Self::DuplicateFold | Self::SeeAlso => return None,
            Self::MemoryConsolidation => ("dream.md", include_str!("directives/dream.md")),
            Self::ContradictionSweep => (
                "contradiction-dream.md",
                include_str!("directives/contradiction-dream.md"),
            ),
            Self::PreferenceInference => ("pref-dream.md", include_str!("directives/pref-dream.md")),
            Self::AntiPatterns => (
                "anti-pattern-dream.md",
                include_str!("directives/anti-pattern-dream.md"),
            ),
            Self::SkillGap => ("skill-gap.md", include_str!("directives/skill-gap.md")),
            Self::SkillConsolidation => ("skill-dream.md", include_str!("directives/skill-dream.md")),
            Self::SkillOptimization => ("skill-optimize.md", include_str!("directives/skill-optimize.md")),
            Self::RuleProposals => ("rule-dream.md", include_str!("directives/rule-dream.md")),
            Self::TierRoutingReview => (
                "tier-routing-directive.md",
                include_str!("directives/tier-routing-directive.md"),
            ),
            Self::MemoryMining => ("mining-dream.md", include_str!("directives/mining-dream.md")),
        };
        Some(files)
    }

    /// Returns the pass with this name, in either notation: `DuplicateFold` or `duplicate-fold`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_named = |pass: &Self| name.eq_ignore_ascii_case(&format!("{pass:?}")) || name == pass.name();
        Self::ALL.into_iter().find(is_named)
    }
}

impl fmt::Display for DreamPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
