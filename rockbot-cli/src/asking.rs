//! The request of a question, as the command line sets it.

use std::path::Path;

use clap::Args;
use rockbot::MessageId;
use rockbot::agent::AgentRequest;
use rockbot::chat::{ModelSettings, OutputMode, OutputSchema};
use rockbot::prelude::*;

/// Settings of the questions of one run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Question")]
pub(crate) struct Asking {
    /// Ask the model of this tier: low, balanced or high (default: as the question deserves)
    #[arg(long, value_parser = tier)]
    tier: Option<ModelTier>,
    /// Ask the model at this temperature
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Answer with JSON that matches the JSON Schema in this file
    #[arg(long, value_name = "FILE", value_parser = schema)]
    schema: Option<OutputSchema>,
    /// Make the model match it by its own means (native), a tool (tool) or words (prompt), or by
    /// the first of them that it has (auto)
    #[arg(long, value_name = "WAY", default_value = "auto", value_parser = way)]
    schema_by: OutputMode,
    /// The id of the question: asked again within a day, it has the same answer, which is made once
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
}

impl Asking {
    /// Sets the options of the command line on a request.
    pub(crate) fn apply(&self, request: AgentRequest) -> AgentRequest {
        let mut settings = ModelSettings::default();
        settings.temperature = self.temperature;
        let mut request = request.model_settings(settings).output_mode(self.schema_by);
        if let Some(tier) = self.tier {
            request = request.tier(tier);
        }
        if let Some(schema) = &self.schema {
            request = request.output_schema(schema.clone());
        }
        match &self.message_id {
            Some(id) => request.message_id(MessageId::from(id.as_str())),
            None => request,
        }
    }

    /// Returns `true` if the settings are for a single question.
    pub(crate) fn is_for_one(&self) -> bool {
        self.message_id.is_some()
    }
}

/// Returns the tier of this name.
pub(crate) fn tier(name: &str) -> Result<ModelTier, String> {
    let mut tiers = ModelTier::ALL.into_iter();
    let found = tiers.find(|tier| tier.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("`{name}` is none of low, balanced, high"))
}

fn way(name: &str) -> Result<OutputMode, String> {
    OutputMode::named(name).ok_or_else(|| format!("`{name}` is none of auto, native, tool, prompt"))
}

fn schema(file: &str) -> Result<OutputSchema, String> {
    let file = Path::new(file);
    let failed = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", file.display());
    let json = std::fs::read(file).map_err(|error| failed(&error))?;
    let schema = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    Ok(OutputSchema::new("answer", schema))
}
