//! The MCP servers of the chat: servers of a file, reports about servers, and their questions to
//! the person at the terminal.

use std::path::Path;

use rockbot::agent::{AgentHost, AgentHostBuilder};
use rockbot::config::Config;
use rockbot::prelude::*;

use tokio::sync::mpsc::Receiver;

use super::questions::{Question, Questions};
#[cfg(feature = "mcp")]
use super::terminal;
use super::terminal::Terminal;

/// Adds the answers of the person at the terminal to servers that ask for input.
#[cfg(feature = "mcp")]
pub(crate) fn answered(builder: AgentHostBuilder, questions: Questions) -> AgentHostBuilder {
    builder.add(at_terminal::AtTerminal(questions))
}

/// Adds nothing: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) fn answered(builder: AgentHostBuilder, _: Questions) -> AgentHostBuilder {
    builder
}

/// Adds the servers of `file` to the settings, and a search over services.
#[cfg(feature = "mcp")]
pub(crate) fn configured(config: Config, file: Option<&Path>) -> Result<Config, BoxError> {
    let Some(file) = file else {
        return Ok(config);
    };
    let path = std::path::absolute(file)?;
    let path = path.to_str().ok_or("the path of the MCP servers is no text")?;
    let config = config.with_variables([("ROCKBOT_MCP__CONFIGPATH", path)]);
    // With servers there is something to search.
    Ok(if config.section("ServiceSearch")?.is_set() {
        config
    } else {
        config.with_variables([("ROCKBOT_SERVICESEARCH__ENABLED", "true")])
    })
}

/// Refuses the file: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) fn configured(config: Config, file: Option<&Path>) -> Result<Config, BoxError> {
    match file {
        Some(_) => Err("MCP servers need a build with `--features mcp`".into()),
        None => Ok(config),
    }
}

/// Usual time until the servers of bridges are announced.
#[cfg(feature = "mcp")]
const ANNOUNCEMENT_TIME: std::time::Duration = std::time::Duration::from_secs(3);

/// Waits until one of the servers of bridges is there. Others, and later ones, are added while
/// the chat runs.
#[cfg(feature = "mcp")]
async fn announced(servers: &rockbot::mcp::McpServers) {
    let Some(mut changes) = servers.watch() else { return };
    let announced = async {
        loop {
            changes.borrow_and_update();
            let is_there = servers.list().iter().any(|server| server.bridge.is_some());
            if is_there || changes.changed().await.is_err() {
                return;
            }
        }
    };
    if tokio::time::timeout(ANNOUNCEMENT_TIME, announced).await.is_err() {
        eprintln!("no bridge on the bus has announced MCP servers yet");
    }
}

/// Waits until the servers are connected or have failed, so that the first question has their
/// tools, and reports failed servers.
#[cfg(feature = "mcp")]
pub(crate) async fn connected(
    host: &AgentHost,
    terminal: &mut Terminal,
    questions: &mut Receiver<Question>,
    has_bridges: bool,
) {
    use rockbot::mcp::{McpServerState, McpServers};

    let Some(servers) = host.parts().get::<McpServers>() else {
        return;
    };
    if has_bridges {
        announced(&servers).await;
    }
    let mut settled = std::pin::pin!(servers.settled());
    loop {
        tokio::select! {
            () = &mut settled => break,
            // A server may ask the person to authorize the agent.
            Some(question) = questions.recv() => terminal.answer(question).await,
        }
    }
    for server in servers.list() {
        match server.state {
            McpServerState::Failed(reason) => eprintln!("MCP server `{}` is not connected: {reason}", server.name),
            _ => {
                let bridge = server
                    .bridge
                    .map(|bridge| format!(" of the bridge `{}`", terminal::cut(&bridge)));
                let name = &server.name;
                let tools = server.tools.len();
                eprintln!("MCP server `{name}`{}: {tools} tools", bridge.unwrap_or_default());
            }
        }
        for left_out in &server.left_out {
            eprintln!("of `{}` is left out {left_out}", server.name);
        }
        if !server.held.is_empty() {
            let name = &server.name;
            eprintln!(
                "{} tools of `{name}` are held, since they or its entry have changed; `/accept {name}` shows them",
                server.held.len()
            );
        }
    }
}

/// Does nothing: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) async fn connected(_: &AgentHost, _: &mut Terminal, _: &mut Receiver<Question>, _: bool) {}

/// Shows the changed tools of a server, and accepts exactly these if the person agrees.
#[cfg(feature = "mcp")]
pub(crate) async fn accept(host: &AgentHost, terminal: &mut Terminal, server: &str) {
    let servers = host.parts().get::<rockbot::mcp::McpServers>().unwrap_or_default();
    let held = match servers.held(server) {
        Ok(held) if held.is_empty() => return eprintln!("no tool of `{server}` is held"),
        Ok(held) => held,
        Err(error) => return eprintln!("{error}"),
    };
    for tool in &held {
        let name = terminal::cut(&tool.name);
        let text = terminal::clean(&tool.description);
        eprintln!("  {name}: {text}\n  {}", terminal::clean(&tool.schema.to_string()));
    }
    if terminal.confirm("Accept them?").await {
        match servers.accept(server, &held) {
            Ok(()) => eprintln!("accepted"),
            Err(error) => eprintln!("{error}"),
        }
    } else {
        eprintln!("they stay held")
    }
}

