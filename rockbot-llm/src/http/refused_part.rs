//! [`RefusedParts`]: the parts of requests that a server does not take, and what its model reads instead.
//!
//! Which models see images and which servers know schemas cannot be known in advance, and a
//! conversation sends its images again with each request. So a request that is refused because of
//! such a part is sent once more without it, and a refusal that holds for every request of the
//! model is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rockbot_core::chat::{
    ChatError, ChatErrorKind, ChatMessage, ChatRequest, ContextReason, OutputMode, OutputSchema, Provenance, Role,
    ToolChoice,
};
use rockbot_core::tool::ToolView;

use super::media::is_text;

/// The parts that a server refused for its model.
#[derive(Debug, Default)]
pub(crate) struct RefusedParts {
    images: AtomicBool,
    schemas: AtomicBool,
    tools: AtomicBool,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Images,
    Schema,
    Tools,
}

/// A refusal, and whether it holds for every such part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal {
    part: Part,
    is_lasting: bool,
}

impl RefusedParts {
    /// Returns `true` if a server may refuse a part of `request` alone.
    pub(crate) fn may_refuse(request: &ChatRequest) -> bool {
        request.output.is_some() || has_media(request) || forced_tool(request).is_some()
    }

    /// Leaves the parts out of `request` that the server has refused before.
    pub(crate) fn leave_out(&self, request: &mut Arc<ChatRequest>) {
        for part in [Part::Images, Part::Schema, Part::Tools] {
            if self.flag(part).load(Ordering::Relaxed) && part.is_in(request) {
                part.leave_out(Arc::make_mut(request));
            }
        }
    }

    /// Leaves out of `request` the part that made the server refuse it with `error`. Remembers the
    /// part if the server would refuse it in the next such request, too. Returns `false` if the error
    /// has another cause.
    pub(crate) fn learn(&self, error: &ChatError, request: &mut Arc<ChatRequest>) -> bool {
        if error.kind() != ChatErrorKind::InvalidRequest {
            return false;
        }
        let Some(Refusal { part, is_lasting }) = refusal(&error.to_string().to_lowercase(), request) else {
            return false;
        };
        if is_lasting {
            self.flag(part).store(true, Ordering::Relaxed);
        }
        tracing::warn!(%error, ?part, is_lasting, "part of a request refused; the model gets it in words");
        part.leave_out(Arc::make_mut(request));
        true
    }

    /// Returns whether the model takes images, if its server said that it does not.
    pub(crate) fn takes_images(&self) -> Option<bool> {
        self.images.load(Ordering::Relaxed).then_some(false)
    }

    /// Returns the mode of structured output that is left; `None` while nothing was refused.
    pub(crate) fn output_mode(&self) -> Option<OutputMode> {
        let refused = [&self.schemas, &self.tools].map(|flag| flag.load(Ordering::Relaxed));
        match refused {
            [_, true] => Some(OutputMode::Prompt),
            [true, false] => Some(OutputMode::Tool),
            [false, false] => None,
        }
    }

    fn flag(&self, part: Part) -> &AtomicBool {
        match part {
            Part::Images => &self.images,
            Part::Schema => &self.schemas,
            Part::Tools => &self.tools,
        }
    }
}

impl Part {
    fn is_in(self, request: &ChatRequest) -> bool {
        match self {
            Self::Images => has_media(request),
            Self::Schema => request.output.is_some(),
            Self::Tools => forced_tool(request).is_some(),
        }
    }

    /// Replaces the part by words.
    fn leave_out(self, request: &mut ChatRequest) {
        match self {
            Self::Images => {
                for message in request
                    .messages
                    .iter_mut()
                    .filter(|message| message.content.has_media())
                {
                    let content = &mut Arc::make_mut(message).content;
                    for part in content.parts_mut() {
                        // A text file is sent as text.
                        if part.as_media().is_some_and(|media| !is_text(media)) {
                            *part = part.describe("the model's server does not take it");
                        }
                    }
                }
            }
            Self::Schema => {
                if let Some(OutputSchema { schema, .. }) = request.output.take() {
                    request.messages.push(in_words(&schema.to_string()));
                }
            }
            Self::Tools => {
                if let Some(parameters) = forced_tool(request) {
                    let words = in_words(&parameters);
                    request.tools = ToolView::default();
                    request.messages.push(words);
                }
            }
        }
    }
}

fn has_media(request: &ChatRequest) -> bool {
    let mut media = request.messages.iter().flat_map(|message| message.content.media());
    media.any(|media| !is_text(media))
}

/// Returns the schema of the only tool, if the model must call it: an answer in this form.
fn forced_tool(request: &ChatRequest) -> Option<String> {
    let [only] = request.tools.entries() else { return None };
    let choice = request.settings.as_ref()?.tool_choice.as_ref()?;
    let is_forced = matches!(choice, ToolChoice::Required | ToolChoice::Tool(_));
    is_forced.then(|| only.parameters().to_owned())
}

fn in_words(schema: &str) -> Arc<ChatMessage> {
    let text = format!("Answer with JSON that matches this JSON Schema, and with nothing else: {schema}");
    let message = ChatMessage::new(Role::User, text, Provenance::HOST).because(ContextReason::Shape);
    Arc::new(message)
}

