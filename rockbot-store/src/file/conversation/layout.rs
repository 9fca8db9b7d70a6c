//! The names of session files.

use rockbot_core::files::{self, IdTooLong};
use rockbot_core::{Principal, SessionId};

/// The key of a session: its principal and its id.
pub(super) type SessionKey = (Principal, SessionId);

/// The kind of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Document,
    Log,
}

/// A session file, parsed from its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionFile {
    pub(super) key: SessionKey,
    pub(super) kind: FileKind,
    /// `true` if the name follows the encoding of this module; other documents are foreign.
    pub(super) is_native: bool,
}

/// Returns the name of a session's files without their extension.
///
/// # Errors
///
/// Returns an error if the encoded id is longer than a file name may be.
pub(super) fn stem((principal, session): &SessionKey) -> Result<String, IdTooLong> {
    files::name_of(principal, &files::encode(session.as_str())?)
}

/// Reports whether `principal` is the local one, whose sessions lie in the folder itself.
pub(super) fn is_local(principal: &Principal) -> bool {
    *principal == Principal::default()
}

/// Returns the name of a session's document.
pub(super) fn document(stem: &str) -> String {
    format!("{stem}.json")
}

/// Returns the name of a session's log.
pub(super) fn log(stem: &str) -> String {
    format!("{stem}.jsonl")
}

/// Parses the name of a session file. Returns `None` for other files.
pub(super) fn parse(name: &str) -> Option<SessionFile> {
    let (stem, kind) = match name.strip_suffix(".json") {
        Some(stem) => (stem, FileKind::Document),
        None => (name.strip_suffix(".jsonl")?, FileKind::Log),
    };
    let (principal, session) = files::owner_of(stem)?;
    let native = files::decode(session).map(SessionId::from);
    let is_native = native.is_some();
    // Foreign files are documents of programs that know one principal only; a log under a foreign
    // name does not count as a foreign file.
    let may_be_foreign = kind == FileKind::Document && is_local(&principal) && !session.is_empty();
    let session = native.or_else(|| may_be_foreign.then(|| session.into()))?;
    Some(SessionFile {
        key: (principal, session),
        kind,
        is_native,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(principal: &str, session: &str, name: &str) {
        let key = (principal.into(), session.into());
        let stem = stem(&key).unwrap();
        assert_eq!(stem, name);
        for (name, kind) in [(document(&stem), FileKind::Document), (log(&stem), FileKind::Log)] {
            let expected = SessionFile {
                key: key.clone(),
                kind,
                is_native: true,
            };
            assert_eq!(parse(&name), Some(expected));
        }
    }

    #[test]
    fn each_session_has_its_files() {
        check("local", "session-1", "session-1");
        check("local", "a.json", "a.json");
        check("local", "@ann/b", "%40ann%2fb");
        check("ann", "b", "@ann/b");
        check("Ann", "", "@%41nn/%");
        let long = "x".repeat(250);
        let piece = "x".repeat(200);
        let cut = format!("{piece}+/+{}", "x".repeat(50));
        check("local", &long, &cut);
        check(&long, &long, &format!("@{cut}/{cut}"));
    }

    #[test]
    fn documents_of_other_programs_have_their_path_as_id() {
        for id in ["Session", "team/alpha", "a b", "a/b.c/D", "a%2Fb"] {
            let file = parse(&format!("{id}.json")).unwrap();
            assert_eq!((file.key, file.is_native), ((Principal::default(), id.into()), false));
        }
    }

    #[test]
    fn other_files_are_no_sessions() {
        for name in [
            "lock",
            "a.json.tmp",
            "a.json.damaged",
            "A.jsonl",
            "@local/a.json",
            "@/a.json",
            "@ann/B.json",
            "@ann.json",
            ".json",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
