//! Errors as programs print them: the chain of an error and its sources says each cause once.

use std::error::Error;
use std::{fmt, io};

use rockbot_core::files::FileError;
use rockbot_core::messaging::BusError;
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode};
use rockbot_core::turn::JournalError;
use rockbot_core::{BoxError, TurnId};
use rockbot_host::{StartError, TurnError};

/// An error with a source that its text leaves out.
#[derive(Debug)]
struct LineDead(io::Error);

impl fmt::Display for LineDead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the line is dead")
    }
}

impl Error for LineDead {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn line_dead() -> BoxError {
    LineDead(io::Error::other("a cable is cut")).into()
}

fn file_error(kind: io::ErrorKind) -> FileError {
    FileError::Io {
        tried: "written",
        path: "log".into(),
        cause: kind.into(),
    }
}

fn journal_error(cause: impl Into<BoxError>) -> JournalError {
    StoreError::caused_by("a record cannot be written", cause).into()
}

/// Prints an error as `anyhow` does with `{:#}`.
fn printed(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn a_chain_says_each_cause_once_and_reaches_the_deepest() {
    let subsystem = |cause: BoxError| StartError::Subsystem {
        name: "door".to_owned(),
        cause,
    };
    let subscription = StartError::Subscription {
        pattern: "a.#".to_owned(),
        cause: BusError::Provider {
            context: "the broker is away".to_owned(),
            source: line_dead(),
        },
    };
    let store = StoreError::new(StoreErrorKind::Io, "a note cannot be read").with_cause(line_dead());
    assert_eq!(
        printed(&store),
        "a note cannot be read: the line is dead: a cable is cut"
    );
    let journal = "the turn journal cannot be used: a record cannot be written: the line is dead: a cable is cut";
    assert_eq!(printed(&journal_error(line_dead())), journal);
    assert_eq!(
        printed(&StartError::Resume(journal_error(line_dead()).into())),
        format!("interrupted turns cannot be resumed: {journal}")
    );
    assert_eq!(
        printed(&subsystem(line_dead())),
        "`door` did not start: the line is dead: a cable is cut"
    );
    assert_eq!(
        printed(&subscription),
        "the subscription to `a.#` failed: the broker is away: the line is dead: a cable is cut"
    );
    let file = file_error(io::ErrorKind::StorageFull);
    assert_eq!(
        printed(&file),
        "`log` cannot be written; check the folder, its permissions and the free space: no storage space"
    );
    assert_eq!(
        printed(&TurnError::Layer("the censor is ill".into())),
        "a turn layer failed: the censor is ill"
    );
}

#[test]
fn errors_of_the_journal_and_the_start_state_whether_a_retry_helps() {
    let conflict = || StoreError::new(StoreErrorKind::Conflict, "another writer was faster");
    let passing = || io::Error::from(io::ErrorKind::ConnectionReset);
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    for (error, helps) in [
        (journal_error(passing()), true),
        (journal_error(file_error(io::ErrorKind::TimedOut)), true),
        (journal_error(conflict()), true),
        (journal_error(full()), false),
        (journal_error(file_error(io::ErrorKind::StorageFull)), false),
        (journal_error(line_dead()), false),
        (JournalError::Locked("turns".to_owned()), false),
        (JournalError::Fenced(TurnId::from("t")), false),
    ] {
        assert_eq!(error.retry_helps(), helps, "{error}");
        let error = TurnError::from(error);
        assert_eq!(error.retry_helps(), helps, "{error}");
        assert_eq!(StartError::Resume(error).retry_helps(), helps);
    }
    let subsystem = |cause: BoxError| StartError::Subsystem {
        name: "door".to_owned(),
        cause,
    };
    assert!(subsystem(conflict().into()).retry_helps());
    assert!(!subsystem(line_dead()).retry_helps());
    assert!(!StartError::Again.retry_helps());
}

#[test]
fn the_error_of_a_tool_layer_is_the_source_of_the_tools() {
    let error = ToolError::from_layer(line_dead(), Effect::Mutating);
    assert_eq!(
        (error.code(), error.message()),
        (ToolErrorCode::ExecutionFailed, "the line is dead")
    );
    assert!(error.source().is_some_and(<dyn Error>::is::<LineDead>));
}