/// Words of servers whose model sees no images at all.
const NO_IMAGES: [&str; 10] = [
    "image input",
    "image_url is only supported by certain models",
    "unknown variant `image_url`",
    "not a multimodal model",
    "at most 0 image",
    "content must be a string",
    "not support image",
    "t support image",
    "not support vision",
    "images are not supported",
];

/// Words about one image that a server cannot use.
const BAD_IMAGE: [&str; 9] = [
    "could not process",
    "invalid",
    "unsupported",
    "exceed",
    "too large",
    "too many",
    "dimension",
    "failed",
    "unable",
];

/// Words of servers about a schema for answers.
const SCHEMA: [&str; 6] = [
    "response_format",
    "json_schema",
    "text.format",
    "output_config",
    "structured output",
    "json schema conversion",
];

/// Words about one schema that a server cannot use, while it takes others.
const BAD_SCHEMA: [&str; 3] = ["invalid schema", "schema conversion", "in context="];

const NO_TOOLS: [&str; 3] = ["not support tool", "tools are not supported", "requires --jinja"];

/// Returns the part of `request` that a server refuses in this text, which is in lower case.
fn refusal(text: &str, request: &ChatRequest) -> Option<Refusal> {
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let known = [
        (says(&NO_IMAGES), Part::Images, true),
        (says(&SCHEMA), Part::Schema, !says(&BAD_SCHEMA)),
        (says(&NO_TOOLS), Part::Tools, true),
        (text.contains("image") && says(&BAD_IMAGE), Part::Images, false),
    ];
    let mut named = known
        .into_iter()
        .filter(|(is_named, part, _)| *is_named && part.is_in(request));
    let (_, part, is_lasting) = named.next()?;
    Some(Refusal { part, is_lasting })
}

/// Returns the mode of structured output of a model that is known to lack schemas for answers, or
/// to have them.
pub(crate) fn known_output_mode(provider: &str, model: &str) -> OutputMode {
    let name = model.rsplit('/').next().unwrap_or(model);
    match provider {
        // Models before gpt-4o know no schema.
        "openai" if name.starts_with("gpt-3.5") || name == "gpt-4" || name.starts_with("gpt-4-") => OutputMode::Tool,
        "openai" | "anthropic" => OutputMode::Native,
        "deepseek" => OutputMode::Tool,
        _ => OutputMode::Auto,
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::Content;
    use rockbot_core::content::MediaPart;
    use serde_json::json;

    use super::*;

    fn asked() -> Arc<ChatRequest> {
        let shown = Content::from("Who?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]));
        let schema = OutputSchema::new("a", json!({"type": "object"}));
        Arc::new(ChatRequest::new([ChatMessage::user(shown)]).with_output(schema))
    }

    #[test]
    fn a_refusal_is_known_by_its_words_and_remembered_if_it_lasts() {
        let check = |text: &str, left: [bool; 2], images: Option<bool>, mode: Option<OutputMode>| {
            let refused = RefusedParts::default();
            let mut request = asked();
            let error = ChatError::new(ChatErrorKind::InvalidRequest, text);
            let learned = refused.learn(&error, &mut request);
            assert_eq!([has_media(&request), request.output.is_some()], left, "{text}");
            assert_eq!(learned, left != [true; 2], "{text}");
            assert_eq!(
                (refused.takes_images(), refused.output_mode()),
                (images, mode),
                "{text}"
            );
            let mut next = asked();
            refused.leave_out(&mut next);
            assert_eq!(has_media(&next), images.is_none(), "{text}");
            assert_eq!(next.output.is_some(), mode.is_none(), "{text}");
        };
        let no_images = [false, true];
        for text in [
            "Invalid content type. image_url is only supported by certain models.",
            "No endpoints found that support image input",
            "unknown variant `image_url`, expected `text`",
            "test is not a multimodal model",
        ] {
            check(text, no_images, Some(false), None);
        }
        check(
            "messages.0.content.1.image.source: Could not process image",
            no_images,
            None,
            None,
        );
        let no_schema = [true, false];
        check(
            "This response_format type is unavailable now",
            no_schema,
            None,
            Some(OutputMode::Tool),
        );
        check("Invalid schema for response_format 'a'", no_schema, None, None);
        check("max_tokens is too large", [true; 2], None, None);
    }

    #[test]
    fn what_is_left_out_is_said_in_words() {
        let refused = RefusedParts::default();
        let mut request = asked();
        for text in ["images are not supported", "unknown member json_schema"] {
            assert!(refused.learn(&ChatError::new(ChatErrorKind::InvalidRequest, text), &mut request));
        }
        let words: Vec<_> = request
            .messages
            .iter()
            .map(|message| message.text().into_owned())
            .collect();
        assert_eq!(
            words,
            [
                "Who?[image image/png, 3 bytes: the model's server does not take it]",
                r#"Answer with JSON that matches this JSON Schema, and with nothing else: {"type":"object"}"#,
            ]
        );
    }

    #[test]
    fn providers_and_models_have_a_known_mode() {
        for (provider, model, mode) in [
            ("openai", "gpt-4.1-mini", OutputMode::Native),
            ("openai", "gpt-4-turbo", OutputMode::Tool),
            ("deepseek", "deepseek-chat", OutputMode::Tool),
            ("anthropic", "claude-sonnet-4-6", OutputMode::Native),
            ("groq", "llama", OutputMode::Auto),
        ] {
            assert_eq!(known_output_mode(provider, model), mode, "{model}");
        }
    }
}
