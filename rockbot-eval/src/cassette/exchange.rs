//! The lines of a recording: the models of the server, then a request with its answer in each line.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::{ChatClient, ChatRequest, ChatResponse, ModelInfo, ModelTier, OutputMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// The models of the server, by tier: a host forms its requests after them.
    cassette: BTreeMap<ModelTier, Model>,
}

/// What a host wants to know about a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    model: Option<Arc<str>>,
    provider: Option<Arc<str>>,
    takes_images: Option<bool>,
    output_mode: OutputMode,
}

/// A request with its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: Value,
    pub(super) response: ChatResponse,
}

impl Head {
    pub(super) fn of(server: &dyn ChatClient) -> Self {
        let model = |tier| {
            let info = server.describe(tier);
            let model = Model {
                model: info.model,
                provider: info.provider,
                takes_images: info.takes_images,
                output_mode: info.output_mode,
            };
            (tier, model)
        };
        Self {
            cassette: ModelTier::ALL.into_iter().map(model).collect(),
        }
    }

    pub(super) fn describe(&self, tier: ModelTier) -> ModelInfo {
        let Some(model) = self.cassette.get(&tier) else {
            return ModelInfo::unknown();
        };
        let info = model
            .model
            .as_ref()
            .map_or_else(ModelInfo::unknown, |name| ModelInfo::new(name.clone()));
        let info = info.with_images(model.takes_images).with_output_mode(model.output_mode);
        match &model.provider {
            Some(provider) => info.with_provider(provider.clone()),
            None => info,
        }
    }
}

/// Returns a request as the model reads it.
pub(super) fn request_json(request: &ChatRequest) -> serde_json::Result<Value> {
    let tools = if request.tools.is_empty() {
        json!([])
    } else {
        serde_json::from_slice(request.tools.json())?
    };
    Ok(json!({
        "messages": request.messages,
        "tools": tools,
        "tier": request.tier,
        "output": request.output,
        // Without the headers, which carry keys.
        "settings": request.settings,
    }))
}
