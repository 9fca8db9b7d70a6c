//! A turn as the request of a service.

use std::sync::Arc;

use super::{OutputValidator, ProgressSink, TurnFeed, TurnRequest};

/// A message and the listener to its turn: the request type of tower layers on turns.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{ProgressSink, TurnCall, TurnRequest};
///
/// let request = TurnRequest::new("kitchen", "message-1", "What can I cook today?");
/// let call = TurnCall::new(request, ProgressSink::none());
/// assert_eq!(call.request.content, "What can I cook today?");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnCall {
    /// The message.
    pub request: TurnRequest,
    /// The sink that receives progress reports while the turn runs.
    pub progress: ProgressSink,
    /// The output validators of this message alone, asked after the host's. They are not in the
    /// journal: a turn that continues in another process asks the validators of a caller that sends
    /// the same message again, and its answer is withheld without them
    /// ([`TurnFailure::Unchecked`](super::TurnFailure::Unchecked)).
    pub validators: Vec<Arc<dyn OutputValidator>>,
    /// The feed that keeps the reports of the turn, if a reader has one already.
    pub feed: Option<TurnFeed>,
    /// `true` if the turn has begun before and continues: after a decision, or after a restart. The
    /// host sets it.
    pub is_continued: bool,
}

impl TurnCall {
    /// Creates a call from a message and the sink for the progress reports of its turn.
    pub fn new(request: TurnRequest, progress: ProgressSink) -> Self {
        Self {
            request,
            progress,
            validators: Vec::new(),
            feed: None,
            is_continued: false,
        }
    }

    /// Sets the feed that keeps the reports of the turn.
    #[must_use]
    pub fn with_feed(mut self, feed: TurnFeed) -> Self {
        self.feed = Some(feed);
        self
    }

    /// Adds an output validator for this message alone.
    ///
    /// ```
    /// use rockbot_core::turn::{OutputVerdict, ProgressSink, TurnCall, TurnRequest, validator_fn};
    ///
    /// let no_fish = validator_fn(|answer, _turn| async move {
    ///     Ok(match answer.text.contains("fish") {
    ///         true => OutputVerdict::complain("The user does not eat fish."),
    ///         false => OutputVerdict::Accept,
    ///     })
    /// });
    /// let request = TurnRequest::new("kitchen", "message-1", "What can I cook today?");
    /// let call = TurnCall::new(request, ProgressSink::none()).with_output_validator(no_fish);
    /// assert_eq!(call.validators.len(), 1);
    /// ```
    #[must_use]
    pub fn with_output_validator(mut self, validator: impl OutputValidator) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }
}
