//! The model of a wisp's turn: an interpreter. Asked with the conversation so far, it answers
//! with the next step.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatRequest, ChatResponse, MicroUsd, ModelInfo, ModelTier, Role,
    ToolCall, Usage,
};
use rockbot_core::tool::{Effect, ToolFilter};
use rockbot_core::{CallContext, CallId};
use serde_json::Value;

use super::HostParts;
use super::assignment::Assignment;
use super::failure::Category;
use super::keep::{KEEP, Kept};
use super::memory;
use super::progress::{OWN_ID, Open, Progress, Task, call_id};
use super::question;
use super::repair::{self, Misfit};
use super::report::Report;

/// A chat client that runs the definition in its conversation.
///
/// The turn engine asks it as it asks a model, so a step is journalled, guarded, approved,
/// counted and limited as the call of a model is, and a turn that is resumed goes on with the
/// first step that has not ended.
#[derive(Debug, Clone)]
pub(super) struct WispModel {
    pub(super) parts: Arc<OnceLock<HostParts>>,
}

/// One question to the interpreter.
struct Run<'a> {
    parts: &'a HostParts,
    cx: &'a CallContext,
    /// Id of the wisp.
    id: &'a str,
    /// Tokens of the models that were asked for this answer.
    spent: Usage,
    /// Price of these tokens, as far as it is known. The host's ledger has it already.
    cost: MicroUsd,
}

#[async_trait]
impl ChatClient for WispModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let starting = || ChatError::new(ChatErrorKind::NotConfigured, "the host is not started yet");
        let parts = self.parts.get().ok_or_else(starting)?;
        let unknown = || {
            ChatError::new(
                ChatErrorKind::InvalidRequest,
                "the conversation has no definition of a wisp",
            )
        };
        let (assignment, label, messages) = Assignment::find(&call.request.messages).ok_or_else(unknown)?;
        let mut progress = Progress::read(&assignment.definition, label, messages);
        memory::save(parts.memory.as_deref(), &call.cx, &assignment, &progress).await;
        let mut run = Run {
            parts,
            cx: &call.cx,
            id: &assignment.id,
            spent: Usage::default(),
            cost: MicroUsd(0),
        };
        // A turn has no tools any more when its budget is used up.
        let is_over = progress.current().is_none() && !progress.has_failed();
        let is_stopped = call.request.tools.is_empty() && !is_over;
        let answer = if is_stopped {
            let why = "It was stopped: its time or its number of calls was used up.";
            ChatResponse::text(Report::of(&progress, Some(why)).to_text())
        } else {
            let is_first = !messages.iter().any(|message| message.role == Role::Assistant);
            run.answer(&mut progress, is_first).await?
        };
        Ok(answer.with_usage(run.spent).with_cost(run.cost))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

