//! The steps of a pipeline, as its function makes them.

use std::sync::Arc;

use rockbot_core::ToolName;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::StepError;
use super::question::{self, Question};
use super::step::{Ledger, Step};
use super::value::{self, Form};

/// The steps of one run of a [`Pipeline`](super::Pipeline). Clones make steps of the same run.
///
/// A step begins when it is awaited for the first time. The function of the pipeline awaits it
/// directly, not in a task that the function spawns.
#[derive(Debug, Clone)]
pub struct Steps {
    pipeline: Arc<str>,
    ledger: Arc<Ledger>,
}

impl Steps {
    pub(super) fn new(pipeline: &str, ledger: Arc<Ledger>) -> Self {
        let pipeline = pipeline.into();
        Self { pipeline, ledger }
    }

    /// Calls a tool of the host with `arguments`, an object. The result is parsed as JSON; a
    /// `String` takes the text as it is.
    ///
    /// # Errors
    ///
    /// Returns an error if the call fails, or its result is of another type.
    pub async fn call<T: DeserializeOwned>(
        &self,
        tool: impl Into<ToolName>,
        arguments: impl Serialize,
    ) -> Result<T, StepError> {
        let tool = tool.into();
        let arguments = match serde_json::to_string(&arguments) {
            Ok(arguments) => arguments,
            Err(cause) => return Err(StepError::Arguments { tool, cause }),
        };
        let text = self.text_of(&tool, tool.clone(), arguments).await?;
        value::parse(&text).map_err(|cause| StepError::Result { tool, cause })
    }

    /// Asks the host's model without tools, and returns its answer: a text, or a value of another
    /// type. For a value the model gets the schema of the type.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no answer, or the answer does not have this type.
    pub async fn ask<T: DeserializeOwned + JsonSchema>(&self, question: impl Into<String>) -> Result<T, StepError> {
        self.question(None, question.into()).await
    }

    /// Gives a task to another agent of the host and returns its answer. The agent works with its
    /// own tools.
    ///
    /// # Errors
    ///
    /// Returns an error if the host has no such agent, there is no answer, or the answer does not
    /// have this type.
    pub async fn ask_agent<T: DeserializeOwned + JsonSchema>(
        &self,
        agent: impl Into<String>,
        task: impl Into<String>,
    ) -> Result<T, StepError> {
        self.question(Some(agent.into()), task.into()).await
    }

    async fn question<T>(&self, agent: Option<String>, task: String) -> Result<T, StepError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let form = Form::of::<T>();
        let asked = ToolName::from(agent.as_deref().unwrap_or("model"));
        let question = Question {
            agent,
            task,
            output: form.schema.clone(),
        };
        let arguments = match serde_json::to_string(&question) {
            Ok(arguments) => arguments,
            Err(cause) => return Err(StepError::Arguments { tool: asked, cause }),
        };
        let tool = question::tool_name(&self.pipeline);
        let text = self.text_of(&asked, tool, arguments).await?;
        let read = form.read(&text);
        read.map_err(|cause| StepError::Result { tool: asked, cause })
    }

    /// Makes a step and returns the text of its result. `named` is the name of the tool in an
    /// error.
    async fn text_of(&self, named: &ToolName, tool: ToolName, arguments: String) -> Result<String, StepError> {
        let end = Step::new(self.ledger.clone(), tool, arguments).await;
        if end.is_error {
            Err(StepError::Failed {
                tool: named.clone(),
                text: end.text,
            })
        } else {
            Ok(end.text)
        }
    }
}
