//! The span and the metrics of one model call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::chat::{
    ChatCall, ChatDelta, ChatError, ChatResponse, DeltaSink, ModelSettings, ReasoningEffort, Usage,
};
use rockbot_core::context::Origin;
use rockbot_core::support::loggable;
use tokio::time::Instant;
use tracing::Span;
use tracing::field::{Empty, display};

use super::content;
use super::meters::{ChatMeters, ModelIds};

/// The observer of a model call. Dropping it without [`end`](Self::end) records a cancelled call.
pub(super) struct ObservedCall<'a> {
    meters: &'a ChatMeters,
    captures_content: bool,
    model: ModelIds,
    origin: Origin,
    pub(super) span: Span,
    began: Instant,
    first_chunk: Option<FirstChunk>,
    has_ended: bool,
}

impl<'a> ObservedCall<'a> {
    /// Starts observing `call` to `model`.
    pub(super) fn begin(meters: &'a ChatMeters, captures_content: bool, model: ModelIds, call: &mut ChatCall) -> Self {
        let span = span(&model, call);
        let mut observed = Self {
            meters,
            captures_content,
            model,
            origin: call.cx.origin(),
            span,
            began: Instant::now(),
            first_chunk: None,
            has_ended: false,
        };
        // Without a subscriber for the span nothing of it is recorded, so the sink of deltas stays as it
        // is.
        if !observed.span.is_disabled() {
            observed.first_chunk = call.deltas.take().map(|deltas| {
                let (first, deltas) = FirstChunk::watch(deltas);
                call.deltas = Some(deltas);
                first
            });
            if captures_content {
                observed
                    .span
                    .record("gen_ai.input.messages", content::input(&call.request));
            }
        }
        observed
    }

    /// Records the result of the call.
    pub(super) fn end(mut self, answer: &Result<ChatResponse, ChatError>) {
        self.has_ended = true;
        match answer {
            Ok(response) => self.answered(response),
            Err(error) => {
                if let Some(id) = error.request_id() {
                    self.span.record("rockbot.provider.request_id", id);
                }
                self.failed(error.kind().name());
            }
        }
    }

    fn answered(&mut self, response: &ChatResponse) {
        let model = ModelIds {
            // The response names the provider that answered, which may be a fallback.
            provider: response.provider.as_ref().or(self.model.provider.as_ref()).cloned(),
            asked: self.model.asked.clone(),
            answered: response.model.clone(),
        };
        if let Some(usage) = response.usage {
            self.meters.context(self.origin, usage.input);
        }
        if !self.span.is_disabled() {
            self.describe(&model, response);
        }
        self.meters.answered(model, self.began.elapsed(), response.usage);
    }

    fn describe(&self, model: &ModelIds, response: &ChatResponse) {
        let span = &self.span;
        let note = |field: &'static str, text: Option<&str>| {
            if let Some(text) = text {
                span.record(field, display(loggable(text)));
            }
        };
        note("gen_ai.provider.name", model.provider.as_deref());
        note("gen_ai.response.model", model.answered.as_deref());
        note("gen_ai.response.id", response.id.as_deref());
        let reasons = format_args!(r#"["{}"]"#, response.finish.name());
        span.record("gen_ai.response.finish_reasons", display(reasons));
        response.usage.iter().for_each(|usage| note_usage(span, *usage));
        if let Some(at) = self.first_chunk.as_ref().and_then(FirstChunk::at) {
            let after: Duration = at - self.began;
            span.record("gen_ai.response.time_to_first_chunk", after.as_secs_f64());
        }
        if self.captures_content {
            span.record("gen_ai.output.messages", content::output(response));
        }
    }

    fn failed(&self, error: &'static str) {
        self.span.record("error.type", error);
        self.span.record("otel.status_code", "ERROR");
        ChatMeters::failed(&self.model, self.began.elapsed(), error);
    }
}

impl Drop for ObservedCall<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.failed("cancelled");
        }
    }
}

/// Creates the span of a call; fields that only its end knows are empty. `otel.name` carries the
/// name of the model, since the name of a span is fixed at compile time.
fn span(model: &ModelIds, call: &ChatCall) -> Span {
    let asked = model.asked.as_deref();
    tracing::info_span!(
        "chat",
        otel.name = asked.map(|model| format!("chat {}", loggable(model))),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider.as_deref(),
        gen_ai.request.model = asked,
        gen_ai.request.stream = call.deltas.is_some(),
        gen_ai.request.temperature = Empty,
        gen_ai.request.top_p = Empty,
        gen_ai.request.max_tokens = Empty,
        gen_ai.request.seed = Empty,
        gen_ai.request.stop_sequences = Empty,
        gen_ai.request.reasoning.level = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        error.type = Empty,
        rockbot.provider.request_id = Empty,
    )
}

/// Records the settings that the model is asked with.
pub(super) fn note_settings(span: &Span, settings: &ModelSettings) {
    let decimal = |name: &'static str, number: Option<f32>| {
        // By way of its digits, as 0.7 is another number in fewer bits.
        if let Some(number) = number.and_then(|number| number.to_string().parse::<f64>().ok()) {
            span.record(name, number);
        }
    };
    decimal("gen_ai.request.temperature", settings.temperature);
    decimal("gen_ai.request.top_p", settings.top_p);
    if let Some(tokens) = settings.max_output_tokens {
        span.record("gen_ai.request.max_tokens", tokens);
    }
    if let Some(seed) = settings.seed {
        span.record("gen_ai.request.seed", seed);
    }
    if !settings.stop_sequences.is_empty() {
        let sequences = serde_json::json!(settings.stop_sequences).to_string();
        span.record("gen_ai.request.stop_sequences", display(loggable(&sequences)));
    }
    if let Some(effort) = settings.reasoning_effort.as_ref().map(ReasoningEffort::as_str) {
        span.record("gen_ai.request.reasoning.level", display(loggable(effort)));
    }
}

fn note_usage(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input);
    span.record("gen_ai.usage.output_tokens", usage.output);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cached);
    span.record("gen_ai.usage.reasoning.output_tokens", usage.reasoning);
}

/// The time of the first delta of an answer. A reset, which takes back a failed attempt, clears it.
struct FirstChunk(Arc<Mutex<Option<Instant>>>);

impl FirstChunk {
    /// Wraps a sink so that the time of its first delta is recorded.
    fn watch(deltas: DeltaSink) -> (Self, DeltaSink) {
        let first = Self(Arc::default());
        let observed = Self(first.0.clone());
        let sink = DeltaSink::new(move |delta| {
            observed.saw(&delta);
            deltas.send(delta);
        });
        (first, sink)
    }

    fn saw(&self, delta: &ChatDelta<'_>) {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match delta {
            ChatDelta::Reset => *at = None,
            _ => {
                at.get_or_insert_with(Instant::now);
            }
        }
    }

    fn at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
