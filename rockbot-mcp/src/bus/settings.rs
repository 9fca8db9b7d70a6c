//! The options of an agent that takes servers of bridges, from code and from settings.

use std::collections::BTreeSet;

use rockbot_core::BoxError;
use rockbot_core::config::Config;

/// The options of the subsystem.
#[derive(Debug, Clone, Default)]
pub(super) struct ProxyOptions {
    /// The bridges whose servers are taken; all of them if there is none.
    pub(super) only: BTreeSet<String>,
    /// The servers for which the operator vouches, each with its bridge. The case of servers does not matter.
    pub(super) vouched: BTreeSet<(String, String)>,
}

impl ProxyOptions {
    /// Adds what the section `McpProxy` of the configuration states.
    pub(super) fn read(&mut self, config: &Config) -> Result<(), BoxError> {
        let section = config.section("McpProxy")?;
        self.only.extend(section.get_or::<Vec<String>>("Bridges", Vec::new())?);
        for pair in section.get_or::<Vec<String>>("Vouched", Vec::new())? {
            let (bridge, server) = pair.split_once('/').ok_or_else(|| {
                format!("`McpProxy.Vouched` holds `{pair}`: write the bridge and its server as `bridge/server`")
            })?;
            self.vouch_for(bridge, server);
        }
        Ok(())
    }

    pub(super) fn vouch_for(&mut self, bridge: &str, server: &str) {
        self.vouched.insert((bridge.to_owned(), server.to_lowercase()));
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
