//! The error of embedding calls.

use super::NotAnEmbedding;
use crate::chat::{ChatError, ChatErrorKind};

/// The error of an embedding call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// The call to the model failed, of the same kinds as any model call.
    #[error(transparent)]
    Call(#[from] ChatError),
    /// The number of vectors differs from the number of texts, or some are duplicated.
    #[error("`{model}` answered {answered} vectors to {asked} texts; check that its server speaks OpenAI's embeddings")]
    Count {
        /// Name of the model.
        model: String,
        /// Number of texts asked about.
        asked: usize,
        /// Number of vectors returned.
        answered: usize,
    },
    /// A vector has another dimension than earlier vectors, so they cannot be compared.
    #[error(
        "`{model}` answered a vector of {answered} numbers after ones of {expected}; restart to begin anew with it"
    )]
    Dimension {
        /// Name of the model.
        model: String,
        /// Dimension of the earlier vectors.
        expected: usize,
        /// Dimension of this vector.
        answered: usize,
    },
    /// The response for a text is not a vector.
    #[error("`{model}` answered something else than a vector: {cause}")]
    NotAnEmbedding {
        /// Name of the model.
        model: String,
        /// Reason.
        cause: NotAnEmbedding,
    },
}

impl EmbeddingError {
    /// Returns `true` if the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Call(error) if error.retry_helps())
    }

    /// Returns `true` if the error may concern a single text, such as a text that is too long, so
    /// that other texts may still be embedded. All other errors concern every text.
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
