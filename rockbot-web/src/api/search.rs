//! Search in the history of all sessions of a user.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use rockbot_core::chat::Role;
use rockbot_core::search::Bm25Ranker;
use rockbot_core::store::{ConversationMemory, ConversationQuery, StoreError};
use rockbot_core::{Principal, SessionId, Timestamp, TurnId};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::door::{Caller, UrlQuery};
use crate::error::WebError;

/// Maximum number of entries that a search reads: the newest of each session, session by session.
const MAX_READ: usize = 20_000;

/// Maximum number of entries of a session that a search reads.
const MAX_OF_SESSION: usize = 500;

/// Number of results unless a client asks for another, and the maximum.
const RESULTS: usize = 20;
const MAX_RESULTS: usize = 100;

/// Maximum length of the text of a result, in bytes.
const MAX_EXCERPT: usize = 300;

/// Length of the text before the first word that was looked for, in bytes.
const LEAD: usize = 80;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    query: String,
    limit: Option<usize>,
}

/// An entry that was found.
#[derive(Serialize)]
struct Found {
    session: SessionId,
    turn: TurnId,
    role: Role,
    timestamp: Timestamp,
    /// The part of the text around the first word of the query.
    excerpt: String,
}

#[derive(Serialize)]
pub(super) struct Results {
    found: Vec<Found>,
}

/// Finds the entries of all the user's conversations that match a query best.
pub(super) async fn history(caller: Caller, UrlQuery(wanted): UrlQuery<Wanted>) -> Result<Json<Results>, WebError> {
    let limit = wanted.limit.unwrap_or(RESULTS).min(MAX_RESULTS);
    // It is never closed.
    let _place = caller.door.searches.acquire().await;
    let entries = read(&caller.door.memory, &caller.principal).await?;
    let ranked = spawn_blocking(move || {
        let mut found = Bm25Ranker::default().rank(entries, |entry| Cow::Borrowed(&entry.excerpt), &wanted.query);
        found.truncate(limit);
        for entry in &mut found {
            entry.excerpt = excerpt(&entry.excerpt, &wanted.query);
        }
        found
    });
    let found = ranked.await.map_err(|error| WebError::internal(&error))?;
    Ok(Json(Results { found }))
}

/// Reads the entries to be searched, each with its whole text.
async fn read(memory: &Arc<dyn ConversationMemory>, principal: &Principal) -> Result<Vec<Found>, StoreError> {
    let query = ConversationQuery::new().with_limit(MAX_OF_SESSION);
    let mut all = Vec::new();
    for session in memory.sessions(principal).await? {
        let page = memory.page(principal, &session, &query).await?;
        all.extend(page.entries.into_iter().map(|entry| Found {
            session: session.clone(),
            excerpt: entry.content.text().into_owned(),
            turn: entry.turn,
            role: entry.role,
            timestamp: entry.timestamp,
        }));
        if all.len() >= MAX_READ {
            break;
        }
    }
    Ok(all)
}

/// Returns the part of a text around the first word of a query.
fn excerpt(text: &str, query: &str) -> String {
    let folded = text.to_lowercase();
    let words = query.split_whitespace().map(str::to_lowercase);
    // In a few scripts the folded text has another length: then the excerpt begins a little off.
    let at = words.filter_map(|word| folded.find(&word)).min().unwrap_or_default();
    let from = text.floor_char_boundary(at.saturating_sub(LEAD).min(text.len()));
    let until = text.floor_char_boundary((from + MAX_EXCERPT).min(text.len()));
    let [before, after] = [from > 0, until < text.len()].map(|is_cut| if is_cut { "…" } else { "" });
    format!("{before}{}{after}", &text[from..until])
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn an_excerpt_is_around_the_first_word() {
        assert_eq!(excerpt("Tea is out.", "tea"), "Tea is out.");
        let long = format!("{}Zürich{}", "ä".repeat(500), " b".repeat(500));
        let cut = excerpt(&long, "nothing zürich");
        assert!(
            cut.starts_with('…') && cut.ends_with('…') && cut.contains("Zürich"),
            "{cut}"
        );
        assert!(cut.len() <= 300 + 2 * '…'.len_utf8());
        assert_eq!(excerpt("", "tea"), "");
        // `İ` is longer in lower case.
        assert!(excerpt(&"İ".repeat(400), "x i̇").len() <= 310);
    }
}
