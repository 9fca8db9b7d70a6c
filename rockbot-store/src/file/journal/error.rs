//! Errors of the journal with their context.

use rockbot_core::BoxError;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::store::StoreError;
use rockbot_core::turn::{JournalError, RunAccepted};

/// Creates the error of a failed operation on the files in `folder`.
pub(super) fn failed(context: &str, folder: &DataFolder, cause: impl Into<BoxError>) -> JournalError {
    StoreError::caused_by(format!("{context} ({})", folder.path().display()), cause).into()
}

/// Creates the error of a folder that cannot be opened.
pub(super) fn cannot_open(error: FileError) -> JournalError {
    match error {
        FileError::Locked(folder) => JournalError::Locked(folder.display().to_string()),
        error => StoreError::caused_by("the folder cannot be opened", error).into(),
    }
}

/// Creates the error of a message with the identity of an earlier message and another text.
pub(super) fn conflict(accepted: &RunAccepted) -> JournalError {
    JournalError::Conflict {
        session: accepted.key.session.clone(),
        message: accepted.key.message.clone(),
    }
}
