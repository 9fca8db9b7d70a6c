//! Edits of a conversation as the journal records them: the messages that were kept, and the
//! messages that were added.

use std::collections::HashMap;
use std::sync::Arc;

use rockbot_core::chat::ChatMessage;
use serde::{Deserialize, Serialize};

/// A piece of an edited conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum HistoryEdit {
    /// Messages of the conversation before: the index of the first, and their number.
    Keep(usize, usize),
    /// A new message.
    Add(Arc<ChatMessage>),
}

/// Returns the edits that lead from `before` to `after`, where a kept message is the same
/// [`Arc`]. `None` when nothing changed.
pub(crate) fn edits(before: &[Arc<ChatMessage>], after: Vec<Arc<ChatMessage>>) -> Option<Vec<HistoryEdit>> {
    let places = before.iter().enumerate();
    let places: HashMap<_, _> = places.map(|(index, message)| (Arc::as_ptr(message), index)).collect();
    let mut edits: Vec<HistoryEdit> = Vec::new();
    for message in after {
        match (places.get(&Arc::as_ptr(&message)), edits.last_mut()) {
            (Some(&index), Some(HistoryEdit::Keep(from, count))) if *from + *count == index => *count += 1,
            (Some(&index), _) => edits.push(HistoryEdit::Keep(index, 1)),
            (None, _) => edits.push(HistoryEdit::Add(message)),
        }
    }
    (edits != [HistoryEdit::Keep(0, before.len())]).then_some(edits)
}

/// Applies edits to a conversation. Its first `context_len` messages are from before the turn.
/// Returns their number in the new conversation.
pub(in crate::turn) fn apply(messages: &mut Vec<Arc<ChatMessage>>, context_len: usize, edits: &[HistoryEdit]) -> usize {
    let before = std::mem::take(messages);
    let mut first_of_turn = None;
    for edit in edits {
        match edit {
            HistoryEdit::Keep(from, count) => {
                let end = from.saturating_add(*count);
                if first_of_turn.is_none() && end > context_len {
                    first_of_turn = Some(messages.len() + context_len.saturating_sub(*from));
                }
                messages.extend(before.iter().take(end).skip(*from).cloned());
            }
            HistoryEdit::Add(message) => messages.push(message.clone()),
        }
    }
    first_of_turn.unwrap_or(messages.len()).min(messages.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[&str]) -> Vec<Arc<ChatMessage>> {
        texts.iter().map(|text| Arc::new(ChatMessage::user(*text))).collect()
    }

    /// Keeps the messages at `kept`, adds one where an index is beyond the end, and checks the edits
    /// and their effect on a conversation with two messages from before the turn.
    fn check(kept: &[usize], expected: Option<&str>, context_len: usize) {
        let before = messages(&["a", "b", "c", "d"]);
        let new = messages(&["new"]);
        let after: Vec<_> = kept
            .iter()
            .map(|index| before.get(*index).unwrap_or(&new[0]).clone())
            .collect();
        let edits = edits(&before, after.clone());
        let shown = edits.as_ref().map(|edits| {
            let shown = edits.iter().map(|edit| match edit {
                HistoryEdit::Keep(from, count) => format!("{from}+{count}"),
                HistoryEdit::Add(_) => "new".to_owned(),
            });
            shown.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(shown.as_deref(), expected);
        let mut applied = before;
        let edits = edits.unwrap_or_else(|| vec![HistoryEdit::Keep(0, 4)]);
        assert_eq!((apply(&mut applied, 2, &edits), &applied), (context_len, &after));
    }

    #[test]
    fn edits_name_what_was_kept_and_hold_what_was_added() {
        check(&[0, 1, 2, 3], None, 2);
        check(&[0, 2, 3], Some("0+1 2+2"), 1);
        check(&[9, 1, 2, 3], Some("new 1+3"), 2);
        check(&[0, 9, 3], Some("0+1 new 3+1"), 2);
        check(&[2, 3, 0, 1], Some("2+2 0+2"), 0);
        check(&[0, 1], Some("0+2"), 2);
        check(&[9], Some("new"), 1);
    }

    #[test]
    fn the_form_in_a_journal_is_short() {
        let edits = serde_json::to_string(&[HistoryEdit::Keep(0, 12)]).unwrap();
        assert_eq!(edits, r#"[{"keep":[0,12]}]"#);
    }
}
