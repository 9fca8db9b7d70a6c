//! The bound on the messages that a host has accepted and not finished: by number and bytes, of a
//! session, of a principal and of the whole host.
//!
//! The backlog is the set of messages that a host has accepted and not answered. A caller beyond
//! its bounds gets `TurnError::Busy`. A message of the bus stays unacknowledged while it waits
//! for room, for half the handler's time limit in each of its four deliveries; after the last
//! delivery it is refused in words. At most eight messages for full sessions and principals wait,
//! half of the workers. A further message goes back to the bus at once, so that a busy session
//! does not keep others waiting. Parked turns do not count, and turns that resume count without
//! being refused.
//!
//! | bound (`AgentHost`, `BacklogLimits`) | default |
//! |---|---|
//! | `MaxMessages`, `MaxMessageBytes`: unanswered messages of a host | 4 096, 64 MiB |
//! | `MaxPrincipalMessages`, `MaxPrincipalMessageBytes`: unanswered messages of one principal | 2 048, 32 MiB |
//! | `MaxSessionMessages`, `MaxSessionMessageBytes`: messages that wait in a session, or to join its running turn | 128, 8 MiB |

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::Principal;
use rockbot_core::turn::{Busy, TurnRequest};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The bounds of the messages that a host has accepted and not answered.
///
/// A message counts from its acceptance to the end of its turn, also while it waits for its
/// session, but not while the turn is parked. Beyond a bound a caller gets
/// [`TurnError::Busy`](crate::TurnError::Busy), and a message of a bus stays there. The only
/// message of a session, or of the host, is accepted whatever its length. Turns that resume
/// count, and are never refused.
///
/// ```
/// use rockbot_host::BacklogLimits;
///
/// let limits = BacklogLimits::new().with_max_messages(500).with_max_session_messages(10);
/// assert_eq!((limits.max_messages, limits.max_session_bytes), (500, 8 << 20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogLimits {
    /// Maximum number of unanswered messages of the host. Default 4 096.
    pub max_messages: usize,
    /// Maximum length of their texts in bytes, all together. Default 64 MiB.
    pub max_bytes: usize,
    /// Maximum number of unanswered messages of one principal, in all of its sessions. Default
    /// 2 048: below the limit of the host, so that a principal leaves room for others.
    pub max_principal_messages: usize,
    /// Maximum length of their texts in bytes, all together. Default 32 MiB.
    pub max_principal_bytes: usize,
    /// Maximum number of messages that wait for their turn in a session, or to join the running one.
    /// Default 128.
    pub max_session_messages: usize,
    /// Maximum length of their texts in bytes, all together. Default 8 MiB.
    pub max_session_bytes: usize,
}

impl Default for BacklogLimits {
    fn default() -> Self {
        Self {
            max_messages: 4096,
            max_bytes: 64 << 20,
            max_principal_messages: 2048,
            max_principal_bytes: 32 << 20,
            max_session_messages: 128,
            max_session_bytes: 8 << 20,
        }
    }
}

impl BacklogLimits {
    /// Creates the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of unanswered messages of the host.
    #[must_use]
    pub fn with_max_messages(mut self, max_messages: usize) -> Self {
        self.max_messages = max_messages;
        self
    }

    /// Sets the maximum length in bytes of the unanswered messages of the host.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the maximum number of unanswered messages of one principal.
    #[must_use]
    pub fn with_max_principal_messages(mut self, max_messages: usize) -> Self {
        self.max_principal_messages = max_messages;
        self
    }

    /// Sets the maximum length in bytes of the unanswered messages of one principal.
    #[must_use]
    pub fn with_max_principal_bytes(mut self, max_bytes: usize) -> Self {
        self.max_principal_bytes = max_bytes;
        self
    }

    /// Sets the maximum number of messages that wait in a session.
    #[must_use]
    pub fn with_max_session_messages(mut self, max_messages: usize) -> Self {
        self.max_session_messages = max_messages;
        self
    }

    /// Sets the maximum length in bytes of the messages that wait in a session.
    #[must_use]
    pub fn with_max_session_bytes(mut self, max_bytes: usize) -> Self {
        self.max_session_bytes = max_bytes;
        self
    }
}

/// The count of the unanswered messages of a host.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    limits: BacklogLimits,
    used: Mutex<Used>,
    /// Notified when a message no longer counts.
    freed: Notify,
}

/// Numbers of messages, each with the length of their texts in bytes.
#[derive(Debug, Default)]
struct Used {
    host: (usize, usize),
    /// The numbers of each principal with messages.
    principals: HashMap<Principal, (usize, usize)>,
}

