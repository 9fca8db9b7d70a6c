//! The pieces of a streamed answer that a further attempt takes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ChatCall, ChatDelta, DeltaSink};

/// A record of whether pieces of an answer went out since the last [`Reset`](ChatDelta::Reset).
///
/// A client that attempts a call again watches its pieces, and resets them before the next
/// attempt; otherwise the reader sees the text of both. Layers of a host and of a gateway need
/// not: the host does it for them.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use rockbot_core::CallContext;
/// use rockbot_core::chat::{ChatCall, ChatDelta, ChatRequest, DeltaSink, WatchedDeltas};
///
/// let read = Arc::new(Mutex::new(String::new()));
/// let reader = read.clone();
/// let sink = DeltaSink::new(move |delta| match delta {
///     ChatDelta::Text(text) => reader.lock().unwrap().push_str(text),
///     _ => reader.lock().unwrap().clear(),
/// });
/// let mut call = ChatCall::new(ChatRequest::default(), CallContext::new("s")).with_deltas(sink);
/// let watched = WatchedDeltas::watch(&mut call);
/// let attempt = |text| call.deltas.iter().for_each(|sink| sink.send(ChatDelta::Text(text)));
///
/// attempt("Hel");
/// watched.reset();
/// attempt("Hello.");
/// assert_eq!(*read.lock().unwrap(), "Hello.");
/// ```
#[derive(Debug, Clone)]
pub struct WatchedDeltas(Option<(DeltaSink, Arc<AtomicBool>)>);

impl WatchedDeltas {
    /// Watches the pieces of all attempts at `call`. Costs nothing if the call is not streamed.
    pub fn watch(call: &mut ChatCall) -> Self {
        let watched = call.deltas.take().map(|sink| (sink, Arc::new(AtomicBool::new(false))));
        call.deltas = watched.clone().map(|(sink, sent)| {
            DeltaSink::new(move |delta| {
                // `Relaxed`: the flag orders no other data, and the pieces of one call come in order.
                sent.store(delta != ChatDelta::Reset, Ordering::Relaxed);
                sink.send(delta);
            })
        });
        Self(watched)
    }

    /// Sends a reset if pieces went out since the last reset.
    pub fn reset(&self) {
        if let Some((sink, sent)) = &self.0
            && sent.swap(false, Ordering::Relaxed)
        {
            sink.send(ChatDelta::Reset);
        }
    }

    /// Watches the pieces of `call` for a service further in, which calls
    /// [`WatchedDeltas::reset_earlier`] at each attempt. Between the two stand layers that may
    /// attempt the call more than once.
    pub fn attach(call: &mut ChatCall) {
        if call.deltas.is_some() {
            let watched = Self::watch(call);
            call.cx = call.cx.clone().with_extension(watched);
        }
    }

    /// Takes back the pieces of an earlier attempt at `call`, if there was one.
    pub fn reset_earlier(call: &ChatCall) {
        if let Some(watched) = call.cx.extension::<Self>() {
            watched.reset();
        }
    }
}
