//! The messages of the turn's last request as they were written: the next request copies the
//! beginning that both share.
//!
//! Without it, each step of a turn would escape the texts of all messages again, and check all
//! arguments of its calls.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use rockbot_core::chat::{ChatMessage, ChatRequest, Role};

use super::MessageForm;

/// Bytes of a body beyond which it is not kept: it would stay in memory while the turn's tools run.
const MAX_KEPT: usize = 1 << 20;

/// A position between two written messages: what stands in front of it depends on no later message.
#[derive(Debug, Clone, Copy)]
pub(in crate::openai) struct Seam {
    /// Number of the request's messages in front of it.
    pub(super) messages: usize,
    /// Position in the written list.
    pub(super) offset: usize,
    /// Role of the last message in front of it.
    pub(super) last: Option<Role>,
}

impl Seam {
    /// Returns `true` if a message of this role never becomes one with those in front of the seam.
    fn is_before(self, role: Role) -> bool {
        matches!(
            (self.last, role),
            (Some(Role::User | Role::Tool), Role::Assistant) | (Some(Role::Assistant | Role::Tool), Role::Tool)
        )
    }
}

/// The written messages of a request.
pub(in crate::openai) struct WrittenMessages {
    /// Keeps the messages from being changed: equal pointers mean equal messages.
    request: Arc<ChatRequest>,
    body: Bytes,
    /// Position of the list in the body.
    start: usize,
    seams: Vec<Seam>,
    scope: [String; 2],
    takes: [bool; 2],
}

impl WrittenMessages {
    /// Keeps the messages that stand at `start` of `body`, written in `form`. Returns `None` if
    /// nothing of it can be used again.
    pub(in crate::openai) fn keep(
        request: &Arc<ChatRequest>,
        body: &Bytes,
        start: usize,
        seams: Vec<Seam>,
        form: MessageForm<'_>,
    ) -> Option<Self> {
        let is_worth_it = !seams.is_empty() && body.len() <= MAX_KEPT;
        is_worth_it.then(|| Self {
            request: request.clone(),
            body: body.clone(),
            start,
            seams,
            scope: form.scope.0.map(str::to_owned),
            takes: takes(form),
        })
    }

    /// Appends what the request has in common with one of `messages` in `form`, and returns the seams
    /// up to there.
    pub(super) fn push_common(
        mut self,
        body: &mut Vec<u8>,
        messages: &[Arc<ChatMessage>],
        form: MessageForm<'_>,
    ) -> Vec<Seam> {
        if self.scope != form.scope.0 || self.takes != takes(form) {
            return Vec::new();
        }
        let old = &self.request.messages;
        let pairs = old.iter().zip(messages);
        let common = pairs.take_while(|(old, new)| Arc::ptr_eq(old, new)).count();
        // The message behind a seam decides whether the ones in front of it are complete: it is the
        // same, or it never becomes one with them.
        let next = messages.get(common).filter(|_| common == old.len());
        let usable = self
            .seams
            .partition_point(|seam| seam.messages < common || next.is_some_and(|next| seam.is_before(next.role)));
        self.seams.truncate(usable);
        if let Some(last) = self.seams.last() {
            body.extend_from_slice(&self.body[self.start..self.start + last.offset]);
        }
        self.seams
    }
}

fn takes(form: MessageForm<'_>) -> [bool; 2] {
    [form.takes_media, form.takes_parallel_calls]
}
