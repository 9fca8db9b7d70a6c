//! The answer as servers write it: OpenAI's shape, read with patience for servers that only
//! resemble OpenAI.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::http::WireText;

/// A whole answer, or one piece of a streamed one.
#[derive(Deserialize)]
pub(super) struct WireAnswer<'a> {
    /// The first of the choices: no more are asked for.
    #[serde(default, borrow, rename = "choices", deserialize_with = "first_choice")]
    pub(super) choice: Option<WireChoice<'a>>,
    #[serde(default, borrow)]
    pub(super) model: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

fn first_choice<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WireChoice<'a>>, D::Error> {
    deserializer.deserialize_any(FirstChoice(PhantomData))
}

/// Keeps the choice with index 0, or without one, and no list of them.
struct FirstChoice<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for FirstChoice<'a> {
    type Value = Option<WireChoice<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Self::Value, A::Error> {
        let mut first = None;
        while let Some(choice) = choices.next_element::<WireChoice<'a>>()? {
            if first.is_none() && choice.index.unwrap_or(0) == 0 {
                first = Some(choice);
            }
        }
        Ok(first)
    }
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    // Boxed, since a message is large and parsing moves it several times.
    #[serde(default, borrow)]
    pub(super) message: Option<Box<WireMessage<'a>>>,
    #[serde(default, borrow)]
    pub(super) delta: Option<Box<WireMessage<'a>>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<WireText<'a>>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireMessage<'a> {
    #[serde(default, borrow)]
    pub(super) content: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) reasoning_content: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) reasoning: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<WireCall<'a>>>,
    /// Images that the model made, as OpenRouter sends them.
    #[serde(default, borrow)]
    pub(super) images: Option<Vec<WireImage<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct WireImage<'a> {
    #[serde(default, borrow)]
    pub(super) image_url: Option<WireImageUrl<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireImageUrl<'a> {
    #[serde(default, borrow)]
    pub(super) url: Option<WireText<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) function: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(default, borrow)]
    pub(super) name: Option<WireText<'a>>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> WireFunction<'a> {
    /// Returns the arguments as JSON text: servers send a string that holds it, or the object itself.
    pub(super) fn arguments(&self) -> Result<Cow<'a, str>, serde_json::Error> {
        let Some(raw) = self.arguments else {
            return Ok(Cow::Borrowed(""));
        };
        if raw.get().starts_with('"') {
            Ok(serde_json::from_str::<WireText<'a>>(raw.get())?.0)
        } else {
            Ok(Cow::Borrowed(raw.get()))
        }
    }
}

/// Tokens, by the names that OpenAI and other servers gave them.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireUsage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) total_tokens: Option<u64>,
    pub(super) prompt_tokens_details: Option<WireInputDetails>,
    pub(super) completion_tokens_details: Option<WireOutputDetails>,
    // OpenAI's responses and Anthropic
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) input_tokens_details: Option<WireInputDetails>,
    pub(super) output_tokens_details: Option<WireOutputDetails>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    // DeepSeek, Moonshot, and servers that leave the details out
    pub(super) prompt_cache_hit_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) reasoning_tokens: Option<u64>,
    // OpenRouter and Perplexity, in dollars
    pub(super) cost: Option<WireCost>,
    pub(super) cost_details: Option<WireCostDetails>,
    pub(super) is_byok: Option<bool>,
}

/// A cost in dollars; any other shape is ignored.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WireCost {
    Total(f64),
    Parts { total_cost: f64 },
    Other(IgnoredAny),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireCostDetails {
    pub(super) upstream_inference_cost: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireInputDetails {
    pub(super) cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireOutputDetails {
    pub(super) reasoning_tokens: Option<u64>,
}
