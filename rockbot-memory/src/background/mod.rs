//! Background work: a model files new memories and summarizes new skills; old entries are purged.
//!
//! Everything is stored before it is queued, so nothing depends on this work: a job that finds
//! the queue full, fails, or is cancelled at shutdown leaves its entry as it was saved.

mod directive;
mod expansion;
mod retention_purge;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatMessage, ChatRequest, ChatResponse, ModelSettings};
use rockbot_core::context::Priority;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{CallContext, Principal, SessionId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use directive::directive;
pub(crate) use expansion::{Expander, Expansion, new_memory_id};
pub(crate) use retention_purge::RetentionPurge;
pub(crate) use summary::{Summarizer, Summary};

/// Capacity of the queue; further jobs are dropped, and their entries stay as they were saved.
const QUEUE_LEN: usize = 64;

/// Time limit of the model for one job.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Silence of users before a job begins. Short, since a saved memory is found better once it is
/// in order.
const QUIET_PERIOD: Duration = Duration::from_secs(2);

/// Maximum number of times that a job begins.
const MAX_ATTEMPTS: u32 = 10;

/// A unit of background work.
#[derive(Debug)]
pub(crate) enum Job {
    Expand(Expansion),
    Summarize(Summary),
}

/// The sending half of the job queue. The worker starts with the host and runs one job at a time.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundQueue(mpsc::Sender<Job>);

/// The receiving half of a [`BackgroundQueue`].
pub(crate) type Jobs = mpsc::Receiver<Job>;

impl BackgroundQueue {
    pub(crate) fn new() -> (Self, Jobs) {
        let (queue, jobs) = mpsc::channel(QUEUE_LEN);
        (Self(queue), jobs)
    }

    pub(crate) fn expand(&self, expansion: Expansion) {
        self.offer(Job::Expand(expansion));
    }

    pub(crate) fn summarize(&self, summary: Summary) {
        self.offer(Job::Summarize(summary));
    }

    fn offer(&self, job: Job) {
        if let Err(error) = self.0.try_send(job) {
            tracing::warn!(%error, "what was saved stays as it is: too much waits to be put in order");
        }
    }
}

/// Runs the jobs.
pub(crate) struct BackgroundWorker {
    pub(crate) chat: Arc<dyn ChatClient>,
    /// The turns of the host, whose slot for background work a job needs.
    pub(crate) turns: Option<Arc<dyn TurnRunner>>,
    pub(crate) expander: Option<Expander>,
    pub(crate) summarizer: Option<Summarizer>,
    pub(crate) jobs: Jobs,
}

impl BackgroundWorker {
    /// Runs jobs until `stop` fires. Pending jobs are dropped, since their entries are already stored.
    pub(crate) async fn run(mut self, stop: &CancellationToken) {
        while let Some(Some(job)) = stop.run_until_cancelled(self.jobs.recv()).await {
            stop.run_until_cancelled(self.work_in_slot(&job)).await;
        }
    }

    /// Does a job while users are silent. If a user writes meanwhile, does it anew after a longer
    /// silence.
    async fn work_in_slot(&self, job: &Job) {
        let Some(turns) = &self.turns else {
            return self.work(job).await;
        };
        for attempt in 0..MAX_ATTEMPTS {
            let slot = turns.background(QUIET_PERIOD * 2_u32.pow(attempt)).await;
            if slot.run(self.work(job)).await.is_some() {
                return;
            }
        }
        tracing::warn!("what was saved stays as it is: users wrote whenever it was put in order");
    }

    async fn work(&self, job: &Job) {
        match (job, &self.expander, &self.summarizer) {
            (Job::Expand(expansion), Some(expander), _) => expander.expand(&*self.chat, expansion).await,
            (Job::Summarize(summary), _, Some(summarizer)) => summarizer.summarize(&*self.chat, summary).await,
            (Job::Expand(_), None, _) | (Job::Summarize(_), _, None) => {}
        }
    }
}

/// Maximum number of tokens of an answer: a page of facts, and the thoughts of a model that thinks.
const MAX_ANSWER_TOKENS: u32 = 4_000;

/// Asks a model out-of-band, without tools, at the lowest priority.
async fn ask(
    chat: &dyn ChatClient,
    (principal, session): (&Principal, &SessionId),
    system: String,
    text: String,
) -> Result<ChatResponse, ChatError> {
    let cx = CallContext::new(session)
        .with_principal(principal.clone())
        .with_priority(Priority::Dream)
        .with_deadline(Instant::now() + TIME_LIMIT);
    let settings = ModelSettings::new()
        .with_temperature(0.0)
        .with_max_output_tokens(MAX_ANSWER_TOKENS);
    let request = ChatRequest::new([ChatMessage::system(system), ChatMessage::user(text)]).with_settings(settings);
    let call = ChatCall::new(request, cx);
    let answer = tokio::time::timeout(TIME_LIMIT, chat.chat(call)).await;
    answer.unwrap_or_else(|_| {
        let kind = rockbot_core::chat::ChatErrorKind::TimedOut;
        Err(ChatError::new(
            kind,
            "the model took too long for work in the background",
        ))
    })
}
