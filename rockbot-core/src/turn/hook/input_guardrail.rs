//! Guardrails of users' messages.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::content::Content;
use crate::shared::share;
use crate::turn::TurnRequest;
use crate::{BoxError, CallContext};

/// A guardrail of users' messages: its verdict on each message comes before any model, context
/// source or tool sees it.
///
/// Guardrails are asked in the order of their addition. Each gets the message as the guardrail
/// before it left it; the first guardrail that refuses ends the turn. A message that is to join a
/// running turn, or to replace it, is checked before it does. Guardrails of different messages
/// run at the same time.
///
/// They come before the host's turn layers, which wrap the turn that begins once its message has
/// passed: a layer gets the message as the guardrails left it, and no message if they refuse it.
/// A change by a layer is the program's own text and is not checked.
///
/// An error, a panic and a time-out (30 seconds by default) fail the turn
/// ([`TurnFailure::Unchecked`](crate::turn::TurnFailure::Unchecked)), because an unchecked
/// message must not pass for a checked message.
///
/// The journal keeps the verdict: a turn that continues after a crash asks again only if none was
/// recorded. A message that was refused is not remembered in its conversation, and of a message
/// that was replaced the replacement is. The record of the message's acceptance in the journal,
/// which the host needs to recognize a redelivery, and the routing log have the original.
///
/// # Examples
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::turn::{InputGuardrail, InputVerdict, UserInput};
///
/// /// Refuses questions about the weather.
/// #[derive(Debug)]
/// struct NoWeather;
///
/// #[async_trait]
/// impl InputGuardrail for NoWeather {
///     async fn check(&self, input: &UserInput) -> Result<InputVerdict, BoxError> {
///         Ok(match input.text().contains("weather") {
///             true => InputVerdict::refuse("I do not talk about the weather."),
///             false => InputVerdict::Pass,
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait InputGuardrail: fmt::Debug + Send + Sync + 'static {
    /// Checks a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be checked, which fails the turn.
    async fn check(&self, input: &UserInput) -> Result<InputVerdict, BoxError>;

    /// Returns the name in logs and in the journal. Default: the name of the type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

share! {
    InputGuardrail {
        async check<'a>(input: &'a UserInput) -> Result<InputVerdict, BoxError>;
        fn name() -> &str;
    }
}

/// A user's message that a guardrail checks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UserInput {
    /// The content, as the guardrails before this guardrail left it. The bytes of its images and
    /// files are in the host's media store, and referred to.
    pub content: Content,
    /// The request, as the user sent it.
    pub request: Arc<TurnRequest>,
    /// The context of the turn's work: its principal, its trust, its extensions.
    pub cx: CallContext,
}

impl UserInput {
    /// Creates the input of a request.
    pub fn new(request: impl Into<Arc<TurnRequest>>) -> Self {
        let request = request.into();
        let cx = CallContext::new(&request.session)
            .with_principal(request.principal.clone())
            .with_trust(request.trust);
        Self {
            content: request.content.clone(),
            request,
            cx,
        }
    }

    /// Sets the context of the turn's work.
    #[must_use]
    pub fn with_context(mut self, cx: CallContext) -> Self {
        self.cx = cx;
        self
    }

    /// Sets the content.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<Content>) -> Self {
        self.content = content.into();
        self
    }

    /// Returns the text of the content, without its images and files.
    pub fn text(&self) -> Cow<'_, str> {
        self.content.text()
    }
}

/// The verdict of an [`InputGuardrail`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputVerdict {
    /// The message is good.
    Pass,
    /// The turn ends with these words for the user
    /// ([`TurnStatus::Refused`](crate::turn::TurnStatus::Refused)), and no model is asked.
    Refuse(String),
    /// The turn works on this content instead of the user's. It is trusted as the user's is.
    Replace(Content),
}

impl InputVerdict {
    /// Creates a refusal in words for the user.
    pub fn refuse(text: impl Into<String>) -> Self {
        Self::Refuse(text.into())
    }

    /// Creates a replacement of the user's content.
    pub fn replace(content: impl Into<Content>) -> Self {
        Self::Replace(content.into())
    }
}

/// An [`InputGuardrail`] of an async function. [`guardrail_fn`] creates one.
pub struct GuardrailFn<F>(F);

/// Creates a guardrail from an async function.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{InputVerdict, UserInput, guardrail_fn};
///
/// let short = guardrail_fn(|input: UserInput| async move {
///     Ok(match input.text().len() {
///         0..10_000 => InputVerdict::Pass,
///         _ => InputVerdict::refuse("That is too long for me. Please send a shorter message."),
///     })
/// });
/// # let _: &dyn rockbot_core::turn::InputGuardrail = &short;
/// ```
pub fn guardrail_fn<F, Fut>(check: F) -> GuardrailFn<F>
where
    F: Fn(UserInput) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<InputVerdict, BoxError>> + Send,
{
    GuardrailFn(check)
}

#[async_trait]
impl<F, Fut> InputGuardrail for GuardrailFn<F>
where
    F: Fn(UserInput) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<InputVerdict, BoxError>> + Send,
{
    async fn check(&self, input: &UserInput) -> Result<InputVerdict, BoxError> {
        (self.0)(input.clone()).await
    }

    fn name(&self) -> &str {
        std::any::type_name::<F>()
    }
}

impl<F> fmt::Debug for GuardrailFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GuardrailFn").field(&std::any::type_name::<F>()).finish()
    }
}
