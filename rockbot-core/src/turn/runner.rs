//! The contract of the turn runner: the parts of a host run turns by it.
//!
//! `TurnRunner` is a contract for the parts of a host that run turns: they start, await, follow,
//! list and cancel turns by id. The host provides it (`engine/runner.rs`), a subsystem finds it
//! by `Parts::get`, and the part depends on `rockbot-core` alone.
//!
//! The settings of a turn are in its request, and so in the journal: the filter of its tools
//! (`ToolFilter`, by name, source and group), its namespace of working memory, and its result
//! mode. The driver puts filter and namespace into the contexts of calls, so tools and a called
//! agent of the same host see them. A filter is a table of its own over the same guarded tools
//! (`tool/guard/filtered.rs`); a withheld tool is an unknown tool.
//!
//! The reports of a turn are kept in a `TurnFeed` (4 MiB), and any number of readers read them
//! from any position. A turn that a caller streams or starts has a feed. A resumed turn has a
//! feed, too, which begins with the calls of the earlier process. A stream that is dropped leaves
//! its turn alone, unless `cancel_on_drop` asked for that; the future of a call that is dropped
//! cancels its turn.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Announcement, AnnouncementInbox, Approval, ApprovalRequest, BackgroundSlot, TurnError, TurnEvents, TurnOutcome,
    TurnRequest,
};
use crate::context::Origin;
use crate::{Principal, SessionId, TurnId};

/// The turns of an agent, for the parts of its host: schedules, subagents, evaluations.
///
/// A subsystem finds it when it starts, as `parts.get::<dyn TurnRunner>()`. Turns are idempotent:
/// the same message, started again, is the same turn, also after a restart. A program asks the
/// `Agent` of its host instead, which checks that a turn belongs to the principal that asks. The
/// methods here trust their caller: a part that acts for several principals asks
/// [`check_access`](Self::check_access) first.
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::context::{Origin, Priority};
/// use rockbot_core::turn::{TurnError, TurnRequest, TurnRunner};
///
/// async fn remind(turns: Arc<dyn TurnRunner>, due: &str) -> Result<(), TurnError> {
///     // The id follows from the due time: a reminder that is started twice runs once.
///     let request = TurnRequest::new("reminders", format!("tea@{due}"), "Remind me to drink tea.")
///         .with_origin(Origin::Scheduled)
///         .with_priority(Priority::Scheduled);
///     let turn = turns.start(request).await?;
///     println!("{}", turns.outcome(&turn).await?);
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait TurnRunner: fmt::Debug + Send + Sync + 'static {
    /// Accepts a message as a turn that no caller waits for, and returns the turn's id. Once this
    /// returns, the turn is in the journal: it is resumed after a crash, and ends by itself or by
    /// [`TurnRunner::cancel`] alone.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted.
    async fn start(&self, request: TurnRequest) -> Result<TurnId, TurnError>;

    /// Runs a turn and returns its outcome. Dropping the future cancels the turn, unless another
    /// caller waits for it. A turn that ends without an answer is an outcome, not an error. If the
    /// turn needs approvals and its parent is a turn of this host, the user of the turn at the top is
    /// asked, and this waits for the decisions.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted, or the host stops first.
    async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError>;

    /// Waits for the end of a turn, however long it takes. Outcomes are kept for a day.
    ///
    /// # Errors
    ///
    /// Returns an error if the turn is unknown or was not resumed, or the host stops first.
    async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError>;

    /// Returns a stream of a turn's reports after the position `after` (0 for all), and of its end.
    /// Any number of readers can read a turn. A turn that was accepted without a listener reports
    /// its end alone, and so does a turn that has ended. After a restart the positions begin anew.
    ///
    /// # Errors
    ///
    /// Returns an error if the turn is unknown or was not resumed.
    async fn events(&self, turn: &TurnId, after: u64) -> Result<TurnEvents, TurnError>;

    /// Cancels a turn that works or waits for a person. Once this returns, the cancellation is in the
    /// journal.
    ///
    /// # Errors
    ///
    /// Returns an error if this process does not work on the turn, or the journal does not take the
    /// cancellation.
    async fn cancel(&self, turn: &TurnId) -> Result<(), TurnError>;

    /// Checks that `by` may read and cancel a turn: it is its own, or `by` decides about its calls. The
    /// turn of another principal is as unknown as a turn that never was.
    ///
    /// # Errors
    ///
    /// Returns [`TurnError::NotFound`] if `by` may not, or an error if the journal cannot be read.
    async fn check_access(&self, turn: &TurnId, by: &Principal) -> Result<(), TurnError>;

    /// Returns the calls that wait for a decision of `by`, in turns that it may decide about, sorted by
    /// turn and call.
    fn approvals(&self, by: &Principal) -> Vec<ApprovalRequest>;

    /// Applies the decision of `by` about a call. Once this returns, the decision is in the journal;
    /// after the last decision that a turn waits for, the turn continues.
    ///
    /// # Errors
    ///
    /// Returns [`TurnError::NoSuchApproval`] if nothing waits for this decision, or `by` may not decide
    /// about it, or an error if the journal does not take the decision.
    async fn decide(&self, decision: Approval, by: &Principal) -> Result<(), TurnError>;

    /// Announces something to a principal. The announcement waits until a program takes it, also
    /// over a restart: at most 7 days, and as long as fewer than 1 000 newer announcements wait for
    /// that principal. The same `id` is the same announcement.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal does not take it.
    async fn announce(&self, id: &str, announcement: Announcement) -> Result<(), TurnError>;

    /// Opens the inbox of a principal: its announcements, which stay until they are dismissed.
    ///
    /// # Errors
    ///
    /// Returns an error if the host has stopped.
    fn inbox(&self, of: &Principal) -> Result<Box<dyn AnnouncementInbox>, TurnError>;

    /// Returns the turns of `query` that work here or wait, in no order.
    fn live(&self, query: &TurnQuery) -> Vec<LiveTurnInfo>;

    /// Returns `true` while no turn works or waits for its session and no model is asked.
    fn is_idle(&self) -> bool;

    /// Waits for the host's one slot for work in the background: until no other work has the slot, no
    /// turn works, no model is asked, and users have been silent for `quiet`. Once the host has
    /// ended, it waits without an end.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rockbot_core::turn::TurnRunner;
    ///
    /// async fn tidy_up(turns: &dyn TurnRunner) {
    ///     // A user's message ends the work early; it begins anew when the users are silent again.
    ///     let work = || async { /* ask a model, write a store */ };
    ///     while turns.background(Duration::from_secs(30)).await.run(work()).await.is_none() {}
    /// }
    /// ```
    async fn background(&self, quiet: Duration) -> BackgroundSlot;
}

