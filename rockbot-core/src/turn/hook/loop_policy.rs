//! Policies of the loop that the host's own program adds.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::TurnView;
use crate::BoxError;
use crate::chat::ChatResponse;
use crate::content::Content;
use crate::shared::share;
use crate::tool::ToolInvokeResponse;

/// A policy of the loop of model answers and tool calls: it may add a message, ask the model
/// again, or end the turn.
///
/// The host asks its policies in the order of their addition, at each [`LoopPoint`]. Added
/// messages collect; the first policy that decides something else has the last word. The host's
/// own policies (nudges, budgets, approvals) come after it: they act only where the policies
/// decided nothing. Questions to judges, and the last answer that a reached limit forces, are no
/// points.
///
/// An error, a panic and a time-out (30 seconds by default) count as [`LoopDecision::Continue`],
/// with a warning in the log and a note in the journal: a policy improves a turn, and a turn
/// without it is still a good one. A rule that must hold in any case belongs in an
/// [`OutputValidator`](super::OutputValidator), which fails the turn then.
///
/// The journal keeps each decision. A turn that continues after a crash asks again only where no
/// decision was recorded.
///
/// # Examples
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::turn::{LoopDecision, LoopPoint, LoopPolicy, TurnView};
///
/// /// Tells the model when half of its questions are used up.
/// #[derive(Debug)]
/// struct HalfTime;
///
/// #[async_trait]
/// impl LoopPolicy for HalfTime {
///     async fn decide(&self, point: &LoopPoint, turn: &TurnView) -> Result<LoopDecision, BoxError> {
///         let half = turn.budget.max_model_calls / 2;
///         Ok(match point {
///             LoopPoint::BeforeRequest if turn.model_calls == half => {
///                 LoopDecision::add_message("Half of your steps are used up. Come to an end.")
///             }
///             _ => LoopDecision::Continue,
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait LoopPolicy: fmt::Debug + Send + Sync + 'static {
    /// Decides how the turn continues.
    ///
    /// # Errors
    ///
    /// Returns an error if the policy cannot decide; the turn continues without it.
    async fn decide(&self, point: &LoopPoint, turn: &TurnView) -> Result<LoopDecision, BoxError>;

    /// Returns the name in logs and in the journal. Default: the name of the type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

share! {
    LoopPolicy {
        async decide<'a, 'b>(point: &'a LoopPoint, turn: &'b TurnView) -> Result<LoopDecision, BoxError>;
        fn name() -> &str;
    }
}

/// A point of the loop where policies are asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LoopPoint {
    /// The model is about to be asked.
    BeforeRequest,
    /// The model answered. Tool calls that it requests have not run; the text of an answer without
    /// calls is final unless a policy objects.
    AfterAnswer(Arc<ChatResponse>),
    /// All tool calls of the last answer ended, with these results.
    AfterResults(Arc<[ToolInvokeResponse]>),
}

/// The decision of a [`LoopPolicy`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopDecision {
    /// The turn continues.
    #[default]
    Continue,
    /// The model reads this message of the host with its next request, if there is one. The turn
    /// continues.
    AddMessage(Content),
    /// The model reads this message of the host and answers again. After an answer its tool calls are
    /// not run, and the question counts towards the limit of such questions in a turn (3 by default);
    /// above it the turn continues. At the other points the model is asked anyway, so this is the
    /// same as [`AddMessage`](Self::AddMessage).
    AskAgain(Content),
    /// The turn ends with this answer.
    Answer(Content),
    /// The turn fails, with this text for the user
    /// ([`TurnFailure::Policy`](crate::turn::TurnFailure::Policy)).
    Fail(String),
}

impl LoopDecision {
    /// Creates a message of the host that the model reads with its next request.
    pub fn add_message(content: impl Into<Content>) -> Self {
        Self::AddMessage(content.into())
    }

    /// Creates the decision to ask the model again, with this message of the host.
    pub fn ask_again(content: impl Into<Content>) -> Self {
        Self::AskAgain(content.into())
    }

    /// Creates the decision to end the turn with this answer.
    pub fn answer(content: impl Into<Content>) -> Self {
        Self::Answer(content.into())
    }

    /// Creates the decision to fail the turn, with this text for the user.
    pub fn fail(text: impl Into<String>) -> Self {
        Self::Fail(text.into())
    }
}

/// A [`LoopPolicy`] of an async function. [`policy_fn`] creates one.
pub struct PolicyFn<F>(F);

/// Creates a policy from an async function.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{LoopDecision, LoopPoint, policy_fn};
///
/// let no_mail_at_night = policy_fn(|point, turn| async move {
///     Ok(match point {
///         LoopPoint::AfterAnswer(answer) if answer.tool_calls.iter().any(|call| call.name.as_str() == "send_mail") => {
///             LoopDecision::ask_again("Mail is not sent at night: write a draft instead.")
///         }
///         _ if turn.tool_calls > 100 => LoopDecision::answer("This takes too long. I stop here."),
///         _ => LoopDecision::Continue,
///     })
/// });
/// # let _: &dyn rockbot_core::turn::LoopPolicy = &no_mail_at_night;
/// ```
pub fn policy_fn<F, Fut>(decide: F) -> PolicyFn<F>
where
    F: Fn(LoopPoint, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<LoopDecision, BoxError>> + Send,
{
    PolicyFn(decide)
}

#[async_trait]
impl<F, Fut> LoopPolicy for PolicyFn<F>
where
    F: Fn(LoopPoint, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<LoopDecision, BoxError>> + Send,
{
    async fn decide(&self, point: &LoopPoint, turn: &TurnView) -> Result<LoopDecision, BoxError> {
        (self.0)(point.clone(), turn.clone()).await
    }

    fn name(&self) -> &str {
        std::any::type_name::<F>()
    }
}

impl<F> fmt::Debug for PolicyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyFn").field(&std::any::type_name::<F>()).finish()
    }
}
