//! Applies the changes of a plan, and undoes them. Both operations are idempotent: after a crash
//! the same operation runs again.

use rockbot_core::store::{LongTermMemoryExt, MemoryEntry, Rule, Skill, StoreError};
use rockbot_core::{MemoryId, Principal, Timestamp};

use super::error::DreamError;
use super::plan::{DreamChange, DreamPlan};
use super::stores::Stores;

/// Applies and undoes the changes of one plan.
pub(super) struct Applier<'a> {
    pub(super) stores: &'a Stores,
    pub(super) plan: &'a DreamPlan,
    pub(super) now: Timestamp,
}

/// The result of a look at the stores before a change is made.
enum Look {
    /// The knowledge is as the change expects it.
    Fits,
    /// The change stands already.
    Stands,
    /// The knowledge has changed; the text names the difference.
    Differs(String),
}

impl Applier<'_> {
    /// Checks that each change fits the contents of the stores.
    ///
    /// # Errors
    ///
    /// Returns [`DreamError::Stale`] if a change does not fit.
    pub(super) async fn check(&self) -> Result<(), DreamError> {
        for change in &self.plan.changes {
            match (self.look(change).await?, change) {
                (Look::Differs(reason), _) => return Err(DreamError::Stale(reason)),
                // Undoing the plan would take the user's own rule away.
                (Look::Stands, DreamChange::Rule { rule, .. }) => {
                    return Err(DreamError::Stale(format!("the rule `{rule}` stands already")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the changes that do not stand yet, and returns remarks on the changes that could not
    /// be made, since another writer changed the same thing after [`check`](Self::check).
    pub(super) async fn apply(&self) -> Result<Vec<String>, StoreError> {
        let mut left_out = Vec::new();
        for change in &self.plan.changes {
            match (self.look(change).await?, change) {
                // A person may have archived the memory that takes its place: neither memory would
                // be left to find.
                (Look::Fits, DreamChange::Supersede { by, id, .. }) if !self.is_live(by).await? => {
                    left_out.push(format!("the memory `{id}` stays, since `{by}` is gone"));
                }
                (Look::Fits, _) => self.make(change).await?,
                (Look::Stands, _) => {}
                (Look::Differs(reason), _) => left_out.push(reason),
            }
        }
        Ok(left_out)
    }

    /// Undoes the changes, the last change first. Entries that were changed since then stay; the
    /// returned remarks name them.
    pub(super) async fn undo(&self) -> Result<Vec<String>, StoreError> {
        let mut left_out = Vec::new();
        for change in self.plan.changes.iter().rev() {
            left_out.extend(self.take_back(change).await?);
        }
        Ok(left_out)
    }

    fn who(&self) -> &Principal {
        &self.plan.principal
    }

    async fn look(&self, change: &DreamChange) -> Result<Look, StoreError> {
        match change {
            DreamChange::AddMemory { entry, .. } => {
                let stored = self.memory(&entry.id).await?;
                Ok(match stored {
                    None => Look::Fits,
                    Some(stored) if stored == **entry => Look::Stands,
                    Some(stored) if is_undone(&stored, entry) => Look::Fits,
                    Some(_) => Look::Differs(format!("the memory `{}` has changed", entry.id)),
                })
            }
            DreamChange::Supersede { id, content, by, .. } => Ok(match self.memory(id).await? {
                Some(stored) if stored.superseded_by.as_ref() == Some(by) => Look::Stands,
                Some(stored) if stored.is_live() && stored.content == *content => Look::Fits,
                _ => Look::Differs(format!("the memory `{id}` has changed")),
            }),
            DreamChange::Reinforce { before, after } | DreamChange::MarkStale { before, after, .. } => {
                Ok(match self.memory(&before.id).await? {
                    Some(stored) if stored == **after => Look::Stands,
                    Some(stored) if stored == **before => Look::Fits,
                    _ => Look::Differs(format!("the memory `{}` has changed", before.id)),
                })
            }
            DreamChange::Skill { before, after, .. } => self.look_at_skill(before.as_deref(), after).await,
            DreamChange::Rule { rule, .. } => self.look_at_rule(rule).await,
            DreamChange::TierRules { before, after, .. } => {
                let stored = self.stores.tier_rules().await?;
                Ok(if stored.as_deref() == Some(after) {
                    Look::Stands
                } else if stored == *before || is_default(stored.as_deref(), before.as_deref()) {
                    Look::Fits
                } else {
                    Look::Differs("the rules of the tier selector have changed".to_owned())
                })
            }
        }
    }

    async fn look_at_skill(&self, before: Option<&Skill>, after: &Skill) -> Result<Look, StoreError> {
        let stored = Stores::required(&self.stores.skills, "skills")?;
        let stored = stored.get(self.who(), &after.name).await?;
        Ok(match (stored.as_deref(), before) {
            (None, None) => Look::Fits,
            (Some(stored), _) if says_the_same(stored, after) => Look::Stands,
            (Some(stored), Some(before)) if says_the_same(stored, before) => Look::Fits,
            // Undoing a new skill archives it.
            (Some(stored), None) if !stored.is_live() && stored.content == after.content => Look::Fits,
            _ => Look::Differs(format!("the skill `{}` has changed", after.name)),
        })
    }

    async fn look_at_rule(&self, rule: &str) -> Result<Look, StoreError> {
        let rules = Stores::required(&self.stores.rules, "rules")?.list(self.who()).await?;
        let wanted = Rule::new(rule);
        let stands = wanted.is_none_or(|wanted| rules.iter().any(|rule| rule.is_same_as(&wanted)));
        // While the plan is being applied, the rule that stands is the plan's own.
        Ok(if stands { Look::Stands } else { Look::Fits })
    }

    async fn make(&self, change: &DreamChange) -> Result<(), StoreError> {
        match change {
            DreamChange::AddMemory { entry, .. } => {
                let memory = Stores::required(&self.stores.memory, "long-term memory")?;
                memory.save(self.who(), (**entry).clone()).await
            }
            DreamChange::Supersede { id, content, by, .. } => {
                let reason = format!("dream {}", self.plan.id);
                let supersede = |entry: &mut MemoryEntry| {
                    if entry.is_live() && entry.content == *content {
                        entry.superseded_by = Some(by.clone());
                        entry.archive_reason = Some(reason.clone());
                    }
                };
                self.update(id, supersede).await
            }
            DreamChange::Reinforce { before, after } | DreamChange::MarkStale { before, after, .. } => {
                let memory = Stores::required(&self.stores.memory, "long-term memory")?;
                memory.replace(self.who(), before, (**after).clone()).await.map(drop)
            }
            DreamChange::Skill { after, .. } => self.put_skill(after).await,
            DreamChange::Rule { rule, .. } => match Rule::new(rule) {
                Some(rule) => {
                    let rules = Stores::required(&self.stores.rules, "rules")?;
                    rules.add(self.who(), rule).await.map(drop)
                }
                None => Ok(()),
            },
            DreamChange::TierRules { after, .. } => self.stores.set_tier_rules(after.clone()).await,
        }
    }

    /// Undoes a change, unless another writer has changed the entry since. The remark then names
    /// the entry.
    async fn take_back(&self, change: &DreamChange) -> Result<Option<String>, StoreError> {
        match change {
            DreamChange::AddMemory { entry, .. } => {
                let now = self.now;
                let reason = format!("dream {} was undone", self.plan.id);
                let archive = |stored: &mut MemoryEntry| {
                    if stored.is_live() {
                        stored.archived_at = Some(now);
                        stored.archive_reason = Some(reason.clone());
                    }
                };
                self.update(&entry.id, archive).await?;
            }
            DreamChange::Supersede { id, by, .. } => {
                let restore = |stored: &mut MemoryEntry| {
                    if stored.superseded_by.as_ref() == Some(by) {
                        (stored.superseded_by, stored.archive_reason) = (None, None);
                    }
                };
                self.update(id, restore).await?;
            }
            DreamChange::Reinforce { before, after } | DreamChange::MarkStale { before, after, .. } => {
                let memory = Stores::required(&self.stores.memory, "long-term memory")?;
                let is_back = memory.replace(self.who(), after, (**before).clone()).await?;
                let stands = is_back || self.memory(&before.id).await?.as_ref() == Some(&**before);
                return Ok((!stands).then(|| format!("the memory `{}` was changed since, and stays", before.id)));
            }
            DreamChange::Skill { before, after, .. } => return self.restore_skill(before.as_deref(), after).await,
            DreamChange::Rule { rule, .. } => {
                if let Some(rule) = Rule::new(rule) {
                    let rules = Stores::required(&self.stores.rules, "rules")?;
                    rules.remove(self.who(), &rule).await?;
                }
            }
            DreamChange::TierRules { before, after, .. } => {
                let stored = self.stores.tier_rules().await?;
                if stored.as_deref() == Some(after) {
                    // An empty object means the default rules, as a missing file does.
                    let before = before.clone().unwrap_or_else(|| "{}".to_owned());
                    self.stores.set_tier_rules(before).await?;
                }
            }
        }
        Ok(None)
    }

    async fn restore_skill(&self, before: Option<&Skill>, after: &Skill) -> Result<Option<String>, StoreError> {
        let skills = Stores::required(&self.stores.skills, "skills")?;
        let stored = skills.get(self.who(), &after.name).await?;
        let Some(stored) = stored.filter(|stored| says_the_same(stored, after)) else {
            let is_back = before.is_none();
            return Ok((!is_back).then(|| format!("the skill `{}` was changed since, and stays", after.name)));
        };
        let back = match before {
            Some(before) => before.clone().with_last_used_at(stored.last_used_at),
            None => (*stored).clone().with_archived_at(self.now),
        };
        skills.save(self.who(), back).await.map(|()| None)
    }

    async fn put_skill(&self, after: &Skill) -> Result<(), StoreError> {
        let skills = Stores::required(&self.stores.skills, "skills")?;
        let stored = skills.get(self.who(), &after.name).await?;
        let used = stored.and_then(|stored| stored.last_used_at);
        let after = after.clone().with_last_used_at(used.max(after.last_used_at));
        skills.save(self.who(), after).await
    }

    async fn is_live(&self, id: &MemoryId) -> Result<bool, StoreError> {
        Ok(self.memory(id).await?.is_some_and(|entry| entry.is_live()))
    }

    async fn memory(&self, id: &MemoryId) -> Result<Option<MemoryEntry>, StoreError> {
        let memory = Stores::required(&self.stores.memory, "long-term memory")?;
        let stored = memory.get(self.who(), id).await?;
        Ok(stored.map(|stored| (*stored).clone()))
    }

    async fn update(
        &self,
        id: &MemoryId,
        change: impl for<'e> Fn(&'e mut MemoryEntry) + Send + Sync,
    ) -> Result<(), StoreError> {
        let memory = Stores::required(&self.stores.memory, "long-term memory")?;
        memory.update(self.who(), id, change).await.map(drop)
    }
}

/// Returns `true` if `stored` is `entry` after its addition was undone.
fn is_undone(stored: &MemoryEntry, entry: &MemoryEntry) -> bool {
    !stored.is_live() && stored.content == entry.content && stored.metadata == entry.metadata
}

/// Returns `true` if both skills say the same to their users. Counts of uses do not matter.
fn says_the_same(a: &Skill, b: &Skill) -> bool {
    a.content == b.content && a.summary == b.summary && a.see_also == b.see_also && a.is_live() == b.is_live()
}

/// Returns `true` if both texts mean the default rules.
fn is_default(a: Option<&str>, b: Option<&str>) -> bool {
    let is_empty = |text: Option<&str>| text.is_none_or(|text| text.trim() == "{}");
    is_empty(a) && is_empty(b)
}
