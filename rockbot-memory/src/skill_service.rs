//! The skills of an agent, as its tools and its host change them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rockbot_core::store::{Skill, SkillStore, SkillUsage, SkillUsageStore, StoreError, StorePath};
use rockbot_core::{CallContext, Clock, Principal};
use tokio::sync::Mutex;

use crate::skill_folder::{ManagedSkill, SkillFiles, SkillOutcome};

/// Skills, and everything that changes them, one after the other: a store keeps whole skills, so two changes at once would
/// lose one.
#[derive(Debug)]
pub(crate) struct SkillService {
    pub(crate) skills: Arc<dyn SkillStore>,
    pub(crate) usage: Option<Arc<dyn SkillUsageStore>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What lies beside skills from folders, once the host has started. They belong to the principal `local`.
    pub(crate) files: OnceLock<BTreeMap<StorePath, SkillFiles>>,
    pub(crate) changing: Mutex<()>,
}

impl SkillService {
    pub(crate) fn new(
        skills: Arc<dyn SkillStore>,
        usage: Option<Arc<dyn SkillUsageStore>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            skills,
            usage,
            clock,
            files: OnceLock::new(),
            changing: Mutex::default(),
        }
    }

    /// What lies beside a skill.
    pub(crate) fn files_of(&self, principal: &Principal, name: &StorePath) -> Option<&SkillFiles> {
        let files = self.files.get()?.get(name)?;
        (*principal == Principal::default()).then_some(files)
    }

    /// Keeps what `change` makes of the skill as it stands, if it makes one.
    pub(crate) async fn write<E: From<StoreError>>(
        &self,
        principal: &Principal,
        name: &StorePath,
        change: impl FnOnce(Option<Arc<Skill>>) -> Result<Option<Skill>, E>,
    ) -> Result<Option<Skill>, E> {
        let _changing = self.changing.lock().await;
        let before = self.skills.get(principal, name).await?;
        let after = change(before.clone())?;
        if let Some(after) = after.as_ref().filter(|after| before.as_deref() != Some(after)) {
            self.skills.save(principal, after.clone()).await?;
        }
        Ok(after)
    }

    /// Takes in a skill that is offered, unless somebody wrote or deleted what has its name.
    pub(crate) async fn offer(
        &self,
        principal: &Principal,
        offer: ManagedSkill,
        was_deleted: bool,
    ) -> Result<SkillOutcome, StoreError> {
        let _changing = self.changing.lock().await;
        let now = self.clock.now();
        offer.install_into(&*self.skills, principal, was_deleted, now).await
    }

    /// Changes a skill, if there is one of this name.
    pub(crate) async fn update(
        &self,
        principal: &Principal,
        name: &StorePath,
        change: impl FnOnce(&mut Skill),
    ) -> Result<Option<Skill>, StoreError> {
        let change = |before: Option<Arc<Skill>>| {
            Ok(before.map(|before| {
                let mut after = (*before).clone();
                change(&mut after);
                after
            }))
        };
        self.write(principal, name, change).await
    }

    /// Notes that a skill was read. That it cannot be noted keeps nobody from reading it.
    pub(crate) async fn used(&self, skill: &Skill, id: String, cx: &CallContext) {
        let (now, name) = (self.clock.now(), &skill.name);
        let noted = self
            .update(cx.principal(), name, |skill| skill.last_used_at = Some(now))
            .await;
        let usage = SkillUsage {
            id,
            skill_name: name.clone(),
            session_id: cx.session().clone(),
            timestamp: now,
        };
        let appended = match &self.usage {
            Some(store) => store.append(cx.principal(), usage).await,
            None => Ok(()),
        };
        if let Err(error) = noted.map(drop).and(appended) {
            tracing::warn!(%name, %error, "that a skill was used could not be noted");
        }
    }
}
