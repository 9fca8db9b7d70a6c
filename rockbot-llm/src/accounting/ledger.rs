//! What was spent: by turn, session and tier, and in all.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::chat::{ChatResponse, MicroUsd, ModelTier, Pricing, Usage};
use rockbot_core::{CallContext, SessionId, TurnId};

use super::PriceTable;

/// How many sessions and how many turns are remembered.
const MAX_KEPT: usize = 10_000;

/// Adds up what answers cost. Copies share the sums, which last as long as the process.
///
/// A [`Meter`](super::Meter) with a ledger enters each answer. The newest 10 000 sessions and turns are remembered by
/// themselves; the tiers and the total hold all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatClient, ChatRequest};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_llm::{Ledger, Meter, ModelGateway};
///
/// let ledger = Ledger::default();
/// let gateway = ModelGateway::builder(ScriptedModel::new().says("Hello."))
///     .part(Meter::new().ledger(ledger.clone()))
///     .build();
///
/// let cx = CallContext::new("session");
/// gateway.chat(ChatCall { request: ChatRequest::default().into(), deltas: None, cx }).await?;
/// assert_eq!(ledger.of_session(&"session".into()).usage.total(), 15);
/// # Ok(())
/// # }
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
    sessions: Newest<SessionId>,
    turns: Newest<TurnId>,
}

/// What some answers cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// How many answers.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their price, as far as it is known.
    pub cost: MicroUsd,
    /// How many answers had no known price: the model is not in the table, or the provider named no usage.
    pub unpriced: u64,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage += other.usage;
        self.cost += other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

impl Ledger {
    /// An empty ledger that reckons with `prices`.
    pub fn new(prices: impl Pricing) -> Self {
        Self(Arc::new(Inner {
            prices: Arc::new(prices),
            book: Mutex::default(),
        }))
    }

    /// Enters an answer to a call with the context `cx`; returns what it cost.
    pub fn enter(&self, cx: &CallContext, tier: ModelTier, answer: &ChatResponse) -> Spent {
        let spent = self.price(answer);
        let mut book = self.lock();
        book.total += spent;
        book.tiers[tier as usize] += spent;
        book.sessions.add(cx.session(), spent);
        if let Some(turn) = cx.turn() {
            book.turns.add(turn, spent);
        }
        spent
    }

    /// What all answers cost.
    pub fn total(&self) -> Spent {
        self.lock().total
    }

    /// What the answers for `tier` cost.
    pub fn of_tier(&self, tier: ModelTier) -> Spent {
        self.lock().tiers[tier as usize]
    }

    /// What the answers in `session` cost; nothing when it is not remembered.
    pub fn of_session(&self, session: &SessionId) -> Spent {
        self.lock().sessions.of(session)
    }

    /// What the answers in `turn` cost; nothing when it is not remembered.
    pub fn of_turn(&self, turn: &TurnId) -> Spent {
        self.lock().turns.of(turn)
    }

    fn price(&self, answer: &ChatResponse) -> Spent {
        let model = answer.model.as_deref().unwrap_or_default();
        let cost = answer.usage.and_then(|usage| self.0.prices.cost_of(model, usage));
        Spent {
            calls: 1,
            usage: answer.usage.unwrap_or_default(),
            cost: cost.unwrap_or_default(),
            unpriced: u64::from(cost.is_none()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // No code that can panic runs under the lock.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Ledger {
    /// An empty ledger that reckons with [`PriceTable::default`].
    fn default() -> Self {
        Self::new(PriceTable::default())
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

/// Sums under keys; when there are too many, the key that came first is forgotten.
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

    const USAGE: Usage = Usage {
        input: 1_000_000,
        output: 100_000,
        cached: 0,
        reasoning: 50_000,
    };

    #[test]
    fn answers_add_up_by_turn_session_and_tier() {
        let ledger = Ledger::default();
        let cx = |session: &str, turn: &str| CallContext::new(session).with_turn(TurnId::from(turn));
        let one = ledger.enter(
            &cx("a", "1"),
            ModelTier::Low,
            &answer("openai/gpt-4.1-mini", Some(USAGE)),
        );
        let expected = Spent {
            calls: 1,
            usage: USAGE,
            cost: MicroUsd(560_000),
            unpriced: 0,
        };
        assert_eq!(one, expected);
        ledger.enter(&cx("a", "2"), ModelTier::High, &answer("gpt-4.1-mini", Some(USAGE)));
        ledger.enter(&cx("b", "3"), ModelTier::Low, &answer("qwen", Some(USAGE)));
        ledger.enter(&CallContext::new("b"), ModelTier::Low, &answer("gpt-4.1-mini", None));

        let sums = |spent: Spent| (spent.calls, spent.usage.input, spent.cost.0, spent.unpriced);
        assert_eq!(sums(ledger.total()), (4, 3_000_000, 1_120_000, 2));
        assert_eq!(sums(ledger.of_tier(ModelTier::Low)), (3, 2_000_000, 560_000, 2));
        assert_eq!(sums(ledger.of_tier(ModelTier::Balanced)), (0, 0, 0, 0));
        assert_eq!(sums(ledger.of_session(&"a".into())), (2, 2_000_000, 1_120_000, 0));
        assert_eq!(sums(ledger.of_turn(&"3".into())), (1, 1_000_000, 0, 1));
        assert_eq!(ledger.of_turn(&"1".into()), expected);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let ledger = Ledger::default();
        for number in 0..=MAX_KEPT {
            ledger.enter(
                &CallContext::new(format!("{number}")),
                ModelTier::Low,
                &answer("m", None),
            );
        }
        let calls = |session: &str| ledger.of_session(&session.into()).calls;
        assert_eq!((calls("0"), calls("1"), calls(&MAX_KEPT.to_string())), (0, 1, 1));
        assert_eq!(ledger.total().calls, MAX_KEPT as u64 + 1);
    }
}
