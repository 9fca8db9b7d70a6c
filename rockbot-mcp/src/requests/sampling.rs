//! Sampling: a server asks the host's model while a tool of the server runs.
//!
//! A server that asks for a model gets the host's model and nothing else: its texts are
//! untrusted, there are no tools and nothing of a conversation, whatever context it asks for; the
//! tier is the operator's. Calls go through the chat layers and into the ledger.
// The protocol of 2026 deprecates sampling; servers of both eras use it.
#![expect(deprecated, reason = "the types of sampling are deprecated with it")]

use std::fmt;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatMessage, ChatRequest, Content, ContentPart, ModelSettings, ModelTier, Provenance,
};
use rockbot_core::content::MediaPart;
use rockbot_core::support::defused;
use rockbot_core::trust::{Label, Trust};

use super::running::RunningCall;

/// The limits of servers' requests to the host's model.
///
/// Each limit counts for one tool call of the agent. The cost of the answers is in the ledger of
/// the host, under the turn of the call.
///
/// ```
/// use rockbot_core::chat::ModelTier;
/// use rockbot_mcp::{McpTools, SamplingLimits};
///
/// let limits = SamplingLimits::default().with_max_requests(2).with_tier(ModelTier::Low);
/// let tools = McpTools::default().sampling(limits);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingLimits {
    /// Maximum number of requests. Default 5.
    pub max_requests: u32,
    /// Maximum length of an answer, in tokens. Default 1 000; a server may ask for less.
    pub max_output_tokens: u32,
    /// Maximum length of a request, in bytes, images included. Default 64 KiB.
    pub max_input_bytes: usize,
    /// Tier of the model, whatever the server prefers. Default [`ModelTier::Low`].
    pub tier: ModelTier,
}

/// The server that a model is asked for, as an [extension](rockbot_core::CallContext::extension)
/// of the context of such model calls: a layer on model calls tells by it which they are, and may
/// refuse them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingOrigin {
    /// Name of the server, as configured.
    pub server: String,
}

impl Default for SamplingLimits {
    fn default() -> Self {
        Self {
            max_requests: 5,
            max_output_tokens: 1_000,
            max_input_bytes: 64 * 1024,
            tier: ModelTier::Low,
        }
    }
}

impl SamplingLimits {
    /// Sets the maximum number of requests of a tool call. Default 5.
    #[must_use]
    pub fn with_max_requests(mut self, requests: u32) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets the maximum length of an answer, in tokens. Default 1 000.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = tokens;
        self
    }

    /// Sets the maximum length of a request, in bytes. Default 64 KiB.
    #[must_use]
    pub fn with_max_input_bytes(mut self, bytes: usize) -> Self {
        self.max_input_bytes = bytes;
        self
    }

    /// Sets the tier of the model. Default [`ModelTier::Low`].
    #[must_use]
    pub fn with_tier(mut self, tier: ModelTier) -> Self {
        self.tier = tier;
        self
    }
}

/// The host's model for servers.
pub(crate) struct Sampler {
    pub(crate) limits: SamplingLimits,
    pub(crate) chat: Arc<dyn ChatClient>,
}

impl Sampler {
    /// Asks the model. It sees the server's texts, which are untrusted, and neither tools nor
    /// anything of a conversation.
    pub(super) async fn sample(
        &self,
        server: &str,
        params: CreateMessageRequestParams,
        call: &RunningCall,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !call.counts_sampling(self.limits.max_requests) {
            return Err(refused("it asks for more answers of a model than a call may"));
        }
        let request = self.request(server, params)?;
        let cx = call.cx.clone().with_label(&Label::untrusted(&source(server)));
        let cx = cx.with_extension(SamplingOrigin {
            server: server.to_owned(),
        });
        let asked = self.chat.chat(ChatCall::new(request, cx)).await;
        let answer = asked.map_err(|error| {
            tracing::warn!(server, %error, "a model did not answer the request of an MCP server");
            refused("the model did not answer")
        })?;
        let stop = if answer.finish.is_cut() {
            CreateMessageResult::STOP_REASON_END_MAX_TOKEN
        } else {
            CreateMessageResult::STOP_REASON_END_TURN
        };
        let model = answer.model.as_deref().unwrap_or("unknown").to_owned();
        let message = SamplingMessage::assistant_text(answer.content().into_words());
        Ok(CreateMessageResult::new(message, model).with_stop_reason(stop))
    }

    /// Returns the request to the model.
    fn request(&self, server: &str, params: CreateMessageRequestParams) -> Result<ChatRequest, ErrorData> {
        if params.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err(refused("models have no tools in answers for servers"));
        }
        let mut left = self.limits.max_input_bytes;
        let mut messages = vec![instructions(server)];
        if let Some(prompt) = &params.system_prompt {
            let prompt = bounded(prompt, &mut left)?;
            messages.push(outside(
                server,
                &Role::User,
                format!("Instructions of the program:\n{prompt}").into(),
            ));
        }
        for message in params.messages {
            let role = message.role.clone();
            messages.push(outside(server, &role, content(message, &mut left)?));
        }
        let max_tokens = params.max_tokens.clamp(1, self.limits.max_output_tokens.max(1));
        let mut settings = ModelSettings::new().with_max_output_tokens(max_tokens);
        if let Some(temperature) = params.temperature.filter(|value| (0.0..=2.0).contains(value)) {
            settings = settings.with_temperature(temperature);
        }
        Ok(ChatRequest::new(messages)
            .with_settings(settings)
            .with_tier(self.limits.tier))
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sampler").field(&self.limits).finish()
    }
}

fn source(server: &str) -> String {
    format!("mcp:{server}")
}

fn instructions(server: &str) -> ChatMessage {
    ChatMessage::system(format!(
        "The program `{server}` asks you for one answer, which goes to that program. You have no tools here. Its texts are not \
         your user's, and you know nothing of any user: answer what it asks, and nothing that would harm a person."
    ))
}

/// Returns a message of the server.
fn outside(server: &str, role: &Role, content: Content) -> ChatMessage {
    let role = match role {
        Role::User => rockbot_core::chat::Role::User,
        Role::Assistant => rockbot_core::chat::Role::Assistant,
    };
    ChatMessage::new(role, content, Provenance::new(source(server), Trust::Untrusted))
}

fn content(message: SamplingMessage, left: &mut usize) -> Result<Content, ErrorData> {
    let mut content = Content::EMPTY;
    for block in message.content.into_vec() {
        match block {
            SamplingMessageContentBlock::Text(block) => {
                crate::content::text(&mut content, &bounded(&block.text, left)?);
            }
            SamplingMessageContentBlock::Image(image) => {
                take(image.data.len(), left)?;
                let bytes =
                    crate::content::decoded(&image.data).ok_or_else(|| refused("its image cannot be decoded"))?;
                content.push(ContentPart::image(MediaPart::bytes(image.mime_type, bytes)));
            }
            _ => return Err(refused("models are sent texts and images of servers, and nothing else")),
        }
    }
    Ok(content)
}

/// Returns a text of the server with nothing hidden in it, and subtracts its length from `left`.
fn bounded(text: &str, left: &mut usize) -> Result<String, ErrorData> {
    take(text.len(), left)?;
    Ok(defused(text).into_owned())
}

fn take(bytes: usize, left: &mut usize) -> Result<(), ErrorData> {
    *left = left
        .checked_sub(bytes)
        .ok_or_else(|| refused("its request to a model is too long"))?;
    Ok(())
}

/// Returns the error that the server gets, and the agent if its call ends with it.
pub(super) fn refused(reason: &'static str) -> ErrorData {
    ErrorData::invalid_request(reason, None)
}
