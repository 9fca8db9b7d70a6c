//! Semantic search of long-term memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::embedding::EmbeddingClient;
use rockbot_core::store::{LongTermMemory, VectorCache};

use super::Memory;
use super::configured::below;
use crate::{Embedder, SemanticMemory, SemanticMemoryOptions};

/// The embedding client of long-term memory, and the options of its search.
#[derive(Debug)]
pub(super) struct Embeddings {
    client: Arc<dyn EmbeddingClient>,
    options: SemanticMemoryOptions,
}

impl Memory {
    /// Searches long-term memory by meaning as well: see [`semantic`](crate::semantic).
    ///
    /// **All memories are sent to `client`, and so are users' messages and the agent's answers**,
    /// which are the queries; usually it is a server. Nothing is sent unless this is called.
    ///
    /// Vectors are cached in the host's database, such as a `Postgres`, or in `embeddings` below its data
    /// folder, if it has one of them. When the host
    /// was given a store of its own, only the tools and the recall of this subsystem search by
    /// meaning; other users of that store search by words.
    pub fn embeddings(self, client: impl EmbeddingClient) -> Self {
        self.embeddings_with(client, SemanticMemoryOptions::default())
    }

    /// Searches by meaning like [`Memory::embeddings`], with `options`. A relative folder in them is
    /// below the working directory.
    pub fn embeddings_with(mut self, client: impl EmbeddingClient, options: SemanticMemoryOptions) -> Self {
        let client = Arc::new(client);
        self.embeddings = Some(Embeddings { client, options });
        self
    }
}

impl Embeddings {
    /// Wraps `memory` in a semantic search, and returns the task that computes the vectors.
    pub(super) fn around(
        &self,
        memory: Arc<dyn LongTermMemory>,
        data_dir: Option<&Path>,
        shared: Option<Arc<dyn VectorCache>>,
    ) -> Result<(Arc<dyn LongTermMemory>, Embedder), BoxError> {
        let shared = shared.filter(|_| self.options.folder.is_none());
        let options = SemanticMemoryOptions {
            folder: self.folder(data_dir),
            cache: self.options.cache.clone().or(shared),
            ..self.options.clone()
        };
        let (memory, embedder) = SemanticMemory::open(memory, self.client.clone(), options)?;
        Ok((Arc::new(memory), embedder))
    }

    /// Returns the folder of the options, or the default below the data folder.
    fn folder(&self, data_dir: Option<&Path>) -> Option<PathBuf> {
        let said = self.options.folder.clone();
        said.or_else(|| below(data_dir, "embeddings".into()))
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::HashedEmbeddings;

    use super::*;

    #[test]
    fn a_folder_that_was_said_in_code_is_taken_as_it_is() {
        let folder = |said: Option<&str>, data_dir: Option<&str>| {
            let options = SemanticMemoryOptions {
                folder: said.map(PathBuf::from),
                ..SemanticMemoryOptions::default()
            };
            let client = Arc::new(HashedEmbeddings::new());
            Embeddings { client, options }.folder(data_dir.map(Path::new))
        };
        for (said, data_dir, expected) in [
            (Some("vectors"), None, Some("vectors")),
            (Some("vectors"), Some("data"), Some("vectors")),
            (None, Some("data"), Some("data/embeddings")),
            (None, None, None),
        ] {
            assert_eq!(
                folder(said, data_dir),
                expected.map(PathBuf::from),
                "{said:?} {data_dir:?}"
            );
        }
    }
}
