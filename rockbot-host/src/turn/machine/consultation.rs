//! Consultations: the loop policies of the host's program decide before the turn goes on.
//!
//! A consultation is a step like any other. It stands where the decision would stand that it may
//! change, and that decision is made once the policies are through. So the journal has both, and
//! a resume asks only where it must.

use std::sync::Arc;

use rockbot_core::Timestamp;
use rockbot_core::chat::{ChatMessage, ChatResponse, Content, Provenance};
use rockbot_core::turn::LoopDecision;

use super::{Phase, Turn, media_of};
use crate::turn::event::TurnEvent;
use crate::turn::policy::consult;
use crate::turn::step::{Consultation, Purpose, TurnCounter, TurnStep};

/// The state of a turn that its loop policies have changed or are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Consultations {
    /// Messages of policies, until the next question to the model.
    unread: Vec<Content>,
    /// The model's last answer; `None` when the turn has no policies.
    pub(super) response: Option<Arc<ChatResponse>>,
    /// Number of answers that policies sent back.
    questions: u32,
}

impl Consultations {
    /// Takes the messages of policies.
    pub(super) fn messages(&mut self) -> impl Iterator<Item = ChatMessage> {
        self.unread.drain(..).map(consult::message)
    }

    /// Applies a question to the model.
    pub(super) fn apply(&mut self, purpose: &Purpose) {
        self.questions += u32::from(matches!(purpose, Purpose::Policy { .. }));
    }
}

impl Turn {
    /// Consults the policies before a question to the model that is new.
    pub(super) fn consult_before_request(&self, event: &TurnEvent, mut steps: Vec<TurnStep>) -> Vec<TurnStep> {
        if !self.policy.hooks.has_policies || self.repeats(event, &steps) {
            return steps;
        }
        if let Some(TurnStep::AskModel(purpose)) = steps.last()
            && consult::is_point(purpose)
        {
            let about = Consultation::BeforeRequest(purpose.clone());
            steps.pop();
            steps.push(TurnStep::Consult(about));
        }
        steps
    }

    /// Reports whether the policies have decided about the question already: this is their decision,
    /// or the question is asked once more, after a crash or with a shorter conversation.
    fn repeats(&self, event: &TurnEvent, steps: &[TurnStep]) -> bool {
        match &self.phase {
            Phase::Consulting(Consultation::BeforeRequest(_)) => true,
            Phase::Asking(_) => {
                matches!(event, TurnEvent::Resumed { .. })
                    || steps.iter().any(|step| matches!(step, TurnStep::Compact(_)))
            }
            _ => false,
        }
    }

    /// Consults the policies about an answer; `None` when there are no policies, or the answer is
    /// not theirs to judge.
    pub(super) fn consult_after_answer(&self, purpose: &Purpose) -> Option<Vec<TurnStep>> {
        let is_due = self.policy.hooks.has_policies && self.end_reason.is_none() && consult::is_point(purpose);
        is_due.then(|| vec![TurnStep::Consult(Consultation::AfterAnswer(purpose.clone()))])
    }

    /// Continues after all calls of an answer have ended.
    pub(super) fn after_round(&self) -> Vec<TurnStep> {
        if self.policy.hooks.has_policies && !self.calls.is_empty() {
            vec![TurnStep::Consult(Consultation::AfterResults)]
        } else {
            vec![self.ask()]
        }
    }

    /// Keeps an answer for the policies and for the decision after theirs.
    pub(super) fn keep_response(&mut self, response: &ChatResponse) {
        if self.policy.hooks.has_policies {
            self.consultations.response = Some(Arc::new(response.clone()));
        }
    }

    pub(super) fn apply_consultation(&mut self, about: &Consultation) {
        if let Consultation::BeforeRequest(purpose) = about {
            // The policies read the conversation as the model will.
            self.close_calls(consult::not_run(purpose));
        }
        self.phase = Phase::Consulting(about.clone());
    }

    pub(super) fn apply_consulted(&mut self, added: &[Content], decision: &LoopDecision) {
        match decision {
            // The policy's answer is whole: the model's images are no part of it.
            LoopDecision::Answer(answer) => {
                let answer = answer.clone().attributed(Provenance::HOST);
                self.answer_media = media_of(&answer).collect();
            }
            LoopDecision::Fail(_) => self.answer_media.clear(),
            _ => {}
        }
        self.consultations.unread.extend_from_slice(added);
        // Elsewhere the model is asked in any case, so the message needs no question of its own.
        if let (LoopDecision::AskAgain(message), false) = (decision, self.is_consulting_about_answer()) {
            self.consultations.unread.push(message.clone());
        }
    }

    /// Continues as the policies decided.
    pub(super) fn consulted(&self, about: &Consultation, decision: &LoopDecision, at: Timestamp) -> Vec<TurnStep> {
        if let Some(reason) = self.end_reason {
            return self.end_early(reason);
        }
        if let Some(end) = consult::end(decision) {
            return vec![TurnStep::Count(TurnCounter::PolicyEnded), end];
        }
        match (about, decision) {
            (Consultation::AfterAnswer(purpose), LoopDecision::AskAgain(message)) => {
                self.sent_back(purpose, message, at)
            }
            (Consultation::BeforeRequest(purpose), _) => vec![TurnStep::AskModel(purpose.clone())],
            (Consultation::AfterAnswer(purpose), _) => self.answer_stands(purpose, at),
            (Consultation::AfterResults, _) => vec![self.ask()],
        }
    }

    /// Asks the model for another answer, unless the turn has done so too often or a limit forbids it.
    fn sent_back(&self, purpose: &Purpose, message: &Content, at: Timestamp) -> Vec<TurnStep> {
        if self.consultations.questions >= self.policy.hooks.max_policy_questions || self.limit().is_some() {
            let ignored = [TurnStep::Count(TurnCounter::PolicyIgnored)];
            return ignored.into_iter().chain(self.answer_stands(purpose, at)).collect();
        }
        let message = message.clone();
        vec![
            TurnStep::Count(TurnCounter::PolicyAskedAgain),
            TurnStep::AskModel(Purpose::Policy { message }),
        ]
    }

    fn answer_stands(&self, purpose: &Purpose, at: Timestamp) -> Vec<TurnStep> {
        match &self.consultations.response {
            Some(response) => self.answered(purpose, response, at),
            // Each answer is kept before its consultation, so this is a journal that lacks a record.
            None => vec![self.ask()],
        }
    }

    fn is_consulting_about_answer(&self) -> bool {
        matches!(self.phase, Phase::Consulting(Consultation::AfterAnswer(_)))
    }
}
