//! One cycle of dreams, from the passes to the plans. The checks of a plan are in `objections`, its
//! application and undoing in `changes`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::chat::{ChatClient, MicroUsd};
use rockbot_core::store::{LogOffset, StoreError};
use rockbot_core::support::loggable;
use rockbot_core::turn::{BackgroundSlot, TurnRunner};
use rockbot_core::{Clock, IdSource, Principal, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ask::Asker;
use super::error::DreamError;
use super::ledger::Ledger;
use super::options::DreamOptions;
use super::pass::DreamPass;
use super::pass_context::{Draft, PassContext, PassOutcome};
use super::passes;
use super::plan::{DreamChange, DreamPlan, PlanState};
use super::plan_store::PlanStore;
use super::stores::Stores;
use super::times::{file_stamp, rfc3339};

/// Silence of users before a pass begins. Doubled each time that a user interrupts the pass.
const QUIET_PERIOD: Duration = Duration::from_secs(30);

/// Maximum number of times that a pass begins in one cycle.
const MAX_ATTEMPTS: u32 = 6;

/// Pause before passes that failed are tried again. Doubled each time.
const RETRY_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Maximum number of times that a failed pass is tried again in one cycle.
const MAX_RETRIES: u32 = 3;

/// The parts of a host that dreams need.
pub(super) struct Dreamer {
    pub(super) stores: Stores,
    pub(super) plans: Arc<PlanStore>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) options: Arc<DreamOptions>,
    /// The times of cycles; `None` means the interval of the options.
    pub(super) times: Option<NextTime>,
    pub(super) chat: Option<Arc<dyn ChatClient>>,
    /// The turns of the host, whose slot for background work a pass needs.
    pub(super) turns: Option<Arc<dyn TurnRunner>>,
    /// Held while the changes of a plan are made or undone.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Held during a cycle.
    pub(super) dreaming: tokio::sync::Mutex<()>,
    /// Cancelled when the host stops: no cycle outlives the host.
    pub(super) ended: CancellationToken,
}

impl fmt::Debug for Dreamer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dreamer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The first time of a cycle after another time.
#[derive(Clone)]
pub(super) struct NextTime(pub(super) Arc<dyn Fn(Timestamp) -> Option<Timestamp> + Send + Sync>);

impl fmt::Debug for NextTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextTime").finish_non_exhaustive()
    }
}

/// The result of a pass for one principal in one slot.
enum PassEnd {
    Done,
    /// A user wrote each time, or the host stops.
    Interrupted,
    /// The pass failed, and is tried again later in the cycle.
    Failed,
}

