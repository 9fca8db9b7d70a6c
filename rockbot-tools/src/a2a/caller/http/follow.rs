//! A task at an agent, from its message to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Clock as _;
use rockbot_core::context::CancellationToken;
use rockbot_core::support::loggable;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::ends::{self, EndWords, MAX_CONTEXT};
use super::super::tasks::{PendingTask, RemoteIds};
use super::super::transport::Reports;
use super::Http;
use super::error::PeerError;
use super::events::{Event, Events};
use super::peer::{Operation, Peer};
use super::words;
use crate::a2a_wire::{Message, StreamItem, Task, TaskState};

/// Pauses before further attempts to reach an agent that did not get the message.
const ATTEMPTS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Pauses before the task is asked for again: the first one, which doubles, and the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Time limit of a request that is answered at once.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Time for which a stream may be silent before the task is asked for: the first one, which doubles
/// up to the maximum. A server may keep a stream open although it has lost the end of its task.
const FIRST_SILENCE: Duration = Duration::from_secs(5);
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Time that an agent has to name a task that was given up meanwhile.
const GRACE: Duration = Duration::from_secs(30);

/// The words about a task of which only the agent knows whether it has it.
const UNKNOWN: &str = "it may or may not have the task. Do not hand it over again before the user says so";

/// The follower of a task.
#[derive(Debug)]
pub(super) struct Follower {
    http: Arc<Http>,
    reports: Arc<dyn Reports>,
    task: PendingTask,
    given_up: CancellationToken,
    /// The agent's ids of the task, once they are known.
    ids: watch::Sender<Option<RemoteIds>>,
    /// The status that was told last.
    told: watch::Sender<String>,
}

/// The beginning of the answer to a message.
enum Begun {
    Stream(Arc<Peer>, Events),
    Item(StreamItem),
    /// The agent has the task.
    Known,
}

/// The meaning of an item.
enum Meaning {
    End(EndWords),
    /// The task is settled; it is asked for as a whole.
    Settled,
    GoesOn,
}

impl Follower {
    pub(super) fn new(
        http: Arc<Http>,
        reports: Arc<dyn Reports>,
        task: PendingTask,
        given_up: CancellationToken,
    ) -> Self {
        let ids = task.remote.as_ref().and_then(|remote| remote.ids.clone());
        Self {
            http,
            reports,
            task,
            given_up,
            ids: watch::Sender::new(ids),
            told: watch::Sender::default(),
        }
    }

    /// Returns the words about the end of the task; `None` if it is given up, of which the agent is
    /// told.
    pub(super) async fn run(&self) -> Option<EndWords> {
        let mut work = pin!(self.work());
        tokio::select! {
            words = &mut work => return Some(words),
            () = self.given_up.cancelled() => {}
        }
        let mut ids = self.ids.subscribe();
        let named = async {
            tokio::select! {
                _ = &mut work => {}
                _ = ids.wait_for(Option::is_some) => {}
            }
        };
        // The agent may be about to name the task.
        let _ = timeout(GRACE, named).await;
        self.cancel().await;
        None
    }

    async fn work(&self) -> EndWords {
        let meaning = match self.begin().await {
            Ok(Begun::Stream(peer, events)) => self.read(&peer, events).await,
            Ok(Begun::Item(item)) => self.take(item).await,
            Ok(Begun::Known) => Meaning::GoesOn,
            Err(words) => Meaning::End(words),
        };
        match meaning {
            Meaning::End(words) => words,
            Meaning::Settled | Meaning::GoesOn => self.ask().await,
        }
    }

    /// Sends the message, unless the agent has it.
    async fn begin(&self) -> Result<Begun, EndWords> {
        let remote = self.task.remote.as_ref();
        if let Some(ids) = self.known() {
            return Ok(self.subscribe(&ids.task).await);
        }
        match remote.and_then(|remote| remote.message.as_deref()) {
            Some(message) if !self.task.is_sent => self.send(message).await,
            _ => Err(ends::of_failure(
                &self.task,
                &format!("the host stopped while it was handed over, and {UNKNOWN}"),
            )),
        }
    }

    async fn send(&self, message: &str) -> Result<Begun, EndWords> {
        let mut attempts = ATTEMPTS.into_iter();
        loop {
            let error = match self.try_send(message).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            match (attempts.next(), &error) {
                (Some(pause), error) if error.was_not_sent() && error.is_passing() => sleep(pause).await,
                (_, PeerError::Egress(cause)) if cause.was_sent() => {
                    return Err(ends::of_failure(&self.task, &format!("{cause}, and {UNKNOWN}")));
                }
                _ => return Err(words::of_error(&self.task, &error)),
            }
        }
    }

    async fn try_send(&self, message: &str) -> Result<Begun, PeerError> {
        let peer = self.peer().await?;
        // From here on the agent may have the task.
        self.reports.sending(&self.task.id).await;
        let limit = self.task.deadline.since(self.http.clock.now()).max(ANSWER_TIME);
        if peer.streams {
            let streamed = peer
                .stream(&self.http.client, Operation::SendStreaming(message), limit)
                .await?;
            return Ok(match streamed {
                Ok(events) => Begun::Stream(peer, events),
                Err(item) => Begun::Item(item),
            });
        }
        let item = peer.call(&self.http.client, Operation::Send(message), limit).await?;
        Ok(Begun::Item(item))
    }

    /// Subscribes to a task that the agent has, where it streams.
    async fn subscribe(&self, id: &str) -> Begun {
        let subscribed = async {
            let peer = self.peer().await.ok().filter(|peer| peer.streams)?;
            let streamed = peer
                .stream(&self.http.client, Operation::Subscribe(id), ANSWER_TIME)
                .await;
            Some(Begun::Stream(peer, streamed.ok()?.ok()?))
        };
        subscribed.await.unwrap_or(Begun::Known)
    }

