//! The position of work in a trace, as the W3C recommendation [Trace Context](https://www.w3.org/TR/trace-context/)
//! defines it.
//!
//! Each message, turn and tool call has a position in a W3C trace (`TraceContext`): below the
//! sender's `traceparent`, else at the beginning of a trace. The position is in the context of
//! calls. It goes out with messages to remote tools and other handlers, with replies and with
//! reports of progress. The ids are random, unless the host has a `TraceBridge` to a backend that
//! assigns its own ids (`rockbot-host/src/telemetry/traces.rs`).
//!
//! The header is a claim: it selects the trace and grants nothing, and an invalid header begins a
//! new trace. A turn that is resumed after a restart has the parent that its message had; a turn
//! without a parent begins another trace.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// Maximum length of a `tracestate` in bytes. A longer state is dropped, as the recommendation
/// allows.
const MAX_STATE: usize = 512;

/// The bit of the flags that marks a trace as sampled: recorded by its sender.
const SAMPLED: u8 = 1;

/// A position in a trace: the ids of the trace and of one span. Cheap to clone.
///
/// The host gives one to each message, turn and tool call, and passes it on to other programs,
/// whose spans become children of its own. The header of another program is only a claim: it
/// selects the trace, and grants nothing.
///
/// # Examples
///
/// ```
/// use rockbot_core::TraceContext;
///
/// let sender = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
/// let ours = sender.child();
/// assert_eq!(ours.trace_id(), sender.trace_id());
/// assert_ne!(ours.span_id(), sender.span_id());
/// assert_eq!(TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Begins a trace: random ids, sampled.
    pub fn begin() -> Self {
        Self {
            trace_id: Uuid::new_v4().as_u128(),
            span_id: random_span(),
            flags: SAMPLED,
            state: None,
        }
    }

    /// Creates the position of a span that a tracing backend has assigned. Returns `None` if an id
    /// is zero, which the recommendation forbids.
    pub fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            flags: if is_sampled { SAMPLED } else { 0 },
            state: None,
        })
    }

    /// Parses a `traceparent` of version 00. Returns `None` if it is invalid: the work then begins a
    /// trace of its own.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let mut next = |digits| parts.next().filter(|part| is_hex(part, digits));
        let version = next(2)?;
        let trace = next(32)?;
        let span = next(16)?;
        let flags = next(2)?;
        if version != "00" || parts.next().is_some() {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16);
        let span_id = u64::from_str_radix(span, 16);
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Self::new(trace_id.ok()?, span_id.ok()?, false).map(|parsed| Self { flags, ..parsed })
    }

    /// Returns the position of a new span below this position: the same trace, a random span id.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            span_id: random_span(),
            ..self.clone()
        }
    }

    /// Sets the `tracestate`, the part of tracing vendors. A state that is empty, longer than 512
    /// bytes or holds other characters than printable ASCII is dropped.
    #[must_use]
    pub fn with_tracestate(mut self, state: &str) -> Self {
        let is_valid =
            (1..=MAX_STATE).contains(&state.len()) && state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        self.state = is_valid.then(|| state.into());
        self
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Returns `true` if the sender records the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the `traceparent`, as it stands in a header.
    pub fn traceparent(&self) -> String {
        self.to_string()
    }
}

/// The `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// Reports whether `text` is `digits` lowercase hexadecimal digits. `from_str_radix` takes signs
/// and capitals, too.
fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns a random id of a span. Never zero: half of the bytes of a random UUID hold its
/// variant, which is not.
fn random_span() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_parent_is_read_and_written_alike() {
        let parent = TraceContext::parse(PARENT).unwrap();
        let ids = (parent.trace_id(), parent.span_id(), parent.is_sampled());
        assert_eq!(ids, (0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331, true));
        assert_eq!(parent.traceparent(), PARENT);
        // Flags of the future are passed on.
        let flagged = PARENT.replace("-01", "-fe");
        let unsampled = TraceContext::parse(&flagged).unwrap();
        assert_eq!((unsampled.traceparent(), unsampled.is_sampled()), (flagged, false));
    }

    #[test]
    fn a_parent_of_another_shape_is_none() {
        for text in [
            "",
            "00",
            "00-abc-def-01",
            &PARENT.to_uppercase(),
            &PARENT.replace("b7ad6b7169203331", "0000000000000000"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("00-", "01-"),
            &PARENT.replace("0af7", "+af7"),
            &format!("{PARENT}-01"),
            &format!("{PARENT}\r\nx-other: 1"),
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_child_is_another_span_of_its_trace() {
        let parent = TraceContext::begin().with_tracestate("v=1");
        let one = parent.child();
        let other = parent.child();
        for child in [&one, &other] {
            assert_eq!(child.trace_id(), parent.trace_id());
            assert_eq!((child.is_sampled(), child.tracestate()), (true, Some("v=1")));
        }
        let spans = [parent.span_id(), one.span_id(), other.span_id()];
        assert!(
            spans[0] != spans[1] && spans[1] != spans[2] && spans[0] != spans[2],
            "{spans:x?}"
        );
        assert_ne!(TraceContext::begin().trace_id(), parent.trace_id());
    }

    #[test]
    fn a_hostile_state_is_dropped() {
        let parent = TraceContext::begin();
        for state in ["", "v=1\r\nx: y", "v=ä", &"v".repeat(513)] {
            assert_eq!(parent.clone().with_tracestate(state).tracestate(), None, "{state}");
        }
        let longest = "v".repeat(512);
        assert_eq!(parent.with_tracestate(&longest).tracestate(), Some(&*longest));
    }
}
