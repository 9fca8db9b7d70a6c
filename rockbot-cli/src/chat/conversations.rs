//! The conversations of an agent: a list, one to go on with, files, and forks.

use std::path::Path;

use rockbot::agent::Conversation;
use rockbot::chat::Role;
use rockbot::implement::store::{ConversationPage, ConversationQuery};
use rockbot::prelude::*;
use rockbot::store::ConversationTurn;
use rockbot::{Clock as _, SystemClock, Timestamp};

use super::terminal;

/// Maximum number of conversations in a list.
const MAX_LISTED: usize = 20;

/// Number of the last entries of a conversation that are read for a list.
const LAST: usize = 8;

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
    let copy = free_name(agent, conversation).await?;
    let mut before = history[..asked]
        .iter()
        .rev()
        .filter(|entry| entry.turn != question.turn);
    if let Some(last) = before.next() {
        conversation.fork(&last.turn, copy.clone()).await?;
    }
    Ok((copy, question.content.words().into_owned()))
}

/// Copies the conversation as it is.
pub(crate) async fn copy(agent: &Agent, conversation: &Conversation) -> Result<Conversation, BoxError> {
    let history = conversation.history().await?;
    let last = history.last().ok_or("nothing was said in this conversation yet")?;
    Ok(conversation
        .fork(&last.turn, free_name(agent, conversation).await?)
        .await?)
}

/// Removes all turns of the conversation but the last one.
pub(crate) async fn keep_last(agent: &Agent, conversation: &Conversation) -> Result<(), BoxError> {
    let mut document = conversation.export().await?;
    let last = document.entries.last().map(|entry| entry.turn.clone());
    document.entries.retain(|entry| Some(&entry.turn) == last.as_ref());
    agent.reset(conversation.session()).await?;
    Ok(conversation.import(document).await?)
}

/// Returns a name for a copy of the conversation that no conversation has.
async fn free_name(agent: &Agent, conversation: &Conversation) -> Result<SessionId, BoxError> {
    let taken = agent.sessions().await?;
    let name = conversation.session();
    let base = name.as_str().split('~').next().unwrap_or_default();
    let copies = (1..).map(|number| SessionId::from(format!("{base}~{number}")));
    let mut free = copies.filter(|copy| copy != name && !taken.contains(copy));
    Ok(free.next().ok_or("there is no free name for the copy")?)
}

/// A conversation in a list, with its last entries.
struct Listed {
    session: SessionId,
    page: ConversationPage,
}

impl Listed {
    /// Returns the last entry of a role.
    fn last(&self, role: Role) -> Option<&ConversationTurn> {
        self.page.entries.iter().rev().find(|entry| entry.role == role)
    }

    fn at(&self) -> Timestamp {
        self.page
            .entries
            .last()
            .map(|entry| entry.timestamp)
            .unwrap_or_default()
    }
}

/// Returns all conversations, the newest first.
async fn newest(agent: &Agent) -> Result<Vec<Listed>, BoxError> {
    let query = ConversationQuery::new().with_limit(LAST);
    let mut listed = Vec::new();
    for session in agent.sessions().await? {
        let page = agent.conversation(session.clone()).page(&query).await?;
        listed.push(Listed { session, page });
    }
    listed.sort_by_key(|listed| std::cmp::Reverse(listed.at()));
    Ok(listed)
}

/// Lists the newest conversations with their last questions; a star marks `current`.
pub(crate) async fn list(agent: &Agent, current: &SessionId) -> Result<String, BoxError> {
    let all = newest(agent).await?;
    let now = SystemClock.now();
    let line = |listed: &Listed| {
        let mark = if listed.session == *current { '*' } else { ' ' };
        let name = terminal::clean(listed.session.as_str());
        let ago = terminal::spoken(now.since(listed.at()));
        let question = listed
            .last(Role::User)
            .map(|entry| terminal::cut(&entry.content.words()));
        format!("{mark} {name}  {ago} ago  {}", question.unwrap_or_default())
    };
    let mut lines: Vec<_> = all.iter().take(MAX_LISTED).map(line).collect();
    if all.len() > MAX_LISTED {
        lines.push(format!("and {} older ones", all.len() - MAX_LISTED));
    }
    if lines.is_empty() {
        return Ok("there is no conversation yet".to_owned());
    }
    Ok(lines.join("\n"))
}

/// Returns the conversation of this name, or the newest one besides `current`, with its last
/// question and answer as a text.
pub(crate) async fn resume(agent: &Agent, current: &SessionId, name: &str) -> Result<(SessionId, String), BoxError> {
    let mut all = newest(agent).await?.into_iter();
    let found = if name.is_empty() {
        let other = all.find(|listed| listed.session != *current);
        other.ok_or("there is no other conversation yet")?
    } else {
        let named = all.find(|listed| listed.session.as_str() == name);
        named.ok_or_else(|| format!("there is no conversation `{name}`; /sessions lists them"))?
    };
    let words = |role, mark| {
        let entry = found.last(role)?;
        Some(format!("{mark}{}", terminal::clean(&entry.content.words())))
    };
    let shown: Vec<_> = [words(Role::User, "> "), words(Role::Assistant, "")]
        .into_iter()
        .flatten()
        .collect();
    Ok((found.session, shown.join("\n")))
}
