//! Long-term memory that is found by its meaning, too.

use std::path::{Path, PathBuf};
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
    /// Long-term memory is found by what it means, too: see [`semantic`](crate::semantic). **Everything in it goes to
    /// `client`, and so does what people say and what the agent answers**, since that is searched for; for most it is a
    /// server. Without a call of this nothing does.
    ///
    /// Vectors are kept in `embeddings` below the host's data folder, if it has one. With a store that the host was given,
    /// others than the tools and the recall of this subsystem find by words.
    pub fn embeddings(self, client: impl EmbeddingClient) -> Self {
        self.embeddings_with(client, SemanticMemoryOptions::default())
    }

    /// [`Memory::embeddings`], as `options` say. A relative folder in them is below the working directory.
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
        let options = SemanticMemoryOptions {
            folder: self.folder(data_dir),
            ..self.options.clone()
        };
        let (memory, embedder) = SemanticMemory::open(memory, self.client.clone(), options)?;
        Ok((Arc::new(memory), embedder))
    }

    /// As it was said in code, or below the data folder.
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
