//! The history processors, before a question to the model.

use std::collections::HashSet;
use std::sync::Arc;

use rockbot_core::chat::ChatMessage;
use rockbot_core::content::ContentError;
use rockbot_core::support::loggable;
use rockbot_core::turn::{HistoryError, HistoryProcessor, JournalError, TurnView, check_history};

use super::{Drive, HookEnd, HookError};
use crate::turn::{HistoryEdit, Purpose, TurnEvent, edits};

/// The reason why the result of a processor is not used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl Drive<'_> {
    /// Has the processors edit the conversation before a question for `purpose`. Returns `false` when
    /// the turn was cancelled or the host stops, so that the question must not be asked.
    pub(in crate::driver) async fn process_history(&mut self, purpose: &Purpose) -> Result<bool, JournalError> {
        if !self.turn.may_be_edited(purpose) {
            return Ok(true);
        }
        let driver = self.driver;
        let view = self.hook_view();
        let mut messages = self.turn.messages().to_vec();
        for processor in &driver.hooks.history {
            match self.run_hook(processor.process(messages.clone(), &view)).await {
                HookEnd::Decided(processed) => take(&mut messages, &**processor, processed, &view),
                HookEnd::Cancelled(event) => {
                    self.feed(event);
                    return Ok(false);
                }
                HookEnd::Halted => return Ok(false),
            }
        }
        // Nothing is recorded when nothing changed: most requests are left alone.
        if let Some(mut edits) = edits(self.turn.messages(), messages) {
            self.keep_media(&mut edits).await;
            self.note(TurnEvent::HistoryEdited { edits }, false);
        }
        Ok(true)
    }

    /// Stores the images and files of added messages, so that the journal refers to them.
    async fn keep_media(&self, edits: &mut [HistoryEdit]) {
        for edit in edits {
            if let HistoryEdit::Add(message) = edit
                && message.content.has_media()
            {
                let content = &mut Arc::make_mut(message).content;
                self.driver.media.keep_or_describe(self.cx.principal(), content).await;
            }
        }
    }
}

/// Replaces the messages by a processor's result, if a model can be sent that.
fn take(
    messages: &mut Vec<Arc<ChatMessage>>,
    processor: &dyn HistoryProcessor,
    processed: Result<Vec<Arc<ChatMessage>>, HookError>,
    turn: &TurnView,
) {
    let checked = processed.map_err(Unusable::from).and_then(|processed| {
        check_history(&processed)?;
        let known: HashSet<_> = messages.iter().map(Arc::as_ptr).collect();
        let mut added = processed
            .iter()
            .filter(|message| !known.contains(&Arc::as_ptr(message)));
        added.try_for_each(|message| message.content.check_bounds())?;
        Ok(processed)
    });
    match checked {
        Ok(processed) => *messages = processed,
        Err(error) => {
            let turn = turn.request.turn_id();
            let processor = processor.name();
            let text = error.to_string();
            let error = loggable(&text);
            tracing::warn!(%turn, processor, %error, "history processor failed; the model reads the messages without its edits");
        }
    }
}
