//! Answers as streams of server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt as _};
use rockbot_core::turn::{TurnEvents, TurnProgress};
use tokio::sync::OwnedSemaphorePermit;

use crate::door::Caller;
use crate::meters::OpenStream;

/// Interval of the signs of life in an idle stream. They show whether the client is gone, and keep
/// proxies from closing the connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// The form of a turn's reports in a protocol.
pub(crate) trait EventForm: Send + 'static {
    /// Appends the events of a report to `out`. `sequence` is the position after the report.
    fn report(&mut self, progress: TurnProgress, sequence: u64, out: &mut VecDeque<Event>);

    /// Appends the events for a host that stops before the turn has ended. By default none: the client
    /// reads on from the next process.
    fn halted(&mut self, _out: &mut VecDeque<Event>) {}

    /// Returns `true` if no report after the last one is for the client.
    fn is_over(&self) -> bool {
        false
    }
}

struct Reading<F> {
    caller: Caller,
    events: TurnEvents,
    form: F,
    waiting: VecDeque<Event>,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl<F: EventForm> Reading<F> {
    /// Returns the next event, or `None` after the last event.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.is_over || self.form.is_over() {
                return None;
            }
            // One report at a time, once the client has taken the one before: a slow reader holds up
            // neither the turn nor other readers.
            let next = tokio::select! {
                // In order: the end of a turn that ended before the host stops is told.
                biased;
                next = self.events.next() => next,
                () = self.caller.door.stop.cancelled() => None,
            };
            match next {
                Some(Ok(progress)) => {
                    self.is_over = matches!(progress, TurnProgress::Final(_));
                    let sequence = self.events.sequence();
                    self.form.report(progress, sequence, &mut self.waiting);
                }
                Some(Err(_)) | None => {
                    self.is_over = true;
                    self.form.halted(&mut self.waiting);
                }
            }
        }
    }
}

/// Returns the stream of a turn's events in a form, after the events in `first`. The permit is taken
/// before the turn is started, so that a client that is refused has started none.
pub(crate) fn stream<F: EventForm>(
    (caller, permit): (&Caller, OwnedSemaphorePermit),
    events: TurnEvents,
    form: F,
    first: impl Into<VecDeque<Event>>,
) -> Response {
    let reading = Reading {
        caller: caller.clone(),
        events,
        form,
        waiting: first.into(),
        is_over: false,
        _permit: permit,
    };
    respond(unfold(reading, async |mut reading| {
        let event = reading.next().await?;
        Some((Ok::<_, Infallible>(event), reading))
    }))
}

/// Returns the answer that tells these events.
pub(crate) fn respond(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let open = OpenStream::new();
    let events = events.inspect(move |_| _ = &open);
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE));
    let mut response = stream.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // nginx passes an answer on as it comes only then.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// Returns an event of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Event {
    Event::default()
        .json_data(value)
        .expect("events have no maps with keys that are no text")
}