impl Run<'_> {
    async fn answer(&mut self, progress: &mut Progress<'_>, is_first: bool) -> Result<ChatResponse, ChatError> {
        if is_first && let Some(answer) = self.pre_flight(progress).await? {
            return Ok(answer);
        }
        loop {
            let Some((at, _)) = progress.current() else {
                return Ok(ChatResponse::text(Report::of(progress, None).to_text()));
            };
            if let Open::Misfit { arguments, problem } = &progress.open
                && let Task::Call { tool, .. } = self.task(progress)?
            {
                let misfit = Misfit {
                    step: at,
                    tool: &tool,
                    arguments: arguments.to_string(),
                    problem: problem.clone(),
                };
                if let Some(params) = self.repair(&misfit, progress).await? {
                    let arguments = Value::Object(params).to_string();
                    return Ok(calls(ToolCall::new(call_id(at, true), tool.as_str(), arguments)));
                }
                progress.give_up_misfit();
                continue;
            }
            return match self.task(progress)? {
                Task::Call { tool, arguments } => {
                    Ok(calls(ToolCall::new(call_id(at, false), tool.as_str(), arguments)))
                }
                Task::Question { prompt, input } => self.ask(progress, at, &prompt, input.as_deref()).await,
            };
        }
    }

    /// Returns the current task. Its templates have values: a step without them has failed already.
    fn task(&self, progress: &Progress<'_>) -> Result<Task, ChatError> {
        let current = progress.current().map(|(at, step)| progress.task(at, step));
        let resolved = current.transpose().ok().flatten();
        resolved.ok_or_else(|| ChatError::new(ChatErrorKind::Other, "the wisp has no step to run"))
    }

    /// Checks the arguments that are known before anything runs. Returns an answer unless all
    /// arguments match.
    async fn pre_flight(&mut self, progress: &Progress<'_>) -> Result<Option<ChatResponse>, ChatError> {
        let tools = self.parts.registry.snapshot();
        let mut corrected = Vec::new();
        for misfit in repair::misfits(progress.definition, &tools) {
            let step = misfit.step;
            let Some(params) = self.repair(&misfit, progress).await? else {
                let id = &progress.definition.steps[step].id;
                let body = format!(
                    "Step `{id}`: the arguments do not match `{}`, so nothing has run:\n{}",
                    misfit.tool, misfit.problem
                );
                let steps = progress.definition.steps.len();
                let report = Report::failed(Category::Structural, steps, body);
                return Ok(Some(ChatResponse::text(report.to_text())));
            };
            corrected.push(Kept::Params { step, params }.call());
        }
        Ok((!corrected.is_empty()).then(|| ChatResponse::calls(corrected)))
    }

    async fn repair(
        &mut self,
        misfit: &Misfit<'_>,
        progress: &Progress<'_>,
    ) -> Result<Option<serde_json::Map<String, Value>>, ChatError> {
        match self.ask_model(misfit.question(progress)).await {
            Ok(answer) => Ok(misfit.corrected(&answer.text, &self.parts.registry.snapshot())),
            Err(error) if error.kind() == ChatErrorKind::Cancelled => Err(error),
            // Without a model the error of the arguments stands.
            Err(_) => Ok(None),
        }
    }

    /// Asks the model of a step. The calls of the model become calls of the wisp; its answer is
    /// kept.
    async fn ask(
        &mut self,
        progress: &Progress<'_>,
        at: usize,
        prompt: &str,
        input: Option<&str>,
    ) -> Result<ChatResponse, ChatError> {
        let tools = self.parts.registry.snapshot();
        let view = question::tools(progress, &tools, self.cx.extension::<Arc<ToolFilter>>());
        let answer = match self
            .ask_model(question::question(progress, self.id, prompt, input, view))
            .await
        {
            Ok(answer) => answer,
            Err(error) if error.kind() == ChatErrorKind::Cancelled => return Err(error),
            Err(error) => {
                let why = format!("the model could not be asked: {error}");
                return Ok(calls(Kept::failed(at, &why).call()));
            }
        };
        let calls_of_model = of_model(answer.tool_calls);
        if !calls_of_model.is_empty() {
            return Ok(ChatResponse::calls(calls_of_model).with_text(answer.text));
        }
        let kept = match self.useless(progress, &answer.text) {
            Some(why) => Kept::failed(at, &why),
            None => Kept::output(at, answer.text.trim()),
        };
        Ok(calls(kept.call()))
    }

    /// Returns the reason why an answer is no result: the answer is empty, or every call that was
    /// to change something failed.
    fn useless(&self, progress: &Progress<'_>, answer: &str) -> Option<String> {
        if answer.trim().is_empty() {
            return Some("the model gave no answer".to_owned());
        }
        let Open::Asking(asked) = &progress.open else {
            return None;
        };
        let tools = self.parts.registry.snapshot();
        let changes = |call: &&ToolCall| {
            let entry = tools.find(call.name.as_str());
            entry.is_some_and(|entry| entry.registration().effect == Effect::Mutating)
        };
        let has_failed = |call: &ToolCall| {
            let mut results = asked.iter();
            results.any(|result| result.is_error && result.tool_call_id.as_ref() == Some(&call.id))
        };
        let mut changing = asked
            .iter()
            .flat_map(|message| &message.tool_calls)
            .filter(changes)
            .peekable();
        changing.peek()?;
        changing
            .all(has_failed)
            .then(|| format!("no call that was to change something succeeded. The model says: {answer}"))
    }

    async fn ask_model(&mut self, request: ChatRequest) -> Result<ChatResponse, ChatError> {
        let call = ChatCall::new(request, self.cx.clone()).with_supervision(true);
        let answer = self.parts.chat.chat(call).await?;
        self.spent += answer.usage.unwrap_or_default();
        self.cost += answer.cost.unwrap_or_default();
        Ok(answer)
    }
}

fn calls(call: ToolCall) -> ChatResponse {
    ChatResponse::calls([call])
}

/// Returns the calls of a model's answer, changed so that none can be taken for a call of the
/// interpreter.
fn of_model(mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
    calls.retain(|call| call.name.as_str() != KEEP);
    for call in &mut calls {
        if call.id.as_str().starts_with(OWN_ID) {
            call.id = CallId::from(format!("model-{}", call.id));
        }
    }
    calls
}
