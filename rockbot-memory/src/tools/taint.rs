//! The origin of texts that a model saves: taint tracking from read to write.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rockbot_core::chat::Provenance;
use rockbot_core::context::{Trust, UntrustedSources};
use rockbot_core::{CallContext, TurnId};

/// Tools of this crate that only confirm a change, and show no more than they record.
const WRITERS: [&str; 7] = [
    "tool:save_memory",
    "tool:restore_memory",
    "tool:save_to_working_memory",
    "tool:delete_from_working_memory",
    "tool:save_skill",
    "tool:delete_skill",
    "tool:set_timezone",
];

/// Tools of this crate that show stored texts. They [record](ReadTaint::note) the trust of what they show; a call
/// without a record counts as untrusted.
const READERS: [&str; 16] = [
    "tool:search_memory",
    "tool:archive_memory",
    "tool:list_working_memory",
    "tool:search_working_memory",
    "tool:edit_working_memory",
    "tool:get_skill",
    "tool:edit_skill",
    "tool:change_rules",
    // The names of tools in turns that an older version began.
    "tool:delete_memory",
    "tool:edit_memory",
    "tool:list_memory_categories",
    "tool:list_skills",
    "tool:list_rules",
    "tool:add_rule",
    "tool:edit_rule",
    "tool:remove_rule",
];

/// Source of a text without a recorded origin: a file edited by hand, or a text of another program that names no source.
const UNKNOWN: &str = "unknown";

/// Maximum number of turns on record.
const TURNS: usize = 256;

/// The least trusted stored text that each turn has read. It keeps the newest 256 turns; what any other turn has read
/// counts as untrusted.
#[derive(Debug, Default)]
pub(crate) struct ReadTaint(Mutex<VecDeque<(TurnId, Option<Provenance>)>>);

impl ReadTaint {
    /// Records that the turn of `cx` is shown texts of these origins.
    pub(super) fn note<'a>(&self, cx: &CallContext, shown: impl IntoIterator<Item = &'a Provenance>) {
        let Some(turn) = cx.turn() else { return };
        let untrusted = shown.into_iter().find(|from| is_untrusted_source(from)).cloned();
        // Cannot be poisoned in practice: no code that can panic runs under the lock.
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, least)) = turns.iter_mut().find(|(known, _)| known == turn) {
            *least = least.take().or(untrusted);
            return;
        }
        if turns.len() == TURNS {
            turns.pop_front();
        }
        turns.push_back((turn.clone(), untrusted));
    }

    /// Returns the origin of a text that the model of `cx` saves now: the source that started its turn, unless the
    /// turn has read untrusted text.
    pub(super) fn origin(&self, cx: &CallContext) -> Provenance {
        let Some(UntrustedSources(heard)) = cx.extension() else {
            // The call comes from outside of this host, and not from a model of its own.
            return started(cx.content_trust());
        };
        let heard = || heard.iter().map(|source| Heard::parse(source));
        let is_own = |heard: &Heard<'_>| heard.is_reader() || heard.tool == UNKNOWN || WRITERS.contains(&heard.tool);
        if let Some(foreign) = heard().find(|heard| !is_own(heard)) {
            return untrusted(foreign.tool);
        }
        let now = cx.turn().map(TurnId::as_str).unwrap_or_default();
        // What this turn has read on record may come from a source that is no tool, too.
        let noted = self.of(now).flatten();
        let readers = heard().filter(Heard::is_reader);
        let mut read = readers.filter_map(|heard| {
            let turn = heard.turn.unwrap_or(now);
            self.of(turn).unwrap_or_else(|| Some(untrusted(heard.tool)))
        });
        noted.or_else(|| read.next()).unwrap_or_else(|| started(cx.trust()))
    }

    /// Returns the least trusted text that a turn was shown; `None` if the turn is not on record.
    fn of(&self, turn: &str) -> Option<Option<Provenance>> {
        let turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = turns.iter().find(|(known, _)| known == turn);
        known.map(|(_, least)| least.clone())
    }
}

/// An untrusted source: a tool, and the turn that called it if that is an earlier one.
struct Heard<'a> {
    tool: &'a str,
    turn: Option<&'a str>,
}

impl<'a> Heard<'a> {
    fn parse(source: &'a str) -> Self {
        match source.split_once('@') {
            Some((tool, turn)) if tool.starts_with("tool:") => Self { tool, turn: Some(turn) },
            _ => Self {
                tool: source,
                turn: None,
            },
        }
    }

    fn is_reader(&self) -> bool {
        READERS.contains(&self.tool)
    }
}

/// Returns `true` if the text may come from an untrusted source. Files edited by hand have no recorded origin
/// either, and count as the operator's.
pub(crate) fn is_untrusted_source(from: &Provenance) -> bool {
    from.trust == Trust::Untrusted && from.source != UNKNOWN
}

/// Returns the less trusted of two origins; the first one if they are equal.
pub(super) fn least(a: Provenance, b: Provenance) -> Provenance {
    if b.trust < a.trust { b } else { a }
}

fn untrusted(source: &str) -> Provenance {
    Provenance::new(source.to_owned(), Trust::Untrusted)
}

fn started(trust: Trust) -> Provenance {
    match trust {
        Trust::Host => Provenance::HOST,
        trust => Provenance::new(Provenance::USER.source, trust),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(sources: &[&str]) -> CallContext {
        let sources = sources.iter().map(|&source| source.into()).collect();
        CallContext::new("s")
            .with_turn("t".into())
            .with_extension(UntrustedSources(sources))
    }

    #[test]
    fn text_of_an_untrusted_source_is_not_trusted_and_keeps_its_origin() {
        let taint = ReadTaint::default();
        let origin = |sources: &[&str]| taint.origin(&heard(sources));
        assert_eq!(origin(&[]), Provenance::USER);
        assert_eq!(origin(&["tool:save_memory"]), Provenance::USER);
        assert_eq!(origin(&["tool:save_memory", "tool:web"]), untrusted("tool:web"));
        assert_eq!(
            origin(&["tool:search_memory"]),
            untrusted("tool:search_memory"),
            "what it read is not on record"
        );
        taint.note(&heard(&[]), [&Provenance::USER]);
        assert_eq!(origin(&["tool:search_memory"]), Provenance::USER);
        taint.note(&heard(&[]), [&Provenance::USER, &untrusted("tool:mail")]);
        taint.note(&heard(&[]), [&Provenance::USER]);
        assert_eq!(origin(&["tool:search_memory"]), untrusted("tool:mail"));
        // The tool shows the list of skills with its confirmation.
        assert_eq!(origin(&["tool:save_skill"]), untrusted("tool:mail"));
        let rules = |turn: &str| taint.origin(&heard(&[&format!("tool:list_rules@{turn}")]).with_turn("now".into()));
        assert_eq!(rules("t"), untrusted("tool:mail"), "the conversation still shows it");
        assert_eq!(rules("unknown"), untrusted("tool:list_rules"));
        taint.note(&heard(&[]).with_turn("clean".into()), [&Provenance::USER]);
        assert_eq!(rules("clean"), Provenance::USER);
        assert_eq!(origin(&["tool:web@clean"]), untrusted("tool:web"));
        let untrusted_user = heard(&[]).with_turn("u".into()).with_trust(Trust::Untrusted);
        assert_eq!(taint.origin(&untrusted_user), untrusted("user"));
        let elsewhere = CallContext::new("s").with_content_trust(Trust::Untrusted);
        assert_eq!(taint.origin(&elsewhere), untrusted("user"));
    }
}
