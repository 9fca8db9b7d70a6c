//! Reviews for other programs: a message of the bus that is a request to the second agent, with
//! an answer of a type.

use std::sync::Arc;
use std::time::Duration;

use rockbot::message::{ErrorReply, MessageContext, RequestClient, RequestError};
use rockbot::prelude::*;

use crate::reviewer::{self, Guidelines, Review};

/// Number of reviews that are made concurrently; further requests wait on the bus.
pub(crate) const CONCURRENT: usize = 4;

/// Time limit of a review; it ends with what it has by then.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A text to be reviewed. A newer version of a document takes the place of an older one.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReviewRequest {
    pub(crate) document: String,
    pub(crate) text: String,
    pub(crate) guidelines: Vec<String>,
}

impl Message for ReviewRequest {
    const TYPE: &'static str = "full_agent.ReviewRequest";
    const TOPIC: Option<&'static str> = Some("full_agent.review");
}

impl Message for Review {
    const TYPE: &'static str = "full_agent.Review";
}

/// Answers [`ReviewRequest`]s.
pub(crate) struct ReviewHandler {
    reviewer: Agent,
}

impl ReviewHandler {
    pub(crate) fn new(reviewer: &AgentHost) -> Self {
        let reviewer = reviewer.agent().clone();
        Self { reviewer }
    }
}

#[async_trait]
impl MessageHandler<ReviewRequest> for ReviewHandler {
    async fn handle(&self, asked: ReviewRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let request = reviewer::request(&self.reviewer, &asked.document, &asked.text)?
            // Delivered again, the message is the same turn: nothing is paid twice.
            .message_id(cx.envelope().message_id.clone())
            .principal(cx.principal(None))
            .busy(BusyPolicy::Supersede)
            .tier(ModelTier::Low)
            .budget(
                Budget::default()
                    .with_max_model_calls(4)
                    .with_max_wall_clock(TIME_LIMIT),
            )
            .extension(Guidelines(asked.guidelines))
            .with_outcome();
        match request.await {
            Ok((review, outcome)) => {
                tracing::info!(document = asked.document, usage = ?outcome.usage, "reviewed");
                cx.reply(&review).await?
            }
            Err(error) if error.retry_helps() => return Err(error.into()),
            Err(error) => cx.reply(&ErrorReply::new("not_reviewed", error.to_string())).await?,
        };
        Ok(())
    }
}

/// Asks for a review over `bus`.
pub(crate) async fn ask(bus: &Arc<dyn Bus>, text: &str) -> Result<Review, RequestError> {
    let client = RequestClient::new(bus.clone(), "terminal").with_time_limit(TIME_LIMIT);
    let request = MessageEnvelope::of(&ReviewRequest {
        document: "draft".to_owned(),
        text: text.to_owned(),
        guidelines: vec!["Be polite.".to_owned()],
    })?;
    Ok(client.call("full_agent.review", request).await?.payload()?)
}
