//! Implementations of traits for `Arc<T>`, so that an implementation can be shared wherever one
//! is expected.
//!
//! `Arc<T>` implements each trait that `T` implements, written out
//! (`rockbot-core/src/shared.rs`): a call through `Arc<dyn Trait>` finds that implementation
//! first, and `async_trait` would box its future once more.

/// Implements the asynchronous methods of a trait for `Arc<T>`.
///
/// Written in the form that `async_trait` expands to, because the attribute itself would box each
/// future once more: a call through `Arc<dyn Trait>` finds this implementation first. Each
/// reference among the arguments names a lifetime, in order.
macro_rules! share {
    ($trait:ident $(<$entry:ident: $bound:path>)? $(where $also:path)? {
        $(async $name:ident $(<$($life:lifetime),+>)? ($($arg:ident: $type:ty),* $(,)?) $(-> $output:ty)?;)*
        $(fn $sync:ident ($($given:ident: $kind:ty),*) $(-> $result:ty)?;)*
    }) => {
        impl<$($entry: $bound,)? Shared: $trait $(<$entry>)? $(+ $also)? + ?Sized> $trait $(<$entry>)? for ::std::sync::Arc<Shared> {
            $(
                fn $name<'me, $($($life,)+)? 'running>(
                    &'me self,
                    $($arg: $type),*
                ) -> $crate::shared::Running<'running, $crate::shared::output!($($output)?)>
                where
                    'me: 'running,
                    $($($life: 'running,)+)?
                    Self: 'running,
                {
                    (**self).$name($($arg),*)
                }
            )*
            $(
                fn $sync(&self, $($given: $kind),*) $(-> $result)? {
                    (**self).$sync($($given),*)
                }
            )*
        }
    };
}

/// The output of a method: `()` unless one is stated.
macro_rules! output {
    () => {
        ()
    };
    ($output:ty) => {
        $output
    };
}

/// The future of a running method.
pub(crate) type Running<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub(crate) use {output, share};
