//! The supervised connection to the broker: opened again whenever it is lost, for as long as the
//! bus is open.
//!
//! The client's own recovery is off: it gives up after a number of tries, and it would race with
//! the recovery of topology and consumers here. Each connection that was opened is a [`Session`];
//! the parts of a lost session are dropped as a whole, so none of them can act twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::tcp::OwnedTLSConfig;
use lapin::{Channel, Connection, ConnectionProperties, ConnectionState, ErrorKind, Event};
use rockbot_core::messaging::BusError;
use rockbot_core::support::deadline_after;
use tokio::sync::watch;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::channels::{ConfirmChannels, Published};
use super::error::{provider, refusal};
use super::outgoing::Outgoing;
use super::pipeline::Pipeline;
use super::settings::RabbitMqSettings;
use super::topology;
use crate::consumer::{certificates, jittered};
use crate::meters;

/// Maximum time to open a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Delay before the second attempt to reconnect; each further delay is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay between two attempts to reconnect.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Delay before an operation is tried again after its connection failed.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum time for a lost or finished connection to end in good order.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// The connection that the parts of a bus share.
pub(super) struct Link {
    pub(super) settings: RabbitMqSettings,
    state: watch::Sender<LinkState>,
    /// Cancelled when the bus is closed.
    pub(super) closed: CancellationToken,
}

#[derive(Clone)]
enum LinkState {
    Down,
    Up(Arc<Session>),
    Closed,
}

/// One opened connection.
pub(super) struct Session {
    connection: Arc<Connection>,
    /// The channel for publishing.
    pipeline: Pipeline,
    /// Channels for messages that were refused on the common one.
    publishers: ConfirmChannels,
    /// The delays, in milliseconds, whose retry queue exists.
    delays: Mutex<HashSet<u64>>,
    /// The topics whose fanout exchange exists.
    exchanges: Mutex<HashSet<String>>,
    lost: CancellationToken,
}

impl Link {
    /// Connects, and keeps connected until the link is closed.
    pub(super) async fn connect(settings: RabbitMqSettings) -> Result<Arc<Self>, BusError> {
        let session = Arc::new(Session::open(&settings).await?);
        let link = Arc::new(Self {
            settings,
            state: watch::Sender::new(LinkState::Up(Arc::clone(&session))),
            closed: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&link).supervise(session));
        Ok(link)
    }

    /// Returns the open session, or waits for the next session until `deadline`.
    pub(super) async fn session(&self, deadline: Instant) -> Result<Arc<Session>, BusError> {
        if let LinkState::Up(session) = &*self.state.borrow()
            && !session.lost.is_cancelled()
        {
            return Ok(Arc::clone(session));
        }
        // Boxed, since each message in flight holds this future and hardly one waits.
        Box::pin(self.next_session(deadline)).await
    }

