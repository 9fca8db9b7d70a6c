//! The options of an agent that takes servers of bridges, from code and from settings.

use std::collections::BTreeSet;

use rockbot_core::BoxError;
use rockbot_core::config::{Config, Section};

/// The options of the subsystem.
#[derive(Debug, Clone, Default)]
pub(super) struct ProxyOptions {
    /// The bridges whose servers are taken; all of them if there is none.
    pub(super) only: BTreeSet<String>,
    /// The servers that the operator vouches for, each with its bridge. The case of servers does not
    /// matter.
    pub(super) vouched: BTreeSet<(String, String)>,
    /// The servers without whose tools the host is not ready, each with its bridge, in the same form.
    pub(super) expected: BTreeSet<(String, String)>,
}

impl ProxyOptions {
    /// Adds the settings of the section `McpProxy` of the configuration.
    pub(super) fn read(&mut self, config: &Config) -> Result<(), BoxError> {
        let section = config.section("McpProxy")?;
        self.only.extend(section.get_or::<Vec<String>>("Bridges", Vec::new())?);
        self.vouched.extend(pairs(&section, "Vouched")?);
        self.expected.extend(pairs(&section, "Expected")?);
        Ok(())
    }

    /// Returns `true` if the operator vouches for a server of a bridge.
    pub(super) fn is_vouched(&self, bridge: &str, key: &str) -> bool {
        self.vouched.contains(&(bridge.to_owned(), key.to_owned()))
    }

    /// Returns `true` if the servers of a bridge are taken.
    pub(super) fn takes(&self, bridge: &str) -> bool {
        self.only.is_empty() || self.only.contains(bridge)
    }
}

/// Returns a bridge's server in the form that options use for its name.
pub(super) fn pair(bridge: &str, server: &str) -> (String, String) {
    (bridge.to_owned(), server.to_lowercase())
}

/// Returns the servers that a setting lists as `bridge/server`.
fn pairs(section: &Section<'_>, name: &str) -> Result<Vec<(String, String)>, BoxError> {
    let listed = section.get_or::<Vec<String>>(name, Vec::new())?;
    let pairs = listed.iter().map(|listed| {
        let (bridge, server) = listed.split_once('/').ok_or_else(|| {
            format!("`McpProxy.{name}` holds `{listed}`: write the bridge and its server as `bridge/server`")
        })?;
        Ok(pair(bridge, server))
    });
    pairs.collect()
}
