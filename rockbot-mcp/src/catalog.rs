//! The servers as services that a search finds.

use async_trait::async_trait;
use rockbot_core::content::Provenance;
use rockbot_core::service::{KnownService, ServiceKind, ServiceSource};
use rockbot_core::support::one_line;
use rockbot_core::trust::Trust;
use rockbot_core::{BoxError, Principal};

use crate::management::GROUP;
use crate::servers::McpServers;
use crate::service::Service;

/// Number of tools whose names stand for a server without words of its own.
const NAMED: usize = 10;

#[async_trait]
impl ServiceSource for McpServers {
    fn name(&self) -> &str {
        "mcp"
    }

    async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
        let servers = self.runtime().map(|runtime| runtime.bridge.all()).unwrap_or_default();
        let known = servers
            .iter()
            .filter(|service| !service.state.borrow().tools.is_empty());
        Ok(known.map(|service| described(service)).collect())
    }
}

fn described(service: &Service) -> KnownService {
    let state = service.state.borrow().clone();
    let names: Vec<String> = state
        .tools
        .iter()
        .map(|tool| one_line(&tool.name).into_owned())
        .collect();
    let summary = match &state.instructions {
        Some(text) => one_line(text).into_owned(),
        None => in_names(&names),
    };
    let words: Vec<&str> = state.tools.iter().map(|tool| tool.description.as_str()).collect();
    let server = &service.server;
    let known = KnownService::new(ServiceKind::McpServer, server.name(), summary)
        .with_items(names)
        .with_words(words.join("\n"))
        .with_activates(GROUP);
    if server.is_trusted {
        known
    } else {
        known.with_provenance(Provenance::new(
            format!("tools:mcp:{}", server.name()),
            Trust::Untrusted,
        ))
    }
}

/// Describes a server by its tools.
fn in_names(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => format!("Provides {} tool(s): {shown}.", names.len()),
        more => format!("Provides {} tool(s): {shown} and {more} more.", names.len()),
    }
}
