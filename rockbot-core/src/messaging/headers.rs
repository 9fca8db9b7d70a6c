//! The names of message headers, and functions that read and write them.
//!
//! The publisher writes the headers, so they are claims, not facts. How far they may be believed
//! depends on the channel ([`Delivery::trust`](super::Delivery::trust)).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{CallContext, TraceContext};

/// The headers of a message, ordered by name.
pub type Headers = BTreeMap<String, String>;

/// The kind of text in the body: `system`, `user-input`, `tool-request`, `tool-output`,
/// `agent-message`. Written for other programs; this framework never trusts it.
pub const CONTENT_TRUST: &str = "rb-content-trust";
/// The kind of tool that is called, such as `mcp`.
pub const TOOL_PROVIDER: &str = "rb-tool-provider";
/// The time that the sender waits for an answer: milliseconds, a decimal integer.
pub const TIMEOUT_MS: &str = "rb-timeout-ms";
/// The MCP server that a tool call is routed to.
pub const MCP_SERVER: &str = "rb-mcp-server";
/// The principal on whose behalf the sender works.
pub const PRINCIPAL: &str = "rb-principal";
/// The idempotency key. An external system recognizes a repetition by it.
pub const IDEMPOTENCY_KEY: &str = "rb-idempotency-key";
/// The key of the partition that the message belongs to, see
/// [`PartitionBy::partition_key`](super::PartitionBy::partition_key).
pub const PARTITION_KEY: &str = "rb-partition-key";
/// The parent of the W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// The vendor part of the W3C trace context.
pub const TRACESTATE: &str = "tracestate";

/// Maximum time limit that a message can ask for: one day.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes the fields of `cx` that cross a bus: principal, remaining time, trace. Trust and grants
/// never do.
pub fn inject(cx: &CallContext, headers: &mut Headers) {
    headers.insert(PRINCIPAL.into(), cx.principal().to_string());
    if let Some(left) = cx.time_left() {
        headers.insert(TIMEOUT_MS.into(), left.as_millis().to_string());
    }
    if let Some(trace) = cx.trace() {
        set_trace(trace, headers);
    }
}

/// Returns how long the sender waits, at most one day, or `None` if the header is missing or not
/// a number.
pub fn timeout(headers: &Headers) -> Option<Duration> {
    let millis = headers.get(TIMEOUT_MS)?;
    let is_number = !millis.is_empty() && millis.bytes().all(|byte| byte.is_ascii_digit());
    // A number that overflows 64 bits is longer than a day as well.
    let limit = || millis.parse().map_or(MAX_TIMEOUT, Duration::from_millis);
    is_number.then(limit).map(|limit| limit.min(MAX_TIMEOUT))
}

/// Returns the sender's position in its trace, if the headers hold a valid one.
pub fn trace(headers: &Headers) -> Option<TraceContext> {
    let parent = TraceContext::parse(headers.get(TRACEPARENT)?)?;
    Some(match headers.get(TRACESTATE) {
        Some(state) => parent.with_tracestate(state),
        None => parent,
    })
}

/// Writes `trace` as the parent of the receiver's work.
pub fn set_trace(trace: &TraceContext, headers: &mut Headers) {
    headers.insert(TRACEPARENT.into(), trace.traceparent());
    match trace.tracestate() {
        Some(state) => headers.insert(TRACESTATE.into(), state.into()),
        // A state without its trace would be taken for the state of this trace.
        None => headers.remove(TRACESTATE),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn check_timeout(text: &str, expected: Option<Duration>) {
        let headers = Headers::from([(TIMEOUT_MS.into(), text.into())]);
        assert_eq!(timeout(&headers), expected, "{text}");
    }

    #[test]
    fn a_time_limit_is_clamped_and_nonsense_is_none() {
        check_timeout("1500", Some(Duration::from_millis(1500)));
        check_timeout("0", Some(Duration::ZERO));
        check_timeout("99999999999999999999999999", Some(MAX_TIMEOUT));
        check_timeout("-1", None);
        check_timeout("+5", None);
        check_timeout("soon", None);
        check_timeout("", None);
    }

    #[test]
    fn a_trace_survives_a_message() {
        let mut headers = Headers::from([(TRACEPARENT.into(), PARENT.into()), (TRACESTATE.into(), "v=1".into())]);
        let parent = trace(&headers).unwrap();
        let mut copy = Headers::new();
        set_trace(&parent, &mut copy);
        assert_eq!(copy, headers);
        set_trace(&TraceContext::parse(PARENT).unwrap(), &mut copy);
        assert_eq!(copy, [(TRACEPARENT.into(), PARENT.into())].into());
        headers.insert(TRACEPARENT.into(), PARENT.replace("00-", "01-"));
        assert_eq!(trace(&headers), None);
    }

    #[test]
    fn trust_does_not_cross_a_bus() {
        let cx = CallContext::new("s")
            .with_trust(crate::context::Trust::Host)
            .with_trace(TraceContext::parse(PARENT).unwrap());
        let mut headers = Headers::new();
        inject(&cx, &mut headers);
        let expected = [(PRINCIPAL, "local"), (TRACEPARENT, PARENT)];
        assert_eq!(
            headers,
            expected.map(|(name, value)| (name.into(), value.into())).into()
        );
    }
}
