//! The pieces of an answer that may have to be taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rockbot_core::chat::{ChatCall, ChatDelta, DeltaSink};

/// Knows whether pieces of an answer went out since the last reset.
pub(crate) struct WatchedDeltas(Option<(DeltaSink, Arc<AtomicBool>)>);

impl WatchedDeltas {
    /// Watches the pieces of all attempts at `call`.
    pub(crate) fn watch(call: &mut ChatCall) -> Self {
        let watched = call.deltas.take().map(|sink| (sink, Arc::new(AtomicBool::new(false))));
        call.deltas = watched.clone().map(|(sink, sent)| {
            DeltaSink::new(move |delta| {
                sent.store(delta != ChatDelta::Reset, Ordering::Relaxed);
                sink.send(delta);
            })
        });
        Self(watched)
    }

    /// Takes back what went out, if anything did.
    pub(crate) fn reset(&self) {
        if let Some((sink, sent)) = &self.0
            && sent.swap(false, Ordering::Relaxed)
        {
            sink.send(ChatDelta::Reset);
        }
    }
}
