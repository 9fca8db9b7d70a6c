//! The configuration of servers: files like `mcp.json`, in the forms of the original and of
//! common desktop clients.
//!
//! One bad entry does not keep the others from being used: it becomes a [`ConfigProblem`], and
//! the host is not ready while there is a problem.

mod commands;
mod document;
mod entry;
mod expand;
mod members;
mod problems;

use std::path::{Path, PathBuf};

pub(crate) use commands::Commands;
pub(crate) use entry::{MAX_TIME_LIMIT, check_name};
pub(crate) use members::missing;
pub use problems::ConfigProblem;
pub(crate) use problems::ConfigProblems;

use rockbot_core::Digest;

use crate::server::McpServer;

/// Maximum size of a file, in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;

/// Maximum number of servers of one configuration.
pub(crate) const MAX_SERVERS: usize = 128;

/// An error of a configuration file as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpConfigError {
    /// The file cannot be read.
    #[error("the MCP servers in `{path}` cannot be read: {cause}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The file is not JSON.
    #[error("`{path}` is not JSON, at line {line} column {column}")]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line of the first error, counted from 1.
        line: usize,
        /// The column of the first error, counted from 1.
        column: usize,
    },
    /// The file names no servers.
    #[error("`{path}` has no object `mcpServers`: write {{\"mcpServers\": {{\"name\": {{\"command\": …}}}}}}")]
    NoServers {
        /// The path of the file.
        path: PathBuf,
    },
}

/// The servers of a configuration, and the entries that are not used.
#[derive(Debug, Default)]
pub(crate) struct ServerList {
    pub(crate) servers: Vec<McpServer>,
    pub(crate) problems: Vec<ConfigProblem>,
    /// The digest of the file that was read.
    pub(crate) digest: Option<Digest>,
    commands: Commands,
}

impl ServerList {
    /// Adds a server, unless another server has its name in any case of letters, or its program may
    /// not be started.
    pub(crate) fn add(&mut self, server: McpServer) {
        let problem = match self.servers.iter().find(|other| other.key() == server.key()) {
            Some(other) => format!(
                "`{}` has the same name, and case does not matter: rename one",
                other.name
            ),
            None if self.servers.len() >= MAX_SERVERS => format!("there are {MAX_SERVERS} servers already"),
            None => match self.commands.refuse(&server) {
                Some(reason) => reason.to_owned(),
                None => return self.servers.push(server),
            },
        };
        self.refuse(&server.name, problem);
    }

    /// Creates a list that takes only programs of `commands`.
    pub(crate) fn of(commands: Commands) -> Self {
        Self {
            commands,
            ..Self::default()
        }
    }

    /// Adds the servers of another list, and its problems.
    pub(crate) fn extend(&mut self, other: Self) {
        self.digest = other.digest;
        self.problems.extend(other.problems);
        other.servers.into_iter().for_each(|server| self.add(server));
    }

    pub(crate) fn refuse(&mut self, server: &str, problem: String) {
        self.problems.push(ConfigProblem {
            server: server.to_owned(),
            problem,
        });
    }
}

/// Reads the servers of a file. Variables in it come from this process.
pub(crate) fn read(path: &Path) -> Result<ServerList, McpConfigError> {
    let unreadable = |cause| McpConfigError::Unreadable {
        path: path.to_owned(),
        cause,
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE {
        return Err(unreadable(std::io::Error::other("it is longer than 1 MiB")));
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    let mut list = document::parse(path, &text, &|name| std::env::var(name).ok())?;
    list.digest = Some(Digest::of([text]));
    Ok(list)
}
