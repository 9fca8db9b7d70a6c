//! The options of an agent's remote tools, from code and from settings.

use std::collections::BTreeSet;
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;

/// The options of the subsystem.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The workers whose tools are taken; all workers if the set is empty.
    pub(super) only: BTreeSet<String>,
    /// The workers whose words about their tools are trusted.
    pub(super) vouched: BTreeSet<String>,
    /// The workers without which the host is not ready.
    pub(super) expected: BTreeSet<String>,
    /// Maximum time of a call; the default if it is not set.
    pub(super) time_limit: Option<Duration>,
}

impl Options {
    /// Adds the settings in the section `RemoteTools` of the configuration.
    pub(super) fn read(&mut self, config: &Config) -> Result<(), BoxError> {
        let section = config.section("RemoteTools")?;
        let names = |name| section.get_or::<Vec<String>>(name, Vec::new());
        self.only.extend(names("Workers")?);
        self.vouched.extend(names("Vouched")?);
        self.expected.extend(names("Expected")?);
        let configured = section.get::<Duration>("TimeLimit")?;
        self.time_limit = self.time_limit.or(configured);
        Ok(())
    }
}
