//! Keeps `tracing` from deciding once and for all that nothing listens.
//!
//! Tests listen on their own threads. A span or event that is met for the first time on another
//! thread, while nothing listens there, would be remembered as one that nothing wants, and be
//! missed by a test that begins at that moment.

use std::sync::Once;

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// Makes every span and event ask again each time.
pub(crate) fn keep_undecided() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Undecided).expect("no test sets a subscriber for all threads");
    });
}

/// A subscriber that wants nothing, but may want it later.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
