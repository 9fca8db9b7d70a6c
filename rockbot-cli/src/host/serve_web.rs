//! Serving the agent to people and their programs: the option `--serve-web ADDRESS`.

use rockbot::config::Config;
use rockbot::prelude::*;

/// Adds the address to the settings.
#[cfg(feature = "web-server")]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    Ok(match address {
        Some(address) => config.with_variables([("ROCKBOT_WEBSERVER__ADDRESS", address)]),
        None => config,
    })
}

/// Refuses the address: the program was built without a web server.
#[cfg(not(feature = "web-server"))]
pub fn configured(config: Config, address: Option<&str>) -> Result<Config, BoxError> {
    match address {
        Some(_) => Err("serving the agent over HTTP needs a build with `--features web-server`".into()),
        None => Ok(config),
    }
}

/// Returns the URL at which a started host serves its agent, if it does.
#[cfg(feature = "web-server")]
pub fn url(host: &AgentHost) -> Option<String> {
    let endpoint = host.parts().get::<rockbot::web_server::WebEndpoint>()?;
    Some(format!("http://{}/", endpoint.address()?))
}

/// Returns nothing: the program was built without a web server.
#[cfg(not(feature = "web-server"))]
pub fn url(_: &AgentHost) -> Option<String> {
    None
}
