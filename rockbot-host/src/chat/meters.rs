//! Metrics of model calls, under OpenTelemetry's names, and of context sizes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use metrics::{Histogram, Label, histogram};
use rockbot_core::chat::Usage;
use rockbot_core::context::Origin;

/// Maximum number of models with series of their own; further models share `_other`. The server
/// reports the model that answered, and must not be able to grow the metrics store without bound.
const MAX_SERIES: usize = 64;

/// The meters of a host's model calls.
#[derive(Debug, Default)]
pub(super) struct ChatMeters {
    answers: Mutex<Vec<(ModelIds, Arc<ModelMeters>)>>,
    contexts: [OnceLock<Histogram>; SESSION_KINDS.len()],
}

/// The provider and the models of a call: the model that was asked, and the model that answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ModelIds {
    pub(super) provider: Option<Arc<str>>,
    pub(super) asked: Option<Arc<str>>,
    pub(super) answered: Option<Arc<str>>,
}

/// The meters of the answers of one model.
#[derive(Debug)]
struct ModelMeters {
    duration: Histogram,
    input: Histogram,
    output: Histogram,
}

const SESSION_KINDS: [&str; 4] = ["session", "patrol", "subagent", "unknown"];

const DURATION: &str = "gen_ai.client.operation.duration";

impl ChatMeters {
    /// Records an answer.
    pub(super) fn answered(&self, model: ModelIds, took: Duration, usage: Option<Usage>) {
        let answers = self.of(model);
        answers.duration.record(took.as_secs_f64());
        if let Some(usage) = usage {
            answers.input.record(usage.input as f64);
            answers.output.record(usage.output as f64);
        }
    }

    /// Records a failed call with the kind of its error.
    pub(super) fn failed(model: &ModelIds, took: Duration, error: &'static str) {
        let error = Label::from_static_parts("error.type", error);
        let labels: Vec<_> = model.labels().chain([error]).collect();
        histogram!(DURATION, labels).record(took.as_secs_f64());
    }

    /// Records the context size of a call in tokens, as the provider counted them.
    pub(super) fn context(&self, origin: Origin, tokens: u64) {
        let kind = match origin {
            Origin::User | Origin::Bus => 0,
            Origin::Scheduled => 1,
            Origin::Subagent => 2,
            _ => 3,
        };
        let new = || histogram!("rockbot.agent.context.tokens", "rockbot.session.kind" => SESSION_KINDS[kind]);
        self.contexts[kind].get_or_init(new).record(tokens as f64);
    }

    fn of(&self, mut model: ModelIds) -> Arc<ModelMeters> {
        // The list is consistent between any two statements, so a lock poisoned by a panicking recorder
        // is safe to use.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if !answers.iter().any(|(known, _)| *known == model) && answers.len() >= MAX_SERIES {
            model.answered = Some("_other".into());
        }
        if let Some((_, known)) = answers.iter().find(|(known, _)| *known == model) {
            return known.clone();
        }
        let new = Arc::new(ModelMeters::new(&model));
        answers.push((model, new.clone()));
        new
    }
}

impl ModelIds {
    fn labels(&self) -> impl Iterator<Item = Label> {
        let names = ["gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"];
        let values = [&self.provider, &self.asked, &self.answered];
        let known = names.into_iter().zip(values);
        let known = known.filter_map(|(name, value)| Some(Label::new(name, value.clone()?)));
        std::iter::once(Label::from_static_parts("gen_ai.operation.name", "chat")).chain(known)
    }
}

impl ModelMeters {
    fn new(model: &ModelIds) -> Self {
        let tokens = |kind| {
            let kind = Label::from_static_parts("gen_ai.token.type", kind);
            let labels: Vec<_> = model.labels().chain([kind]).collect();
            histogram!("gen_ai.client.token.usage", labels)
        };
        Self {
            duration: histogram!(DURATION, model.labels().collect::<Vec<_>>()),
            input: tokens("input"),
            output: tokens("output"),
        }
    }
}
