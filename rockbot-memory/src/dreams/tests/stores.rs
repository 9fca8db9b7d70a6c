//! Stores whose writes never end at a chosen point, as if the process were killed there.

use std::sync::atomic::{AtomicUsize, Ordering};

use rockbot_core::store::{
    InMemoryLongTermMemory, InMemoryRulesStore, InMemorySkillStore, Remembered, Rule, StoreError, StorePath,
};
use rockbot_core::{MemoryId, Principal, Timestamp};

use super::*;

/// The points of all stores at which a process may be killed: two a write, before and after it.
#[derive(Debug, Default)]
pub(in super::super) struct Writes {
    passed: AtomicUsize,
    /// Number of the point that hangs; 0 for none.
    hangs_at: AtomicUsize,
}

impl Writes {
    /// Lets the `number`th point from now on hang; 0 lets none.
    pub(in super::super) fn hang_at(&self, number: usize) {
        self.passed.store(0, Ordering::SeqCst);
        self.hangs_at.store(number, Ordering::SeqCst);
    }

    async fn point(&self) {
        let number = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.hangs_at.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn around<T>(&self, write: impl Future<Output = T>) -> T {
        self.point().await;
        let written = write.await;
        self.point().await;
        written
    }
}

macro_rules! hanging {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(in super::super) struct $name {
            pub(in super::super) inner: $inner,
            writes: Arc<Writes>,
        }

        impl $name {
            pub(super) fn new(writes: &Arc<Writes>) -> Self {
                Self {
                    inner: Default::default(),
                    writes: writes.clone(),
                }
            }
        }
    };
}

hanging!(
    /// A long-term memory that can hang, and that nothing may be deleted from.
    Memories,
    InMemoryLongTermMemory
);
hanging!(
    /// A store of skills that can hang.
    Skills,
    InMemorySkillStore
);
hanging!(
    /// A store of rules that can hang.
    Rules,
    InMemoryRulesStore
);

#[async_trait]
impl LongTermMemory for Memories {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.inner.get(principal, id).await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        self.writes.around(self.inner.save(principal, entry)).await
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        self.inner.remember(principal, entry).await
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        self.writes.around(self.inner.replace(principal, before, after)).await
    }

    async fn delete(&self, _: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        panic!("a dream deletes nothing, and deleted {id}");
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.inner.purge(before).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.inner.list(principal).await
    }
}

#[async_trait]
impl SkillStore for Skills {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        self.inner.get(principal, name).await
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        self.writes.around(self.inner.save(principal, skill)).await
    }

    async fn delete(&self, _: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        panic!("a dream deletes nothing, and deleted {name}");
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        self.inner.list(principal).await
    }
}

#[async_trait]
impl RulesStore for Rules {
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError> {
        self.writes.around(self.inner.add(principal, rule)).await
    }

    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError> {
        self.writes.around(self.inner.remove(principal, rule)).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError> {
        self.inner.list(principal).await
    }

    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        self.inner.time_zone(principal).await
    }

    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        self.inner.set_time_zone(principal, name).await
    }
}
