//! [`PostgresOptions`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Clock;
use rockbot_core::store::WorkingLimits;

use crate::ConversationLogOptions;

/// Options of a [`Postgres`](super::Postgres).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Name of the schema with the tables, of `a` to `z`, `0` to `9` and `_`. Default `rockbot`.
    pub schema: String,
    /// File with the certificates, in PEM, of the authorities that sign the server's certificate.
    /// Default: the authorities that this machine trusts.
    pub ca_file: Option<PathBuf>,
    /// Maximum number of connections of this process. Default 16.
    pub max_connections: usize,
    /// Time that a process may be silent before another one takes over its turns, from 3 s to a day.
    /// Default 30 s. A process renews its leases three times in it.
    pub lease: Duration,
    /// Capacity of each namespace of working memory.
    pub working_limits: WorkingLimits,
    /// Maximum size of the conversation log.
    pub conversation_log: ConversationLogOptions,
    /// Maximum number of entries that conversation memory keeps of a session. Default 50.
    pub conversation_window: usize,
    /// Clock of leases and of the expiry of entries and outcomes, for tests. Default: the clock of
    /// the database.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "rockbot".to_owned(),
            ca_file: None,
            max_connections: 16,
            lease: Duration::from_secs(30),
            working_limits: WorkingLimits::default(),
            conversation_log: ConversationLogOptions::default(),
            conversation_window: 50,
            clock: None,
        }
    }
}

impl PostgresOptions {
    /// Sets the name of the schema. Default `rockbot`.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the file with the certificates, in PEM, of the authorities that sign the server's
    /// certificate. The connection is encrypted then, also without `sslmode=require` in the URL.
    /// Default: the authorities that this machine trusts.
    #[must_use]
    pub fn with_ca_file(mut self, ca_file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(ca_file.into());
        self
    }

    /// Sets the maximum number of connections of this process. Default 16.
    #[must_use]
    pub fn with_max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Sets the time that a process may be silent before another one takes over its turns: from 3 s
    /// to a day, and the nearest of both for other times. Default 30 s.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the capacity of each namespace of working memory.
    #[must_use]
    pub fn with_working_limits(mut self, working_limits: WorkingLimits) -> Self {
        self.working_limits = working_limits;
        self
    }

    /// Sets the maximum size of the conversation log.
    #[must_use]
    pub fn with_conversation_log(mut self, conversation_log: ConversationLogOptions) -> Self {
        self.conversation_log = conversation_log;
        self
    }

    /// Sets the maximum number of entries that conversation memory keeps of a session. Default 50.
    #[must_use]
    pub fn with_conversation_window(mut self, conversation_window: usize) -> Self {
        self.conversation_window = conversation_window;
        self
    }

    /// Sets the clock of leases and of the expiry of entries and outcomes. Default: the clock of
    /// the database.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}
