//! Options of dreams, and the section `Dream` of the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::chat::{MicroUsd, ModelTier};
use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};

use super::pass::DreamPass;

/// Options of dreams.
///
/// The section `Dream` of the settings has them under the names in the table. `{Pass}` is the name
/// of a pass, such as `MemoryConsolidation`; see [`DreamPass`].
///
/// | setting | option |
/// |---|---|
/// | `Enabled` | `false` turns dreams off |
/// | `InitialDelay`, `Interval` | [`initial_delay`](Self::initial_delay), [`interval`](Self::interval) |
/// | `ProposeOnly` | `true` empties [`auto_apply`](Self::auto_apply) |
/// | `AutoApply` | [`auto_apply`](Self::auto_apply), a list of passes |
/// | `MaxCost`, `MaxCalls` | [`max_cost`](Self::max_cost), [`max_calls`](Self::max_calls) |
/// | `Tier`, `{Pass}Tier` | [`tier`](Self::tier), [`tiers`](Self::tiers) |
/// | `{Pass}Enabled` | [`disabled`](Self::disabled) |
/// | `{Pass}Directive` | [`directives`](Self::directives) |
/// | `CronSchedule` | the times of cycles in the zone `AgentHost.TimeZone`, in place of `Interval`: see [`Dreaming::with_times`](super::Dreaming::with_times). A host from a configuration reads it, with the feature `scheduling` |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DreamOptions {
    /// Time from the start of the host to the first cycle, at least. Default 5 minutes.
    pub initial_delay: Duration,
    /// Time from the end of a cycle to the next cycle, restarts included. Default 4 hours.
    pub interval: Duration,
    /// Passes whose plans are applied at once if they pass all checks. The plans of other passes
    /// wait for a person. Default: the passes that ask no model. [`DreamPass::RuleProposals`] has
    /// no effect here: a person decides about rules.
    pub auto_apply: BTreeSet<DreamPass>,
    /// Passes that are off. Default [`DreamPass::MemoryConsolidation`]: its merges make a memory
    /// smaller, and bring no more right answers.
    pub disabled: BTreeSet<DreamPass>,
    /// Maximum cost of the model calls of a cycle, as far as their prices are known: once it is
    /// reached, no further call is made. Default no limit.
    pub max_cost: Option<MicroUsd>,
    /// Maximum number of model calls of a cycle. Default 20.
    pub max_calls: u32,
    /// Tier of the models. Default [`ModelTier::Balanced`].
    pub tier: ModelTier,
    /// Tiers of particular passes.
    pub tiers: BTreeMap<DreamPass, ModelTier>,
    /// Files with the instructions of particular passes, below the data folder; they are read each
    /// time. A file that is missing or blank means the default text. Default: the files that
    /// [`DreamPass`] names.
    pub directives: BTreeMap<DreamPass, PathBuf>,
}

impl Default for DreamOptions {
    fn default() -> Self {
        Self {
            initial_delay: Duration::from_secs(5 * 60),
            interval: Duration::from_secs(4 * 60 * 60),
            auto_apply: DreamPass::ALL.into_iter().filter(|pass| !pass.asks_model()).collect(),
            disabled: BTreeSet::from([DreamPass::MemoryConsolidation]),
            max_cost: None,
            max_calls: 20,
            tier: ModelTier::Balanced,
            tiers: BTreeMap::new(),
            directives: BTreeMap::new(),
        }
    }
}

