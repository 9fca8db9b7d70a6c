//! The answer to agents that ask for the guarantees of a manager.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::messaging::{Bus, Delivery, DeliveryHandler, Disposition, MessageEnvelope, PayloadError};
use rockbot_tools::scripts::Guarantees;
use rockbot_tools::scripts::wire::{ScriptGuaranteesRequest, ScriptGuaranteesResponse};

/// The handler of questions for guarantees.
pub(crate) struct GuaranteeQuestions {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) name: Arc<str>,
    pub(crate) guarantees: Guarantees,
}

#[async_trait]
impl DeliveryHandler for GuaranteeQuestions {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let question = &delivery.envelope;
        // Only a client that waits for a reply has such a topic.
        let topic = question.reply_to.as_deref().filter(|topic| topic.starts_with("reply."));
        let Some(topic) = topic.filter(|_| question.payload::<ScriptGuaranteesRequest>().is_ok()) else {
            return Disposition::dead_letter("it is no question for guarantees, or has no reply topic");
        };
        let answer = match self.answer(question) {
            Ok(answer) => answer,
            Err(error) => return Disposition::dead_letter(error),
        };
        if let Err(error) = self.bus.publish(topic, Arc::new(answer)).await {
            // The agent asks again.
            tracing::debug!(%error, "an agent could not be told the guarantees of scripts");
        }
        Disposition::Ack
    }
}

impl GuaranteeQuestions {
    fn answer(&self, question: &MessageEnvelope) -> Result<MessageEnvelope, PayloadError> {
        let answer = MessageEnvelope::of(&ScriptGuaranteesResponse::new(self.guarantees))?;
        Ok(answer.with_source(self.name.clone()).in_reply_to(question))
    }
}
