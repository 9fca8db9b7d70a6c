//! Conversations by pages and dates, for programs that show them.
//!
//! A page of a conversation begins with a turn, and the turn's id is the cursor: an append
//! changes no earlier page, and a question and its answer are never apart.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::ConversationTurn;
use crate::{Timestamp, TurnId};

/// Default of [`ConversationQuery::limit`].
const LIMIT: usize = 50;

/// The part of a conversation that a program reads with
/// [`ConversationMemory::page`](super::ConversationMemory::page). By default the last 50 entries.
///
/// ```
/// use rockbot_core::chat::Role;
/// use rockbot_core::store::{ConversationMemory, ConversationQuery, ConversationTurn, InMemoryConversationMemory};
/// use rockbot_core::{Principal, Timestamp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (me, session) = (Principal::default(), "main".into());
/// let memory = InMemoryConversationMemory::new();
/// let entry = |turn: &str| ConversationTurn::new(Role::User, turn, Timestamp::default(), turn);
/// memory.append(&me, &session, vec![entry("1"), entry("2"), entry("3")]).await?;
///
/// let mut query = ConversationQuery::new().with_limit(2);
/// let last = memory.page(&me, &session, &query).await?;
/// assert_eq!(last.entries, [entry("2"), entry("3")]);
///
/// query.before = last.earlier;
/// let first = memory.page(&me, &session, &query).await?;
/// assert_eq!((first.entries, first.earlier), (vec![entry("1")], None));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ConversationQuery {
    /// Turn whose entries follow the page: [`ConversationPage::earlier`] of the page that was read
    /// before this page. Default `None`: the page is the conversation's last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<TurnId>,
    /// Time of the earliest entry. Default `None`: the beginning.
    #[serde(with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Upper limit of the entries' times, not included. Default `None`: the end.
    #[serde(with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Number of entries of a page. Default 50; 0 counts as 1. A page is longer by the rest of its
    /// first turn, so that a question and its answer are never on two pages.
    pub limit: usize,
}

/// A page of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationPage {
    /// Entries, oldest first.
    pub entries: Vec<ConversationTurn>,
    /// Turn whose entries follow the page before this page: the [`ConversationQuery::before`] of
    /// that page. `None` if there is no earlier entry.
    pub earlier: Option<TurnId>,
}

impl Default for ConversationQuery {
    fn default() -> Self {
        Self {
            before: None,
            from: None,
            until: None,
            limit: LIMIT,
        }
    }
}

impl ConversationQuery {
    /// Creates the query of the last 50 entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the turn whose entries follow the page. Default `None`: the page is the conversation's
    /// last page.
    #[must_use]
    pub fn with_before(mut self, turn: impl Into<Option<TurnId>>) -> Self {
        self.before = turn.into();
        self
    }

    /// Sets the time of the earliest entry. Default `None`: the beginning.
    #[must_use]
    pub fn with_from(mut self, from: impl Into<Option<Timestamp>>) -> Self {
        self.from = from.into();
        self
    }

    /// Sets the upper limit of the entries' times, not included. Default `None`: the end.
    #[must_use]
    pub fn with_until(mut self, until: impl Into<Option<Timestamp>>) -> Self {
        self.until = until.into();
        self
    }

    /// Sets the number of entries of a page. Default 50; 0 counts as 1.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Selects the page from the entries of a conversation, `newest_first`. For implementations of
    /// stores: no more entries are taken from the iterator than up to the page's first entry and
    /// the entry before it.
    ///
    /// A turn in [`before`](Self::before) that the conversation does not have any more has no
    /// entries before it: the page is empty.
    pub fn select<T: Borrow<ConversationTurn>>(&self, newest_first: impl IntoIterator<Item = T>) -> ConversationPage {
        let mut entries: Vec<ConversationTurn> = Vec::new();
        let mut rest = newest_first.into_iter().peekable();
        if let Some(before) = &self.before {
            while rest.next_if(|entry| entry.borrow().turn != *before).is_some() {}
            while rest.next_if(|entry| entry.borrow().turn == *before).is_some() {}
        }
        let mut earlier = None;
        for entry in rest {
            let entry = entry.borrow();
            if !self.is_within(entry.timestamp) {
                continue;
            }
            if let Some(first) = entries.last()
                && entries.len() >= self.limit
                && first.turn != entry.turn
            {
                earlier = Some(first.turn.clone());
                break;
            }
            entries.push(entry.clone());
        }
        entries.reverse();
        ConversationPage { entries, earlier }
    }

    fn is_within(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| at >= from) && self.until.is_none_or(|until| at < until)
    }
}

impl ConversationPage {
    /// Creates a page.
    pub fn new(entries: Vec<ConversationTurn>, earlier: impl Into<Option<TurnId>>) -> Self {
        let earlier = earlier.into();
        Self { entries, earlier }
    }
}
