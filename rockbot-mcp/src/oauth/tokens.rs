//! The tokens of one server in the host's store, as the client library reads and writes them.
//!
//! Tokens and secrets are bound to the authorization server that granted them: tokens are kept
//! under a digest of name, address and client, and used only while the server's metadata has the
//! same issuer, found at the issuer's own origin; a secret is configured with its issuer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore as TokenStore, StoredCredentials};
use rockbot_core::{BoxError, ExposeSecret, Secret};

use tokio::time::{Instant, sleep};

use super::CredentialStore;

/// Time for another host that has used the same refresh token to store the new tokens.
const GRACE: Duration = Duration::from_secs(2);

/// Interval between two looks at the store.
const LOOK: Duration = Duration::from_millis(100);

/// Locks of refreshes, one for each server: a refresh token may be used once. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct RefreshLocks(Arc<Mutex<HashMap<String, RefreshLock>>>);

type RefreshLock = Arc<tokio::sync::Mutex<()>>;

impl RefreshLocks {
    fn of(&self, key: &str) -> RefreshLock {
        // An insertion either happened or did not, so a poisoned map is consistent.
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the locks of servers that are gone.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(key.to_owned()).or_default().clone()
    }
}

/// The tokens under a key.
#[derive(Clone)]
pub(super) struct Tokens {
    store: Arc<dyn CredentialStore>,
    key: String,
    refreshing: RefreshLock,
}

impl Tokens {
    pub(super) fn new(store: Arc<dyn CredentialStore>, key: String, locks: &RefreshLocks) -> Self {
        let refreshing = locks.of(&key);
        Self { store, key, refreshing }
    }
}

fn failed(error: impl Into<BoxError>) -> AuthError {
    AuthError::CredentialStoreError(error.into().to_string())
}

/// Returns the granted tokens as text, to compare them.
fn granted(credentials: &StoredCredentials) -> Option<String> {
    serde_json::to_string(&credentials.token_response).ok()
}

#[async_trait]
impl TokenStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(text) = self.store.load(&self.key).await.map_err(failed)? else {
            return Ok(None);
        };
        match serde_json::from_str(text.expose_secret()) {
            Ok(credentials) => Ok(Some(credentials)),
            Err(_) => {
                tracing::warn!("kept credentials of an MCP server cannot be read; it is authorized anew");
                Ok(None)
            }
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        self.store.save(&self.key, Secret::from(text)).await.map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear(&self.key).await.map_err(failed)
    }

    /// Clears tokens that are of no use any more, unless other tokens are granted meanwhile: another
    /// host that shares the store may have refreshed the tokens just before, and be about to store
    /// the new ones. The user would be asked for nothing.
    async fn on_refresh_token_rejected(&self, rejected: &StoredCredentials) -> Result<(), AuthError> {
        let until = Instant::now() + GRACE;
        loop {
            let kept = self.load().await?;
            if kept.is_none_or(|kept| granted(&kept) != granted(rejected)) {
                return Ok(());
            }
            if Instant::now() >= until {
                return self.clear().await;
            }
            sleep(LOOK).await;
        }
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.refreshing.clone().lock_owned().await;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
