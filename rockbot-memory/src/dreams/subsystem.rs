//! The subsystem that dreams.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, RunningTask, Stage, Subsystem};
use rockbot_core::turn::{EndedTurn, TurnObserver, TurnRunner};
use rockbot_core::{BoxError, IdSource, RandomIds, Timestamp};
use tokio_util::sync::CancellationToken;

use super::dreamer::{Dreamer, NextTime};
use super::handle::{Dreams, Shared};
use super::ledger::Ledger;
use super::options::DreamOptions;
use super::plan_store::PlanStore;
use super::recall::EpisodeRecall;
use super::stores::Stores;

/// Folder of plans, below the data folder.
const FOLDER: &str = "dreams";

/// A subsystem that dreams: while users are silent, it tends the agent's memories and skills.
///
/// A cycle runs the passes of [`DreamPass`](super::DreamPass), first 5 minutes after the start and
/// then every 4 hours, or as [`DreamOptions`], the section `Dream` and
/// [`with_times`](Self::with_times) say. Each pass has the host's
/// one slot for background work and yields to a user's message at once; it begins anew after a
/// longer silence, up to 6 times. A pass that fails is tried again after 5 minutes, 10 and 20,
/// while the other passes go on. The same texts are not asked about again within 7 days.
///
/// **Plans**: a pass changes nothing. It makes [plans](super::DreamPlan), and a plan is applied at
/// once only if its pass may ([`DreamOptions::auto_apply`]) and all checks agree; other plans
/// wait for a person, who lists, reads, applies and undoes them with [`Dreams`]. Nothing is
/// deleted: a memory that a plan puts aside is superseded, and undoing the plan brings it back. A
/// plan is on disk, with all that undoing it needs, before its first change; a plan that a crash
/// interrupts is finished at the next start.
///
/// **Views**: texts of messages and saved memories are never rewritten. A merge is a new memory,
/// whose metadata name its `view` (the pass), its `sources` and the start of its validity
/// (`validFrom`). Recall finds views first, and the episodes behind them where a view lacks the
/// words of the question.
///
/// **Checks**: a merged text must have every name, number, date and abbreviation of its sources,
/// and an inferred fact has none that its sources lack. A fact with the names of an archived memory
/// is not added again. An answer may only name texts that were shown; memories of different trust
/// are never merged, and a view is trusted as the least trusted of its sources. Before a plan
/// supersedes a memory, the user's last messages and the memory's own text are looked up in both
/// states: if a fact that matters would be found no more, the plan waits for a person.
///
/// **Data**: in the folder `dreams` of the data folder, plans as `{time}-{pass}.json`, the state in
/// `state.json` (with the last 50 messages of each user, keys redacted), and a log for people,
/// `dreams.log`. The instructions of each pass are a file of the data folder, which
/// [`DreamPass`](super::DreamPass) names; without it a built-in text is used.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_memory::{DreamOptions, Dreaming};
///
/// let nightly = DreamOptions::default().with_interval(Duration::from_secs(24 * 60 * 60)).with_auto_apply([]);
/// let dreaming = Dreaming::new().with_options(nightly); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Dreaming {
    /// `None` means the host's settings. Once they are read, `None` means that dreams are off.
    options: Option<DreamOptions>,
    times: Option<NextTime>,
    shared: Shared,
    ledger: Arc<Mutex<Ledger>>,
    plans: Arc<PlanStore>,
}

impl Dreaming {
    /// Creates a subsystem that dreams as the host's settings say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options in place of the host's settings. `Dream.Enabled = false` still turns dreams
    /// off.
    pub fn with_options(mut self, options: DreamOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets the times of cycles in place of [`DreamOptions::interval`]: `next` returns the first
    /// time after another, and `None` if there is none. The clock of the host decides. A time that
    /// passes while the host is not running is made up for at the start, after
    /// [`DreamOptions::initial_delay`]; the first cycle of a new host comes then, too.
    ///
    /// With the feature `scheduling`, `rockbot::tools::scheduling::CronTimes` has the times of a
    /// cron expression in a time zone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rockbot_core::Timestamp;
    /// use rockbot_memory::Dreaming;
    ///
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let dreaming = Dreaming::new().with_times(move |after: Timestamp| Some(after.after(day)));
    /// ```
    pub fn with_times(mut self, next: impl Fn(Timestamp) -> Option<Timestamp> + Send + Sync + 'static) -> Self {
        self.times = Some(NextTime(Arc::new(next)));
        self
    }

    fn open(&mut self, data_dir: Option<&Path>) -> Result<(), BoxError> {
        let (plans, ledger) = PlanStore::open(data_dir.map(|folder| folder.join(FOLDER)))?;
        self.plans = Arc::new(plans);
        self.ledger = Arc::new(Mutex::new(ledger));
        Ok(())
    }
}

#[async_trait]
impl Subsystem for Dreaming {
    fn name(&self) -> &str {
        "dreaming"
    }

    fn stage(&self) -> Stage {
        Stage::Dreams
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        let config = needs.parts().get::<Config>().unwrap_or_default();
        let settings = DreamOptions::from_config(&config)?;
        self.options = settings.map(|settings| self.options.take().unwrap_or(settings));
        needs.provide(Arc::new(Dreams::new(self.shared.clone())));
        let Some(options) = &self.options else {
            needs.cost(PartCost::off("dreaming").with_switch("`Dream.Enabled`"));
            return Ok(());
        };
        if options.interval.is_zero() {
            return Err("the interval of dreams is zero: set some time, such as 4 hours".into());
        }
        let calls = format!("at most {} a cycle, in the background", options.max_calls);
        needs.cost(
            PartCost::on("dreaming")
                .with_switch("`Dream.Enabled`")
                .with_model_calls(calls),
        );
        let data_dir = needs.parts().data_dir().map(Path::to_owned);
        self.open(data_dir.as_deref())?;
        needs.observe(Listener(self.ledger.clone()));
        needs.context_source(EpisodeRecall(self.shared.clone()));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let Some(options) = self.options else {
            return Ok(Box::new(Idle));
        };
        let ids = parts.get::<dyn IdSource>();
        let dreamer = Arc::new(Dreamer {
            stores: Stores::of(parts),
            plans: self.plans,
            ledger: self.ledger,
            clock: parts.clock().clone(),
            ids: ids.unwrap_or_else(|| Arc::new(RandomIds)),
            options: Arc::new(options),
            times: self.times,
            chat: parts.get::<dyn ChatClient>(),
            turns: parts.get::<dyn TurnRunner>(),
            changing: tokio::sync::Mutex::default(),
            dreaming: tokio::sync::Mutex::default(),
            ended: CancellationToken::new(),
        });
        // A subsystem starts once.
        let _ = self.shared.set(dreamer.clone());
        let (running, task) = RunningTask::new(|stop| dreamer.run(stop));
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

/// A listener that notes the messages of users, so that recall can be replayed.
#[derive(Debug)]
pub(super) struct Listener(pub(super) Arc<Mutex<Ledger>>);

impl TurnObserver for Listener {
    fn ended(&self, turn: &EndedTurn<'_>) {
        if turn.is_of_a_person() {
            let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.heard(&turn.request.principal, &turn.request.content.words());
        }
    }
}
