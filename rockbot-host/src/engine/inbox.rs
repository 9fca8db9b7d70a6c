//! The inbox of a principal, for the parts of a host.

use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rockbot_core::turn::{Announcement, AnnouncementInbox};
use rockbot_core::{Principal, TurnId};
use tokio::sync::watch;

use super::{TurnEngine, TurnError};
use crate::announcements::Reader;

/// The announcements that wait for a principal.
///
/// Weak, as all that the host gives to its parts.
pub(super) struct Inbox {
    engine: Weak<TurnEngine>,
    principal: Principal,
    changes: watch::Receiver<()>,
    _reader: Reader,
}

impl Inbox {
    pub(super) fn new(engine: &Arc<TurnEngine>, principal: Principal) -> Self {
        Self {
            engine: Arc::downgrade(engine),
            changes: engine.announcements.changes(),
            _reader: engine.announcements.reader(principal.clone()),
            principal,
        }
    }

    fn engine(&self) -> Result<Arc<TurnEngine>, TurnError> {
        self.engine.upgrade().ok_or(TurnError::Halted)
    }
}

#[async_trait]
impl AnnouncementInbox for Inbox {
    fn ids(&self) -> Vec<TurnId> {
        let engine = self.engine();
        engine
            .map(|engine| engine.announcements.ids(&self.principal))
            .unwrap_or_default()
    }

    async fn read(&self, id: &TurnId) -> Result<Option<Announcement>, TurnError> {
        let engine = self.engine()?;
        let said = engine.announcements.peek(&self.principal, id).await?;
        match said.as_ref().and_then(|said| said.approval.as_ref()) {
            Some(approval) if engine.is_decided(approval).await => {
                engine.announcements.dismiss(&self.principal, id).await;
                Ok(None)
            }
            _ => Ok(said),
        }
    }

    async fn dismiss(&self, id: &TurnId) -> Result<bool, TurnError> {
        Ok(self.engine()?.announcements.dismiss(&self.principal, id).await)
    }

    async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inbox").field(&self.principal).finish()
    }
}
