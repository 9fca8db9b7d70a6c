//! The reload of a changed file of servers, by difference: servers that stay the same stay
//! connected.
//!
//! A file of servers is read every two seconds, not watched: notifications are lost on network
//! volumes. It counts once it is the same at two looks, so that no half-written file is read.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rockbot_core::Digest;
use tokio::time::sleep;

use crate::config::{self, ConfigProblem, ConfigProblems, ServerList};
use crate::runtime::Runtime;
use crate::server::McpServer;
use crate::service::Origin;

/// Interval between two looks at the file. Notifications of the file system are lost on network
/// volumes.
const INTERVAL: Duration = Duration::from_secs(2);

/// Applies the changes of a file until the host stops. A change counts once it is the same at two
/// looks, so that a file is not read while it is written; while the file cannot be used, the
/// servers stay as they are.
///
/// `applied` is the digest of the file as the servers were read from it.
pub(crate) async fn watch(
    runtime: Weak<Runtime>,
    problems: Arc<ConfigProblems>,
    file: PathBuf,
    mut applied: Option<Digest>,
) {
    let mut seen = applied;
    loop {
        sleep(INTERVAL).await;
        let now = digest(&file).await;
        let is_settled = now == seen;
        seen = now;
        if !is_settled || now == applied {
            continue;
        }
        applied = now;
        let Some(runtime) = runtime.upgrade() else {
            return;
        };
        let path = file.clone();
        match tokio::task::spawn_blocking(move || config::read(&path)).await {
            Ok(Ok(list)) => problems.set_of_file(apply(&runtime, list)),
            Ok(Err(error)) => tracing::warn!(%error, "changed MCP servers not used; they stay as they were"),
            Err(error) => tracing::warn!(%error, "changed MCP servers cannot be read"),
        }
    }
}

/// Returns the digest of the file, or `None` while it cannot be read.
async fn digest(file: &PathBuf) -> Option<Digest> {
    let size = tokio::fs::metadata(file).await.ok()?.len();
    if size > config::MAX_FILE {
        return None;
    }
    tokio::fs::read(file).await.ok().map(|text| Digest::of([text]))
}

/// Removes the servers of the file that are gone or have changed, and connects the new ones.
/// Returns the entries that are not used.
fn apply(runtime: &Runtime, read: ServerList) -> Vec<ConfigProblem> {
    let mut list = ServerList::of(runtime.bridge.options.commands.clone());
    list.extend(read);
    let stays = |digest: Digest| list.servers.iter().any(|server| server.digest() == digest);
    let of_file = runtime
        .bridge
        .all()
        .into_iter()
        .filter(|service| service.origin == Origin::File);
    for service in of_file.filter(|service| !stays(service.server.digest())) {
        let server = service.server.name();
        tracing::info!(server, "an MCP server was removed or changed in its file");
        runtime.bridge.remove(server);
    }
    for server in std::mem::take(&mut list.servers) {
        let name = server.name().to_owned();
        if let Err(problem) = connect(runtime, server) {
            list.refuse(&name, problem.to_owned());
        }
    }
    for problem in &list.problems {
        tracing::warn!("{problem}");
    }
    list.problems
}

/// Connects a server of the file. A server that is connected already keeps its connection; a
/// server of a model or of a bridge makes room.
///
/// # Errors
///
/// Returns the reason why it is not used.
fn connect(runtime: &Runtime, server: McpServer) -> Result<(), &'static str> {
    let name = server.name().to_owned();
    match runtime.bridge.find(&name).map(|service| service.origin) {
        Some(Origin::File) => return Ok(()),
        // A server of a bridge comes back once the present server is gone.
        Some(Origin::Model | Origin::Bridge) => {
            runtime.bridge.remove(&name);
        }
        Some(Origin::Program) => return Err("the program has a server of this name: rename one"),
        None => {}
    }
    if runtime.connect(server, Origin::File) {
        Ok(())
    } else {
        Err("there are too many servers: remove some")
    }
}
