//! Validators of final answers.

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;

use super::TurnView;
use crate::BoxError;
use crate::content::{Content, ContentPart};
use crate::shared::share;

/// A check of a turn's final answer, whose complaint goes back to the model.
///
/// It is asked once the host's own checks are through: an answer to a request with an output
/// schema fits that schema. On a complaint the model answers again, with its tools; after 2 such
/// questions in a turn (a setting of the host) a further complaint fails the turn
/// ([`TurnFailure::Rejected`](crate::turn::TurnFailure::Rejected)). A last answer that a reached
/// limit forced is checked, too, and a complaint about it fails the turn at once. If several
/// validators complain, the first complaint counts. Texts of the host's own, such as an error
/// reply, are not checked.
///
/// An error, a panic and a time-out (30 seconds by default) fail the turn
/// ([`TurnFailure::Unchecked`](crate::turn::TurnFailure::Unchecked)), because an unchecked answer
/// must not pass for a checked answer. The reader of a stream has seen the text before it is
/// checked; it is retracted when the model answers again.
///
/// The journal keeps each verdict. A turn that continues after a crash asks again only where no
/// verdict was recorded.
///
/// # Examples
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::turn::{FinalAnswer, OutputValidator, OutputVerdict, TurnView};
///
/// /// Demands a source in each answer.
/// #[derive(Debug)]
/// struct HasSource;
///
/// #[async_trait]
/// impl OutputValidator for HasSource {
///     async fn validate(&self, answer: &FinalAnswer, _: &TurnView) -> Result<OutputVerdict, BoxError> {
///         Ok(match answer.text.contains("https://") {
///             true => OutputVerdict::Accept,
///             false => OutputVerdict::complain("It names no source."),
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait OutputValidator: fmt::Debug + Send + Sync + 'static {
    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the answer cannot be checked, which fails the turn.
    async fn validate(&self, answer: &FinalAnswer, turn: &TurnView) -> Result<OutputVerdict, BoxError>;

    /// Returns the name in logs and in the journal. Default: the name of the type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

share! {
    OutputValidator {
        async validate<'a, 'b>(answer: &'a FinalAnswer, turn: &'b TurnView) -> Result<OutputVerdict, BoxError>;
        fn name() -> &str;
    }
}

/// The final answer of a turn, before users see it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FinalAnswer {
    /// The text.
    pub text: String,
    /// The value of the text as JSON, if the request has an output schema and the text is JSON.
    pub json: Option<Value>,
    /// The images and files of the answer, with their bytes where the host has them.
    pub media: Vec<ContentPart>,
}

impl FinalAnswer {
    /// Creates an answer in words.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            json: None,
            media: Vec::new(),
        }
    }

    /// Sets the value of the text as JSON.
    #[must_use]
    pub fn with_json(mut self, json: Value) -> Self {
        self.json = Some(json);
        self
    }

    /// Sets the images and files.
    #[must_use]
    pub fn with_media(mut self, media: Vec<ContentPart>) -> Self {
        self.media = media;
        self
    }

    /// Returns the text with the images and files.
    pub fn content(&self) -> Content {
        let mut content = Content::from(&self.text);
        content.extend(self.media.iter().cloned());
        content
    }
}

/// The verdict of an [`OutputValidator`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputVerdict {
    /// The answer is good.
    Accept,
    /// The answer is not good, for the reason in this text, which the model reads.
    Complain(String),
}

impl OutputVerdict {
    /// Creates a complaint: a sentence that tells the model the fault of its answer.
    pub fn complain(complaint: impl Into<String>) -> Self {
        Self::Complain(complaint.into())
    }
}

/// An [`OutputValidator`] of an async function. [`validator_fn`] creates one.
pub struct ValidatorFn<F>(F);

/// Creates a validator from an async function.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{OutputVerdict, validator_fn};
///
/// let short = validator_fn(|answer, _turn| async move {
///     Ok(match answer.text.len() {
///         0..500 => OutputVerdict::Accept,
///         _ => OutputVerdict::complain("It is too long: answer in two sentences."),
///     })
/// });
/// # let _: &dyn rockbot_core::turn::OutputValidator = &short;
/// ```
pub fn validator_fn<F, Fut>(validate: F) -> ValidatorFn<F>
where
    F: Fn(FinalAnswer, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<OutputVerdict, BoxError>> + Send,
{
    ValidatorFn(validate)
}

#[async_trait]
impl<F, Fut> OutputValidator for ValidatorFn<F>
where
    F: Fn(FinalAnswer, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<OutputVerdict, BoxError>> + Send,
{
    async fn validate(&self, answer: &FinalAnswer, turn: &TurnView) -> Result<OutputVerdict, BoxError> {
        (self.0)(answer.clone(), turn.clone()).await
    }

    fn name(&self) -> &str {
        std::any::type_name::<F>()
    }
}

impl<F> fmt::Debug for ValidatorFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ValidatorFn").field(&std::any::type_name::<F>()).finish()
    }
}
