//! The plan of a compaction: the parts that are removed from a conversation that is too long.
//!
//! The order goes from the parts that the model misses least to the parts that it misses most.
//! Long tool results lose their middle, starting with the results of earlier steps. Then
//! exchanges from before the turn are removed, then the turn's first steps. Results of reading
//! tools are shortened last, since the model has just asked for them. Instructions, the request
//! and the newest step always stay.
//!
//! The compaction is a plan that the journal keeps. Originals are stored before the conversation
//! changes. Only stored originals get a key in the registry, the last message of each request.

use rockbot_core::CallId;

use crate::turn::{Compaction, Elision};

/// Approximate size in bytes of the notice about a removed part: the marker in its place, and its
/// line in the registry.
pub(in crate::turn) const NOTICE: usize = 400;

/// Minimum number of bytes of a result that stay: enough for the model to recognize it.
const MIN_KEPT: usize = 400;

/// A message, reduced to its kind and size.
#[derive(Debug, Clone, Copy)]
pub(in crate::turn) struct Item<'a> {
    pub(in crate::turn) kind: ItemKind<'a>,
    pub(in crate::turn) bytes: usize,
}

/// The role of a message in a compaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::turn) enum ItemKind<'a> {
    /// A message that stays: instructions, the request, texts that joined the turn.
    Fixed,
    /// A message from before the turn; a user's message begins an exchange.
    Past { by_user: bool },
    /// An answer of the model with tool calls.
    Step,
    /// The result of a call; `whole` when its tool reads long texts.
    Result { call: &'a CallId, whole: bool },
}

/// Plans how to make a conversation `excess` bytes shorter, and no result longer than
/// `max_result_len`. Returns `None` when it cannot become shorter by more than the notice takes.
///
/// A result that is only a little too long stays unchanged, for the same reason. The plan may
/// save less than `excess`: then the model is asked all the same, and its refusal ends the turn
/// with the reason.
pub(in crate::turn) fn plan(items: &[Item<'_>], excess: usize, max_result_len: Option<usize>) -> Option<Compaction> {
    let mut planner = Planner {
        items,
        lens: items.iter().map(|item| item.bytes).collect(),
        // The registry itself takes room, too.
        left: excess.saturating_add(if excess > 0 { NOTICE } else { 0 }),
        saved: 0,
        past: 0,
        steps: 0,
    };
    let newest = items.iter().rposition(|item| item.kind == ItemKind::Step).unwrap_or(0);
    if let Some(max_len) = max_result_len {
        planner.lower_to(max_len.max(MIN_KEPT), |_, whole| !whole);
    }
    planner.lower(|index, whole| index < newest && !whole);
    planner.lower(|_, whole| !whole);
    planner.remove_past();
    planner.remove_steps(newest);
    planner.lower(|_, _| true);
    (planner.saved > NOTICE).then(|| planner.compaction())
}

/// A plan in progress.
struct Planner<'a> {
    items: &'a [Item<'a>],
    /// The present length of each message; 0 once it is removed.
    lens: Vec<usize>,
    /// Number of bytes still to be saved.
    left: usize,
    saved: usize,
    past: usize,
    steps: usize,
}

