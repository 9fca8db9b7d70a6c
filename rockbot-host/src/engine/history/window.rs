//! The beginning of the conversation that a request shows.
//!
//! A conversation above its limit is cut to three quarters of it, not to nine tenths: each cut
//! invalidates the provider's cache.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::chat::Role;
use rockbot_core::store::ConversationTurn;
use rockbot_core::{Principal, SessionId, Timestamp, TurnId};

/// Returns the number of entries that are left after a cut of a conversation of more than `max`.
/// Each cut invalidates the provider's cache of the prompt, so cuts should be few and large
/// rather than many and small.
const fn after_cut(max: usize) -> usize {
    max - max / 4
}

/// Drops the entries before the last pause of more than `idle_timeout`, which may last until `now`.
pub(in crate::engine) fn after_pause(
    mut recent: Vec<ConversationTurn>,
    idle_timeout: Duration,
    now: Timestamp,
) -> Vec<ConversationTurn> {
    let mut later = now;
    let was_idle = |entry: &ConversationTurn| {
        let pause = std::mem::replace(&mut later, entry.timestamp).since(entry.timestamp);
        pause > idle_timeout
    };
    let before = recent.iter().rev().position(was_idle);
    let start = before.map_or(0, |before| recent.len() - before);
    recent.drain(..start);
    recent
}

/// Maximum number of sessions whose beginning is remembered. Beyond it all are forgotten: the
/// next request of each session then costs one cut more.
const SESSIONS: usize = 1_000;

/// The turns that the requests of long sessions begin at.
///
/// A request begins where the request before it began, until more entries would be shown than a
/// request may show. So the provider's cache of the prompt stays valid from turn to turn. Short
/// sessions are shown whole and are not in here.
#[derive(Debug, Default)]
pub(in crate::engine) struct HistoryWindow(Mutex<HashMap<(Principal, SessionId), TurnId>>);

impl HistoryWindow {
    /// Drops the entries before the beginning of a session's requests from its last `max`.
    pub(in crate::engine) fn slide(
        &self,
        principal: &Principal,
        session: &SessionId,
        mut recent: Vec<ConversationTurn>,
        max: usize,
    ) -> Vec<ConversationTurn> {
        if recent.len() < max {
            return recent;
        }
        // Cannot be poisoned in practice: no code that can panic runs under the lock.
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (principal.clone(), session.clone());
        let begins = |entry: &ConversationTurn| entry.role == Role::User;
        let known = sessions.get(&key);
        let known = known.and_then(|turn| recent.iter().position(|entry| begins(entry) && entry.turn == *turn));
        let start = known.unwrap_or_else(|| {
            let cut = recent.len() - after_cut(max).min(recent.len());
            // Only whole turns: an answer without its question would mislead the model.
            let start = recent[cut..].iter().position(begins).map_or(cut, |at| cut + at);
            if sessions.len() >= SESSIONS {
                sessions.clear();
            }
            sessions.insert(key, recent[start].turn.clone());
            start
        });
        recent.drain(..start);
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: usize = 20;

    #[test]
    fn a_conversation_begins_at_the_same_turn_until_it_is_cut() {
        let window = HistoryWindow::default();
        let mut entries: Vec<ConversationTurn> = Vec::new();
        let shown = (0..17).map(|turn: u32| {
            let turn = turn.to_string();
            let at = Timestamp::default();
            let recent = entries[entries.len().saturating_sub(ENTRIES)..].to_vec();
            let shown = window.slide(&Principal::default(), &"s".into(), recent, ENTRIES);
            for role in [Role::User, Role::Assistant] {
                entries.push(ConversationTurn::new(role, "", at, turn.as_str()));
            }
            shown
                .first()
                .map_or((String::new(), 0), |first| (first.turn.to_string(), shown.len()))
        });
        let shown: Vec<_> = shown.collect();
        let expected = [
            ("", 0),
            ("0", 2),
            ("0", 4),
            ("0", 6),
            ("0", 8),
            ("0", 10),
            ("0", 12),
            ("0", 14),
            ("0", 16),
            ("0", 18),
            ("3", 14),
            ("3", 16),
            ("3", 18),
            ("3", 20),
            ("7", 14),
            ("7", 16),
            ("7", 18),
        ];
        assert_eq!(shown, expected.map(|(turn, len)| (turn.to_owned(), len)));
    }

    #[test]
    fn a_session_begins_afresh_after_a_pause() {
        let hour = Duration::from_secs(3600);
        let at = |hours: u32| Timestamp::default().after(hours * hour);
        let entries: Vec<_> = [0, 1, 3, 4]
            .map(|hours| ConversationTurn::new(Role::User, "", at(hours), hours.to_string()))
            .into();
        let shown = |idle_timeout, now| {
            let shown = after_pause(entries.clone(), idle_timeout, at(now));
            shown.iter().map(|entry| entry.turn.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shown(hour, 5), ["3", "4"]);
        assert_eq!(shown(hour, 6), Vec::<String>::new());
        assert_eq!(shown(2 * hour, 6), ["0", "1", "3", "4"]);
        // The clock was set back.
        assert_eq!(shown(hour, 0), ["3", "4"]);
    }
}
