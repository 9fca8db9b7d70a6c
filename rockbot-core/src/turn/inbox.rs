//! The inbox of a principal: its announcements, for a part that shows them more than once.

use std::fmt;

use async_trait::async_trait;

use super::{Announcement, TurnError};
use crate::TurnId;

/// The announcements that wait for a principal, to be read any number of times and dismissed one by
/// one: for an interface whose user has several windows open, or closes them unread.
///
/// [`TurnRunner::inbox`](super::TurnRunner::inbox) opens it. As long as it is held, the bus of the
/// host delivers no announcement to the principal. A stream of the principal's announcements takes
/// them out of the inbox.
///
/// ```
/// use rockbot_core::Principal;
/// use rockbot_core::turn::{TurnError, TurnRunner};
///
/// async fn print(turns: &dyn TurnRunner) -> Result<(), TurnError> {
///     let inbox = turns.inbox(&Principal::default())?;
///     for id in inbox.ids() {
///         if let Some(said) = inbox.read(&id).await? {
///             println!("{}: {}", said.session, said.content.text());
///             inbox.dismiss(&id).await?;
///         }
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait AnnouncementInbox: fmt::Debug + Send + Sync + 'static {
    /// Returns the ids of the announcements that wait, oldest first: at most 1 000.
    fn ids(&self) -> Vec<TurnId>;

    /// Returns an announcement, which goes on waiting. `None` if it was dismissed, taken or dropped,
    /// or asks for an approval that was decided meanwhile.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read, or the host stops.
    async fn read(&self, id: &TurnId) -> Result<Option<Announcement>, TurnError>;

    /// Ends an announcement: its principal has read it. Returns `false` if it does not wait any more.
    ///
    /// # Errors
    ///
    /// Returns an error if the host stops.
    async fn dismiss(&self, id: &TurnId) -> Result<bool, TurnError>;

    /// Waits until the announcements of any principal have changed since the last call, or since the
    /// inbox was opened. No change is lost when the future is dropped.
    async fn changed(&mut self);
}
