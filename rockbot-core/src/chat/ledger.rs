//! Accounting of usage and cost by turn, by session, by principal, by tier and in total.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ChatResponse, MicroUsd, ModelTier, Pricing, Spent, Usage};
use crate::{CallContext, Principal, SessionId, TurnId};

/// Maximum number of sessions, of principals, and of turns, with a sum of their own.
const MAX_KEPT: usize = 10_000;

/// Sums of usage and cost by turn, by session, by principal, by tier and in total. Clones share
/// the sums, which last as long as the process.
///
/// A host has one ledger and records each answer that its turns receive. Sessions of different
/// principals have different sums, whatever their ids. Sums are kept for the newest 10 000
/// sessions, principals and turns; older sums are evicted. The tiers and the total count all
/// answers.
///
/// ```
/// use rockbot_core::{CallContext, Principal};
/// use rockbot_core::chat::{ChatResponse, Ledger, MicroUsd, ModelTier};
///
/// // Without prices only reported costs are known.
/// let ledger = Ledger::new(());
/// let answer = ChatResponse::text("Hello.").with_cost(MicroUsd(1_200));
/// ledger.enter(&CallContext::new("session"), ModelTier::Low, &answer);
/// let me = Principal::default();
/// assert_eq!(ledger.of_session(&me, &"session".into()).price(), Some(MicroUsd(1_200)));
/// assert_eq!(ledger.of_principal(&me).calls, 1);
///
/// // An unknown price is not zero.
/// ledger.enter(&CallContext::new("session"), ModelTier::Low, &ChatResponse::text("Bye."));
/// assert_eq!(ledger.total().price(), None);
/// ```
#[derive(Clone)]
pub struct Ledger(Arc<Inner>);

struct Inner {
    prices: Arc<dyn Pricing>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    total: Spent,
    tiers: [Spent; 3],
    sessions: Newest<(Principal, SessionId)>,
    principals: Newest<Principal>,
    turns: Newest<TurnId>,
}

impl Ledger {
    /// Creates an empty ledger that computes unreported costs with `prices`.
    pub fn new(prices: impl Pricing) -> Self {
        Self(Arc::new(Inner {
            prices: Arc::new(prices),
            book: Mutex::default(),
        }))
    }

    /// Returns the cost of an answer: as the provider reported it, else by the prices of the ledger;
    /// `None` when unknown.
    pub fn cost_of(&self, answer: &ChatResponse) -> Option<MicroUsd> {
        answer
            .cost
            .or_else(|| self.0.prices.cost_of(answer.model.as_deref()?, answer.usage?))
    }

    /// Returns `true` if the ledger has a price of `model`.
    pub fn knows(&self, model: &str) -> bool {
        self.0.prices.cost_of(model, Usage::default()).is_some()
    }

    /// Records an answer to a call with the context `cx` and returns its usage and cost.
    pub fn enter(&self, cx: &CallContext, tier: ModelTier, answer: &ChatResponse) -> Spent {
        let cost = self.cost_of(answer);
        let spent = Spent {
            cost: cost.unwrap_or_default(),
            unpriced: u64::from(cost.is_none()),
            ..Spent::on(answer)
        };
        let mut book = self.lock();
        book.total += spent;
        book.tiers[tier as usize] += spent;
        book.sessions
            .add(&(cx.principal().clone(), cx.session().clone()), spent);
        book.principals.add(cx.principal(), spent);
        if let Some(turn) = cx.turn() {
            book.turns.add(turn, spent);
        }
        spent
    }

    /// Returns the sum of all answers.
    pub fn total(&self) -> Spent {
        self.lock().total
    }

    /// Returns the sum of the answers of `tier`.
    pub fn of_tier(&self, tier: ModelTier) -> Spent {
        self.lock().tiers[tier as usize]
    }

    /// Returns the sum of the answers in `session` of `principal`; zero after the session was evicted.
    pub fn of_session(&self, principal: &Principal, session: &SessionId) -> Spent {
        self.lock().sessions.of(&(principal.clone(), session.clone()))
    }

    /// Returns the sum of the answers to `principal`; zero after the principal was evicted.
    pub fn of_principal(&self, principal: &Principal) -> Spent {
        self.lock().principals.of(principal)
    }

