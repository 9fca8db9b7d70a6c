//! Conversations as files, and the fork of one.

use std::path::Path;

use rockbot::agent::Conversation;
use rockbot::chat::Role;
use rockbot::prelude::*;

/// Writes the conversation into `file`, as JSON.
pub(crate) async fn export(conversation: &Conversation, file: &Path) -> Result<(), BoxError> {
    let json = serde_json::to_vec_pretty(&conversation.export().await?)?;
    std::fs::write(file, json).map_err(|error| format!("{} cannot be written: {error}", file.display()).into())
}

/// Begins the conversation, which must be new, with the conversation in `file`.
pub(crate) async fn import(conversation: &Conversation, file: &Path) -> Result<(), BoxError> {
    let failed = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", file.display());
    let json = std::fs::read(file).map_err(|error| failed(&error))?;
    let document = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    Ok(conversation.import(document).await?)
}

/// Copies the conversation up to the answer to a question, as `N NAME` says, and returns the
/// session of the copy.
pub(crate) async fn fork(conversation: &Conversation, words: &str) -> Result<SessionId, BoxError> {
    let (number, name) = words.trim().split_once(' ').ok_or("use it like this: /fork 2 NAME")?;
    let number: usize = number
        .parse()
        .map_err(|_| "the first word is the number of a question")?;
    let history = conversation.history().await?;
    let mut questions = history.iter().filter(|entry| entry.role == Role::User);
    let question = number.checked_sub(1).and_then(|before| questions.nth(before));
    let question = question.ok_or_else(|| format!("this conversation has no question {number}"))?;
    Ok(conversation.fork(&question.turn, name.trim()).await?.session().clone())
}
