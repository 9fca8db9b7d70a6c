//! Which file is whose.

use rockbot_core::files::{self, IdTooLong};
use rockbot_core::{Principal, SessionId};

/// A session of a principal.
pub(super) type SessionKey = (Principal, SessionId);

/// What a file of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Document,
    Log,
}

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionFile {
    pub(super) key: SessionKey,
    pub(super) kind: FileKind,
    /// Whether the name is the one that we give it.
    pub(super) is_ours: bool,
}

/// The name of a session's files, without their endings.
pub(super) fn stem((principal, session): &SessionKey) -> Result<String, IdTooLong> {
    files::name_of(principal, &files::encode(session.as_str())?)
}

/// Whether this is the principal whose sessions lie in the folder itself.
pub(super) fn is_local(principal: &Principal) -> bool {
    *principal == Principal::default()
}

pub(super) fn document(stem: &str) -> String {
    format!("{stem}.json")
}

pub(super) fn log(stem: &str) -> String {
    format!("{stem}.jsonl")
}

/// What the file `name` is, unless it is none of a session.
pub(super) fn place(name: &str) -> Option<SessionFile> {
    let (stem, kind) = match name.strip_suffix(".json") {
        Some(stem) => (stem, FileKind::Document),
        None => (name.strip_suffix(".jsonl")?, FileKind::Log),
    };
    let (principal, session) = files::owner_of(stem)?;
    let ours = files::decode(session).map(SessionId::from);
    let is_ours = ours.is_some();
    // Only other programs' documents have other names, and they know one principal only.
    let may_be_foreign = kind == FileKind::Document && is_local(&principal) && !session.is_empty();
    let session = ours.or_else(|| may_be_foreign.then(|| session.into()))?;
    Some(SessionFile {
        key: (principal, session),
        kind,
        is_ours,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(principal: &str, session: &str, name: &str) {
        let key = (principal.into(), session.into());
        let stem = stem(&key).unwrap();
        assert_eq!(stem, name);
        for (name, kind) in [(document(&stem), FileKind::Document), (log(&stem), FileKind::Log)] {
            let place = SessionFile {
                key: key.clone(),
                kind,
                is_ours: true,
            };
            assert_eq!(super::place(&name), Some(place));
        }
    }

    #[test]
    fn each_session_has_its_files() {
        ours("local", "session-1", "session-1");
        ours("local", "a.json", "a.json");
        ours("local", "@ann/b", "%40ann%2fb");
        ours("ann", "b", "@ann/b");
        ours("Ann", "", "@%41nn/%");
        let (long, piece) = ("x".repeat(250), "x".repeat(200));
        let cut = format!("{piece}+/+{}", "x".repeat(50));
        ours("local", &long, &cut);
        ours(&long, &long, &format!("@{cut}/{cut}"));
    }

    #[test]
    fn documents_of_other_programs_have_their_path_as_id() {
        for id in ["Session", "team/alpha", "a b", "a/b.c/D", "a%2Fb"] {
            let place = place(&format!("{id}.json")).unwrap();
            assert_eq!((place.key, place.is_ours), ((Principal::default(), id.into()), false));
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
            assert_eq!(place(name), None, "{name}");
        }
    }
}
