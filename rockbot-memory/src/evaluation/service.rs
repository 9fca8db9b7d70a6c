//! The subsystem that evaluates sessions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::OptionFuture;
use rockbot_core::BoxError;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::store::{ConversationMemory, FeedbackStore};
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Stage, Subsystem};
use rockbot_core::turn::{EndedTurn, TurnObserver, TurnRunner};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::EvaluationOptions;
use super::evaluator::{EvaluationOutcome, Evaluator};
use super::queue::{DueSession, EvaluationQueue, SessionKey};
use super::queue_file::QueueFile;
use crate::Retention;
use crate::background::RetentionPurge;
use crate::settings::FeedbackSettings;
use crate::subsystem::{below, open_feedback};

/// Folder of the queue, below the data folder.
const QUEUE_FOLDER: &str = "evaluation";

/// Quiet time of the whole host before a session is evaluated.
const QUIET_PERIOD: Duration = Duration::from_secs(30);

/// A subsystem that evaluates ended sessions: it asks a model how each went, and appends the
/// answer, a [`SessionSummary`](super::SessionSummary), to the host's [`FeedbackStore`]. A host
/// without one gets the store that the settings name, with its purge.
///
/// A session is queued from its first turn until it is evaluated, and again when it continues
/// after that. The queue, at most 10 000 sessions, is stored in `evaluation/waiting.json` of the
/// data folder: a restart neither repeats an evaluation nor loses one, except for a session that
/// began in the last moment before the process was killed. Sessions from before this subsystem
/// was added are queued when they continue. Queued sessions are not read until they are
/// evaluated.
///
/// Users come first: no session is evaluated while a turn runs or a model is asked, nor within 30
/// seconds of the last turn. The call has the lowest
/// [`Priority`](rockbot_core::context::Priority), and passes the host's chat layers and its
/// ledger like any other. A failed evaluation is retried at the next poll, then with exponential
/// back-off up to 6 hours; the other sessions wait for the next poll.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_memory::{EvaluationOptions, SessionEvaluation};
///
/// let options = EvaluationOptions::default().with_idle_threshold(Duration::from_secs(1_800));
/// let evaluation = SessionEvaluation::new(options); // for `AgentHostBuilder::add`
/// ```
#[derive(Debug, Default)]
pub struct SessionEvaluation {
    /// `None`: the options of the host's settings apply.
    options: Option<EvaluationOptions>,
    queue: Arc<EvaluationQueue>,
    file: Option<Arc<QueueFile>>,
    /// The store of feedback of a host that has no other, and its retention.
    store: Arc<OnceLock<(Arc<dyn FeedbackStore>, Retention)>>,
}

impl SessionEvaluation {
    /// Creates an evaluation with these options, whatever the host's settings are. With
    /// [`default`](SessionEvaluation::default), the settings apply.
    pub fn new(options: EvaluationOptions) -> Self {
        Self {
            options: Some(options),
            ..Self::default()
        }
    }

    /// Provides a store of feedback to a host that has none.
    fn declare_store(&self, settings: &FeedbackSettings, needs: &mut Declarations) {
        let own = self.store.clone();
        let feedback = settings.retention;
        let folder = below(needs.parts().data_dir(), settings.base_path.clone());
        needs.provide_default::<dyn FeedbackStore>(move |_| {
            let retention = Retention {
                feedback,
                ..Retention::default()
            };
            let store = open_feedback(folder.as_deref())?;
            // Empty until now: a default part is opened once.
            let _ = own.set((store.clone(), retention));
            Ok(store)
        });
    }
}

#[async_trait]
impl Subsystem for SessionEvaluation {
    fn name(&self) -> &str {
        "session evaluation"
    }

