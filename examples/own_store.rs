//! A store of your own: conversations, kept where you like.
//!
//! `cargo run --example own_store`: no key needed. `rockbot::testing::conformance` has the tests
//! that such a store must pass.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::sync::{Arc, Mutex, PoisonError};

use rockbot::Principal;
use rockbot::agent::Stores;
use rockbot::implement::store::{ConversationMemory, ConversationTurn, StoreError};
use rockbot::prelude::*;

type Conversations = BTreeMap<(Principal, SessionId), Vec<ConversationTurn>>;

/// Conversations in a map, in the place of your database.
#[derive(Debug, Clone, Default)]
struct Shelf(Arc<Mutex<Conversations>>);

impl Shelf {
    fn with<T>(&self, act: impl FnOnce(&mut Conversations) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ConversationMemory for Shelf {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let key = (principal.clone(), session.clone());
        self.with(|kept| kept.entry(key).or_default().extend(entries));
        Ok(())
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let key = (principal.clone(), session.clone());
        let entries = self.with(|kept| kept.get(&key).cloned().unwrap_or_default());
        let skipped = entries.len().saturating_sub(limit);
        Ok(entries.into_iter().skip(skipped).collect())
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.with(|kept| kept.remove(&(principal.clone(), session.clone())));
        Ok(())
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let of_principal = |kept: &mut Conversations| {
            let keys = kept.keys().filter(|(owner, _)| owner == principal);
            keys.map(|(_, session)| session.clone()).collect()
        };
        Ok(self.with(of_principal))
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let shelf = Shelf::default();
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .stores(Stores::new().with_conversation_memory(shelf.clone()))
        .build()?;
    host.agent().ask("monday", "Hello!").await?;
    for ((principal, session), entries) in shelf.with(|kept| kept.clone()) {
        writeln!(stdout(), "{principal}, {session}: {} entries", entries.len())?;
        for entry in entries {
            writeln!(stdout(), "  {:?}: {}", entry.role, entry.content)?;
        }
    }
    Ok(())
}
