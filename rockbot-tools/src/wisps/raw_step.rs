//! A step as models write it, with fields under several names.

use serde::Deserialize;
use serde_json::Value;

/// A step with the names that models use.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawStep {
    pub(super) id: String,
    pub(super) mode: Option<String>,
    pub(super) gateway: Option<String>,
    pub(super) server: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) params: Option<Value>,
    pub(super) input: Option<Value>,
    #[serde(alias = "args", alias = "parameters")]
    pub(super) arguments: Option<Value>,
    pub(super) language: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) skill: Option<String>,
    pub(super) message: Option<String>,
    #[serde(alias = "timeoutMinutes")]
    pub(super) timeout_minutes: Option<u32>,
    pub(super) metadata: Option<Value>,
    pub(super) prompt: Option<String>,
    #[serde(alias = "inputFrom")]
    pub(super) input_from: Option<String>,
    #[serde(alias = "outputTo")]
    pub(super) output_to: Option<String>,
    #[serde(alias = "onFailure")]
    pub(super) on_failure: Option<OnFailure>,
    /// The target of `on_failure`, as the log has it.
    #[serde(alias = "skipTo")]
    pub(super) skip_to: Option<String>,
    /// For people who read the definition.
    #[serde(rename = "description")]
    _description: Option<String>,
}

/// An order for the failure of a step.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OnFailure {
    Action(String),
    Rule {
        #[serde(default)]
        action: Option<String>,
        #[serde(default, alias = "skipTo")]
        skip_to: Option<String>,
    },
}