/// A query for live turns. By default all match.
///
/// ```
/// use rockbot_core::turn::TurnQuery;
///
/// let children = TurnQuery::default().with_parent("turn-1").with_principal("ann");
/// assert_eq!(children.session, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TurnQuery {
    /// Principal of the turns; `None` means any.
    pub principal: Option<Principal>,
    /// Session of the turns; `None` means any.
    pub session: Option<SessionId>,
    /// Turn that asked for the turns; `None` means any, or none.
    pub parent: Option<TurnId>,
    /// Entry point of the turns' messages; `None` means any.
    pub origin: Option<Origin>,
}

impl TurnQuery {
    /// Sets the principal of the turns. Default any.
    #[must_use]
    pub fn with_principal(mut self, principal: impl Into<Principal>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Sets the session of the turns. Default any.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the turn that asked for the turns. Default any, or none.
    #[must_use]
    pub fn with_parent(mut self, parent: impl Into<TurnId>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Sets the entry point of the turns' messages. Default any.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Returns `true` if the turn of `request` matches.
    pub fn matches(&self, request: &TurnRequest) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, value: Option<&T>) -> bool {
            wanted.is_none() || wanted == value
        }
        is(self.principal.as_ref(), Some(&request.principal))
            && is(self.session.as_ref(), Some(&request.session))
            && is(self.parent.as_ref(), request.parent.as_ref().map(|parent| &parent.turn))
            && is(self.origin.as_ref(), Some(&request.origin))
    }
}

/// A turn that works or waits, as a [`TurnRunner`] lists it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LiveTurnInfo {
    /// Id of the turn.
    pub turn: TurnId,
    /// Message of the turn, with its setting.
    pub request: Arc<TurnRequest>,
    /// `true` if the turn waits for a person.
    pub is_parked: bool,
}

impl LiveTurnInfo {
    /// Creates the entry of a turn that works or waits for its session.
    pub fn new(turn: TurnId, request: Arc<TurnRequest>) -> Self {
        Self {
            turn,
            request,
            is_parked: false,
        }
    }

    /// Sets whether the turn waits for a person. Default `false`.
    #[must_use]
    pub fn with_parked(mut self, is_parked: bool) -> Self {
        self.is_parked = is_parked;
        self
    }
}
