//! What is left out of a conversation that has become too long, and in which order: long results lose their middle,
//! those of earlier steps first; then what was said before the turn goes, then the turn's first steps.

use rockbot_core::CallId;
use serde::{Deserialize, Serialize};

/// About what it costs to say that something was left out: the marker in its place and its line in the registry.
pub(in crate::turn) const NOTICE: usize = 400;

/// How much of a result always stays, in bytes.
const FLOOR: usize = 400;

/// What is left out of a conversation so that it gets shorter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compaction {
    /// The results that lose their middle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elided: Vec<Elision>,
    /// How many messages from before the turn go, the oldest first.
    #[serde(skip_serializing_if = "is_zero")]
    pub past: usize,
    /// How many of the turn's steps go, the first ones first: a step is what the model wanted and what came of it.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps: usize,
    /// Whether the model refused the conversation as it was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_overflow: bool,
}

/// A result that loses its middle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elision {
    /// The call that returned it.
    pub call: CallId,
    /// How many bytes of it stay.
    pub keep: usize,
}

// serde passes fields by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A message, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(in crate::turn) struct Item<'a> {
    pub(in crate::turn) part: Part<'a>,
    pub(in crate::turn) bytes: usize,
}

/// What a message is to the conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::turn) enum Part<'a> {
    /// It stays: instructions, the request, what is said while the turn runs.
    Fixed,
    /// It was said before the turn; a user's message begins an exchange.
    Past { by_user: bool },
    /// The model's calls.
    Step,
    /// What came of a call; `whole` when its tool is there to read long texts with.
    Result { call: &'a CallId, whole: bool },
}

/// How to make a conversation `excess` bytes shorter, and no result longer than `longest`, if it can get shorter at all.
///
/// A result that is only a little longer stays as it is: to say what was left out takes room, too.
pub(in crate::turn) fn plan(items: &[Item<'_>], excess: usize, longest: Option<usize>) -> Option<Compaction> {
    let mut cut = Cut {
        items,
        lens: items.iter().map(|item| item.bytes).collect(),
        // What the registry begins with.
        left: excess.saturating_add(if excess > 0 { NOTICE } else { 0 }),
        saved: 0,
        past: 0,
        steps: 0,
    };
    let newest = items.iter().rposition(|item| item.part == Part::Step).unwrap_or(0);
    if let Some(longest) = longest {
        cut.lower_to(longest.max(FLOOR), |_, whole| !whole);
    }
    cut.lower(|index, whole| index < newest && !whole);
    cut.lower(|_, whole| !whole);
    cut.forget_past();
    cut.forget_steps(newest);
    cut.lower(|_, _| true);
    (cut.saved > NOTICE).then(|| cut.compaction())
}

struct Cut<'a> {
    items: &'a [Item<'a>],
    /// How long each message is by now.
    lens: Vec<usize>,
    /// How much is still to be saved.
    left: usize,
    saved: usize,
    past: usize,
    steps: usize,
}

