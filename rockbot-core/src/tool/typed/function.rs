//! The closures that a tool can be made of.

use std::ops::Deref;
use std::sync::Arc;

use crate::CallContext;

/// The state that all calls of a [`stateful_tool`](super::stateful_tool) share. It dereferences
/// to the state itself and is cheap to clone.
#[derive(Debug)]
pub struct ToolState<S>(Arc<S>);

impl<S> ToolState<S> {
    pub(super) fn new(state: S) -> Self {
        Self(Arc::new(state))
    }
}

impl<S> Clone for ToolState<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Deref for ToolState<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// A closure that [`tool`](super::tool) accepts: an async function of the arguments, or of the
/// arguments and the [`CallContext`].
///
/// `M` only tells the two forms apart; the compiler infers it. The trait is sealed: a type of
/// your own that is a tool implements [`ToolExecutor`](crate::tool::ToolExecutor).
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a tool is called with",
    label = "a tool is `|args: A| async move {{ … }}` or `|args: A, cx: CallContext| async move {{ … }}`",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait ToolFn<A, M>: sealed::Sealed<(A,), M> + Send + Sync + 'static {
    /// The future of a running call. Its output is an [`IntoToolOutput`](super::IntoToolOutput).
    type Running;

    /// Starts one call.
    fn start(&self, args: A, cx: &CallContext) -> Self::Running;
}

/// A closure that [`stateful_tool`](super::stateful_tool) accepts: an async function of the
/// [`ToolState`] and the arguments, or of these and the [`CallContext`]. It is sealed, as
/// [`ToolFn`] is.
#[diagnostic::on_unimplemented(
    message = "this closure does not take what a stateful tool is called with",
    label = "a stateful tool is `|state: ToolState<S>, args: A| async move {{ … }}`, with `cx: CallContext` last if it wants it",
    note = "several arguments are the fields of one struct `A`; the context is `CallContext`, not a reference to it"
)]
pub trait StatefulToolFn<S, A, M>: sealed::Sealed<(ToolState<S>, A), M> + Send + Sync + 'static {
    /// The future of a running call. Its output is an [`IntoToolOutput`](super::IntoToolOutput).
    type Running;

    /// Starts one call.
    fn start(&self, state: ToolState<S>, args: A, cx: &CallContext) -> Self::Running;
}

/// A marker for closures that do not take the context.
#[derive(Debug)]
pub enum WithoutContext {}

/// A marker for closures that take the context.
#[derive(Debug)]
pub enum WithContext {}

// The bound on the output is on `tool` and not on these impls. Otherwise a closure with a wrong
// output would match no impl, and the compiler would report that the arguments are wrong.
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
    F: Fn(ToolState<S>, A) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: ToolState<S>, args: A, _: &CallContext) -> R {
        self(state, args)
    }
}

impl<S, A, F, R> StatefulToolFn<S, A, WithContext> for F
where
    F: Fn(ToolState<S>, A, CallContext) -> R + Send + Sync + 'static,
{
    type Running = R;

    fn start(&self, state: ToolState<S>, args: A, cx: &CallContext) -> R {
        self(state, args, cx.clone())
    }
}

mod sealed {
    use super::{CallContext, ToolState, WithContext, WithoutContext};

    /// A closure with the arguments `Args`, and with or without the context.
    pub trait Sealed<Args, M> {}

    impl<A, F: Fn(A) -> R, R> Sealed<(A,), WithoutContext> for F {}
    impl<A, F: Fn(A, CallContext) -> R, R> Sealed<(A,), WithContext> for F {}
    impl<S, A, F: Fn(ToolState<S>, A) -> R, R> Sealed<(ToolState<S>, A), WithoutContext> for F {}
    impl<S, A, F: Fn(ToolState<S>, A, CallContext) -> R, R> Sealed<(ToolState<S>, A), WithContext> for F {}
}
