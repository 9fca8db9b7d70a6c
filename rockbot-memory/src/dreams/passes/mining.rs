//! Finds lasting facts in the conversation log that were not saved.

use rockbot_core::store::{MemoryQuery, StoreError};

use super::super::ask::{Item, Question};
use super::super::pass_context::PassContext;
use super::facts::{self, Facts, Filing, SHAPE};
use super::log::Said;

/// Maximum number of messages of one question. Each is looked up in memory, so that the model does
/// not repeat a memory; the other messages follow in the next cycle.
const MAX_MESSAGES: usize = 50;

/// Maximum number of memories that are shown.
const MAX_KNOWN: usize = 2 * MAX_MESSAGES;

/// Number of memories that are looked up for each message.
const KNOWN_OF_EACH: usize = 2;

const FILING: Filing = Filing {
    category: "conversations",
    tag: "mined",
    min_sources: 1,
};

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(said) = Said::since_last_time(cx, MAX_MESSAGES).await? else {
        return Ok(());
    };
    let mut items = said.items();
    items.extend(known(cx, &said).await?);
    let question = Question {
        intro: "What the user said, and what is remembered of it".to_owned(),
        items,
        shape: SHAPE,
    };
    if let Some(answer) = cx.ask::<Facts>(&question).await {
        facts::add(cx, &question, answer, &FILING).await?;
        said.read(cx);
    } else {
        said.go_on(cx);
    }
    Ok(())
}

/// Returns the memories that fit the messages.
async fn known(cx: &PassContext<'_>, said: &Said) -> Result<Vec<Item>, StoreError> {
    let Some(memory) = &cx.stores.memory else {
        return Ok(Vec::new());
    };
    let mut known: Vec<Item> = Vec::new();
    for message in &said.messages {
        let query = MemoryQuery::new(message.content.clone()).with_limit(KNOWN_OF_EACH);
        for hit in memory.search(cx.who, &query).await? {
            let id = hit.item.id.to_string();
            if known.len() < MAX_KNOWN && known.iter().all(|item| item.id != id) {
                known.push(Item {
                    id,
                    text: format!("(remembered) {}", hit.item.content),
                    from: hit.item.provenance.clone(),
                });
            }
        }
    }
    Ok(known)
}
