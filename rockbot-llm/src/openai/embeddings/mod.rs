//! Asks servers that speak OpenAI's embeddings for the vectors of texts.

#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Url;
use rockbot_core::chat::{ChatError, ChatErrorKind};
use rockbot_core::config::Config;
use rockbot_core::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::dialect::{EMBEDDINGS_PATH, OPENAI};
use crate::error::LlmConfigError;
use crate::http::{ClientBuilder, Connection, Fault, has_type, is_error, quoted};
use crate::retry::trying;
use crate::settings::TierSettings;

/// Builds an [`OpenAiEmbeddings`].
pub type OpenAiEmbeddingsBuilder = ClientBuilder<EmbeddingOptions>;

/// The options that only a client of embeddings has.
#[derive(Debug)]
pub struct EmbeddingOptions {
    batch: usize,
}

/// An [`EmbeddingClient`] over HTTP for servers that speak OpenAI's embeddings (`POST
/// {endpoint}/embeddings`): OpenAI, vLLM, llama.cpp, Ollama, Text Embeddings Inference.
///
/// Whatever it is asked for goes to that server: think of who may read it. Many texts are asked
/// for in several requests, one after the other. A request that failed in a way that may pass is
/// tried once more; see [`OpenAiEmbeddingsBuilder`] for the limits. A call that is cancelled,
/// dropped or out of time closes its connection.
///
/// ```no_run
/// use rockbot_core::CallContext;
/// use rockbot_core::embedding::{EmbeddingCall, EmbeddingClient};
/// use rockbot_llm::OpenAiEmbeddings;
///
/// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
/// let model = OpenAiEmbeddings::builder("http://localhost:11434/v1", "bge-m3").build()?;
/// let texts = ["Our cat is called Miso.".to_owned(), "What was our pet's name?".to_owned()];
/// let vectors = model.embed(EmbeddingCall::new(texts, CallContext::new("session"))).await?;
/// println!("{}", vectors[0].similarity(&vectors[1]));
/// # Ok(())
/// # }
/// ```
pub struct OpenAiEmbeddings {
    connection: Connection,
    url: Url,
    batch: usize,
    /// Dimension of the first vector, which all later ones must have.
    dimension: OnceLock<usize>,
}

impl OpenAiEmbeddings {
    /// Creates the builder of a client of `model` at `endpoint`, a base URL such as `https://api.openai.com/v1`.
    pub fn builder(endpoint: impl Into<String>, model: impl Into<String>) -> OpenAiEmbeddingsBuilder {
        OpenAiEmbeddingsBuilder::new(endpoint.into(), model.into())
    }

    /// Creates the client of the model that `LLM.Embeddings` in `config` names, see
    /// [`settings`](crate::settings); `None` when it names none.
    ///
    /// # Errors
    ///
    /// Returns an error if something is set and cannot be used.
    pub fn from_config(config: &Config) -> Result<Option<Self>, LlmConfigError> {
        let settings = TierSettings::of_embeddings(config)?;
        settings.as_ref().map(Self::from_settings).transpose()
    }

    /// Creates the client of the embedding model that `settings` name.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting cannot be used.
    pub fn from_settings(settings: &TierSettings) -> Result<Self, LlmConfigError> {
        settings
            .apply(Self::builder(&settings.endpoint, &settings.model))
            .build()
    }

