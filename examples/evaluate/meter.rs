//! Counts model calls and their tokens, and asks all of them with the same sampling.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelSettings, ModelTier, Usage};
use rockbot::prelude::*;

/// The sampling parameters of every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f32>,
    pub(crate) max_output_tokens: u32,
}

/// A number of calls, and their tokens in and out together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.tokens += other.tokens;
    }
}

/// The calls of the turn itself, and those of its judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) turn: Spent,
    pub(crate) out_of_band: Spent,
}

impl Bill {
    fn of(&mut self, is_out_of_band: bool) -> &mut Spent {
        if is_out_of_band {
            &mut self.out_of_band
        } else {
            &mut self.turn
        }
    }
}

/// A counted model. A call that fails or is cancelled counts as a call of unknown size.
#[derive(Clone)]
pub(crate) struct Metered {
    client: Arc<dyn ChatClient>,
    sampling: Sampling,
    bill: Arc<Mutex<Bill>>,
}

impl Metered {
    pub(crate) fn new(client: Arc<dyn ChatClient>, sampling: Sampling) -> Self {
        Self {
            client,
            sampling,
            bill: Arc::default(),
        }
    }

    /// Returns what was spent since the last time.
    pub(crate) fn take_bill(&self) -> Bill {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Bill> {
        // Cannot be poisoned in practice: no code that can panic runs under the lock.
        self.bill.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatClient for Metered {
    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        // No task asks for structured output, so a request with a schema comes from a judge.
        let is_out_of_band = call.request.output.is_some();
        self.lock().of(is_out_of_band).calls += 1;
        let mut settings = ModelSettings::new().with_max_output_tokens(self.sampling.max_output_tokens);
        settings.temperature = self.sampling.temperature;
        call.request = (*call.request).clone().with_settings(settings).into();
        let answer = self.client.chat(call).await;
        let usage = answer.as_ref().ok().and_then(|answer| answer.usage);
        self.lock().of(is_out_of_band).tokens += usage.as_ref().map_or(0, Usage::total);
        answer
    }

    /// Returns an id even for an unnamed model: behaviors are looked up by it.
    fn describe(&self, tier: ModelTier) -> ModelInfo {
        let mut info = self.client.describe(tier);
        info.model.get_or_insert_with(|| "unnamed".into());
        info
    }
}