impl Cut<'_> {
    /// Lowers the longest of the chosen results to one level: the highest that saves enough.
    fn lower(&mut self, chosen: impl Fn(usize, bool) -> bool) {
        if self.left > 0 {
            let mut lens: Vec<_> = self.results(&chosen).map(|index| self.lens[index]).collect();
            self.lower_to(level(&mut lens, self.left), chosen);
        }
    }

    fn lower_to(&mut self, level: usize, chosen: impl Fn(usize, bool) -> bool) {
        let results: Vec<_> = self.results(&chosen).collect();
        for index in results {
            if self.lens[index] > level + NOTICE {
                self.save(self.lens[index] - level - NOTICE);
                self.lens[index] = level;
            }
        }
    }

    /// The results among which `chosen` chooses, unless their step is gone.
    fn results(&self, chosen: impl Fn(usize, bool) -> bool) -> impl Iterator<Item = usize> {
        let is_chosen = move |(index, item): &(usize, &Item<'_>)| match item.part {
            Part::Result { whole, .. } => self.lens[*index] > 0 && chosen(*index, whole),
            _ => false,
        };
        self.items.iter().enumerate().filter(is_chosen).map(|(index, _)| index)
    }

    /// Forgets whole exchanges from before the turn.
    fn forget_past(&mut self) {
        let past: Vec<_> = self.having(|part| matches!(part, Part::Past { .. }));
        for (count, index) in past.into_iter().enumerate() {
            let begins = matches!(self.items[index].part, Part::Past { by_user: true });
            if self.left == 0 && begins {
                break;
            }
            if self.left > 0 || count > 0 {
                self.forget(index);
                self.past += 1;
            }
        }
    }

    /// Forgets the turn's first steps, each with all that came of it, but never the `newest`.
    fn forget_steps(&mut self, newest: usize) {
        for step in self.having(|part| *part == Part::Step) {
            if self.left == 0 || step >= newest {
                break;
            }
            self.forget(step);
            self.steps += 1;
            let results = self.items[step + 1..].iter();
            let count = results
                .take_while(|item| matches!(item.part, Part::Result { .. }))
                .count();
            (step + 1..=step + count).for_each(|result| self.forget(result));
        }
    }

    fn having(&self, wanted: impl Fn(&Part<'_>) -> bool) -> Vec<usize> {
        let items = self.items.iter().enumerate();
        items
            .filter(|(_, item)| wanted(&item.part))
            .map(|(index, _)| index)
            .collect()
    }

    fn forget(&mut self, index: usize) {
        // The original of a long result is kept, and the registry says so.
        let notice = match self.items[index].part {
            Part::Result { .. } if self.lens[index] > NOTICE => NOTICE,
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
            .filter_map(|(item, len)| match item.part {
                Part::Result { call, .. } if *len > 0 && *len < item.bytes => Some(Elision {
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

/// The level to which the longest of `lens` must be lowered to save `wanted` bytes; at least the floor.
fn level(lens: &mut [usize], wanted: usize) -> usize {
    lens.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0;
    for (index, len) in lens.iter().enumerate() {
        sum += len;
        let (count, next) = (index + 1, lens.get(index + 1).copied().unwrap_or(0));
        // With so many of them at `level`, each with its notice.
        let level = sum.saturating_sub(wanted) / count;
        if level >= next.max(FLOOR + NOTICE) {
            return level - NOTICE;
        }
    }
    FLOOR
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fixed(bytes: usize) -> Item<'static> {
        let part = Part::Fixed;
        Item { part, bytes }
    }

    fn past(bytes: usize, by_user: bool) -> Item<'static> {
        let part = Part::Past { by_user };
        Item { part, bytes }
    }

    fn step() -> Item<'static> {
        let part = Part::Step;
        Item { part, bytes: 60 }
    }

    fn result(call: &CallId, bytes: usize) -> Item<'_> {
        let part = Part::Result { call, whole: false };
        Item { part, bytes }
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
    fn nothing_is_left_out_of_what_is_short_enough() {
        let a = "a".into();
        check(&[fixed(9_000), step(), result(&a, 9_000)], 0, Some(9_000), None);
    }

    #[test]
    fn a_long_result_is_cut_down_to_the_longest() {
        let (a, b) = ("a".into(), "b".into());
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
        let (a, b, c) = ("a".into(), "b".into(), "c".into());
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
    fn then_go_old_exchanges_and_then_old_steps() {
        let (a, b, c) = ("a".into(), "b".into(), "c".into());
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
    fn what_cannot_get_shorter_is_left_alone() {
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
            has_step |= item.part == Part::Step;
            items.push(item);
        }
        items
    }

    proptest! {
        #[test]
        fn a_compaction_is_strictly_shorter_and_keeps_what_must_stay(
            lens in prop::collection::vec((0..6_u8, 20..20_000_usize), 1..30),
            excess in 0..100_000_usize,
            longest in prop::option::of(500..10_000_usize),
        ) {
            let ids: Vec<CallId> = (0..lens.len()).map(|id| CallId::from(id.to_string().as_str())).collect();
            let items = items(&lens, &ids);
            let Some(compaction) = plan(&items, excess, longest) else { return Ok(()) };
            let count = |wanted: fn(&Part<'_>) -> bool| items.iter().filter(|item| wanted(&item.part)).count();
            let (steps, past) = (count(|part| *part == Part::Step), count(|part| matches!(part, Part::Past { .. })));
            prop_assert!(compaction.past <= past);
            prop_assert!(steps == 0 || compaction.steps < steps, "the newest step stays");
            for elision in &compaction.elided {
                let is_it = |item: &&Item<'_>| matches!(item.part, Part::Result { call, .. } if *call == elision.call);
                let item = items.iter().find(is_it).unwrap();
                prop_assert!(elision.keep >= FLOOR && elision.keep + NOTICE < item.bytes);
            }
            prop_assert!(compaction.past + compaction.steps + compaction.elided.len() > 0);
        }
    }
}
