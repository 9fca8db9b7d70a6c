//! Hints: the services that fit a message, and the services that fit a further task of a turn.

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::service::ServiceKind;

use super::SharedIndex;
use super::index::Found;
use super::tool::{summary_of, top_items};

/// Maximum number of services for a message.
const OF_MESSAGE: usize = 2;

/// Maximum number of services for a further task.
const OF_TASK: usize = 3;

/// Number of tokens of the hints of a message, estimated.
pub(super) const MAX_TOKENS: u64 = 100;

const HEADING: &str = "Potentially relevant services for this request (call search_known_services for full search)";

/// A context source of services.
///
/// A service is shown only if the message's rare terms fit
/// ([`RareTerms`](super::index::RareTerms)). A model sees the tools that are always shown anyway,
/// and guides and skills have a list of their own: only agents, servers and tools on demand are
/// worth a line.
#[derive(Debug)]
pub(super) struct ServiceHints {
    index: SharedIndex,
    /// `false` if only further tasks get hints.
    with_messages: bool,
}

impl ServiceHints {
    pub(super) fn new(index: SharedIndex, with_messages: bool) -> Self {
        Self { index, with_messages }
    }
}

#[async_trait]
impl ContextSource for ServiceHints {
    fn name(&self) -> &str {
        "services"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let limit = match (query.is_further_task, self.with_messages) {
            (true, _) => OF_TASK,
            (false, true) => OF_MESSAGE,
            (false, false) => return Ok(Vec::new()),
        };
        // Earlier messages are not searched by: their services were shown with them. Small talk has no
        // topic.
        let topic = query.topics().next().filter(|topic| *topic == query.text.trim());
        let (Some(topic), Some(index)) = (topic, self.index.get()) else {
            return Ok(Vec::new());
        };
        // More than are shown: some of the best may be seen already.
        let found = index.search(&query.principal, topic, limit * 4).await;
        let worth = found.iter().filter(|found| found.rare.fit() && is_unseen(found));
        Ok(worth.take(limit).map(item).collect())
    }
}

/// Reports whether the model sees nothing of the service otherwise.
fn is_unseen(found: &Found) -> bool {
    match found.service.kind {
        ServiceKind::Agent | ServiceKind::McpServer => true,
        ServiceKind::Tool => found.service.activates.is_some(),
        _ => false,
    }
}

fn item(found: &Found) -> ContextItem {
    let service = &found.service;
    let id = &service.id;
    let kind = service.kind.name();
    let mut line = format!("{id} ({kind}): {}", summary_of(service));
    let items = top_items(service).join(", ");
    match service.kind {
        ServiceKind::Agent if !items.is_empty() => line += &format!(", top skills: {items}"),
        ServiceKind::McpServer if !items.is_empty() => line += &format!(", top tools: {items}"),
        _ => {}
    }
    let reason = format!("has {:.0} % of the words", found.relevance * 100.0);
    let item = ContextItem::new(HEADING, line, reason, service.provenance.clone());
    match &service.activates {
        Some(group) => item.activating(group.clone()),
        None => item,
    }
}
