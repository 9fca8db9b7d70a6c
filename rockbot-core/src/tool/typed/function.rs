//! The closures that a tool can be written as.

use std::ops::Deref;
use std::sync::Arc;

use crate::CallContext;

/// What all calls of a [`stateful_tool`] share. Reads as the state itself.
#[derive(Debug)]
pub struct State<S>(Arc<S>);

impl<S> State<S> {
    pub(super) fn new(state: S) -> Self {
        Self(Arc::new(state))
    }
}

impl<S> Clone for State<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// What [`tool`] accepts: async functions of the arguments, or of the arguments and the [`CallContext`].
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a tool is called with",
    label = "a tool is `|args: A| async move {{ … }}` or `|args: A, cx: CallContext| async move {{ … }}`",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait ToolFn<A, M>: Send + Sync + 'static {
    /// A call in progress: a future whose output is [`IntoToolOutput`].
    type Running;

    /// Starts one call.
    fn start(&self, args: A, cx: &CallContext) -> Self::Running;
}

/// What [`stateful_tool`] accepts: async functions of the [`State`] and the arguments, or of these and the
/// [`CallContext`].
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a stateful tool is called with",
    label = "a stateful tool is `|state: State<S>, args: A| async move {{ … }}`, with `cx: CallContext` last if it wants it",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait StatefulToolFn<S, A, M>: Send + Sync + 'static {
    /// A call in progress: a future whose output is [`IntoToolOutput`].
    type Running;

    /// Starts one call.
    fn start(&self, state: State<S>, args: A, cx: &CallContext) -> Self::Running;
}

/// Marks closures that do not take the context.
#[derive(Debug)]
pub enum WithoutContext {}

/// Marks closures that take the context.
#[derive(Debug)]
pub enum WithContext {}

// That the result is a future with a fitting output is asked by `tool`, not here: so the compiler says which of the
// two it is not, instead of that no kind of closure fits.
impl<A, F, R> ToolFn<A, WithoutContext> for F
where
    F: Fn(A) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, args: A, _: &CallContext) -> R {
        self(args)
    }
}

impl<A, F, R> ToolFn<A, WithContext> for F
where
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, args: A, cx: &CallContext) -> R {
        self(args, cx.clone())
    }
}

impl<S, A, F, R> StatefulToolFn<S, A, WithoutContext> for F
where
    F: Fn(State<S>, A) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: State<S>, args: A, _: &CallContext) -> R {
        self(state, args)
    }
}

impl<S, A, F, R> StatefulToolFn<S, A, WithContext> for F
where
    F: Fn(State<S>, A, CallContext) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: State<S>, args: A, cx: &CallContext) -> R {
        self(state, args, cx.clone())
    }
}
