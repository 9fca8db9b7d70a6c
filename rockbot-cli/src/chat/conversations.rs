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

/// Copies the conversation without its last question and what followed, and returns the session of
/// the copy and the question. The conversation stays as it is, so nothing is lost.
pub(crate) async fn undo(agent: &Agent, conversation: &Conversation) -> Result<(SessionId, String), BoxError> {
    let history = conversation.history().await?;
    let asked = history.iter().rposition(|entry| entry.role == Role::User);
    let asked = asked.ok_or("nothing was asked in this conversation yet")?;
    let question = &history[asked];
    let taken = agent.sessions().await?;
    let name = conversation.session();
    let base = name.as_str().split('~').next().unwrap_or_default();
    let copies = (1..).map(|number| SessionId::from(format!("{base}~{number}")));
    let mut free = copies.filter(|copy| copy != name && !taken.contains(copy));
    let copy = free.next().ok_or("there is no free name for the copy")?;
    let mut before = history[..asked]
        .iter()
        .rev()
        .filter(|entry| entry.turn != question.turn);
    if let Some(last) = before.next() {
        conversation.fork(&last.turn, copy.clone()).await?;
    }
    Ok((copy, question.content.words().into_owned()))
}
