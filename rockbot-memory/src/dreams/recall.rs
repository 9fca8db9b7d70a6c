//! Recall of episodes behind views: the original memory stays in reach when its view lacks the
//! words of the question.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};

use super::handle::Shared;
use super::pass_context::is_made_of;
use crate::tools::long_term::fact;
use crate::tools::shown_origin;

/// Maximum number of hits that are looked at, views and episodes together.
const MAX_HITS: usize = 8;

/// Maximum number of episodes that are shown.
const MAX_EPISODES: usize = 3;

/// Maximum length of a chain of views, each made of the one before.
const MAX_VIEWS: usize = 8;

/// A context source of memories whose place a view took. It adds a memory that the question finds
/// when the question does not find the view.
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
                let Some(by) = hit
                    .item
                    .superseded_by
                    .as_ref()
                    .filter(|_| hit.item.archived_at.is_none())
                else {
                    continue;
                };
                let is_new = !found.contains(by) && items.len() < MAX_EPISODES && shown.insert(hit.item.id.clone());
                // A memory that a newer statement contradicts is out of date, and not shown.
                if is_new && stands_for(memory, query, &hit.item).await? {
                    let text = format!("- [{by}] (said as): {}", fact(&hit.item));
                    let reason = format!("what the memory `{by}` was made of");
                    items.push(ContextItem::new(
                        "Memories",
                        text,
                        reason,
                        shown_origin(&hit.item.provenance),
                    ));
                }
            }
        }
        Ok(items)
    }
}

/// Returns `true` if a live view was made of the memory, or of a view that was made of it.
async fn stands_for(
    memory: &Arc<dyn LongTermMemory>,
    query: &ContextQuery,
    episode: &Arc<MemoryEntry>,
) -> Result<bool, BoxError> {
    let mut source = episode.clone();
    for _ in 0..MAX_VIEWS {
        let Some(by) = &source.superseded_by else {
            return Ok(source.is_live());
        };
        let view = memory.get(&query.principal, by).await?;
        match view.filter(|view| is_made_of(view, &source.id)) {
            Some(view) => source = view,
            None => return Ok(false),
        }
    }
    Ok(false)
}