impl Dreamer {
    /// Runs cycles until `stop` fires.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        // The guard fires at every end of the task, for cycles that the program has begun.
        let _ended = self.ended.clone().drop_guard();
        self.recover().await;
        let mut pause = self.first_pause();
        while stop.run_until_cancelled(self.next_cycle(pause)).await.is_some() {
            self.cycle(QUIET_PERIOD, &stop).await;
            pause = match self.times {
                Some(_) => Duration::ZERO,
                None => self.options.interval,
            };
        }
        self.save_state().await;
    }

    /// Waits for `pause` and, with times for cycles, for the first time after the last cycle.
    async fn next_cycle(&self, pause: Duration) {
        sleep(pause).await;
        let last = self.ledger().last_cycle();
        if let (Some(times), Some(last)) = (&self.times, last) {
            match (times.0)(last) {
                Some(next) => self.clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the time until the first cycle: the initial delay, or longer if the last cycle was
    /// less than an interval ago.
    fn first_pause(&self) -> Duration {
        if self.times.is_some() {
            return self.options.initial_delay;
        }
        let last = self.ledger().last_cycle();
        let elapsed = last.map_or(Duration::MAX, |last| self.clock.now().since(last));
        self.options
            .initial_delay
            .max(self.options.interval.saturating_sub(elapsed))
    }

    /// Runs all passes once, and repeats failed passes up to three times. A pass begins when users
    /// were silent for `quiet`.
    pub(super) async fn cycle(&self, quiet: Duration, stop: &CancellationToken) {
        let _one_at_a_time = self.dreaming.lock().await;
        let asker = self.asker();
        let mut left: Vec<_> = self.work().collect();
        for attempt in 0..=MAX_RETRIES {
            // A pass that failed in the middle of a plan begins anew once that plan is finished.
            self.recover().await;
            let mut failed = Vec::new();
            for (pass, who) in left {
                if let PassEnd::Failed = self.pass_in_slot((pass, &who), asker.as_ref(), quiet, stop).await {
                    failed.push((pass, who));
                }
            }
            if failed.is_empty() || attempt == MAX_RETRIES || stop.is_cancelled() {
                break;
            }
            left = failed;
            stop.run_until_cancelled(sleep(RETRY_PAUSE * 2_u32.pow(attempt))).await;
        }
        if !stop.is_cancelled() {
            self.ledger().cycle_ended(self.clock.now());
        }
        self.save_state().await;
    }

    /// Returns each pass with each principal, without the pairs that nothing can be done for.
    fn work(&self) -> impl Iterator<Item = (DreamPass, Principal)> {
        let principals = self.ledger().principals();
        let can_ask = self.chat.is_some();
        let passes: Vec<_> = self
            .options
            .passes()
            .filter(|pass| can_ask || !pass.asks_model())
            .collect();
        let of_host =
            |pass: DreamPass, who: &Principal| pass != DreamPass::TierRoutingReview || *who == Principal::default();
        passes.into_iter().flat_map(move |pass| {
            let principals = principals.clone().into_iter();
            principals
                .filter(move |who| of_host(pass, who))
                .map(move |who| (pass, who))
        })
    }

    fn asker(&self) -> Option<Asker> {
        let chat = self.chat.clone()?;
        Some(Asker {
            chat,
            options: self.options.clone(),
            data_dir: self.stores.data_dir.clone(),
            spent: Mutex::new((0, MicroUsd::default())),
        })
    }

    /// Runs a pass while users are silent. If a user writes meanwhile, the pass begins anew after a
    /// longer silence.
    ///
    /// Only reading and asking are cut short: a decided plan is stored and applied to its end, and
    /// that takes a moment.
    async fn pass_in_slot(
        &self,
        (pass, who): (DreamPass, &Principal),
        asker: Option<&Asker>,
        mut quiet: Duration,
        stop: &CancellationToken,
    ) -> PassEnd {
        for _ in 0..MAX_ATTEMPTS {
            let planned = stop.run_until_cancelled(self.planned(pass, who, asker, quiet)).await;
            quiet = (quiet * 2).max(QUIET_PERIOD);
            let Some((planned, _slot)) = planned else {
                return PassEnd::Interrupted;
            };
            match planned {
                None => self.log(pass, "a user wrote; the pass begins anew later").await,
                Some(Ok(outcome)) => return self.settle(pass, who, outcome).await,
                Some(Err(error)) => {
                    self.failed(pass, &error.to_string()).await;
                    return PassEnd::Failed;
                }
            }
        }
        self.count(pass, "interrupted");
        self.log(pass, "users wrote whenever the pass began; it waits for the next cycle")
            .await;
        PassEnd::Interrupted
    }

    /// Returns the outcome of a pass, or `None` if a user wrote meanwhile, and the slot of its run.
    async fn planned(
        &self,
        pass: DreamPass,
        who: &Principal,
        asker: Option<&Asker>,
        quiet: Duration,
    ) -> (Option<Result<PassOutcome, StoreError>>, Option<BackgroundSlot>) {
        let Some(turns) = &self.turns else {
            return (Some(self.plan(pass, who, asker).await), None);
        };
        let slot = turns.background(quiet).await;
        let planned = slot
            .cancellation()
            .run_until_cancelled(self.plan(pass, who, asker))
            .await;
        (planned, Some(slot))
    }

    async fn plan(&self, pass: DreamPass, who: &Principal, asker: Option<&Asker>) -> Result<PassOutcome, StoreError> {
        let now = self.clock.now();
        let mut settled = self.ledger().answered_questions(now);
        let mut declined = BTreeSet::new();
        for plan in self
            .plans
            .all()
            .iter()
            .filter(|plan| plan.pass == pass && plan.principal == *who)
        {
            if plan.can_be_applied() {
                settled.extend(plan.question);
            }
            if plan.state == PlanState::Undone {
                declined.extend(plan.changes.iter().filter_map(DreamChange::superseded).cloned());
            }
        }
        let mut cx = PassContext {
            pass,
            who,
            stores: &self.stores,
            ids: &*self.ids,
            now,
            settled: &settled,
            declined: &declined,
            asker,
            outcome: PassOutcome::default(),
        };
        passes::run(&mut cx).await?;
        Ok(cx.outcome)
    }

    /// Stores the plans of a pass, applies the plans that need no person, and then marks their
    /// sources as read.
    async fn settle(&self, pass: DreamPass, who: &Principal, outcome: PassOutcome) -> PassEnd {
        for remark in &outcome.remarks {
            self.log(pass, remark).await;
        }
        for draft in outcome.drafts {
            if let Err(error) = self.file(pass, who, draft).await {
                self.failed(pass, &error.to_string()).await;
                return PassEnd::Failed;
            }
        }
        {
            let mut ledger = self.ledger();
            let now = self.clock.now();
            outcome
                .answered
                .iter()
                .for_each(|question| ledger.answered(question, now));
        }
        if let Err(error) = self.mark_read(who, outcome.read).await {
            self.failed(pass, &error.to_string()).await;
            return PassEnd::Failed;
        }
        self.save_state().await;
        if let Some(error) = outcome.failure {
            self.failed(pass, &error).await;
            return PassEnd::Failed;
        }
        self.count(pass, "done");
        PassEnd::Done
    }

    async fn mark_read(&self, who: &Principal, read: Vec<(String, LogOffset)>) -> Result<(), StoreError> {
        for (reader, offset) in read {
            if let Some(log) = &self.stores.log {
                log.commit(who, &reader, offset).await?;
            }
        }
        Ok(())
    }

    /// Stores a plan. Applies the plan if its pass may apply plans and no check objects.
    async fn file(&self, pass: DreamPass, who: &Principal, draft: Draft) -> Result<(), DreamError> {
        let now = self.clock.now();
        let mut plan = DreamPlan {
            id: self.plans.free_id(&format!("{}-{pass}", file_stamp(now))),
            pass,
            principal: who.clone(),
            created_at: now,
            state: PlanState::Proposed,
            summary: draft.summary,
            changes: draft.changes,
            notes: Vec::new(),
            question: draft.question,
        };
        plan.notes = self.objections(&plan).await?;
        let applies = plan.notes.is_empty() && self.options.auto_apply.contains(&pass);
        let plan = self.plans.save(plan).await?;
        metrics::counter!("rockbot.dream.plans", "pass" => pass.name()).increment(1);
        let objections = plan.notes.iter().map(|note| format!("; {note}")).collect::<String>();
        self.log(pass, &format!("planned {}: {}{objections}", plan.id, plan.summary))
            .await;
        if applies {
            self.apply(&plan.principal, &plan.id).await?;
        }
        Ok(())
    }

    pub(super) async fn save_state(&self) {
        let state = self.ledger().clone();
        if let Err(error) = self.plans.save_state(state).await {
            tracing::warn!(%error, "the state of dreams cannot be written; a restart may ask a model again");
        }
    }

    async fn failed(&self, pass: DreamPass, error: &str) {
        let error = loggable(error).to_string();
        tracing::warn!(%pass, error, "a pass of a dream failed; the others go on, and it is tried again");
        self.count(pass, "failed");
        self.log(pass, &format!("failed: {error}")).await;
    }

    pub(super) async fn log(&self, pass: DreamPass, text: &str) {
        let line = format!("{} {pass}: {}", rfc3339(self.clock.now()), loggable(text));
        self.plans.log(line).await;
    }

    fn count(&self, pass: DreamPass, result: &'static str) {
        metrics::counter!("rockbot.dream.passes", "pass" => pass.name(), "result" => result).increment(1);
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
