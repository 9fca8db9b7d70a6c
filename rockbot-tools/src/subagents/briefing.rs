//! The tools that subagents alone have, as context of their turns.

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::content::Provenance;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};

use super::{CHILD_GROUP, NAMESPACE};

/// A context source that activates `report_progress` in the turns of subagents.
#[derive(Debug)]
pub(super) struct Briefing;

#[async_trait]
impl ContextSource for Briefing {
    fn name(&self) -> &str {
        "subagents"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let namespace = query.namespace();
        let own = namespace.path();
        if own.segments().next() != Some(NAMESPACE) || query.is_further_task {
            return Ok(Vec::new());
        }
        let text = format!("Your part of working memory is `{own}`; the conversation that waits for you reads it.");
        let item = ContextItem::new("Subagent", text, "the turn is a subagent's", Provenance::HOST);
        Ok(vec![item.as_guidance().activating(CHILD_GROUP)])
    }
}