impl DreamOptions {
    /// Reads the section `Dream`. Returns `None` if `Enabled` is `false`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Option<Self>, ConfigError> {
        let section = config.section("Dream")?;
        let default = Self::default();
        let is_enabled = section.get_or("Enabled", true)?;
        let mut options = Self {
            initial_delay: section.get_or("InitialDelay", default.initial_delay)?,
            interval: section.interval("Interval", default.interval)?,
            max_cost: section.get("MaxCost")?,
            max_calls: section.get_or("MaxCalls", default.max_calls)?,
            tier: section.get_or("Tier", Tier(default.tier))?.0,
            ..default
        };
        if let Some(passes) = section.get::<Vec<DreamPass>>("AutoApply")? {
            options.auto_apply = passes.into_iter().collect();
        }
        if section.get_or("ProposeOnly", false)? {
            options.auto_apply.clear();
        }
        for pass in DreamPass::ALL {
            options.read_pass(&section, pass)?;
        }
        Ok(is_enabled.then_some(options))
    }

    fn read_pass(&mut self, section: &Section<'_>, pass: DreamPass) -> Result<(), ConfigError> {
        if section.get_or(&format!("{pass:?}Enabled"), !self.disabled.contains(&pass))? {
            self.disabled.remove(&pass);
        } else {
            self.disabled.insert(pass);
        }
        if !pass.asks_model() {
            return Ok(());
        }
        let tier = section.get::<Tier>(&format!("{pass:?}Tier"))?;
        self.tiers.extend(tier.map(|tier| (pass, tier.0)));
        let directive = section.get(&format!("{pass:?}Directive"))?;
        self.directives.extend(directive.map(|file| (pass, file)));
        Ok(())
    }

    /// Sets the time from the start of the host to the first cycle. Default 5 minutes.
    #[must_use]
    pub fn with_initial_delay(mut self, initial_delay: Duration) -> Self {
        self.initial_delay = initial_delay;
        self
    }

    /// Sets the time from the end of a cycle to the next cycle. Default 4 hours.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the passes whose plans are applied at once. Without passes every plan waits for a
    /// person. Default: the passes that ask no model.
    #[must_use]
    pub fn with_auto_apply(mut self, passes: impl IntoIterator<Item = DreamPass>) -> Self {
        self.auto_apply = passes.into_iter().collect();
        self
    }

    /// Sets the passes that are off. Default [`DreamPass::MemoryConsolidation`]; without passes all
    /// are on.
    #[must_use]
    pub fn with_disabled(mut self, passes: impl IntoIterator<Item = DreamPass>) -> Self {
        self.disabled = passes.into_iter().collect();
        self
    }

    /// Sets the maximum cost of the model calls of a cycle. Default no limit.
    #[must_use]
    pub fn with_max_cost(mut self, max_cost: impl Into<Option<MicroUsd>>) -> Self {
        self.max_cost = max_cost.into();
        self
    }

    /// Sets the maximum number of model calls of a cycle. Default 20.
    #[must_use]
    pub fn with_max_calls(mut self, max_calls: u32) -> Self {
        self.max_calls = max_calls;
        self
    }

    /// Sets the tier of the models. Default [`ModelTier::Balanced`].
    #[must_use]
    pub fn with_tier(mut self, tier: ModelTier) -> Self {
        self.tier = tier;
        self
    }

    /// Sets the tiers of particular passes. Default none.
    #[must_use]
    pub fn with_tiers(mut self, tiers: BTreeMap<DreamPass, ModelTier>) -> Self {
        self.tiers = tiers;
        self
    }

    /// Sets the files with the instructions of particular passes, below the data folder.
    #[must_use]
    pub fn with_directives(mut self, directives: BTreeMap<DreamPass, PathBuf>) -> Self {
        self.directives = directives;
        self
    }

    /// Returns the passes that are on, in their order.
    pub(super) fn passes(&self) -> impl Iterator<Item = DreamPass> {
        DreamPass::ALL.into_iter().filter(|pass| !self.disabled.contains(pass))
    }

    /// Returns the tier of the models of a pass.
    pub(super) fn tier_of(&self, pass: DreamPass) -> ModelTier {
        self.tiers.get(&pass).copied().unwrap_or(self.tier)
    }
}

/// A tier in the settings.
struct Tier(ModelTier);

impl FromSetting for Tier {
    const EXPECTED: &'static str = "`Low`, `Balanced` or `High`";

    fn from_value(value: &Value) -> Option<Self> {
        let name = value.as_text()?;
        let tier = ModelTier::ALL
            .into_iter()
            .find(|tier| tier.name().eq_ignore_ascii_case(name));
        tier.map(Self)
    }
}

impl FromSetting for DreamPass {
    const EXPECTED: &'static str = "the name of a pass, such as `DuplicateFold`";

    fn from_value(value: &Value) -> Option<Self> {
        Self::named(value.as_text()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<DreamOptions>, String> {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        DreamOptions::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn the_settings_of_the_original_are_read() {
        let text = "[Dream]\nEnabled = true\nInitialDelay = \"00:01:00\"\nInterval = \"1.00:00:00\"\nTierRoutingReviewEnabled = false";
        let expected = DreamOptions::default()
            .with_initial_delay(Duration::from_secs(60))
            .with_interval(Duration::from_secs(24 * 60 * 60))
            .with_disabled([DreamPass::MemoryConsolidation, DreamPass::TierRoutingReview]);
        assert_eq!(read(text), Ok(Some(expected)));
        assert_eq!(read(""), Ok(Some(DreamOptions::default())));
        assert_eq!(read("[Dream]\nEnabled = false"), Ok(None));
    }

    #[test]
    fn each_pass_has_its_own_tier_directive_and_mode() {
        let text = "[Dream]\nAutoApply = [\"DuplicateFold\", \"memory-consolidation\"]\nMaxCost = 0.25\nMaxCalls = 3\nTier = \"High\"\n\
            SkillGapTier = \"low\"\nSkillGapDirective = \"gap.md\"\nMemoryConsolidationEnabled = true";
        let expected = DreamOptions::default()
            .with_disabled([])
            .with_auto_apply([DreamPass::DuplicateFold, DreamPass::MemoryConsolidation])
            .with_max_cost(MicroUsd(250_000))
            .with_max_calls(3)
            .with_tier(ModelTier::High)
            .with_tiers(BTreeMap::from([(DreamPass::SkillGap, ModelTier::Low)]))
            .with_directives(BTreeMap::from([(DreamPass::SkillGap, "gap.md".into())]));
        assert_eq!(read(text), Ok(Some(expected)));
        let silent = DreamOptions::default().with_auto_apply([]);
        assert_eq!(read("[Dream]\nProposeOnly = true"), Ok(Some(silent)));
    }

    #[test]
    fn an_unknown_pass_or_tier_is_an_error() {
        for (text, problem) in [
            (
                "[Dream]\nAutoApply = [\"Everything\"]",
                "`Dream.AutoApply` in `agent.toml`",
            ),
            (
                "[Dream]\nTier = \"huge\"",
                "`Dream.Tier` in `agent.toml`: expected `Low`, `Balanced` or `High`",
            ),
            (
                "[Dream]\nInterval = \"00:00:00\"",
                "`Dream.Interval` in `agent.toml`: expected a time span above zero",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
