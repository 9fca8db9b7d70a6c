//! Serving the agent to other agents: the option `--serve-a2a ADDRESS`.

use rockbot::config::Config;
use rockbot::prelude::*;

/// Adds the address to the settings.
#[cfg(feature = "a2a-server")]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    Ok(match address {
        Some(address) => config.with_variables([("ROCKBOT_A2ASERVER__ADDRESS", address)]),
        None => config,
    })
}

/// Refuses the address: the program was built without an A2A server.
#[cfg(not(feature = "a2a-server"))]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    match address {
        Some(_) => Err("serving the agent over A2A needs a build with `--features a2a-server`".into()),
        None => Ok(config),
    }
}

/// Returns the URL at which a started host serves its agent, if it does.
#[cfg(feature = "a2a-server")]
pub fn url(host: &AgentHost) -> Option<String> {
    let endpoint = host.parts().get::<rockbot::tools::a2a_server::A2aEndpoint>()?;
    Some(format!("http://{}/", endpoint.address()?))
}

/// Returns nothing: the program was built without an A2A server.
#[cfg(not(feature = "a2a-server"))]
pub fn url(_: &AgentHost) -> Option<String> {
    None
}
