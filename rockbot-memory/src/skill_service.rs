//! The skills of an agent, as its tools and its host change them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rockbot_core::store::{Skill, SkillStore, SkillUsage, SkillUsageStore, StoreError, StorePath};
use rockbot_core::tool::{GuideSnapshot, ToolGuides};
use rockbot_core::{CallContext, Clock, Principal, ToolName};
use tokio::sync::Mutex;

use crate::skill_folder::{ManagedSkill, SkillFiles, SkillOutcome};

/// Returns the names and summaries of the guides that are not among `skills`, by name.
pub(crate) fn guides_beside(guides: &GuideSnapshot, skills: &[Arc<Skill>]) -> Vec<(ToolName, String)> {
    let is_skill = |name: &ToolName| skills.iter().any(|skill| skill.name.as_str() == name.as_str());
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let guides = guides.iter().filter(|(name, _)| !is_skill(name));
    guides
        .map(|(name, guide)| (name.clone(), line(guide.summary())))
        .collect()
}

/// The skill store with serialized writes: a store replaces whole skills, so of two concurrent
/// changes one would be lost.
#[derive(Debug)]
pub(crate) struct SkillService {
    pub(crate) skills: Arc<dyn SkillStore>,
    pub(crate) usage: Option<Arc<dyn SkillUsageStore>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The files beside skills from folders, set when the host has started. They belong to the
    /// principal `local`.
    pub(crate) files: OnceLock<BTreeMap<StorePath, SkillFiles>>,
    /// The guides of the host, which are read as skills are.
    guides: Option<Arc<ToolGuides>>,
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
            guides: None,
            changing: Mutex::default(),
        }
    }

    pub(crate) fn with_guides(mut self, guides: Option<Arc<ToolGuides>>) -> Self {
        self.guides = guides;
        self
    }

    /// Returns the skills that are not archived, in the order of their names.
    pub(crate) async fn live(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        let mut skills = self.skills.list(principal).await?;
        skills.retain(|skill| skill.is_live());
        Ok(skills)
    }

    /// Returns the text of a guide.
    pub(crate) fn guide(&self, name: &StorePath) -> Option<String> {
        let guides = self.guides.as_ref()?.snapshot();
        guides.get(name.as_str()).map(|guide| guide.document().into_owned())
    }

    /// Returns the names and summaries of the guides that are not among `skills`.
    pub(crate) fn guides_beside(&self, skills: &[Arc<Skill>]) -> Vec<(ToolName, String)> {
        self.guides
            .as_ref()
            .map_or_else(Vec::new, |guides| guides_beside(&guides.snapshot(), skills))
    }

    /// Returns the files of a skill.
    pub(crate) fn files_of(&self, principal: &Principal, name: &StorePath) -> Option<&SkillFiles> {
        let files = self.files.get()?.get(name)?;
        (*principal == Principal::default()).then_some(files)
    }

    /// Stores the result of `change`, which is given the current skill; `None` leaves it unchanged.
    pub(crate) async fn write<E: From<StoreError>>(
        &self,
        principal: &Principal,
        name: &StorePath,
        change: impl FnOnce(Option<Arc<Skill>>) -> Result<Option<Skill>, E>,
    ) -> Result<Option<Skill>, E> {
        let _changing = self.changing.lock().await;
        let before = self.skills.get(principal, name).await?;
        let after = change(before.clone())?;
        let after = after.map(|after| match &before {
            // A text that is replaced is kept, so that it can be restored.
            Some(before) if before.content != after.content => after.replacing(before),
            _ => after,
        });
        if let Some(after) = after.as_ref().filter(|after| before.as_deref() != Some(after)) {
            self.skills.save(principal, after.clone()).await?;
        }
        Ok(after)
    }

    /// Installs a managed skill, unless a skill of its name was edited, has another author, or was
    /// deleted.
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

    /// Changes a skill, if it exists.
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

    /// Records a use of the skill. A failure is logged only, because it must not prevent reading the
    /// skill.
    pub(crate) async fn used(&self, skill: &Skill, id: String, cx: &CallContext) {
        let now = self.clock.now();
        let name = &skill.name;
        let noted = self
            .update(cx.principal(), name, |skill| skill.last_used_at = Some(now))
            .await;
        let usage = SkillUsage::new(id, name.clone(), cx.session().clone(), now);
        let appended = match &self.usage {
            Some(store) => store.append(cx.principal(), usage).await,
            None => Ok(()),
        };
        if let Err(error) = noted.map(drop).and(appended) {
            tracing::warn!(%name, %error, "the use of a skill was not recorded");
        }
    }
}
