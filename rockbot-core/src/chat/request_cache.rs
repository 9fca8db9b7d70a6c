//! [`RequestCache`]: the memory of a chat client from one request of a turn to the next.
//!
//! The calls of a drive share a `RequestCache`, which ends with it. The client for
//! OpenAI-compatible servers keeps the written body of the last request in it, up to 1 MiB, with
//! its seams (positions where the text in front depends on no later message), and copies it up to
//! the last message that both requests share. Equal pointers mean equal messages, because the
//! cache holds them too. Out-of-band questions have no part in it; another client of the same
//! turn finds the seams or the dialect of another client, and writes its request anew.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A place for one value of a chat client, shared by the calls of one turn.
///
/// Each request of a turn repeats the requests before it. A client that keeps the written form of
/// a request here copies the part that the next request repeats, so that it writes only the part
/// that a step adds. The driver of a turn creates the cache and drops it with the turn. Clones
/// share the value.
///
/// Taking the value leaves the cache empty, so two calls at the same time never wait for each
/// other: the second call finds nothing. A value of another type, which a client of another kind
/// left, counts as nothing, too.
///
/// ```
/// use rockbot_core::chat::RequestCache;
///
/// let cache = RequestCache::default();
/// cache.put("written".to_owned());
/// assert_eq!(cache.take::<u32>(), None);
/// cache.put("written".to_owned());
/// assert_eq!(cache.clone().take(), Some("written".to_owned()));
/// assert_eq!(cache.take::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct RequestCache(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl RequestCache {
    /// Removes the value and returns it if it is a `T`.
    pub fn take<T: 'static>(&self) -> Option<T> {
        let value = self.lock().take()?;
        value.downcast().ok().map(|value| *value)
    }

    /// Replaces the value.
    pub fn put<T: Send + 'static>(&self, value: T) {
        let value = Box::new(value);
        // The old value is dropped outside of the lock.
        let _old = self.lock().replace(value);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RequestCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestCache")
    }
}
