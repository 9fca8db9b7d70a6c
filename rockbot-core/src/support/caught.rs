//! Panics that were caught: their message, without a second panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Converts the end of a `catch_unwind`: a panic becomes its message, or `no message`.
///
/// The payload of a panic is a value of the code that panicked, so its destructor may panic as
/// well, in whatever drops it. It is dropped here, where that ends.
///
/// ```
/// use std::panic::{catch_unwind, panic_any};
///
/// struct Bomb;
/// impl Drop for Bomb {
///     fn drop(&mut self) {
///         panic!("once more");
///     }
/// }
/// # std::panic::set_hook(Box::new(|_| {}));
/// let ended = rockbot_core::support::caught(catch_unwind(|| panic_any(Bomb)));
/// assert_eq!(ended, Err::<(), _>("no message".to_owned()));
/// ```
///
/// # Errors
///
/// Returns the message of the panic.
pub fn caught<T>(ended: std::thread::Result<T>) -> Result<T, String> {
    ended.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // Dropping this second payload could panic in turn, without an end.
            std::mem::forget(again);
        }
        text.unwrap_or_else(|| "no message".to_owned())
    })
}
