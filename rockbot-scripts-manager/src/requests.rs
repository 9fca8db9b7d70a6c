//! A request from its arrival to its answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{
    Bus, BusError, Delivery, DeliveryHandler, Disposition, Message, MessageEnvelope, headers,
};
use rockbot_core::support::loggable;
use rockbot_core::{CallContext, Clock as _, SystemClock};
use rockbot_tools::scripts::wire::{ScriptCancelled, ScriptInvokeRequest, ScriptInvokeResponse};
use rockbot_tools::scripts::{Guarantees, ScriptError, ScriptOutput, ScriptRunner};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::runs::{Run, RunKey, Runs};

/// Maximum size of source and input of a script together, in bytes.
const MAX_SCRIPT: usize = 8 << 20;

/// Maximum length of the id of a request, in bytes.
const MAX_ID: usize = 256;

/// Maximum time of a script, in seconds.
const MAX_SECONDS: u64 = 300;

/// Maximum number of packages of a script.
const MAX_PACKAGES: usize = 20;

/// Maximum difference of the clocks of an agent and this program. A request that waited in a queue
/// may seem older by it.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Pauses between attempts to publish an answer.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// The handler of requests to run scripts.
pub(crate) struct Requests {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) name: Arc<str>,
    pub(crate) runner: Arc<dyn ScriptRunner>,
    pub(crate) guarantees: Guarantees,
    pub(crate) runs: Arc<Runs>,
    /// Fires when the program ends and waits for its scripts no longer.
    pub(crate) cut_off: CancellationToken,
}

#[async_trait]
impl DeliveryHandler for Requests {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let envelope = &*delivery.envelope;
        let request: ScriptInvokeRequest = match envelope.payload() {
            Ok(request) => request,
            Err(error) => return Disposition::dead_letter(error),
        };
        if request.tool_call_id.is_empty() || request.tool_call_id.len() > MAX_ID {
            return Disposition::dead_letter(format_args!("the id of a request has 1 to {MAX_ID} bytes"));
        }
        let key: RunKey = (envelope.source.clone(), request.tool_call_id.clone());
        let Some(run) = self.runs.enter(&key) else {
            tracing::info!(agent = %loggable(&key.0), "a request came again; it is answered already");
            return Disposition::Ack;
        };
        if is_too_late(envelope) {
            tracing::warn!(agent = %loggable(&key.0), "a script is not run: its request waited in a queue until its agent had given up");
            self.runs.answered(&key);
            return Disposition::Ack;
        }
        // Cancel point: a script that the end of the program cuts off is killed, and its request
        // goes back.
        let ended = self.cut_off.run_until_cancelled(self.settle(&request, envelope, &run));
        match ended.await {
            Some(Ok(())) => {
                self.runs.answered(&key);
                Disposition::Ack
            }
            // Not a retry: the script has run.
            Some(Err(error)) => Disposition::dead_letter(format_args!("the answer could not be delivered: {error}")),
            None => Disposition::retry("the scripts manager stopped before the script had ended"),
        }
    }
}

impl Requests {
    /// Runs the script of a request and publishes the answer, each once: the deliveries of a
    /// request that came again wait for the first.
    async fn settle(
        &self,
        request: &ScriptInvokeRequest,
        envelope: &MessageEnvelope,
        run: &Run,
    ) -> Result<(), BusError> {
        let running = run.answer.get_or_init(|| async {
            let answering = self.answer(request);
            // Cancel point: dropping the run kills the script.
            run.cancelled.run_until_cancelled(answering).await
        });
        let Some(answer) = running.await else {
            tracing::info!(agent = %loggable(&envelope.source), "a script is cancelled by its agent");
            return Ok(());
        };
        let publishing = run.published.get_or_try_init(|| self.publish(answer, envelope));
        publishing.await.map(drop)
    }

    async fn answer(&self, request: &ScriptInvokeRequest) -> ScriptInvokeResponse {
        let began = Instant::now();
        let ran = self.run(request).await;
        if let Err(error) = &ran {
            tracing::warn!(error = %loggable(&error.to_string()), "a script could not be run");
        }
        ScriptInvokeResponse::new(&*request.tool_call_id, ran, began.elapsed(), self.guarantees)
    }

    async fn run(&self, request: &ScriptInvokeRequest) -> Result<ScriptOutput, ScriptError> {
        self.check(request)?;
        let script = request.script()?;
        let limit = Duration::from_secs(request.timeout_seconds.clamp(1, MAX_SECONDS));
        self.runner
            .run(script.with_timeout(limit), &CallContext::new("scripts"))
            .await
    }

    /// Refuses a script that is too large, or counts on more than is guaranteed here.
    fn check(&self, request: &ScriptInvokeRequest) -> Result<(), ScriptError> {
        let size = request.script.len() + request.input_data.as_ref().map_or(0, String::len);
        let packages = request.pip_packages.as_ref().map_or(0, Vec::len);
        let reason = if size > MAX_SCRIPT {
            format!("source and input have {size} bytes, of {MAX_SCRIPT}: pass less input")
        } else if packages > MAX_PACKAGES {
            format!("it has {packages} packages, of {MAX_PACKAGES}")
        } else if !self.guarantees.include(request.required_guarantees) {
            format!("scripts run with fewer guarantees now ({}): try again", self.guarantees)
        } else {
            return Ok(());
        };
        Err(ScriptError::Refused(reason))
    }

    /// Publishes an answer, with up to four attempts where a further attempt may help.
    async fn publish(&self, answer: &ScriptInvokeResponse, request: &MessageEnvelope) -> Result<(), BusError> {
        let fallback = ScriptInvokeResponse::TOPIC.unwrap_or_default();
        let topic = request.reply_to.as_deref().filter(|topic| is_result_topic(topic));
        let topic = topic.unwrap_or(fallback);
        let envelope = MessageEnvelope::of(answer)?
            .with_source(self.name.clone())
            .with_header(headers::CONTENT_TRUST, "tool-output")
            .in_reply_to(request);
        let envelope = Arc::new(envelope);
        for pause in PAUSES {
            match self.bus.publish(topic, Arc::clone(&envelope)).await {
                Err(error) if error.retry_helps() => time::sleep(pause).await,
                published => return published.map(drop),
            }
        }
        self.bus.publish(topic, envelope).await.map(drop)
    }
}

/// Returns `true` for the topics of results: a request must not lead its answer elsewhere.
fn is_result_topic(topic: &str) -> bool {
    let below = topic.strip_prefix(ScriptInvokeResponse::TOPIC.unwrap_or_default());
    below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
}

/// Returns `true` if the agent had given up before the request arrived, which its remaining time
/// does not tell: a durable queue keeps requests while no manager runs.
fn is_too_late(envelope: &MessageEnvelope) -> bool {
    let age = SystemClock
        .now()
        .as_millis()
        .saturating_sub(envelope.timestamp.as_millis());
    headers::timeout(&envelope.headers).is_some_and(|limit| Duration::from_millis(age) > limit + CLOCK_SKEW)
}

/// The handler of cancellations.
pub(crate) struct Cancellations(pub(crate) Arc<Runs>);

#[async_trait]
impl DeliveryHandler for Cancellations {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        match delivery.envelope.payload::<ScriptCancelled>() {
            Ok(cancelled) => {
                self.0
                    .cancel((delivery.envelope.source.clone(), cancelled.tool_call_id));
                Disposition::Ack
            }
            Err(error) => Disposition::dead_letter(error),
        }
    }
}