    /// Reads a stream to its end, or to the end of the task.
    async fn read(&self, peer: &Peer, mut events: Events) -> Meaning {
        let mut silence = FIRST_SILENCE;
        loop {
            let data = match events.next(silence).await {
                Ok(Event::Data(data)) => data,
                Ok(Event::Silence) => {
                    silence = MAX_SILENCE.min(silence * 2);
                    match self.look(peer).await {
                        Meaning::GoesOn => continue,
                        meaning => return meaning,
                    }
                }
                Ok(Event::End) | Err(_) => return Meaning::GoesOn,
            };
            silence = FIRST_SILENCE;
            let meaning = match peer.item(&data) {
                // The answer may follow, or be in the task as a whole alone.
                Ok(StreamItem::Task(task)) if has_answer_elsewhere(&task) => {
                    self.is_its(&task.id, &task.context_id).await;
                    Meaning::Settled
                }
                Ok(item) => self.take(item).await,
                Err(error) => Meaning::End(words::of_error(&self.task, &error)),
            };
            if !matches!(meaning, Meaning::GoesOn) {
                return meaning;
            }
        }
    }

    /// Asks for a task whose stream is silent. The stream goes on after a failure.
    async fn look(&self, peer: &Peer) -> Meaning {
        let Some(ids) = self.known() else {
            return Meaning::GoesOn;
        };
        let asked = peer.call(&self.http.client, Operation::Get(&ids.task), ANSWER_TIME);
        match asked.await {
            Ok(item) => self.take(item).await,
            Err(_) => Meaning::GoesOn,
        }
    }

    /// Asks for the task until it has ended.
    async fn ask(&self) -> EndWords {
        let Some(ids) = self.known() else {
            return ends::of_failure(&self.task, &format!("its answer does not name the task, and {UNKNOWN}"));
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = async {
                let peer = self.peer().await?;
                peer.call(&self.http.client, Operation::Get(&ids.task), ANSWER_TIME)
                    .await
            };
            match asked.await {
                Ok(item) => {
                    if let Meaning::End(words) = self.take(item).await {
                        return words;
                    }
                }
                Err(error) if error.is_passing() => {
                    tracing::debug!(agent = self.task.agent, error = %loggable(&error.words()), "an agent does not tell how far a task is; it is asked again");
                    self.http.forget(self.url());
                }
                Err(error) => return words::of_error(&self.task, &error),
            }
            sleep(pause).await;
            pause = MAX_PAUSE.min(pause * 2);
        }
    }

    /// Takes an item, in a stream or as an answer.
    async fn take(&self, item: StreamItem) -> Meaning {
        match item {
            StreamItem::Message(said) => words::of_message(&self.task, &said).map_or(Meaning::GoesOn, Meaning::End),
            StreamItem::Task(task) => {
                if !self.is_its(&task.id, &task.context_id).await {
                    return Meaning::GoesOn;
                }
                let state = task.status.state;
                let said = task.status.message.clone();
                match words::of_task(&self.task, task) {
                    Some(words) => Meaning::End(words),
                    None => self.tell(state, said.as_ref()).await,
                }
            }
            StreamItem::StatusUpdate(update) => {
                if !self.is_its(&update.task_id, &update.context_id).await {
                    return Meaning::GoesOn;
                }
                self.tell(update.status.state, update.status.message.as_ref()).await
            }
            // The whole task has all artifacts.
            StreamItem::ArtifactUpdate(update) => {
                self.is_its(&update.task_id, &update.context_id).await;
                Meaning::GoesOn
            }
        }
    }

    /// Tells a status that is new.
    async fn tell(&self, state: TaskState, said: Option<&Message>) -> Meaning {
        if state.is_settled() && state != TaskState::AuthRequired {
            return Meaning::Settled;
        }
        let text = words::of_status(state, said);
        if self.told.send_if_modified(|told| {
            *told != text && {
                told.clone_from(&text);
                true
            }
        }) {
            self.reports.status(&self.task.id, &text).await;
        }
        Meaning::GoesOn
    }

    /// Returns `true` if an item is about this task. The first item names it.
    async fn is_its(&self, task: &str, context: &str) -> bool {
        if let Some(known) = self.known() {
            return task.is_empty() || known.task == task;
        }
        if task.is_empty() || task.len() + context.len() > MAX_CONTEXT {
            return false;
        }
        let ids = RemoteIds {
            task: task.to_owned(),
            context: context.to_owned(),
        };
        self.reports.reached(&self.task.id, ids.clone()).await;
        self.ids.send_replace(Some(ids));
        true
    }

    async fn cancel(&self) {
        let Some(ids) = self.known() else { return };
        let cancelled = async {
            let peer = self.peer().await?;
            peer.call(&self.http.client, Operation::Cancel(&ids.task), ANSWER_TIME)
                .await
        };
        if let Err(error) = cancelled.await {
            tracing::warn!(agent = self.task.agent, error = %loggable(&error.words()), "an agent could not be asked to stop a task");
        }
    }

    async fn peer(&self) -> Result<Arc<Peer>, PeerError> {
        self.http.peer(self.url()).await
    }

    fn url(&self) -> &str {
        self.task.remote.as_ref().map_or("", |remote| &*remote.url)
    }

    fn known(&self) -> Option<RemoteIds> {
        self.ids.borrow().clone()
    }
}

/// Returns `true` for a task that is completed, and does not have its answer.
fn has_answer_elsewhere(task: &Task) -> bool {
    let is_empty = task.artifacts.as_ref().is_none_or(Vec::is_empty) && task.status.message.is_none();
    task.status.state == TaskState::Completed && is_empty
}
