//! Tool results that are too long for the conversation, and the texts that the model reads
//! instead.

use std::sync::Arc;

use rockbot_core::content::Provenance;
use rockbot_core::store::{ChunkKeys, Namespace, WorkingMemory};
use rockbot_core::tool::ToolInvokeResponse;
use rockbot_core::trust::Trust;
use rockbot_core::{CallContext, Digest};

use crate::large_result::{LargeResult, LargeResultPolicy, delete_chunks};
use crate::turn::CallFacts;

/// The limit above which results leave the conversation, and the store that keeps them.
///
/// Without a working memory the model reads the beginning of the result alone.
#[derive(Debug, Default)]
pub(crate) struct LargeResults {
    pub(crate) policy: LargeResultPolicy,
    pub(crate) memory: Option<Arc<dyn WorkingMemory>>,
}

/// A result as the model reads it.
#[derive(Debug)]
pub(crate) struct Shortened {
    pub(crate) response: ToolInvokeResponse,
    /// `true` if the model reads an outline, and the result is in working memory.
    pub(crate) is_stored: bool,
}

impl Shortened {
    /// Creates a result that the model reads as it is.
    pub(crate) fn unchanged(response: ToolInvokeResponse) -> Self {
        Self {
            response,
            is_stored: false,
        }
    }
}

impl LargeResults {
    /// Returns `response` as the model reads it: unchanged up to `threshold` characters, above them
    /// as an outline whose parts are in working memory. `threshold` overrides the host's own.
    ///
    /// The result of a tool that keeps its results whole is never replaced: such a tool reads the
    /// results of other tools, and its answer would be moved away again before the model saw it.
    pub(super) async fn shorten(
        &self,
        mut response: ToolInvokeResponse,
        facts: CallFacts,
        cx: &CallContext,
        threshold: Option<usize>,
    ) -> Shortened {
        let own = response.chunks().cloned();
        let threshold = threshold.unwrap_or(self.policy.threshold);
        let threshold = own.as_ref().map_or(threshold, |own| own.threshold.min(threshold));
        let mut is_stored = false;
        // Bytes are compared first, because counting characters takes a pass over the text, and no text
        // has more characters than bytes.
        if response.content.text_len() > threshold && !facts.keeps_result_whole {
            let policy = LargeResultPolicy {
                threshold,
                ttl: own.as_ref().map_or(self.policy.ttl, |own| own.ttl),
                ..self.policy.clone()
            };
            let text = response.content.text();
            let origin = origin(&response, facts);
            let outline = match LargeResult::of(&response.tool_name, &text, &policy) {
                // Boxed: every call's future would have room for it otherwise, and few results are so long.
                Some(large) => {
                    let large = large.with_origin(&origin);
                    let large = own.iter().fold(large, |large, own| large.with_chunk_len(own.max_len));
                    Some(Box::pin(self.store(&large, &response, cx)).await)
                }
                None => None,
            };
            if let Some(outline) = outline {
                response.content.replace_text(outline);
                is_stored = self.memory.is_some();
            }
        }
        if let (Some(own), false) = (&own, is_stored) {
            Box::pin(self.forget(&own.key, cx)).await;
        }
        Shortened { response, is_stored }
    }

    /// Deletes the chunks of an earlier result of this name: the model has just read the current one
    /// as a whole.
    async fn forget(&self, name: &str, cx: &CallContext) {
        let keys = ChunkKeys::named(Namespace::of(cx).path(), name);
        let (Some(memory), Ok(keys)) = (&self.memory, keys) else {
            return;
        };
        // Without an outline there are no chunks, as for most results.
        if let Ok(true) = memory.delete(cx.principal(), &keys.index()).await {
            delete_chunks(&**memory, cx.principal(), &keys, 0).await;
        }
    }

    async fn store(&self, large: &LargeResult<'_>, response: &ToolInvokeResponse, cx: &CallContext) -> String {
        let turn = cx.turn().map(|turn| turn.as_str()).unwrap_or_default();
        // Keyed by turn and call: the same call after a crash writes the same keys again.
        let run = Digest::of([turn, response.tool_call_id.as_str()]).short();
        // Eight digits: the model copies the key, and a session has few long results at a time.
        let namespace = Namespace::of(cx);
        let keys = match response.chunks() {
            Some(own) => ChunkKeys::named(namespace.path(), &own.key),
            None => large.keys(namespace.path(), &run[..8]),
        };
        match (&self.memory, keys) {
            (Some(memory), Ok(keys)) => large.keep_in(&**memory, cx.principal(), &keys).await,
            _ => large.truncated(),
        }
    }
}

/// Returns the origin of a result, which its chunks keep.
fn origin(response: &ToolInvokeResponse, facts: CallFacts) -> Provenance {
    let place = if facts.own_output {
        Provenance::OWN_TOOL
    } else {
        Provenance::new(format!("tool:{}", response.tool_name), Trust::Untrusted)
    };
    Provenance::labelled("tool", &response.content.clone().attributed(place).label())
}
