//! The section `Dream`.

use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

/// The consolidation of memories and skills while the agent is idle. It has no effect yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DreamSettings {
    /// `Enabled`: whether dreams take place. Default `true`.
    pub enabled: bool,
    /// `InitialDelay`: time from the start of the host to the first dream. Default 5 minutes.
    pub initial_delay: Duration,
    /// `Interval`: time from one dream to the next. Default 4 hours.
    pub interval: Duration,
    /// `TierRoutingReviewEnabled`: whether dreams review the tiers of routed requests. Default
    /// `true`.
    pub tier_routing_review_enabled: bool,
}

impl Default for DreamSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            initial_delay: Duration::from_secs(5 * 60),
            interval: Duration::from_secs(4 * 3600),
            tier_routing_review_enabled: true,
        }
    }
}

impl DreamSettings {
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        let (section, default) = (config.section("Dream")?, Self::default());
        let review = section.get_or("TierRoutingReviewEnabled", default.tier_routing_review_enabled)?;
        Ok(Self {
            enabled: section.get_or("Enabled", default.enabled)?,
            initial_delay: section.get_or("InitialDelay", default.initial_delay)?,
            interval: section.interval("Interval", default.interval)?,
            tier_routing_review_enabled: review,
        })
    }
}