    /// Returns the sum of the answers in `turn`; zero after the turn was evicted.
    pub fn of_turn(&self, turn: &TurnId) -> Spent {
        self.lock().turns.of(turn)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // No code that can panic runs under the lock.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

/// Sums by key. At the bound the oldest key is evicted.
struct Newest<K> {
    sums: HashMap<K, Spent>,
    order: VecDeque<K>,
}

impl<K> Default for Newest<K> {
    fn default() -> Self {
        Self {
            sums: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Hash + Eq + Clone> Newest<K> {
    fn add(&mut self, key: &K, spent: Spent) {
        if let Some(sum) = self.sums.get_mut(key) {
            *sum += spent;
            return;
        }
        if self.order.len() == MAX_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.sums.remove(&oldest);
        }
        self.sums.insert(key.clone(), spent);
        self.order.push_back(key.clone());
    }

    fn of(&self, key: &K) -> Spent {
        self.sums.get(key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(model: &str, usage: Option<Usage>) -> ChatResponse {
        ChatResponse {
            model: Some(model.into()),
            usage,
            ..ChatResponse::text("x")
        }
    }

    /// A dollar for a million tokens of models that it knows.
    struct Dollar;

    impl Pricing for Dollar {
        fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd> {
            (model == "known").then(|| MicroUsd(usage.total()))
        }
    }

    const USAGE: Usage = Usage {
        input: 1_000_000,
        output: 100_000,
        cached: 0,
        reasoning: 50_000,
    };

    #[test]
    fn answers_add_up_by_turn_session_and_tier() {
        let ledger = Ledger::new(Dollar);
        let cx = |session: &str, turn: &str| CallContext::new(session).with_turn(TurnId::from(turn));
        let one = ledger.enter(&cx("a", "1"), ModelTier::Low, &answer("known", Some(USAGE)));
        let expected = Spent {
            calls: 1,
            usage: USAGE,
            cost: MicroUsd(1_100_000),
            unpriced: 0,
        };
        assert_eq!(one, expected);
        ledger.enter(&cx("a", "2"), ModelTier::High, &answer("known", Some(USAGE)));
        ledger.enter(&cx("b", "3"), ModelTier::Low, &answer("qwen", Some(USAGE)));
        ledger.enter(&CallContext::new("b"), ModelTier::Low, &answer("known", None));

        let sums = |spent: Spent| (spent.calls, spent.usage.input, spent.cost.0, spent.unpriced);
        assert_eq!(sums(ledger.total()), (4, 3_000_000, 2_200_000, 2));
        assert_eq!(sums(ledger.of_tier(ModelTier::Low)), (3, 2_000_000, 1_100_000, 2));
        assert_eq!(sums(ledger.of_tier(ModelTier::Balanced)), (0, 0, 0, 0));
        assert_eq!(
            sums(ledger.of_session(&Principal::default(), &"a".into())),
            (2, 2_000_000, 2_200_000, 0)
        );
        assert_eq!(sums(ledger.of_turn(&"3".into())), (1, 1_000_000, 0, 1));
        assert_eq!(ledger.of_turn(&"1".into()), expected);
    }

    #[test]
    fn principals_have_sums_of_their_own() {
        let ledger = Ledger::new(());
        for (principal, calls) in [("ann", 2), ("bob", 1)] {
            let cx = CallContext::new("s").with_principal(principal.into());
            for _ in 0..calls {
                ledger.enter(&cx, ModelTier::Low, &answer("m", None));
            }
        }
        let calls = |principal: &str| {
            let principal = Principal::from(principal);
            let session = ledger.of_session(&principal, &"s".into());
            (session.calls, ledger.of_principal(&principal).calls)
        };
        assert_eq!((calls("ann"), calls("bob"), calls("eve")), ((2, 2), (1, 1), (0, 0)));
    }

    #[test]
    fn the_price_that_the_provider_names_counts() {
        let ledger = Ledger::new(Dollar);
        let cost = |cost, model| {
            let answer = ChatResponse {
                cost,
                ..answer(model, Some(USAGE))
            };
            ledger.cost_of(&answer)
        };
        assert_eq!(cost(Some(MicroUsd(7)), "known"), Some(MicroUsd(7)));
        assert_eq!(cost(Some(MicroUsd(0)), "unknown"), Some(MicroUsd(0)));
        assert_eq!(cost(None, "known"), Some(MicroUsd(1_100_000)));
        assert_eq!(cost(None, "unknown"), None);
        assert_eq!((ledger.knows("known"), ledger.knows("unknown")), (true, false));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let ledger = Ledger::new(());
        for number in 0..=MAX_KEPT {
            ledger.enter(
                &CallContext::new(format!("{number}")),
                ModelTier::Low,
                &answer("m", None),
            );
        }
        let calls = |session: &str| ledger.of_session(&Principal::default(), &session.into()).calls;
        assert_eq!((calls("0"), calls("1"), calls(&MAX_KEPT.to_string())), (0, 1, 1));
        assert_eq!(ledger.total().calls, MAX_KEPT as u64 + 1);
    }
}
