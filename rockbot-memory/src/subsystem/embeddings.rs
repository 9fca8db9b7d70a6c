//! Long-term memory that is found by its meaning, too.

use std::path::Path;
use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::embedding::EmbeddingClient;
use rockbot_core::store::LongTermMemory;

use super::Memory;
use super::configured::below;
use crate::{Embedder, SemanticMemory, SemanticMemoryOptions};

/// Who makes vectors of long-term memory, and how it is found by them.
#[derive(Debug)]
pub(super) struct Embeddings {
    client: Arc<dyn EmbeddingClient>,
    options: SemanticMemoryOptions,
}

impl Memory {
    /// Long-term memory is found by what it means, too: see [`semantic`](crate::semantic). **Everything in it, and
    /// everything that is searched for, goes to `client`**, which for most is a server. Without a call of this nothing
    /// does.
    ///
    /// Vectors are kept in `embeddings` below the host's data folder, if it has one. With a store that the host was given,
    /// others than the tools and the recall of this subsystem find by words.
    pub fn embeddings(self, client: impl EmbeddingClient) -> Self {
        self.embeddings_with(client, SemanticMemoryOptions::default())
    }

    /// [`Memory::embeddings`], as `options` say.
    pub fn embeddings_with(mut self, client: impl EmbeddingClient, options: SemanticMemoryOptions) -> Self {
        let client = Arc::new(client);
        self.embeddings = Some(Embeddings { client, options });
        self
    }
}

impl Embeddings {
    /// `memory`, found by its meaning, and what makes the vectors for that.
    pub(super) fn around(
        &self,
        memory: Arc<dyn LongTermMemory>,
        data_dir: Option<&Path>,
    ) -> Result<(Arc<dyn LongTermMemory>, Embedder), BoxError> {
        let folder = self.options.folder.clone().unwrap_or_else(|| "embeddings".into());
        let options = SemanticMemoryOptions {
            folder: below(data_dir, folder),
            ..self.options.clone()
        };
        let (memory, embedder) = SemanticMemory::open(memory, self.client.clone(), options)?;
        Ok((Arc::new(memory), embedder))
    }
}
