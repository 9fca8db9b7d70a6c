//! The layer of permits that several processes share: [`SharedPermits`].
//!
//! One task of each process, the keeper, changes the document of permits: a call can be dropped at
//! any time, and must not leave the document locked.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse};
use rockbot_core::context::WaitReason;
use rockbot_core::store::{SharedDocuments, StoreError};
use rockbot_core::{IdSource, RandomIds};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::layer::{GatewayLayer, layer_of};
use super::permit_ledger::{PermitLedger, SILENCE, Seen};
use crate::retry::MIN_REPORTED_WAIT;

/// Name of the document that the processes share.
const DOCUMENT: &str = "model permits";

/// Pause between two looks at the document while calls wait: the first one, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Interval in which a process that holds or awaits permits shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(SILENCE.as_secs() / 3);

/// Time for which calls wait while the documents cannot be changed, such as when a database restarts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of calls of one process that wait, and of those on their way there.
const MAX_WAITING: usize = 1000;

/// Maximum time that a call waits.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// A layer that bounds the model calls of all processes that share the same documents, such as the
/// processes of an agent on several machines. Copies share the permits.
///
/// Each call takes a permit and gives it back, with two statements of a database each: some
/// milliseconds beside a call of seconds. When permits are scarce, the processes get them in turn,
/// and within a process the call that came first is next. The permits of a process that died are
/// free after 30 seconds.
///
/// A call that waits for longer than 5 minutes, or behind 2000 others, fails with
/// [`ChatErrorKind::Saturated`]. When the documents cannot be changed for 10 seconds, calls fail with
/// [`ChatErrorKind::Unreachable`].
///
/// ```
/// # use std::sync::Arc;
/// # use rockbot_core::store::SharedDocuments;
/// use rockbot_llm::{ModelGateway, OfflineModel, SharedPermits};
///
/// /// A gateway whose processes make 8 calls at a time, all together. `Postgres` has the documents.
/// fn gateway(documents: Arc<dyn SharedDocuments>) -> ModelGateway {
///     ModelGateway::builder(OfflineModel::new())
///         .layer(SharedPermits::new(documents, 8))
///         .build()
/// }
/// ```
#[derive(Clone)]
pub struct SharedPermits(Arc<Shared>);

struct Shared {
    documents: Arc<dyn SharedDocuments>,
    most: usize,
    held: Arc<Held>,
    /// The calls that wait, on their way to the keeper, which the first call starts.
    calls: Mutex<Option<mpsc::Sender<WaitingCall>>>,
}

type WaitingCall = oneshot::Sender<Result<Permit, ChatError>>;

/// The permits that calls of this process hold.
#[derive(Debug, Default)]
struct Held {
    permits: AtomicUsize,
    /// Wakes the keeper when a permit is free.
    changed: Notify,
}

impl Held {
    fn count(&self) -> usize {
        self.permits.load(Ordering::Acquire)
    }
}

impl SharedPermits {
    /// Creates a layer that lets at most `most` calls of all processes run at a time; 0 counts as 1.
    pub fn new(documents: impl SharedDocuments, most: usize) -> Self {
        Self(Arc::new(Shared {
            documents: Arc::new(documents),
            most: most.max(1),
            held: Arc::default(),
            calls: Mutex::default(),
        }))
    }
}

#[async_trait]
impl GatewayLayer for SharedPermits {
    async fn call(&self, call: ChatCall, next: &dyn ChatClient) -> Result<ChatResponse, ChatError> {
        let _permit = self.0.permit(&call).await?;
        next.chat(call).await
    }
}

layer_of!(SharedPermits);

impl Shared {
    /// Returns the way to the keeper, which may have ended with the runtime of an earlier call.
    fn keeper(&self) -> mpsc::Sender<WaitingCall> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let open = calls.take().filter(|calls| !calls.is_closed());
        calls.insert(open.unwrap_or_else(|| Keeper::start(self))).clone()
    }

    async fn permit(&self, call: &ChatCall) -> Result<Permit, ChatError> {
        let (sender, mut receiver) = oneshot::channel();
        let sent = self.keeper().try_send(sender);
        sent.map_err(|_| saturated("too many calls wait for a permit"))?;
        let mut granted = timeout(MIN_REPORTED_WAIT, &mut receiver).await;
        if granted.is_err() {
            let left = MAX_WAIT - MIN_REPORTED_WAIT;
            call.cx.progress().waiting(Some(left), WaitReason::Permit);
            granted = timeout(left, receiver).await;
        }
        match granted {
            Ok(Ok(granted)) => granted,
            Ok(Err(_)) => Err(saturated("the permits are kept no more")),
            Err(_) => Err(saturated("no permit was free in time")),
        }
    }
}

