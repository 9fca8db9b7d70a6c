//! Parses a configuration file: its root, and the names of its servers.

use std::path::Path;

use serde_json::Value;

use super::expand::Variables;
use super::{McpConfigError, ServerList, entry};

/// The keys that hold the servers in files: the key of most clients, and the key of editors.
const ROOTS: [&str; 2] = ["mcpServers", "servers"];

/// Parses the text of a file.
pub(super) fn parse(path: &Path, text: &[u8], variables: &Variables<'_>) -> Result<ServerList, McpConfigError> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    // Only the position of the error is kept: its message may quote the file.
    let root: Value = serde_json::from_slice(text).map_err(|error| McpConfigError::Syntax {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
    })?;
    let mut roots = ROOTS
        .into_iter()
        .filter_map(|key| root.get(key)?.as_object())
        .peekable();
    if roots.peek().is_none() {
        return Err(McpConfigError::NoServers { path: path.to_owned() });
    }
    let mut list = ServerList::default();
    for (name, value) in roots.flatten() {
        match entry::parse(name, value, variables) {
            Ok(Some(server)) => list.add(server),
            Ok(None) => tracing::debug!(server = %name, "the MCP server is disabled"),
            Err(problem) => list.refuse(name, problem),
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<ServerList, McpConfigError> {
        parse(Path::new("mcp.json"), text.as_bytes(), &|name| {
            (name == "KEY").then(|| "sesame".to_owned())
        })
    }

    #[test]
    fn one_bad_entry_does_not_keep_the_others_from_being_used() {
        let list = parsed(
            r#"{"mcpServers": {
                "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"K": "${KEY}"}, "description": "t"},
                "off": {"command": "x", "disabled": true},
                "TIME": {"command": "x"},
                "none": {},
                "unset": {"command": "x", "env": {"K": "${NOT_SET}"}},
                "typed": {"command": ["x"]}
            }}"#,
        )
        .unwrap();
        let names: Vec<_> = list.servers.iter().map(|server| server.name.as_str()).collect();
        // Objects are sorted by their names: `TIME` comes first.
        assert_eq!(names, ["TIME"]);
        let problems: Vec<_> = list.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "MCP server `none` is not used: it has neither `command` nor `url`: write how it is reached",
                "MCP server `time` is not used: `TIME` has the same name, and case does not matter: rename one",
                "MCP server `typed` is not used: `command` must be text",
                "MCP server `unset` is not used: `env.K`: the variable `NOT_SET` is not set: set it, or write \
                 `${NOT_SET:-default}`",
            ]
        );
    }

    /// Returns the problem of a server with these members beside its command.
    fn problem_of(members: &str) -> String {
        let list = parsed(&format!(r#"{{"mcpServers": {{"a": {{"command": "x", {members}}}}}}}"#)).unwrap();
        assert!(list.servers.is_empty(), "{list:?}");
        list.problems[0].problem.clone()
    }

    #[test]
    fn a_member_that_is_none_is_named_with_the_nearest_one() {
        assert_eq!(
            problem_of(r#""deniedTool": ["pay"], "DeniedTools": ["pay"]"#),
            "`DeniedTools` is not a member of a server; did you mean `deniedTools`? `deniedTool` is not a member of a server; \
             did you mean `deniedTools`?"
        );
        let problem = problem_of(r#""unheard": true"#);
        assert!(
            problem.starts_with("`unheard` is not a member of a server; known are `allowedTools`, "),
            "{problem}"
        );
        assert_eq!(
            problem_of(r#""headers": {"A": "b"}"#),
            "`headers` has no effect beside `command`: remove one of them"
        );
        assert_eq!(
            problem_of(r#""type": "strin""#),
            "`type` must be `stdio`, `http`, `streamable-http`, `sse` or `auto`"
        );
    }

    #[test]
    fn a_guard_that_this_host_lacks_is_never_ignored() {
        for (member, advice) in [
            (
                "argGuards",
                "guards of arguments: restrict the server itself, or its tools by `allowedTools`",
            ),
            (
                "ARGGUARDS",
                "restrict the server itself, or its tools by `allowedTools`",
            ),
            ("excludeTools", "write `deniedTools`"),
            ("includeTools", "write `allowedTools`"),
            (
                "elicitation",
                "the handler of the program answers them, and without one they are declined",
            ),
            ("auth", "write `oauth`, or the header in `headers`"),
        ] {
            let problem = problem_of(&format!(r#""{member}": []"#));
            assert!(
                problem.starts_with(&format!("`{member}` is not there: this host does not have "))
                    && problem.contains(advice),
                "{problem}"
            );
        }
    }

    #[test]
    fn members_of_an_authorization_are_known_too() {
        let list = parsed(r#"{"servers": {"a": {"url": "https://x.example", "oauth": {"scope": ["a"]}}}}"#).unwrap();
        if cfg!(feature = "oauth") {
            let problem = "`oauth.scope` is not a member of a server; did you mean `oauth.scopes`?";
            assert_eq!(list.problems[0].problem, problem);
        }
    }

    #[test]
    fn both_roots_are_read() {
        let list = parsed(r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}"#).unwrap();
        assert_eq!(list.servers.len(), 2);
    }

    #[test]
    fn the_form_of_editors_is_read_too() {
        let list = parsed(
            r#"{"servers": {"a": {"type": "stdio", "command": "x", "cwd": "/tmp", "timeout": 1500}}, "inputs": []}"#,
        );
        let list = list.unwrap();
        assert_eq!(list.servers.len(), 1, "{:?}", list.problems);
        assert_eq!(list.servers[0].time_limit.as_millis(), 1500);
    }

    #[test]
    fn the_authorization_of_a_server_is_read() {
        let oauth = |members: &str| {
            parsed(&format!(
                r#"{{"servers": {{"a": {{"url": "https://x.example", "oauth": {members}}}}}}}"#
            ))
            .unwrap()
        };
        let list = oauth(
            r#"{"clientId": "me", "clientSecret": "${KEY}", "issuer": "https://login.example", "scopes": ["a"],
                "grantType": "client_credentials"}"#,
        );
        if cfg!(feature = "oauth") {
            assert_eq!((list.servers.len(), list.problems.len()), (1, 0));
            assert_ne!(list.servers[0].digest(), oauth("{}").servers[0].digest());
            let document = r#"{"clientMetadataUrl": "https://x.example/agent.json"}"#;
            assert_ne!(oauth(document).servers[0].digest(), oauth("{}").servers[0].digest());
            let problem = "`oauth.grantType` must be `authorization_code` or `client_credentials`";
            assert_eq!(oauth(r#"{"grantType": "password"}"#).problems[0].problem, problem);
            let problem = "`oauth.clientSecret` needs `oauth.issuer`, the authorization server that alone gets it: write its \
                           address, such as `https://login.example.com`";
            let unbound = r#"{"clientId": "me", "clientSecret": "${KEY}"}"#;
            assert_eq!(oauth(unbound).problems[0].problem, problem);
        } else {
            assert_eq!(
                list.problems[0].problem,
                "`oauth` needs a build with the feature `oauth`"
            );
        }
    }

    #[test]
    fn errors_name_the_place_and_never_the_text() {
        let error = parsed("{\"mcpServers\": {\n  \"a\": sesame}}").unwrap_err();
        assert_eq!(error.to_string(), "`mcp.json` is not JSON, at line 2 column 8");
        assert!(
            parsed("{}")
                .unwrap_err()
                .to_string()
                .contains("has no object `mcpServers`")
        );
    }
}
