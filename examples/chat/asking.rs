//! The request of a question, as the command line sets it.

use std::path::Path;
use std::str::FromStr;

use rockbot::MessageId;
use rockbot::agent::AgentRequest;
use rockbot::chat::{ModelSettings, OutputMode, OutputSchema};
use rockbot::prelude::*;

/// Settings of the questions of one run.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    tier: Option<ModelTier>,
    settings: ModelSettings,
    schema: Option<OutputSchema>,
    schema_by: OutputMode,
    message_id: Option<MessageId>,
}

impl Asking {
    /// Takes an option of the command line, and returns `false` if it is none of these.
    pub(crate) fn take(
        &mut self,
        word: &str,
        value: &mut impl FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        match word {
            "--tier" => self.tier = Some(tier(&value()?)?),
            "--temperature" => self.settings.temperature = Some(number(word, &value()?)?),
            "--schema" => self.schema = Some(schema(Path::new(&value()?))?),
            "--schema-by" => {
                let way = value()?;
                let unknown = || format!("`{way}` is none of auto, native, tool, prompt");
                self.schema_by = OutputMode::named(&way).ok_or_else(unknown)?;
            }
            "--message-id" => self.message_id = Some(value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets on a request what the command line says.
    pub(crate) fn apply(&self, request: AgentRequest) -> AgentRequest {
        let mut request = request
            .model_settings(self.settings.clone())
            .output_mode(self.schema_by);
        if let Some(tier) = self.tier {
            request = request.tier(tier);
        }
        if let Some(schema) = &self.schema {
            request = request.output_schema(schema.clone());
        }
        match &self.message_id {
            Some(id) => request.message_id(id.clone()),
            None => request,
        }
    }

    /// Returns `true` if the settings are those of a single question.
    pub(crate) fn is_for_one(&self) -> bool {
        self.message_id.is_some()
    }
}

fn tier(name: &str) -> Result<ModelTier, String> {
    let mut tiers = ModelTier::ALL.into_iter();
    let found = tiers.find(|tier| tier.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| format!("`{name}` is none of low, balanced, high"))
}

fn schema(file: &Path) -> Result<OutputSchema, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", file.display());
    let json = std::fs::read(file).map_err(|error| failed(&error))?;
    let schema = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    Ok(OutputSchema::new("answer", schema))
}

/// Parses the number after the option `word`.
pub(crate) fn number<T: FromStr>(word: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number for `{word}`; see --help"))
}
