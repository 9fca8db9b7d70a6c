//! The indexes of the long texts that the model of a turn has read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::chat::ChatMessage;
use rockbot_provenance::TextIndex;

/// Maximum number of texts with an index in one turn. Further texts are searched.
const MAX_INDEXES: usize = 64;

/// The indexes of long texts. They are kept while a turn runs, so that a text is indexed once for
/// all calls that are examined against it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextIndexes(Arc<Mutex<HashMap<PartId, Indexed>>>);

/// The address of a message, and the number of a part in it.
type PartId = (usize, usize);

#[derive(Debug)]
struct Indexed {
    index: Arc<TextIndex>,
    /// Keeps the address of the message from another message.
    _message: Arc<ChatMessage>,
}

impl TextIndexes {
    /// Returns the index of the text of a part; `None` for a short text.
    pub(super) fn of(&self, message: &Arc<ChatMessage>, part: usize, text: &str) -> Option<Arc<TextIndex>> {
        if text.len() < TextIndex::MIN_TEXT {
            return None;
        }
        let mut indexes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (Arc::as_ptr(message).addr(), part);
        if let Some(known) = indexes.get(&id) {
            return Some(known.index.clone());
        }
        if indexes.len() >= MAX_INDEXES {
            return None;
        }
        let index = Arc::new(TextIndex::of(text));
        let indexed = Indexed {
            index: index.clone(),
            _message: message.clone(),
        };
        indexes.insert(id, indexed);
        Some(index)
    }
}
