//! Vectors of texts without a model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::chat::{ChatError, ChatErrorKind};
use crate::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};
use crate::{CallContext, Digest};

/// An [`EmbeddingClient`] that knows no meaning: the hash of a word gives its direction, and a
/// text is the sum of its words. Texts that share words are similar, others are not at all, and
/// the same text has the same vector everywhere.
///
/// Synonyms ([`same`](Self::same)) count as one word, so that a test can find a text by words
/// that it does not contain. Clones share the record of embedded texts.
///
/// ```
/// use rockbot_core::CallContext;
/// use rockbot_core::embedding::{EmbeddingCall, EmbeddingClient};
/// use rockbot_core::testing::HashedEmbeddings;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::embedding::EmbeddingError> {
/// let client = HashedEmbeddings::new().same("cat", "feline");
/// let texts = ["the cat".to_owned(), "The feline!".to_owned(), "a dog".to_owned()];
/// let vectors = client.embed(EmbeddingCall::new(texts, CallContext::new("session"))).await?;
/// assert_eq!(vectors[0], vectors[1]);
/// assert_eq!(vectors[0].similarity(&vectors[2]), 0.0);
/// assert_eq!(client.texts().len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct HashedEmbeddings {
    same: BTreeMap<String, String>,
    texts: Arc<Mutex<Vec<String>>>,
}

/// Number of directions, so large that the few words of a test seldom share one.
const DIMENSION: usize = 4096;

impl HashedEmbeddings {
    /// Creates a client with other, unrelated directions for all words.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares `other` a synonym of `word`: both get the same direction. Give both in lower case.
    #[must_use]
    pub fn same(mut self, word: impl Into<String>, other: impl Into<String>) -> Self {
        self.same.insert(other.into(), word.into());
        self
    }

    /// Returns all texts that were embedded so far.
    pub fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn vector(&self, text: &str) -> Embedding {
        let mut values = vec![0.0; DIMENSION];
        let words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        for word in words.map(str::to_lowercase) {
            values[direction(self.same.get(&word).unwrap_or(&word))] += 1.0;
        }
        // A text without words lies where no word does.
        let nothing = || Embedding::new([vec![0.0; DIMENSION - 1], vec![1.0]].concat());
        Embedding::new(values)
            .or_else(|_| nothing())
            .expect("one of its numbers is 1")
    }
}

/// Returns the direction of a word. The last direction is that of texts without words.
fn direction(word: &str) -> usize {
    let hash = Digest::of([word]).short();
    usize::from_str_radix(&hash[..8], 16).expect("a digest is hexadecimal") % (DIMENSION - 1)
}

/// Returns the error of a cancelled or timed-out call.
fn given_up(cx: &CallContext) -> Option<ChatError> {
    let is_late = cx.time_left().is_some_and(|left| left.is_zero());
    if cx.cancellation().is_cancelled() {
        Some(ChatError::new(ChatErrorKind::Cancelled, "the call was cancelled"))
    } else {
        is_late.then(|| ChatError::new(ChatErrorKind::TimedOut, "no vectors before the deadline"))
    }
}

#[async_trait]
impl EmbeddingClient for HashedEmbeddings {
    fn model(&self) -> &str {
        "hashed-words"
    }

    async fn embed(&self, call: EmbeddingCall) -> Result<Vec<Embedding>, EmbeddingError> {
        if let Some(error) = given_up(&call.cx) {
            return Err(error.into());
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.extend_from_slice(&call.texts);
        Ok(call.texts.iter().map(|text| self.vector(text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_an_embedding_client() {
        conformance::embedding_client(async || HashedEmbeddings::new()).await;
    }
}
