//! The programs that may be started as servers: lists of whole commands, with every argument.
//!
//! A list of program names would be none: `npx` and `python` run whatever their arguments say.
//!
//! Allow and deny lists of programs compare whole commands: `npx` and `python` run what their
//! arguments say.

use crate::server::{Endpoint, McpServer};

/// The words that stand for any one argument, and at the end for any number of them.
const ANY: &str = "*";
const REST: &str = "**";

/// The allow list and the deny list. Both empty by default: every command of the configuration is
/// started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Commands {
    pub(crate) allowed: Vec<String>,
    pub(crate) denied: Vec<String>,
}

impl Commands {
    /// Returns the reason why a server is not used, if there is one. Servers that are no process
    /// always may be used.
    pub(super) fn refuse(&self, server: &McpServer) -> Option<&'static str> {
        let Endpoint::Process(program) = &server.endpoint else {
            return None;
        };
        let words: Vec<_> = [&program.command]
            .into_iter()
            .chain(&program.arguments)
            .map(String::as_str)
            .collect();
        let is_in = |list: &[String]| list.iter().any(|pattern| matches(pattern, &words));
        if is_in(&self.denied) {
            return Some("its command is in `Mcp.DeniedCommands`");
        }
        let is_allowed = self.allowed.is_empty() || is_in(&self.allowed);
        (!is_allowed).then_some("its command is not in `Mcp.AllowedCommands`: add it there with all its arguments")
    }
}

/// Returns `true` if the words of a command match a pattern.
fn matches(pattern: &str, words: &[&str]) -> bool {
    let pattern: Vec<_> = pattern.split_whitespace().collect();
    let (pattern, has_rest) = match pattern.split_last() {
        Some((&REST, pattern)) => (pattern, true),
        _ => (&*pattern, false),
    };
    let is_long_enough = if has_rest {
        words.len() >= pattern.len()
    } else {
        words.len() == pattern.len()
    };
    // An argument with spaces is one word: only `*` matches it.
    is_long_enough
        && pattern
            .iter()
            .zip(words)
            .all(|(wanted, word)| *wanted == ANY || wanted == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(commands: &Commands, command: &str, arguments: &[&str]) -> bool {
        let server = McpServer::process("s", command).args(arguments.iter().copied());
        commands.refuse(&server).is_some()
    }

    #[test]
    fn whole_commands_are_compared() {
        let list = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let commands = Commands {
            allowed: list(&["npx -y server-files *", "uvx mcp-server-time **"]),
            denied: list(&["npx -y server-files /", "npx -c **"]),
        };
        assert!(!refused(&commands, "npx", &["-y", "server-files", "/srv"]));
        assert!(refused(&commands, "npx", &["-y", "server-files", "/"]));
        assert!(refused(&commands, "npx", &["-y", "server-files"]));
        assert!(refused(&commands, "npx", &["-y", "server-files", "/srv", "-c"]));
        assert!(refused(&commands, "npx", &["-c", "touch /tmp/x"]));
        assert!(refused(&commands, "/tmp/npx", &["-y", "server-files", "/srv"]));
        assert!(!refused(&commands, "uvx", &["mcp-server-time"]));
        assert!(!refused(&commands, "uvx", &["mcp-server-time", "--utc"]));
        // One argument that looks like several is none of the list.
        assert!(refused(&commands, "uvx mcp-server-time", &[]));
        assert!(!refused(&Commands::default(), "anything", &["at all"]));
        let web = McpServer::http("s", "https://example.com").unwrap();
        assert_eq!(commands.refuse(&web), None);
    }
}
