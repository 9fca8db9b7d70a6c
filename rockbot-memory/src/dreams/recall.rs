//! Recall of episodes behind views: what was said stays in reach when a view lacks the words of the question.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{LongTermMemory, MemoryQuery};
use rockbot_core::{BoxError, MemoryId};

use super::handle::Shared;
use super::pass_context::VIEW;
use crate::tools::long_term::fact;
use crate::tools::shown_origin;

/// Maximum number of hits that are looked at, views and episodes together.
const MAX_HITS: usize = 8;

/// Maximum number of episodes that are shown.
const MAX_EPISODES: usize = 3;

/// A context source of memories that a view took the place of, where the question finds them and not their view.
#[derive(Debug)]
pub(super) struct EpisodeRecall(pub(super) Shared);

#[async_trait]
impl ContextSource for EpisodeRecall {
    fn name(&self) -> &str {
        "dreams"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let Some(memory) = self.0.get().and_then(|dreamer| dreamer.stores.memory.as_ref()) else {
            return Ok(Vec::new());
        };
        let mut items = Vec::new();
        let mut shown = BTreeSet::new();
        for topic in query.topics() {
            let asked = MemoryQuery::new(topic).with_limit(MAX_HITS).with_archived(true);
            let hits = memory.search(&query.principal, &asked).await?;
            let found: BTreeSet<_> = hits.iter().map(|hit| hit.item.id.clone()).collect();
            for hit in hits {
                let Some(by) = hit.item.superseded_by.as_ref().filter(|_| hit.item.archived_at.is_none()) else {
                    continue;
                };
                let is_new = !found.contains(by) && items.len() < MAX_EPISODES && shown.insert(hit.item.id.clone());
                // What a newer statement contradicts is out of date, and not shown.
                if is_new && is_view(memory, query, by).await? {
                    let text = format!("- [{by}] (said as): {}", fact(&hit.item));
                    let reason = format!("what the memory `{by}` was made of");
                    items.push(ContextItem::new("Memories", text, reason, shown_origin(&hit.item.provenance)));
                }
            }
        }
        Ok(items)
    }
}

async fn is_view(memory: &Arc<dyn LongTermMemory>, query: &ContextQuery, id: &MemoryId) -> Result<bool, BoxError> {
    let view = memory.get(&query.principal, id).await?;
    Ok(view.is_some_and(|view| view.is_live() && view.metadata.contains_key(VIEW)))
}
