//! The agent over HTTP, over real connections: messages and events, users, bounds.

mod ag_ui;
mod announcements;
mod backup;
mod bounds;
pub(crate) mod client;
mod hostile;
mod insights;
mod kill;
#[cfg(target_os = "linux")]
mod load;
mod messages;
mod openai;
mod page;
mod sign_in;
mod statements;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rockbot::web_server::{WebEndpoint, WebServer, WebUser};
use rockbot_core::testing::{ScriptedModel, outside_part};
use rockbot_core::tool::{Tool, tool};
use rockbot_host::{AgentHost, AgentHostBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::Semaphore;

use client::User;

/// Returns the folder with the SDKs of others, if they are installed.
fn sdks() -> Option<PathBuf> {
    let advice = "`.ci/web-sdks` installs the SDKs and names their folder";
    outside_part("ROCKBOT_TEST_WEB_SDKS", advice)
}

/// Runs a Python program that uses one of the SDKs at `url`, and asserts what it prints.
async fn assert_python_says(sdks: &Path, program: &str, url: &str, expected: &[&str]) {
    let output = Command::new("python3")
        .args(["-c", program, url])
        .env("PYTHONPATH", sdks.join("python"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server of two users.
pub(crate) fn server() -> WebServer {
    WebServer::new()
        .listen("127.0.0.1:0")
        .user(WebUser::new("ann", "sesame".to_owned()))
        .user(WebUser::new("bob", "mustard".to_owned()))
}

/// A host that serves, and its address.
pub(crate) struct Serving {
    pub(crate) host: AgentHost,
    pub(crate) address: SocketAddr,
}

impl Serving {
    pub(crate) async fn start(builder: AgentHostBuilder) -> Self {
        let host = builder.build().unwrap();
        host.start().await.unwrap();
        let address = host.parts().require::<WebEndpoint>().unwrap().address().unwrap();
        Self { host, address }
    }

    pub(crate) async fn of(model: &ScriptedModel) -> Self {
        Self::start(AgentHost::in_memory().chat(model.clone()).add(server())).await
    }

    pub(crate) fn ann(&self) -> User {
        User::new(self.address, "sesame")
    }

    pub(crate) fn bob(&self) -> User {
        User::new(self.address, "mustard")
    }

    pub(crate) async fn stop(self) {
        self.host.shutdown(Duration::from_secs(5)).await;
    }
}

/// Waits.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Returns a tool that ends once a permit is added.
pub(crate) fn waiting(name: &'static str) -> (Tool, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let wait = tool(name, move |_: Nothing| {
        let gate = opened.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            "opened"
        }
    });
    (wait.pure(), gate)
}