    async fn ask(&self, texts: &[String], deadline: Instant) -> Result<Vec<Embedding>, EmbeddingError> {
        let request = WireRequest {
            model: self.model(),
            input: texts,
            encoding_format: "float",
        };
        let body = serde_json::to_vec(&request).map_err(|error| {
            ChatError::new(ChatErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
        })?;
        let body = Bytes::from(body);
        let attempt = || self.attempt(body.clone());
        let answer = trying(&self.connection.retry, Some(deadline), attempt, |_, _| {}).await?;
        self.vectors(answer, texts.len())
    }

    async fn attempt(&self, body: Bytes) -> Result<Vec<WireEmbedding>, ChatError> {
        let mut response = self.connection.post(&self.url, body).await?;
        let read = if has_type(&response, b"text/html") {
            Err(Fault::WebPage)
        } else {
            self.connection.collect(Bytes::new(), &mut response).await
        };
        let read = read.and_then(|body| parse(&body));
        read.map_err(|fault| self.connection.unusable(&fault))
    }

    /// Returns the vectors in the order of the texts; `asked` is their number.
    fn vectors(&self, answer: Vec<WireEmbedding>, asked: usize) -> Result<Vec<Embedding>, EmbeddingError> {
        let model = self.model().to_owned();
        let answered = answer.len();
        let mut places: Vec<Option<Vec<f32>>> = vec![None; asked];
        for (position, vector) in answer.into_iter().enumerate() {
            // Servers that name no index keep the order.
            if let Some(place) = places.get_mut(vector.index.unwrap_or(position)) {
                *place = Some(vector.numbers());
            }
        }
        let found: Vec<_> = places.into_iter().flatten().collect();
        if answered != asked || found.len() != asked {
            let answered = if answered == asked { found.len() } else { answered };
            return Err(EmbeddingError::Count { model, asked, answered });
        }
        found.into_iter().map(|values| self.embedding(values)).collect()
    }

    fn embedding(&self, values: Vec<f32>) -> Result<Embedding, EmbeddingError> {
        let model = || self.model().to_owned();
        let embedding =
            Embedding::new(values).map_err(|cause| EmbeddingError::NotAnEmbedding { model: model(), cause })?;
        let answered = embedding.dimension();
        let expected = *self.dimension.get_or_init(|| embedding.dimension());
        if answered == expected {
            Ok(embedding)
        } else {
            Err(EmbeddingError::Dimension {
                model: model(),
                expected,
                answered,
            })
        }
    }
}

impl OpenAiEmbeddingsBuilder {
    fn new(endpoint: String, model: String) -> Self {
        let builder = Self::with(endpoint, model, EmbeddingOptions { batch: 32 });
        builder.timeout(Duration::from_secs(60))
    }

    /// Sets the maximum number of texts in one request. Default 32, which small servers accept, too.
    pub fn batch(mut self, texts: NonZeroUsize) -> Self {
        self.options.batch = texts.get();
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiEmbeddings, LlmConfigError> {
        let connection = self.connection.connect(&OPENAI)?;
        Ok(OpenAiEmbeddings {
            batch: self.options.batch,
            dimension: OnceLock::new(),
            url: connection.url(EMBEDDINGS_PATH),
            connection,
        })
    }
}

#[async_trait]
impl EmbeddingClient for OpenAiEmbeddings {
    fn model(&self) -> &str {
        &self.connection.report.model
    }

    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError> {
        let deadline = self.connection.deadline(&call.cx);
        let embed = async {
            let mut embeddings = Vec::with_capacity(call.texts.len());
            for texts in call.texts.chunks(self.batch) {
                embeddings.extend(self.ask(texts, deadline).await?);
            }
            Ok(embeddings)
        };
        self.connection.until(&call.cx, deadline, embed).await
    }
}

impl fmt::Debug for OpenAiEmbeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiEmbeddings")
            .field("endpoint", &self.connection.report.endpoint)
            .field("model", &self.model())
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct WireAnswer<'a> {
    #[serde(default)]
    data: Option<Vec<WireEmbedding>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireEmbedding {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<Option<f32>>,
}

impl WireEmbedding {
    /// Converts to numbers. JSON has no NaN, so servers write `null`.
    fn numbers(self) -> Vec<f32> {
        let number = |number: Option<f32>| number.unwrap_or(f32::NAN);
        self.embedding.into_iter().map(number).collect()
    }
}

fn parse(body: &[u8]) -> Result<Vec<WireEmbedding>, Fault> {
    let answer: WireAnswer<'_> = serde_json::from_slice(body).map_err(|error| {
        let sent = quoted(body);
        Fault::Malformed(format!("it is no list of embeddings ({error}){sent}"))
    })?;
    if answer.error.is_some_and(is_error) {
        return Err(Fault::InBand(body.to_vec()));
    }
    let missing = || Fault::Malformed(format!("it has no embeddings{}", quoted(body)));
    answer.data.ok_or_else(missing)
}
