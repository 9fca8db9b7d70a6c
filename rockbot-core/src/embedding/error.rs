//! What can go wrong with vectors of texts.

use super::NotAnEmbedding;
use crate::chat::{ChatError, ChatErrorKind};

/// Vectors that did not come, or that are none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// The model could not be asked: an embedding model fails as any other does.
    #[error(transparent)]
    Call(#[from] ChatError),
    /// There are more or fewer vectors than texts, or some are there twice.
    #[error("`{model}` answered {answered} vectors to {asked} texts; check that its server speaks OpenAI's embeddings")]
    Count {
        /// The model.
        model: String,
        /// How many texts it was asked about.
        asked: usize,
        /// How many vectors came.
        answered: usize,
    },
    /// A vector has another dimension than those before it, so they cannot be compared.
    #[error(
        "`{model}` answered a vector of {answered} numbers after ones of {expected}; restart to begin anew with it"
    )]
    Dimension {
        /// The model.
        model: String,
        /// How many numbers its vectors had so far.
        expected: usize,
        /// How many this one has.
        answered: usize,
    },
    /// What came for a text is no vector.
    #[error("`{model}` answered something else than a vector: {source}")]
    NotAnEmbedding {
        /// The model.
        model: String,
        /// Why not.
        source: NotAnEmbedding,
    },
}

impl EmbeddingError {
    /// Whether it may be about one of the texts, so that others may have a vector: a text that is too long, for
    /// example. Everything else holds for all texts alike.
    pub fn is_about_a_text(&self) -> bool {
        match self {
            Self::Call(error) => matches!(
                error.kind(),
                ChatErrorKind::ContextOverflow | ChatErrorKind::ContentFiltered | ChatErrorKind::InvalidRequest
            ),
            Self::NotAnEmbedding { .. } => true,
            Self::Count { .. } | Self::Dimension { .. } => false,
        }
    }
}
