//! The connection to the broker: opened anew whenever an operation shows that it is lost, for as
//! long as the bus is open.
//!
//! The client mends lost connections too, but gives up after some tries, and an operation that
//! waits for a connection that it gave up may wait for ever. So each operation here has a time
//! limit, and after a lost connection or a missed limit the whole client is replaced: the parts
//! of a [`Session`] are dropped with it.
//!
//! A lost connection to Pulsar replaces the whole client: an operation that waits for a
//! connection that the client gave up may wait for ever.

use std::sync::Arc;
use std::time::Duration;

use pulsar::authentication::Authentication;
use pulsar::error::AuthenticationError;
use pulsar::{ConnectionRetryOptions, Consumer, OperationRetryOptions, Pulsar, TokioExecutor};
use rockbot_core::messaging::BusError;
use rockbot_core::{ExposeSecret as _, Secret};
use tokio::sync::Mutex;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::error::provider;
use super::producers::{Client, Producers};
use super::settings::PulsarSettings;
use crate::consumer::{certificates, jittered};
use crate::meters;

/// Maximum time of one operation of the client, such as to connect, to subscribe or to hand over
/// a message.
pub(super) const OPERATION_TIME: Duration = Duration::from_secs(10);
/// Interval of the client's signs of life.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Delay before the second attempt to connect; each further delay is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between two attempts to connect.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// A consumer of the client. Its messages are bytes.
pub(super) type OpenConsumer = Consumer<Vec<u8>, TokioExecutor>;

/// The connection that the parts of a bus share.
pub(super) struct Link {
    pub(super) settings: PulsarSettings,
    current: Mutex<Option<Arc<Session>>>,
    /// Cancelled when the bus is closed.
    pub(super) closed: CancellationToken,
}

/// One opened client, with the producers that belong to it.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) producers: Producers,
    /// Cancelled when the connection is lost or the bus is closed.
    pub(super) lost: CancellationToken,
}

impl Link {
    /// Connects once.
    pub(super) async fn connect(settings: PulsarSettings) -> Result<Arc<Self>, BusError> {
        let closed = CancellationToken::new();
        let session = Session::open(&settings, &closed).await?;
        Ok(Arc::new(Self {
            settings,
            current: Mutex::new(Some(Arc::new(session))),
            closed,
        }))
    }

    /// Returns the open session, or opens one until `deadline`.
    pub(super) async fn session(&self, deadline: Instant) -> Result<Arc<Session>, BusError> {
        let opening = time::timeout_at(deadline, self.reopened());
        let opened = self.closed.run_until_cancelled(opening).await;
        match opened.ok_or(BusError::Closed)? {
            Ok(session) => Ok(session),
            Err(elapsed) => Err(provider("cannot reach", &self.settings, elapsed)),
        }
    }

    /// Forgets the session and drops the parts of the bus that are left.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        *self.current.lock().await = None;
    }

    /// Returns the open session, or opens one, however many attempts it takes.
    async fn reopened(&self) -> Arc<Session> {
        let mut current = self.current.lock().await;
        if let Some(session) = current.as_ref().filter(|session| !session.lost.is_cancelled()) {
            return Arc::clone(session);
        }
        let mut delay = FIRST_DELAY;
        loop {
            match Session::open(&self.settings, &self.closed).await {
                Ok(session) => {
                    let session = Arc::new(session);
                    *current = Some(Arc::clone(&session));
                    meters::reconnected();
                    tracing::info!(url = %self.settings.url(), "the connection to the broker is back");
                    return session;
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, cause, retry_in = ?delay, "the broker cannot be reached");
                }
            }
            time::sleep(jittered(delay)).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }
}

impl Session {
    async fn open(settings: &PulsarSettings, closed: &CancellationToken) -> Result<Self, BusError> {
        let doing = "cannot connect to";
        let mut builder = Pulsar::builder(settings.url(), TokioExecutor)
            .with_connection_retry_options(ConnectionRetryOptions {
                max_retries: 0,
                connection_timeout: OPERATION_TIME,
                keep_alive: KEEP_ALIVE,
                ..ConnectionRetryOptions::default()
            })
            .with_operation_retry_options(OperationRetryOptions {
                operation_timeout: OPERATION_TIME,
                retry_delay: FIRST_DELAY,
                max_retries: Some(0),
            });
        if let Some(token) = settings.token.clone() {
            builder = builder.with_auth_provider(Box::new(Token(token)));
        }
        if let Some(certificates) = certificates(settings.ca_file.clone(), "Pulsar.CaFile").await? {
            builder = builder.with_certificate_chain(certificates.into_bytes());
        }
        let client = match time::timeout(OPERATION_TIME, builder.build()).await {
            Ok(built) => built.map_err(|error| provider(doing, settings, error))?,
            Err(elapsed) => return Err(provider(doing, settings, elapsed)),
        };
        Ok(Self {
            producers: Producers::new(client.clone()),
            client,
            lost: closed.child_token(),
        })
    }

    /// Gives the session up: the next operation opens a new session.
    pub(super) fn give_up(&self, reason: impl std::fmt::Display) {
        if !self.lost.is_cancelled() {
            tracing::warn!(%reason, "the connection to the broker is lost; reconnecting");
            self.lost.cancel();
        }
    }
}

/// The token of the settings, which the client asks for when it connects.
struct Token(Secret);

#[async_trait::async_trait]
impl Authentication for Token {
    fn auth_method_name(&self) -> String {
        "token".to_owned()
    }

    async fn initialize(&mut self) -> Result<(), AuthenticationError> {
        Ok(())
    }

    async fn auth_data(&mut self) -> Result<Vec<u8>, AuthenticationError> {
        Ok(self.0.expose_secret().as_bytes().to_vec())
    }
}
