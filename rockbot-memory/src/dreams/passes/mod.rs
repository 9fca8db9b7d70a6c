//! The passes: one file each. A pass reads, asks and drafts plans; it changes nothing.

mod anti_patterns;
mod consolidation;
mod contradictions;
mod duplicates;
mod facts;
mod log;
mod mining;
mod preferences;
mod rules;
mod see_also;
mod skill_consolidation;
mod skill_gap;
mod skill_optimization;
mod tier_routing;

use rockbot_core::store::StoreError;

use super::pass::DreamPass;
use super::pass_context::PassContext;

/// Runs a pass. The result is in the outcome of the context.
pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    match cx.pass {
        DreamPass::DuplicateFold => duplicates::run(cx).await,
        DreamPass::MemoryConsolidation => consolidation::run(cx).await,
        DreamPass::ContradictionSweep => contradictions::run(cx).await,
        DreamPass::PreferenceInference => preferences::run(cx).await,
        DreamPass::AntiPatterns => anti_patterns::run(cx).await,
        DreamPass::SkillGap => skill_gap::run(cx).await,
        DreamPass::SkillConsolidation => skill_consolidation::run(cx).await,
        DreamPass::SkillOptimization => skill_optimization::run(cx).await,
        DreamPass::SeeAlso => see_also::run(cx).await,
        DreamPass::RuleProposals => rules::run(cx).await,
        DreamPass::TierRoutingReview => tier_routing::run(cx).await,
        DreamPass::MemoryMining => mining::run(cx).await,
    }
}
