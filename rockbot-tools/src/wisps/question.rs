//! The question of an Llm step to a model, and the tools that the model may call.

use std::fmt::Write as _;
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, ChatRequest, ModelTier, Role};
use rockbot_core::content::{Content, Provenance};
use rockbot_core::tool::{ToolEntry, ToolFilter, ToolSnapshot, ToolView};

use super::NAMESPACE;
use super::definition::Work;
use super::keep::{CUT, KEEP, cut};
use super::progress::{Open, Progress};

/// Maximum number of questions of one step. The last question has no tools.
const MAX_QUESTIONS: usize = 12;

/// Maximum length of the input of a step, in bytes.
const MAX_INPUT: usize = 8_000;

/// Maximum length of each earlier output that stands in a question, in bytes.
const MAX_EARLIER: usize = 4_000;

/// Name of the group of the tools of working memory, which every step may call.
const WORKING_MEMORY: &str = "working-memory";

const DIRECTIVE: &str = "You do one step of a fixed procedure. Follow these rules:\n\
    1. Do the task of this step alone; do not plan or do further steps.\n\
    2. Call only the tools that you are shown.\n\
    3. If a tool fails, stop and say what failed.\n\
    4. Use working memory only when the task says so.\n\
    5. Your answer is the result, which the next step reads: give it alone, short, without an introduction.";

/// Returns the question of a step of the wisp `id`: its prompt, its input, and the calls of its
/// model so far.
pub(super) fn question(
    progress: &Progress<'_>,
    id: &str,
    prompt: &str,
    input: Option<&str>,
    tools: ToolView,
) -> ChatRequest {
    let mut text = match input {
        Some(input) => format!("{prompt}\n\n## Input Data\n{}", cut(input, MAX_INPUT)),
        None => with_earlier(progress, prompt),
    };
    if text.contains(CUT) {
        let _ = write!(
            text,
            "\n\nThe whole results are in working memory, under `{NAMESPACE}/{id}/STEP/output`."
        );
    }
    let from = Provenance::labelled("wisp", &progress.label);
    let content = Content::from(text).attributed(from.clone());
    let task = ChatMessage::new(Role::User, content, from);
    let mut messages = vec![Arc::new(ChatMessage::system(DIRECTIVE)), Arc::new(task)];
    let asked = match &progress.open {
        Open::Asking(asked) => asked.as_slice(),
        _ => &[],
    };
    messages.extend(asked.iter().cloned());
    let questions = asked.iter().filter(|message| message.role == Role::Assistant).count();
    let tools = if questions + 1 < MAX_QUESTIONS {
        tools
    } else {
        ToolView::default()
    };
    ChatRequest::new(messages).with_tier(ModelTier::Low).with_tools(tools)
}

fn with_earlier(progress: &Progress<'_>, prompt: &str) -> String {
    let outputs = progress.outputs();
    let earlier: Vec<_> = outputs
        .all()
        .map(|(step, text)| format!("### Step: {step}\n{}", cut(text, MAX_EARLIER)))
        .collect();
    match &*earlier {
        [] => prompt.to_owned(),
        earlier => format!("{prompt}\n\n## Prior Step Results\n{}", earlier.join("\n\n")),
    }
}

/// Returns the tools of the steps that ask a model: the tools that the wisp names or calls
/// itself, and working memory.
pub(super) fn tools(progress: &Progress<'_>, tools: &ToolSnapshot, filter: Option<&Arc<ToolFilter>>) -> ToolView {
    let is_allowed = |entry: &ToolEntry| filter.is_none_or(|filter| filter.allows(entry.registration()));
    let chosen = tools.entries().iter();
    let chosen = chosen.filter(|entry| is_named(progress, entry) && is_allowed(entry));
    ToolView::default().extended_by(tools.generation(), chosen)
}

fn is_named(progress: &Progress<'_>, entry: &ToolEntry) -> bool {
    let registration = entry.registration();
    let name = registration.name.as_str();
    let is_called = progress.definition.steps.iter().any(|step| match &step.work {
        Work::Direct { tool, .. } => tool == name,
        Work::Llm { .. } => false,
    });
    let server = registration.source.strip_prefix("mcp:");
    let mut named = progress.definition.tools.iter();
    let is_listed = named.any(|listed| listed == name || Some(listed.as_str()) == server);
    let is_memory = entry
        .exposure()
        .group()
        .is_some_and(|group| group.as_str() == WORKING_MEMORY);
    (is_called || is_listed || is_memory) && name != KEEP
}