impl Planner<'_> {
    /// Shortens the longest of the chosen results to one level: the highest that saves enough.
    ///
    /// One level for all keeps the most of each; shortening one result to the minimum would lose it.
    fn lower(&mut self, chosen: impl Fn(usize, bool) -> bool) {
        if self.left > 0 {
            let mut lens: Vec<_> = self.results(&chosen).map(|index| self.lens[index]).collect();
            self.lower_to(level(&mut lens, self.left), chosen);
        }
    }

    fn lower_to(&mut self, level: usize, chosen: impl Fn(usize, bool) -> bool) {
        let results: Vec<_> = self.results(&chosen).collect();
        for index in results {
            let excess = self.lens[index].saturating_sub(level.saturating_add(NOTICE));
            if excess > 0 {
                self.save(excess);
                self.lens[index] = level;
            }
        }
    }

    /// Returns the chosen results whose step is not removed.
    fn results(&self, chosen: impl Fn(usize, bool) -> bool) -> impl Iterator<Item = usize> {
        let is_chosen = move |(index, item): &(usize, &Item<'_>)| match item.kind {
            ItemKind::Result { whole, .. } => self.lens[*index] > 0 && chosen(*index, whole),
            _ => false,
        };
        self.items.iter().enumerate().filter(is_chosen).map(|(index, _)| index)
    }

    /// Removes exchanges from before the turn, the oldest first.
    ///
    /// Only whole exchanges: an answer without its question would mislead the model.
    fn remove_past(&mut self) {
        let past: Vec<_> = self.having(|kind| matches!(kind, ItemKind::Past { .. }));
        for (count, index) in past.into_iter().enumerate() {
            let begins = matches!(self.items[index].kind, ItemKind::Past { by_user: true });
            if self.left == 0 && begins {
                break;
            }
            if self.left > 0 || count > 0 {
                self.remove(index);
                self.past += 1;
            }
        }
    }

    /// Removes the turn's first steps, each with its results, but never the `newest`.
    ///
    /// Providers refuse a result without its call, and a call without its result.
    fn remove_steps(&mut self, newest: usize) {
        for step in self.having(|kind| *kind == ItemKind::Step) {
            if self.left == 0 || step >= newest {
                break;
            }
            self.remove(step);
            self.steps += 1;
            let results = self.items[step + 1..].iter();
            let count = results
                .take_while(|item| matches!(item.kind, ItemKind::Result { .. }))
                .count();
            (step + 1..=step + count).for_each(|result| self.remove(result));
        }
    }

    fn having(&self, wanted: impl Fn(&ItemKind<'_>) -> bool) -> Vec<usize> {
        let items = self.items.iter().enumerate();
        items
            .filter(|(_, item)| wanted(&item.kind))
            .map(|(index, _)| index)
            .collect()
    }

    fn remove(&mut self, index: usize) {
        // The original of a long result is offloaded, and the registry has a line about it.
        let notice = match self.items[index].kind {
            ItemKind::Result { .. } if self.lens[index] > NOTICE => NOTICE,
            _ => 0,
        };
        self.save(self.lens[index] - notice);
        self.lens[index] = 0;
    }

    fn save(&mut self, bytes: usize) {
        self.saved += bytes;
        self.left = self.left.saturating_sub(bytes);
    }

    fn compaction(self) -> Compaction {
        let elided = self
            .items
            .iter()
            .zip(&self.lens)
            .filter_map(|(item, len)| match item.kind {
                ItemKind::Result { call, .. } if *len > 0 && *len < item.bytes => Some(Elision {
                    call: call.clone(),
                    keep: *len,
                }),
                _ => None,
            });
        Compaction {
            elided: elided.collect(),
            past: self.past,
            steps: self.steps,
            after_overflow: false,
        }
    }
}