/// A permit of one call, which the keeper gives back after the permit was dropped.
#[derive(Debug)]
struct Permit(Arc<Held>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.permits.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }
}

/// The task that takes permits and gives them back. It ends with the last copy of the layer and the
/// last permit.
struct Keeper {
    documents: Arc<dyn SharedDocuments>,
    most: usize,
    held: Arc<Held>,
    /// The name of this process in the ledger.
    process: String,
    waiting: VecDeque<WaitingCall>,
    pause: Duration,
    noted: Noted,
    /// The time since which the documents cannot be changed.
    away_since: Option<Instant>,
}

/// The last change of the ledger by this process.
#[derive(Debug, Default)]
struct Noted {
    held: usize,
    waits: bool,
    at: Option<Instant>,
    /// The version of the document after the change.
    version: u64,
    seen: Seen,
}

impl Keeper {
    fn start(shared: &Shared) -> mpsc::Sender<WaitingCall> {
        let (sender, calls) = mpsc::channel(MAX_WAITING);
        let keeper = Self {
            documents: shared.documents.clone(),
            most: shared.most,
            held: shared.held.clone(),
            process: RandomIds.next_id(),
            waiting: VecDeque::new(),
            pause: FIRST_PAUSE,
            noted: Noted::default(),
            away_since: None,
        };
        tokio::spawn(keeper.run(calls));
        sender
    }

    async fn run(mut self, mut calls: mpsc::Receiver<WaitingCall>) {
        loop {
            let has_ended = calls.is_closed() && calls.is_empty();
            if has_ended && self.held.count() == 0 && self.noted.held == 0 {
                return;
            }
            tokio::select! {
                call = calls.recv(), if !has_ended && self.waiting.len() < MAX_WAITING => self.waiting.extend(call),
                () = self.held.changed.notified() => {}
                () = sleep(self.pause) => {}
            }
            while self.waiting.len() < MAX_WAITING
                && let Ok(call) = calls.try_recv()
            {
                self.waiting.push_back(call);
            }
            self.waiting.retain(|call| !call.is_closed());
            match self.keep().await {
                Ok(got) => self.slow_down(got),
                // The others find out by themselves.
                Err(_) if has_ended => return,
                Err(error) => self.refuse(&error),
            }
        }
    }

    /// Notes what has changed, and hands the permits that this process got to the calls that wait.
    /// Returns the number of permits.
    async fn keep(&mut self) -> Result<usize, StoreError> {
        if !self.is_due().await? {
            return Ok(0);
        }
        let got = self.note().await?;
        for call in self.waiting.drain(..got) {
            // The permit of a call that was dropped meanwhile is dropped with the failed send.
            let _ = call.send(Ok(Permit(self.held.clone())));
        }
        Ok(got)
    }

    /// Returns `true` if this process has something to note, or may get a permit now.
    async fn is_due(&self) -> Result<bool, StoreError> {
        let held = self.held.count();
        let (waits, noted) = (!self.waiting.is_empty(), &self.noted);
        if held != noted.held || waits != noted.waits {
            return Ok(true);
        }
        if !waits && held == 0 {
            return Ok(false);
        }
        Ok(self.is_silent() || (waits && self.documents.version(DOCUMENT).await? != noted.version))
    }

    /// Returns `true` if the other processes should see that this one lives.
    fn is_silent(&self) -> bool {
        self.noted.at.is_none_or(|at| at.elapsed() >= SIGN_OF_LIFE)
    }