impl Used {
    fn add(&mut self, principal: &Principal, bytes: usize) {
        let of_principal = self.principals.entry(principal.clone()).or_default();
        for used in [&mut self.host, of_principal] {
            *used = (used.0 + 1, used.1 + bytes);
        }
    }

    fn remove(&mut self, principal: &Principal, bytes: usize) {
        self.host = (self.host.0 - 1, self.host.1 - bytes);
        let of_principal = self.principals.get_mut(principal).expect("a permit was counted");
        *of_principal = (of_principal.0 - 1, of_principal.1 - bytes);
        if of_principal.0 == 0 {
            self.principals.remove(principal);
        }
    }
}

impl Backlog {
    /// Creates an empty backlog.
    pub(super) fn new(limits: BacklogLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            ..Self::default()
        })
    }

    /// Counts a message, or refuses it. The number of a session is exact for messages that are
    /// accepted one after the other; messages that are being accepted at the same moment are
    /// bounded by the host's number alone.
    ///
    /// `waiting` returns the messages that wait in the session; with `true` it first removes the
    /// cancelled messages.
    pub(super) fn reserve(
        self: &Arc<Self>,
        request: &TurnRequest,
        waiting: impl Fn(bool) -> (usize, usize),
    ) -> Result<BacklogPermit, Busy> {
        let bytes = weight(request);
        let limits = &self.limits;
        let of_session = (limits.max_session_messages, limits.max_session_bytes);
        if is_full(waiting(false), bytes, of_session) {
            let left = waiting(true);
            if is_full(left, bytes, of_session) {
                let (messages, bytes) = left;
                return Err(Busy::Session { messages, bytes });
            }
        }
        let mut used = self.used();
        let of_principal = used.principals.get(&request.principal).copied().unwrap_or_default();
        let max_of_principal = (limits.max_principal_messages, limits.max_principal_bytes);
        if is_full(of_principal, bytes, max_of_principal) {
            let (messages, bytes) = of_principal;
            return Err(Busy::Principal { messages, bytes });
        }
        if is_full(used.host, bytes, (limits.max_messages, limits.max_bytes)) {
            let (messages, bytes) = used.host;
            return Err(Busy::Host { messages, bytes });
        }
        used.add(&request.principal, bytes);
        Ok(self.permit(request, bytes))
    }

    /// Counts a message that was accepted before.
    pub(super) fn count(self: &Arc<Self>, request: &TurnRequest) -> BacklogPermit {
        let bytes = weight(request);
        self.used().add(&request.principal, bytes);
        self.permit(request, bytes)
    }

    fn permit(self: &Arc<Self>, request: &TurnRequest, bytes: usize) -> BacklogPermit {
        BacklogPermit {
            backlog: self.clone(),
            principal: request.principal.clone(),
            bytes,
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // No code that can panic runs under the lock.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a future that resolves when a message has left the backlog after this call.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Notifies the callers that wait for room.
    pub(super) fn notify(&self) {
        self.freed.notify_waiters();
    }
}

/// The place of a message in the backlog. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct BacklogPermit {
    backlog: Arc<Backlog>,
    principal: Principal,
    bytes: usize,
}

impl Drop for BacklogPermit {
    fn drop(&mut self) {
        self.backlog.used().remove(&self.principal, self.bytes);
        self.backlog.notify();
    }
}

/// The permit of a live turn, which it has while it works or waits for its session.
#[derive(Debug, Default)]
pub(super) struct PermitSlot(Mutex<Option<BacklogPermit>>);

impl PermitSlot {
    /// Replaces the permit. The old permit is dropped after the lock is released: dropping it wakes
    /// the callers that wait.
    pub(super) fn set(&self, permit: Option<BacklogPermit>) {
        // No code that can panic runs under the lock.
        let old = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), permit);
        drop(old);
    }
}

/// Reports whether a message of this length is one too many. The first message never is.
fn is_full((messages, bytes): (usize, usize), more: usize, (max_messages, max_bytes): (usize, usize)) -> bool {
    messages > 0 && (messages >= max_messages || bytes.saturating_add(more) > max_bytes)
}

/// Returns the length in bytes of the texts that a message keeps in memory. Its images and files
/// are in the media store.
pub(super) fn weight(request: &TurnRequest) -> usize {
    let given = request.history.iter().flat_map(|messages| messages.iter());
    let given: usize = given.map(|message| message.content.text_len()).sum();
    request.content.text_len() + request.instructions.as_ref().map_or(0, String::len) + given
}