    fn stage(&self) -> Stage {
        Stage::Evaluation
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        let config = needs.parts().get::<Config>().unwrap_or_default();
        let settings = FeedbackSettings::from_config(&config)?;
        self.declare_store(&settings, needs);
        let options = self.options.take().unwrap_or_else(|| settings.into());
        if options.poll_interval.is_zero() {
            return Err("the poll interval of session evaluation is zero: set some time, such as 5 minutes".into());
        }
        let calls = format!(
            "one on the {} tier for each ended session, in the background",
            options.tier.name()
        );
        needs.cost(
            PartCost::on("session evaluation")
                .with_switch("`Feedback.Enabled`")
                .with_model_calls(calls),
        );
        if let Some(folder) = needs.parts().data_dir() {
            let (file, entries) = QueueFile::open(folder.join(QUEUE_FOLDER))?;
            self.queue = Arc::new(EvaluationQueue::of(entries));
            self.file = Some(Arc::new(file));
        }
        needs.observe(Observer(self.queue.clone()));
        self.options = Some(options);
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let purge = self.store.get().map(|(store, retention)| RetentionPurge {
            retention: retention.clone(),
            clock: parts.clock().clone(),
            long_term: None,
            feedback: Some(store.clone()),
            skill_usage: None,
        });
        let options = self.options.unwrap_or_default();
        let directive = parts.data_dir().map(|folder| folder.join(&options.directive));
        let service = EvaluationService {
            evaluator: Evaluator {
                chat: parts.require::<dyn ChatClient>()?,
                conversations: parts.require::<dyn ConversationMemory>()?,
                feedback: parts.require::<dyn FeedbackStore>()?,
                clock: parts.clock().clone(),
                directive,
                idle_threshold: options.idle_threshold,
                tier: options.tier,
            },
            turns: parts.get::<dyn TurnRunner>(),
            poll_interval: options.poll_interval,
            queue: self.queue,
            file: self.file,
        };
        let (running, task) = RunningTask::new(async move |stop| {
            let purge = OptionFuture::from(purge.map(|purge| purge.run(&stop)));
            tokio::join!(service.run(stop.clone()), purge);
        });
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

#[derive(Debug)]
struct Observer(Arc<EvaluationQueue>);

impl TurnObserver for Observer {
    fn ended(&self, turn: &EndedTurn<'_>) {
        if turn.is_of_a_person() {
            let key = SessionKey {
                principal: turn.request.principal.clone(),
                session_id: turn.request.session.clone(),
            };
            self.0.turn_ended(key, turn.at);
        }
    }
}

struct EvaluationService {
    evaluator: Evaluator,
    /// The turns of the host, whose slot for background work an evaluation needs.
    turns: Option<Arc<dyn TurnRunner>>,
    poll_interval: Duration,
    queue: Arc<EvaluationQueue>,
    file: Option<Arc<QueueFile>>,
}

impl EvaluationService {
    async fn run(self, stop: CancellationToken) {
        tokio::join!(self.keep_saved(&stop), stop.run_until_cancelled(self.poll()));
        self.save().await;
    }

    /// Saves the queue until `stop` fires. A write in progress runs to its end, so that the folder's
    /// lock is free when the next process opens it.
    async fn keep_saved(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(self.queue.changed()).await.is_some() {
            self.save().await;
        }
    }

    async fn save(&self) {
        if let Some(file) = &self.file
            && let Err(error) = file.save(&self.queue).await
        {
            tracing::warn!(%error, "a restart may not know of all sessions that are to be evaluated");
        }
    }

    async fn poll(&self) {
        loop {
            sleep(self.poll_interval).await;
            let now = self.evaluator.clock.now();
            for due in self.queue.due(now, self.evaluator.idle_threshold) {
                if !self.evaluate_in_slot(&due).await {
                    break;
                }
            }
            // A write that failed before may succeed now.
            self.queue.save_again();
        }
    }

    /// Evaluates a session while users are silent; returns `true` on success. A user's message ends
    /// the evaluation early, and the session is due again at the next poll.
    async fn evaluate_in_slot(&self, due: &DueSession) -> bool {
        let Some(turns) = &self.turns else {
            return self.evaluate(due).await;
        };
        let slot = turns.background(QUIET_PERIOD).await;
        if !self.queue.is_unchanged(due) {
            return true;
        }
        slot.run(self.evaluate(due)).await.unwrap_or_default()
    }

    /// Evaluates a session; returns `true` on success.
    async fn evaluate(&self, due: &DueSession) -> bool {
        match self.evaluator.evaluate(&due.key).await {
            Ok(EvaluationOutcome::Done) => self.queue.evaluated(due),
            Ok(EvaluationOutcome::Active(newest)) => self.queue.mark_active(due, newest),
            Err(error) => {
                let error = rockbot_core::support::loggable(&error.to_string()).to_string();
                tracing::warn!(session = %due.key.session_id, error, "a session could not be evaluated; it is tried again later");
                self.queue.failed(due, self.poll_interval);
                return false;
            }
        }
        true
    }
}