    async fn next_session(&self, deadline: Instant) -> Result<Arc<Session>, BusError> {
        let mut states = self.state.subscribe();
        // A session that was given up stands there until the supervisor has seen it.
        let up = states.wait_for(|state| match state {
            LinkState::Down => false,
            LinkState::Up(session) => !session.lost.is_cancelled(),
            LinkState::Closed => true,
        });
        let state = match time::timeout_at(deadline, up).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => LinkState::Closed,
            Err(_) => LinkState::Down,
        };
        match state {
            LinkState::Up(session) => Ok(session),
            LinkState::Closed => Err(BusError::Closed),
            LinkState::Down => {
                let address = self.settings.address();
                Err(BusError::Provider {
                    context: format!("the broker at {address} is unreachable: check that it runs, then try again"),
                    source: "the connection was lost and is not back yet".into(),
                })
            }
        }
    }

    /// Returns the latest end of an operation that begins now.
    pub(super) fn deadline(&self) -> Instant {
        deadline_after(Instant::now(), self.settings.publish_wait)
    }

    /// Runs an operation until it succeeds or the broker refuses it, over as many connections as it
    /// takes, until `deadline`. It may run more than once: all runs together must have the effect of
    /// one.
    pub(super) async fn repeat<T, F>(
        &self,
        doing: &str,
        deadline: Instant,
        operation: impl Fn(Arc<Session>) -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = lapin::Result<T>>,
    {
        loop {
            let session = self.session(deadline).await?;
            // Boxed, since each wrapper would copy it.
            let running = session.run(Box::pin(operation(Arc::clone(&session))));
            let error = match time::timeout_at(deadline, running).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(_) => {
                    let wait = self.settings.publish_wait;
                    return Err(provider(doing, &self.settings, format!("no answer within {wait:?}")));
                }
            };
            if self.closed.is_cancelled() {
                return Err(BusError::Closed);
            }
            let is_refused = refusal(&error).is_some() && !session.lost.is_cancelled();
            if is_refused || Instant::now() >= deadline {
                return Err(provider(doing, &self.settings, error));
            }
            // It is not known how far the operation came.
            tracing::debug!(%error, doing, "an operation on the broker failed; trying again");
            time::sleep(PAUSE).await;
        }
    }

    /// Runs an operation as [`Link::repeat`] does, on a channel of its own.
    pub(super) async fn operate<T, F>(
        &self,
        doing: &str,
        deadline: Instant,
        operation: impl Fn(Channel) -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = lapin::Result<T>>,
    {
        let operation = &operation;
        let operating = |session: Arc<Session>| async move {
            let channel = session.channel().await?;
            let done = operation(channel.clone()).await?;
            channel.close(200, "done".into()).await?;
            Ok(done)
        };
        self.repeat(doing, deadline, operating).await
    }

    /// Ends the connection for good.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        if let LinkState::Up(session) = self.state.send_replace(LinkState::Closed) {
            session.end().await;
        }
    }

    async fn supervise(self: Arc<Self>, mut session: Arc<Session>) {
        loop {
            let lost = self.closed.run_until_cancelled(session.until_lost()).await;
            // The end of the session is looked at first, and closing the link ends it, too.
            let Some(reason) = lost.filter(|_| !self.closed.is_cancelled()) else {
                break;
            };
            let address = self.settings.address();
            tracing::warn!(%address, %reason, "the connection to the broker is lost; reconnecting");
            self.replace(LinkState::Down);
            session.end().await;
            let reopened = self.closed.run_until_cancelled(self.reopen()).await;
            let Some(reopened) = reopened else { break };
            tracing::info!(%address, "the connection to the broker is back");
            meters::reconnected();
            session = reopened;
            self.replace(LinkState::Up(Arc::clone(&session)));
        }
        session.end().await;
    }

    /// Opens a new session, however many attempts it takes.
    async fn reopen(&self) -> Arc<Session> {
        let mut delay = FIRST_DELAY;
        loop {
            match Session::open(&self.settings).await {
                Ok(session) => return Arc::new(session),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, cause, retry_in = ?delay, "the broker cannot be reached");
                }
            }
            time::sleep(jittered(delay)).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    /// Changes the state, except that a closed link stays closed.
    fn replace(&self, next: LinkState) {
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, LinkState::Closed);
            if is_open {
                *state = next;
            }
            is_open
        });
    }
}

impl Session {
    async fn open(settings: &RabbitMqSettings) -> Result<Self, BusError> {
        let doing = "cannot connect to";
        let tls = OwnedTLSConfig {
            identity: None,
            cert_chain: certificates(settings.ca_file.clone(), "RabbitMq.CaFile").await?,
        };
        let properties = ConnectionProperties::default()
            .with_connection_name("rockbot".into())
            .configure_backoff(|backoff| backoff.with_max_times(0));
        let runtime = lapin::runtime::default_runtime().map_err(|error| provider(doing, settings, error))?;
        let opening = Connection::connect_uri_with_config(settings.uri(), properties, tls, runtime);
        let opened = time::timeout(CONNECT_TIME, opening).await;
        let connection = match opened {
            Ok(opened) => opened.map_err(|error| provider(doing, settings, error))?,
            Err(elapsed) => return Err(provider(doing, settings, elapsed)),
        };
        let session = Self {
            connection: Arc::new(connection),
            pipeline: Pipeline::default(),
            publishers: ConfirmChannels::new(),
            delays: Mutex::default(),
            exchanges: Mutex::default(),
            lost: CancellationToken::new(),
        };
        let doing = "cannot declare the exchanges on";
        // A connection that is cut meanwhile may never answer.
        let declared = time::timeout(CONNECT_TIME, topology::declare_exchanges(&session.connection, settings)).await;
        match declared {
            Ok(declared) => declared.map_err(|error| provider(doing, settings, error))?,
            Err(elapsed) => return Err(provider(doing, settings, elapsed)),
        }
        Ok(session)
    }