/// Returns the level of shortening: the longest of `lens` are cut to it to save `wanted` bytes.
/// At least [`MIN_KEPT`].
fn level(lens: &mut [usize], wanted: usize) -> usize {
    lens.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0;
    for (index, len) in lens.iter().enumerate() {
        sum += len;
        let count = index + 1;
        let next = lens.get(index + 1).copied().unwrap_or(0);
        // The level that makes the `count` longest, each with its notice, save enough together. It
        // applies when the next shorter length is not above it.
        let level = sum.saturating_sub(wanted) / count;
        if level >= next.max(MIN_KEPT + NOTICE) {
            return level - NOTICE;
        }
    }
    MIN_KEPT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fixed(bytes: usize) -> Item<'static> {
        let kind = ItemKind::Fixed;
        Item { kind, bytes }
    }

    fn past(bytes: usize, by_user: bool) -> Item<'static> {
        let kind = ItemKind::Past { by_user };
        Item { kind, bytes }
    }

    fn step() -> Item<'static> {
        let kind = ItemKind::Step;
        Item { kind, bytes: 60 }
    }

    fn result(call: &CallId, bytes: usize) -> Item<'_> {
        let kind = ItemKind::Result { call, whole: false };
        Item { kind, bytes }
    }

    fn elided(elided: &[(&str, usize)]) -> Vec<Elision> {
        let elision = |(call, keep): &(&str, usize)| Elision {
            call: (*call).into(),
            keep: *keep,
        };
        elided.iter().map(elision).collect()
    }

    #[track_caller]
    fn check(items: &[Item<'_>], excess: usize, longest: Option<usize>, expected: Option<&Compaction>) {
        assert_eq!(plan(items, excess, longest).as_ref(), expected);
    }

    #[test]
    fn nothing_is_removed_from_a_conversation_that_is_short_enough() {
        let a = "a".into();
        check(&[fixed(9_000), step(), result(&a, 9_000)], 0, Some(9_000), None);
    }

    #[test]
    fn a_long_result_is_cut_down_to_the_longest() {
        let a = "a".into();
        let b = "b".into();
        let expected = Compaction {
            elided: elided(&[("a", 1_000)]),
            ..Compaction::default()
        };
        check(
            &[step(), result(&a, 9_000), result(&b, 1_100)],
            0,
            Some(1_000),
            Some(&expected),
        );
    }

    #[test]
    fn the_results_of_earlier_steps_go_first_and_the_longest_first() {
        let a = "a".into();
        let b = "b".into();
        let c = "c".into();
        let items = [step(), result(&a, 5_000), result(&b, 9_000), step(), result(&c, 20_000)];
        let expected = Compaction {
            elided: elided(&[("b", 5_200)]),
            ..Compaction::default()
        };
        check(&items, 3_000, None, Some(&expected));
        let expected = Compaction {
            elided: elided(&[("a", 400), ("b", 400), ("c", 15_600)]),
            ..Compaction::default()
        };
        check(&items, 16_000, None, Some(&expected));
    }

    #[test]
    fn old_exchanges_are_removed_next_and_then_old_steps() {
        let a = "a".into();
        let b = "b".into();
        let c = "c".into();
        let items = [
            fixed(500),
            past(300, true),
            past(300, false),
            past(300, true),
            past(300, false),
            fixed(100),
            step(),
            result(&a, 300),
            step(),
            result(&b, 300),
            step(),
            result(&c, 300),
        ];
        let compaction = |past, steps| Compaction {
            past,
            steps,
            ..Compaction::default()
        };
        check(&items, 100, None, Some(&compaction(2, 0)));
        check(&items, 500, None, Some(&compaction(4, 0)));
        check(&items, 1_000, None, Some(&compaction(4, 1)));
        check(&items, 100_000, None, Some(&compaction(4, 2)));
    }

    #[test]
    fn a_conversation_that_cannot_become_shorter_is_left_alone() {
        let a = "a".into();
        check(&[fixed(90_000), step(), result(&a, 700)], 50_000, None, None);
    }

    fn items(lens: &[(u8, usize)], ids: &[CallId]) -> Vec<Item<'static>> {
        let ids: Vec<&'static CallId> = ids.iter().map(|id| &*Box::leak(Box::new(id.clone()))).collect();
        let mut items = vec![fixed(lens.len() * 10)];
        let mut has_step = false;
        for ((kind, len), id) in lens.iter().zip(ids) {
            let item = match kind {
                0 | 1 if !has_step => past(*len, *kind == 0),
                0 | 1 => fixed(*len),
                2 => step(),
                _ if has_step => result(id, *len),
                _ => fixed(*len),
            };
            has_step |= item.kind == ItemKind::Step;
            items.push(item);
        }
        items
    }

    proptest! {
        #[test]
        fn a_compaction_is_strictly_shorter_and_keeps_the_newest_step(
            lens in prop::collection::vec((0..6_u8, 20..20_000_usize), 1..30),
            excess in 0..100_000_usize,
            longest in prop::option::of(500..10_000_usize),
        ) {
            let ids: Vec<CallId> = (0..lens.len()).map(|id| CallId::from(id.to_string().as_str())).collect();
            let items = items(&lens, &ids);
            let Some(compaction) = plan(&items, excess, longest) else { return Ok(()) };
            let count = |wanted: fn(&ItemKind<'_>) -> bool| items.iter().filter(|item| wanted(&item.kind)).count();
            let steps = count(|kind| *kind == ItemKind::Step);
            let past = count(|kind| matches!(kind, ItemKind::Past { .. }));
            prop_assert!(compaction.past <= past);
            prop_assert!(steps == 0 || compaction.steps < steps, "the newest step stays");
            for elision in &compaction.elided {
                let is_it = |item: &&Item<'_>| matches!(item.kind, ItemKind::Result { call, .. } if *call == elision.call);
                let item = items.iter().find(is_it).unwrap();
                prop_assert!(elision.keep >= MIN_KEPT && elision.keep + NOTICE < item.bytes);
            }
            prop_assert!(compaction.past + compaction.steps + compaction.elided.len() > 0);
        }
    }
}
