//! A turn that a client of a foreign protocol asked for: it is cancelled when its client leaves.

use std::sync::Arc;

use rockbot_core::TurnId;
use rockbot_core::turn::{TurnEvents, TurnOutcome, TurnRequest};
use tokio::runtime::Handle;

use crate::door::{Caller, Door};
use crate::error::WebError;

/// A turn whose only reader is the client that asked for it, as in protocols whose streams cannot be
/// read again. Dropping it before the end cancels the turn: the answer would reach nobody.
pub(crate) struct AskedTurn {
    door: Arc<Door>,
    pub(crate) turn: TurnId,
    /// `true` once the turn has ended, or if its client may ask again.
    is_left_alone: bool,
}

impl AskedTurn {
    /// Starts the turn of a request. With `is_kept`, the client can ask for the same turn again, so it
    /// goes on when the client leaves.
    pub(crate) async fn start(caller: &Caller, request: TurnRequest, is_kept: bool) -> Result<Self, WebError> {
        let turn = caller.door.turns.start(request).await?;
        Ok(Self {
            door: caller.door.clone(),
            turn,
            is_left_alone: is_kept,
        })
    }

    /// Returns the reports of the turn from its beginning on.
    pub(crate) async fn events(&self) -> Result<TurnEvents, WebError> {
        Ok(self.door.turns.events(&self.turn, 0).await?)
    }

    /// Waits for the end of the turn, also while it waits for a person.
    pub(crate) async fn outcome(mut self) -> Result<TurnOutcome, WebError> {
        let ended = self
            .door
            .stop
            .run_until_cancelled(self.door.turns.outcome(&self.turn))
            .await;
        self.is_left_alone = true;
        match ended {
            Some(outcome) => Ok(outcome?),
            None => Err(WebError::unavailable(
                "stopping",
                "the host is stopping: send the request again when it runs",
            )),
        }
    }

    /// Leaves the turn alone from now on: it has ended, or the host stops and resumes it later.
    pub(crate) fn leave_alone(&mut self) {
        self.is_left_alone = true;
    }
}

impl Drop for AskedTurn {
    fn drop(&mut self) {
        if self.is_left_alone || self.door.stop.is_cancelled() {
            return;
        }
        // Without a runtime the process ends, and the next one resumes the turn.
        let Ok(runtime) = Handle::try_current() else { return };
        let door = self.door.clone();
        let turn = self.turn.clone();
        let cancelling = async move {
            // Fails when the turn has ended meanwhile.
            let _ = door.turns.cancel(&turn).await;
        };
        self.door.tasks.spawn_on(cancelling, &runtime);
    }
}

/// The text of an answer for a client that takes nothing back.
#[derive(Debug, Default)]
pub(crate) struct SaidText {
    /// `true` once anything was said.
    has_begun: bool,
    /// Text since the last tool call or retraction.
    tail: String,
    /// `true` if a tool call or a retraction separates the text before from the text to come.
    is_apart: bool,
}

impl SaidText {
    /// Notes a piece of text, and returns it as the client reads it.
    pub(crate) fn say(&mut self, piece: String) -> String {
        self.tail.push_str(&piece);
        let is_apart = std::mem::take(&mut self.is_apart);
        let shown = if is_apart && self.has_begun {
            format!("\n\n{piece}")
        } else {
            piece
        };
        self.has_begun = true;
        shown
    }

    /// Notes a tool call, or that the model starts over.
    pub(crate) fn part(&mut self) {
        self.tail.clear();
        self.is_apart = true;
    }

    /// Returns the rest of an answer that has ended: the answer may differ from its pieces.
    pub(crate) fn rest(&mut self, answer: &str) -> Option<String> {
        if self.tail.trim() == answer.trim() {
            return None;
        }
        match answer.strip_prefix(&*self.tail) {
            Some(rest) => Some(self.say(rest.to_owned())),
            None => {
                self.part();
                Some(self.say(answer.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SaidText;

    #[test]
    fn the_answer_is_said_whole_at_its_end() {
        let mut text = SaidText::default();
        assert_eq!(text.say("Let me look.".into()), "Let me look.");
        text.part();
        assert_eq!(text.say("It is ".into()), "\n\nIt is ");
        assert_eq!(text.rest("It is open.").as_deref(), Some("open."));
        assert_eq!(text.rest("It is open."), None);
        assert_eq!(text.rest("Sorry.").as_deref(), Some("\n\nSorry."));
        assert_eq!(SaidText::default().rest("Whole.").as_deref(), Some("Whole."));
    }
}