/// Reports that there is no server: the program was built without MCP.
#[cfg(not(feature = "mcp"))]
#[expect(clippy::unused_async, reason = "as with MCP")]
pub(crate) async fn accept(_: &AgentHost, _: &mut Terminal, _: &str) {
    eprintln!("MCP servers need a build with `--features mcp`");
}

/// The person at the terminal, who answers servers that ask for input.
#[cfg(feature = "mcp")]
mod at_terminal {
    use std::sync::Arc;

    use async_trait::async_trait;
    use rockbot::CallContext;
    use rockbot::agent::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
    use rockbot::mcp::{
        Elicitation, ElicitationAnswer, ElicitationField, ElicitationForm, ElicitationHandler, ElicitationInput,
    };
    use rockbot::prelude::*;
    use serde_json::{Map, Value};

    use crate::chat::questions::Questions;
    use crate::chat::terminal::clean;

    #[derive(Debug, Clone)]
    pub(super) struct AtTerminal(pub(super) Questions);

    #[async_trait]
    impl Subsystem for AtTerminal {
        fn name(&self) -> &str {
            "terminal"
        }

        fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
            declarations.cost(PartCost::on("answers to MCP servers"));
            declarations.provide::<dyn ElicitationHandler>(Arc::new(self.clone()));
            #[cfg(feature = "mcp-oauth")]
            declarations.provide::<dyn rockbot::mcp::AuthorizationHandler>(Arc::new(self.clone()));
            Ok(())
        }

        async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
            Ok(Box::new(Idle))
        }
    }

    #[async_trait]
    impl ElicitationHandler for AtTerminal {
        async fn elicit(&self, elicitation: Elicitation, _: &CallContext) -> ElicitationAnswer {
            let asks = format!(
                "\n? The MCP server `{}` asks: {}\n",
                elicitation.server,
                clean(&elicitation.message)
            );
            match elicitation.input {
                ElicitationInput::Form(form) => {
                    if !self.0.confirm(&format!("{asks}  Answer it?")).await {
                        return ElicitationAnswer::Decline;
                    }
                    self.fill(&form)
                        .await
                        .map_or(ElicitationAnswer::Cancel, ElicitationAnswer::Accept)
                }
                ElicitationInput::Url(url) => {
                    if self.0.confirm(&format!("{asks}  Do you open {url} ?")).await {
                        ElicitationAnswer::Accept(Map::new())
                    } else {
                        ElicitationAnswer::Decline
                    }
                }
                _ => ElicitationAnswer::Decline,
            }
        }

        fn takes_urls(&self) -> bool {
            true
        }
    }

    #[cfg(feature = "mcp-oauth")]
    #[async_trait]
    impl rockbot::mcp::AuthorizationHandler for AtTerminal {
        async fn authorize(&self, asked: rockbot::mcp::Authorization) -> rockbot::mcp::AuthorizationAnswer {
            use rockbot::mcp::AuthorizationAnswer::{Decline, Redirected};

            let prompt = format!(
                "\n? The MCP server `{}` wants you to authorize this agent. Open this page in a browser, and agree there:\n  \
                 {}\n  Then paste the address that the browser shows at the end; it begins with {} (an empty line declines): ",
                asked.server,
                clean(&asked.url),
                clean(&asked.redirect_uri)
            );
            match self.0.ask(prompt).await {
                Some(line) if !line.trim().is_empty() => Redirected(line.trim().to_owned()),
                _ => Decline,
            }
        }
    }

    impl AtTerminal {
        /// Asks for the fields, again if the answers do not fit. Returns `None` if the person
        /// stops.
        async fn fill(&self, form: &ElicitationForm) -> Option<Map<String, Value>> {
            loop {
                let mut values = Map::new();
                for field in &form.fields {
                    if let Some(value) = self.value(field).await? {
                        values.insert(field.name.clone(), value);
                    }
                }
                match form.complete(values) {
                    Ok(values) => return Some(values),
                    Err(problem) => eprintln!("  {problem}"),
                }
            }
        }

        /// Asks for the value of a field; an empty line leaves it out, or takes the default.
        async fn value(&self, field: &ElicitationField) -> Option<Option<Value>> {
            let default = field.default.as_ref().map(|value| format!(" [{value}]"));
            let prompt = format!("  {}{}: ", clean(&field.label), clean(&default.unwrap_or_default()));
            loop {
                let line = self.0.ask(prompt.clone()).await?;
                if line.trim().is_empty() {
                    return Some(None);
                }
                match field.read(&line) {
                    Ok(value) => return Some(Some(value)),
                    Err(expected) => eprintln!("  possible: {}", clean(&expected)),
                }
            }
        }
    }
}
