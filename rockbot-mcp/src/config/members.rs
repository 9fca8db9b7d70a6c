//! The members of an entry: a misspelt member is named, and a guard that this host does not have
//! is refused.
//!
//! A member that is dropped protects nothing, so only members that guard nothing are ignored.

use rockbot_core::support::nearest_names;
use serde_json::{Map, Value};

/// The members of a server that is started, and of a server that is reached by its URL.
const OF_PROCESS: [&str; 4] = ["command", "args", "env", "cwd"];
const OF_URL: [&str; 5] = ["url", "serverUrl", "httpUrl", "headers", "oauth"];

/// The members of both.
const OF_BOTH: [&str; 11] = [
    "allowedTools",
    "deniedTools",
    "disabled",
    "needsApproval",
    "timeout",
    "toolTimeoutMs",
    "transport",
    "transportMode",
    "transportType",
    "trusted",
    "type",
];

/// The members of `oauth`.
const OF_OAUTH: [&str; 7] = [
    "clientId",
    "clientMetadataUrl",
    "clientSecret",
    "grantType",
    "issuer",
    "redirectUri",
    "scopes",
];

/// Members of other clients that are ignored: notes, and permissions, which only the user gives
/// to this host.
const IGNORED: [&str; 5] = ["alwaysAllow", "autoApprove", "description", "id", "origin"];

/// Guards and abilities of the original and of other clients that this host does not have, with
/// the replacement for each.
const MISSING: [(&str, &str); 8] = [
    (
        "argGuards",
        "guards of arguments: restrict the server itself, or its tools by `allowedTools`",
    ),
    (
        "attachments",
        "exchange of files with a server: let the server read and write the files itself",
    ),
    ("auth", "profiles of tokens: write `oauth`, or the header in `headers`"),
    (
        "elicitation",
        "policies for questions of a server: the handler of the program answers them, and without one they are declined",
    ),
    ("enabledTools", "that name: write `allowedTools`"),
    ("envFile", "a file of variables: write them in `env`"),
    ("excludeTools", "that name: write `deniedTools`"),
    ("includeTools", "that name: write `allowedTools`"),
];

/// Returns the problem of a member, or of a setting, that asks for something that this host does
/// not have.
pub(crate) fn missing(member: &str) -> Option<String> {
    let (_, instead) = MISSING.iter().find(|(name, _)| name.eq_ignore_ascii_case(member))?;
    Some(format!("`{member}` is not there: this host does not have {instead}"))
}

/// Checks the members of an entry.
///
/// # Errors
///
/// Returns the problem of each member that is unknown, missing, or without effect.
pub(super) fn check(members: &Map<String, Value>) -> Result<(), String> {
    let known = || OF_PROCESS.into_iter().chain(OF_URL).chain(OF_BOTH);
    let mut problems = unknown(members, "", &known().collect::<Vec<_>>());
    if members.contains_key("command") {
        let without_effect = OF_URL.into_iter().filter(|name| members.contains_key(*name));
        problems
            .extend(without_effect.map(|name| format!("`{name}` has no effect beside `command`: remove one of them")));
    }
    if let Some(oauth) = members.get("oauth").and_then(Value::as_object) {
        problems.extend(unknown(oauth, "oauth.", &OF_OAUTH));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join(" "))
    }
}

/// Returns the problems of members with other names than `known`.
fn unknown(members: &Map<String, Value>, parent: &str, known: &[&str]) -> Vec<String> {
    let names = members.keys().map(String::as_str);
    let unknown = names.filter(|name| !known.contains(name) && !IGNORED.contains(name));
    let problem = |name: &str| {
        if let Some(problem) = missing(name) {
            return problem;
        }
        let problem = format!("`{parent}{name}` is not a member of a server");
        match nearest_names(name, known.iter().copied(), 1).first() {
            Some(nearest) => format!("{problem}; did you mean `{parent}{nearest}`?"),
            None => {
                let mut known = known.to_vec();
                known.sort_unstable();
                format!("{problem}; known are `{}`", known.join("`, `"))
            }
        }
    };
    unknown.map(problem).collect()
}
