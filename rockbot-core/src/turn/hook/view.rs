//! The read-only view of a turn that hooks are given.

use std::sync::Arc;
use std::time::Duration;

use crate::CallContext;
use crate::chat::{ChatMessage, Spent};
use crate::turn::{Budget, FinishedCall, TurnRequest};

/// A read-only view of a running turn. It is cheap to clone.
///
/// The host makes one for each time that it asks hooks. Tests of a hook make their own.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{TurnRequest, TurnView};
///
/// let turn = TurnView::new(TurnRequest::new("kitchen", "message-1", "What can I cook?"));
/// assert_eq!((turn.model_calls, turn.model_calls_left()), (0, 50));
/// assert_eq!(turn.cx.session().as_str(), "kitchen");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnView {
    /// The request that began the turn.
    pub request: Arc<TurnRequest>,
    /// The context of the turn's work: its principal, its trust, its extensions.
    pub cx: CallContext,
    /// The conversation as the model reads it, without the reminders at the end of each request.
    /// Results of calls join it with the next request.
    pub messages: Arc<[Arc<ChatMessage>]>,
    /// The tool calls of the turn that ended, in order.
    pub calls: Arc<[FinishedCall]>,
    /// The model's own task list; empty unless the host's briefing has one.
    pub tasks: Arc<[TurnTask]>,
    /// Number of questions to models so far.
    pub model_calls: u32,
    /// Number of tool calls so far.
    pub tool_calls: u32,
    /// The tokens and the cost of all answers so far.
    pub spent: Spent,
    /// The budget of the turn.
    pub budget: Budget,
    /// The working time that the budget leaves.
    pub time_left: Duration,
}

impl TurnView {
    /// Creates the view of a turn that has just begun with `request`.
    pub fn new(request: impl Into<Arc<TurnRequest>>) -> Self {
        let request = request.into();
        let budget = request.budget.unwrap_or_default();
        let cx = CallContext::new(&request.session)
            .with_principal(request.principal.clone())
            .with_trust(request.trust);
        Self {
            cx,
            messages: Arc::default(),
            calls: Arc::default(),
            tasks: Arc::default(),
            model_calls: 0,
            tool_calls: 0,
            spent: Spent::default(),
            time_left: budget.max_wall_clock,
            budget,
            request,
        }
    }

    /// Sets the context of the turn's work.
    #[must_use]
    pub fn with_context(mut self, cx: CallContext) -> Self {
        self.cx = cx;
        self
    }

    /// Sets the conversation.
    #[must_use]
    pub fn with_messages(mut self, messages: impl Into<Arc<[Arc<ChatMessage>]>>) -> Self {
        self.messages = messages.into();
        self
    }

    /// Sets the tool calls that ended.
    #[must_use]
    pub fn with_calls(mut self, calls: impl Into<Arc<[FinishedCall]>>) -> Self {
        self.calls = calls.into();
        self
    }

    /// Sets the model's task list.
    #[must_use]
    pub fn with_tasks(mut self, tasks: impl Into<Arc<[TurnTask]>>) -> Self {
        self.tasks = tasks.into();
        self
    }

    /// Sets the numbers of questions to models and of tool calls, and the cost of the answers.
    #[must_use]
    pub fn with_activity(mut self, model_calls: u32, tool_calls: u32, spent: Spent) -> Self {
        (self.model_calls, self.tool_calls, self.spent) = (model_calls, tool_calls, spent);
        self
    }

    /// Sets the budget, and the working time that is left of it.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget, time_left: Duration) -> Self {
        (self.budget, self.time_left) = (budget, time_left);
        self
    }

    /// Returns the number of questions to models that the budget leaves.
    pub fn model_calls_left(&self) -> u32 {
        self.budget.max_model_calls.saturating_sub(self.model_calls)
    }

    /// Returns the number of tool calls that the budget leaves.
    pub fn tool_calls_left(&self) -> u32 {
        self.budget.max_tool_calls.saturating_sub(self.tool_calls)
    }
}

/// A task on the list that the model keeps within a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnTask {
    /// The task in a line, as the model wrote it.
    pub title: String,
    /// The status of the task.
    pub status: TurnTaskStatus,
}

impl TurnTask {
    /// Creates a task.
    pub fn new(title: impl Into<String>, status: TurnTaskStatus) -> Self {
        let title = title.into();
        Self { title, status }
    }
}

/// The status of a task on the model's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnTaskStatus {
    /// The model has not begun it.
    Pending,
    /// The model works on it.
    InProgress,
    /// The model has completed it.
    Completed,
}
