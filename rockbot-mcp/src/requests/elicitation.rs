//! Elicitation: a server asks for input of the user while a tool of the server runs.

use std::fmt;

use async_trait::async_trait;
use rockbot_core::CallContext;
use serde_json::{Map, Value};

use super::form::ElicitationForm;

/// The handler of servers' requests for input of the user: it shows a request to the user of the
/// call, and returns the user's answer.
///
/// A host without one refuses all such requests. It is set by
/// [`McpTools::elicitation`](crate::McpTools::elicitation), or provided to the host as the part
/// `dyn ElicitationHandler`.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::CallContext;
/// use rockbot_mcp::{Elicitation, ElicitationAnswer, ElicitationHandler, ElicitationInput, McpTools};
///
/// /// Accepts forms with the values that the server proposes.
/// #[derive(Debug)]
/// struct Defaults;
///
/// #[async_trait]
/// impl ElicitationHandler for Defaults {
///     async fn elicit(&self, elicitation: Elicitation, _: &CallContext) -> ElicitationAnswer {
///         match elicitation.input {
///             ElicitationInput::Form(form) => ElicitationAnswer::Accept(form.defaults()),
///             _ => ElicitationAnswer::Decline,
///         }
///     }
/// }
///
/// let tools = McpTools::default().elicitation(Defaults);
/// ```
#[async_trait]
pub trait ElicitationHandler: fmt::Debug + Send + Sync + 'static {
    /// Answers a request of a server, on behalf of the call that `cx` is the context of.
    ///
    /// The time limit of the call does not run meanwhile. The future is dropped after five minutes,
    /// and when the call is cancelled; the request then counts as cancelled.
    async fn elicit(&self, elicitation: Elicitation, cx: &CallContext) -> ElicitationAnswer;

    /// Returns `true` if the handler can show the user a URL to open. Default `false`: such requests
    /// are declined.
    fn takes_urls(&self) -> bool {
        false
    }
}

/// A server's request for input of the user. All texts are the server's, with nothing hidden in
/// them, and bounded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// Name of the server, as configured.
    pub server: String,
    /// Explanation of the wanted input.
    pub message: String,
    /// Input that is wanted.
    pub input: ElicitationInput,
}

/// The input that a server asks for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationInput {
    /// Values for the fields of a form. Forms that ask for passwords, keys or tokens are declined
    /// unseen.
    Form(ElicitationForm),
    /// A visit of this page, with `http` or `https`. Show all of it, and open it only if the user agrees. To accept means
    /// that the user agreed, not that the page was completed.
    Url(String),
}

/// The answer of a user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// The user agrees. The values of a form's fields are validated before the server gets them, and
    /// fields without a value get their defaults; a URL needs none.
    Accept(Map<String, Value>),
    /// The user refuses.
    Decline,
    /// The user did not decide.
    Cancel,
}