    /// Notes the permits of this process and the calls that wait. Returns the number of permits that
    /// it got, which count as held.
    async fn note(&mut self) -> Result<usize, StoreError> {
        let document = self.documents.lock(DOCUMENT).await?;
        let mut ledger = read(document.json.as_deref());
        // What was seen long ago says nothing of how long a process is silent.
        if self.noted.at.is_none_or(|at| at.elapsed() >= 2 * SIGN_OF_LIFE) {
            self.noted.seen.clear();
        }
        ledger.bury(&mut self.noted.seen, Instant::now());
        let held = self.held.count();
        let got = ledger.note(&self.process, held, self.waiting.len(), self.most);
        let is_known = held == self.noted.held && self.waiting.is_empty() != self.noted.waits;
        if got == 0 && is_known && !self.is_silent() {
            self.noted.version = document.version;
            self.documents.release(document).await;
            return Ok(0);
        }
        let json = serde_json::to_string(&ledger).expect("a ledger is numbers under names");
        self.noted.version = self.documents.replace(document, json).await?;
        self.noted.held = held + got;
        self.noted.waits = self.waiting.len() > got;
        self.noted.at = Some(Instant::now());
        self.held.permits.fetch_add(got, Ordering::AcqRel);
        Ok(got)
    }

    /// Sets the pause until the next look.
    fn slow_down(&mut self, got: usize) {
        self.away_since = None;
        self.pause = match (self.waiting.is_empty(), self.noted.waits, got) {
            (true, _, _) => SIGN_OF_LIFE,
            (false, true, 0) => self.pause.saturating_mul(2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
    }

    /// Fails the calls that wait if the documents are away for too long.
    fn refuse(&mut self, error: &StoreError) {
        self.pause = LONGEST_PAUSE;
        // The others could give no sign of life either.
        self.noted.seen.clear();
        if self.away_since.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
            return;
        }
        tracing::warn!(%error, "the permits of models cannot be kept");
        for call in self.waiting.drain(..) {
            let message = format!("the permits that the processes of this agent share cannot be had: {error}");
            let _ = call.send(Err(ChatError::new(ChatErrorKind::Unreachable, message)));
        }
    }
}

fn read(json: Option<&str>) -> PermitLedger {
    let Some(json) = json else {
        return PermitLedger::default();
    };
    serde_json::from_str(json).unwrap_or_else(|error| {
        tracing::warn!(%error, "the permits of models cannot be read; each process notes its own anew");
        PermitLedger::default()
    })
}

fn saturated(why: &str) -> ChatError {
    let message = format!("{why}: try again later, or raise the permits that the processes of this agent share");
    ChatError::new(ChatErrorKind::Saturated, message)
}

impl fmt::Debug for SharedPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPermits")
            .field("most", &self.0.most)
            .field("held", &self.0.held.count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rockbot_core::store::{LockedDocument, StoreErrorKind};
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;
    use crate::gateway::ModelGateway;
    use crate::testing::{Slow, call};

    /// One shared document, whose server may be away.
    #[derive(Debug)]
    struct Document {
        content: Mutex<(u64, Option<String>)>,
        lock: Semaphore,
        is_away: AtomicBool,
    }

    impl Document {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                content: Mutex::default(),
                lock: Semaphore::new(1),
                is_away: AtomicBool::new(false),
            })
        }
    }

    #[async_trait]
    impl SharedDocuments for Document {
        async fn version(&self, _: &str) -> Result<u64, StoreError> {
            Ok(self.content.lock().unwrap().0)
        }

        async fn lock(&self, name: &str) -> Result<LockedDocument, StoreError> {
            if self.is_away.load(Ordering::Relaxed) {
                return Err(StoreError::new(StoreErrorKind::Unavailable, "the server is away"));
            }
            self.lock.acquire().await.unwrap().forget();
            let (version, json) = self.content.lock().unwrap().clone();
            Ok(LockedDocument::new(name, version, json, 1))
        }

        async fn replace(&self, locked: LockedDocument, json: String) -> Result<u64, StoreError> {
            *self.content.lock().unwrap() = (locked.version + 1, Some(json));
            self.lock.add_permits(1);
            Ok(locked.version + 1)
        }

        async fn release(&self, _: LockedDocument) {
            self.lock.add_permits(1);
        }
    }

    /// Returns the gateway of one process.
    fn process(document: &Arc<Document>, most: usize, model: &Slow) -> ModelGateway {
        let permits = SharedPermits::new(document.clone(), most);
        ModelGateway::builder(model.clone()).layer(permits).build()
    }

    /// Begins calls of a process, and counts those that are done in `done`.
    fn ask(calls: usize, gateway: &ModelGateway, done: &Arc<AtomicUsize>) -> JoinSet<Result<(), ChatErrorKind>> {
        let call = |_| {
            let (gateway, done) = (gateway.clone(), done.clone());
            async move {
                let answer = gateway.chat(call()).await;
                done.fetch_add(1, Ordering::SeqCst);
                answer.map(drop).map_err(|error| error.kind())
            }
        };
        (0..calls).map(call).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn processes_share_the_permits_in_turn() {
        let (document, model) = (Document::new(), Slow::default());
        let processes = [process(&document, 2, &model), process(&document, 2, &model)];
        let done = [Arc::default(), Arc::default()];
        let begun = Instant::now();
        let mut calls = ask(10, &processes[0], &done[0]);
        sleep(Duration::from_millis(500)).await;
        let mut others = ask(5, &processes[1], &done[1]);
        while let Some(answer) = others.join_next().await {
            answer.unwrap().unwrap();
        }
        assert!(
            done[0].load(Ordering::SeqCst) <= 7,
            "the second process does not wait for all calls of the first"
        );
        while let Some(answer) = calls.join_next().await {
            answer.unwrap().unwrap();
        }
        assert_eq!(model.most.load(Ordering::SeqCst), 2);
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_gives_its_permit_back() {
        let (document, model) = (Document::new(), Slow::default());
        let processes = [process(&document, 1, &model), process(&document, 1, &model)];
        for dropped_after in 0..30 {
            let calls = ask(3, &processes[0], &Arc::default());
            sleep(Duration::from_millis(dropped_after * 50)).await;
            drop(calls);
            let call = timeout(Duration::from_secs(3), processes[1].chat(call())).await;
            assert!(call.is_ok_and(|answer| answer.is_ok()), "dropped after {dropped_after}");
        }
        drop(processes);
        sleep(SIGN_OF_LIFE).await;
        assert_eq!(Arc::strong_count(&document), 1, "the keepers have ended");
        let left = document.content.lock().unwrap().1.clone();
        assert!(left.unwrap().contains(r#""processes":{}"#));
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_died_keeps_its_permits_for_half_a_minute() {
        let (document, model) = (Document::new(), Slow::default());
        let mut ledger = PermitLedger::default();
        ledger.note("dead", 0, 1, 1);
        *document.content.lock().unwrap() = (1, Some(serde_json::to_string(&ledger).unwrap()));
        let begun = Instant::now();
        process(&document, 1, &model).chat(call()).await.unwrap();
        let waited = begun.elapsed();
        assert!(waited >= SILENCE && waited < SILENCE * 2, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_and_failures_say_what_to_do() {
        let (document, model) = (Document::new(), Slow::default());
        let gateway = process(&document, 1, &model);
        document.is_away.store(true, Ordering::Relaxed);
        let (begun, back) = (Instant::now(), document.clone());
        let error = gateway.chat(call()).await.unwrap_err();
        assert_eq!(error.kind(), ChatErrorKind::Unreachable);
        assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE * 2);
        assert!(
            error.retry_helps() && error.message().contains("the server is away"),
            "{error}"
        );
        back.is_away.store(false, Ordering::Relaxed);
        gateway.chat(call()).await.unwrap();

        document.is_away.store(true, Ordering::Relaxed);
        let restart = async {
            sleep(Duration::from_secs(3)).await;
            back.is_away.store(false, Ordering::Relaxed);
        };
        let (answer, ()) = tokio::join!(gateway.chat(call()), restart);
        answer.unwrap();

        let other = SharedPermits::new(document.clone(), 1);
        let held = other.0.permit(&call()).await.unwrap();
        let begun = Instant::now();
        let error = gateway.chat(call()).await.unwrap_err();
        assert_eq!(
            (error.kind(), begun.elapsed()),
            (ChatErrorKind::Saturated, MAX_WAIT),
            "{error}"
        );
        drop(held);
        gateway.chat(call()).await.unwrap();

        // What another program wrote there.
        document.content.lock().unwrap().1 = Some("[]".to_owned());
        gateway.chat(call()).await.unwrap();
    }
}