    /// Returns the connection of the client.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the maximum size of a frame that client and broker have agreed on, in bytes.
    pub(super) fn max_frame(&self) -> usize {
        usize::try_from(self.connection.configuration().frame_max()).unwrap_or(usize::MAX)
    }

    /// Opens a channel of its own for each purpose, since a failed operation closes its channel.
    pub(super) async fn channel(&self) -> lapin::Result<Channel> {
        self.run(self.connection.create_channel()).await
    }

    /// Runs an operation until the connection is lost.
    ///
    /// An operation that is handed to the client while its connection ends may stay without an answer
    /// for ever, so nothing waits for the client alone.
    pub(super) async fn run<T>(&self, operation: impl Future<Output = lapin::Result<T>>) -> lapin::Result<T> {
        run(&self.lost, operation).await
    }

    /// Publishes a message and waits for the broker's confirm, which may never come once the
    /// connection is lost.
    pub(super) async fn publish(&self, message: &Outgoing<'_>) -> lapin::Result<Published> {
        let connection = &self.connection;
        match self.pipeline.publish(connection, &self.lost, message).await {
            // The refused message may be another message, and the broker may have this one.
            Err(error) if refusal(&error).is_some() => Box::pin(self.publishers.publish(connection, message)).await,
            published => published,
        }
    }

    /// Returns the token that is cancelled when the connection is lost or given up.
    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Returns `true` if nothing succeeds on this session any more: the next session is to be used.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || !self.connection.status().connected()
    }

    /// Gives the session up, so that the next session recovers the parts that this one lacks.
    pub(super) fn give_up(&self) {
        self.lost.cancel();
    }

    /// Returns `true` if the retry queue of this delay is known to exist.
    pub(super) fn knows_delay(&self, delay: u64) -> bool {
        let delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        delays.contains(&delay)
    }

    /// Records that the retry queue of this delay exists.
    pub(super) fn know_delay(&self, delay: u64) {
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        delays.insert(delay);
    }

    /// Forgets which retry queues exist.
    pub(super) fn forget_delays(&self) {
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        delays.clear();
    }

    /// Returns `true` if the fanout exchange of this topic is known to exist.
    pub(super) fn knows_exchange(&self, topic: &str) -> bool {
        let exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.contains(topic)
    }

    /// Records that the fanout exchange of this topic exists.
    pub(super) fn know_exchange(&self, topic: &str) {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.insert(topic.to_owned());
    }

    /// Returns the topics whose fanout exchange is known to exist, and forgets them.
    pub(super) fn take_exchanges(&self) -> Vec<String> {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.drain().collect()
    }

    /// Waits until the connection is lost, and returns the reason.
    async fn until_lost(&self) -> String {
        let mut events = std::pin::pin!(self.connection.events_listener());
        loop {
            // The events are a hint; the status is the truth, and it is read at least once a second.
            let event = time::timeout(Duration::from_secs(1), events.next());
            let event = self.lost.run_until_cancelled(event).await;
            match event {
                None => return "a part of the topology is gone".to_owned(),
                Some(Ok(Some(Event::Error(error)))) if !self.connection.status().connected() => {
                    return error.to_string();
                }
                Some(_) if !self.connection.status().connected() => return "the connection ended".to_owned(),
                Some(_) => {}
            }
        }
    }

    async fn end(&self) {
        self.lost.cancel();
        if self.connection.status().connected() {
            let closing = self.connection.close(200, "the bus is closed".into());
            let _ = time::timeout(GOODBYE_TIME, closing).await;
        }
    }
}

/// Runs an operation of a session until `lost` is cancelled.
pub(super) async fn run<T>(
    lost: &CancellationToken,
    operation: impl Future<Output = lapin::Result<T>>,
) -> lapin::Result<T> {
    let ended = lost.run_until_cancelled(operation).await;
    ended.unwrap_or_else(|| Err(ErrorKind::InvalidConnectionState(ConnectionState::Closed).into()))
}
