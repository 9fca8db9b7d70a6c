//! Seeds an agent's skills when its host starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::context::Trust;
use rockbot_core::store::{StoreError, StorePath};
use rockbot_core::tool::{ToolGuide, ToolGuides};
use rockbot_store::kit::blocking;

use crate::json_file::JsonFile;
use crate::skill_folder::{FolderSkill, ManagedSkill, SkillFolder, SkillOutcome};
use crate::skill_service::SkillService;

/// Folder of the record of seeded skills, below the data folder.
const FOLDER: &str = "offered-skills";

/// Seeds skills, and records which were accepted: a skill deleted since then stays deleted until
/// its text changes.
#[derive(Debug)]
pub(super) struct SkillSeeding {
    service: Arc<SkillService>,
    /// Digests of the accepted texts, by the names of their skills.
    taken: BTreeMap<StorePath, String>,
    file: Option<JsonFile>,
}

impl SkillSeeding {
    /// Opens the record in the data folder, if there is one, for the skills of `service`.
    pub(super) fn open(service: Arc<SkillService>, data_dir: Option<&Path>) -> Result<Self, StoreError> {
        let open = |folder: &Path| JsonFile::open(folder.join(FOLDER), "offered.json", "the skills that were offered");
        let (file, taken) = data_dir.map(open).transpose()?.unzip();
        Ok(Self {
            service,
            taken: taken.unwrap_or_default(),
            file,
        })
    }

    /// Seeds the guides of a host, and then the skills of folders, whose files beside them become
    /// readable. Of several skills with one name, the first one wins.
    pub(super) async fn begin(self, guides: Option<&ToolGuides>, folders: &[SkillFolder]) -> Result<(), StoreError> {
        let service = self.service.clone();
        let mut offers = guides.map(starters).unwrap_or_default();
        let mut names: BTreeSet<_> = offers.iter().map(|offer| offer.name.clone()).collect();
        let mut files = BTreeMap::new();
        for folder in folders {
            for skill in read(folder).await {
                let name = &skill.skill.name;
                if !names.insert(name.clone()) {
                    tracing::warn!(folder = %folder.path().display(), %name, "a skill is left out: there is another one of its name");
                    continue;
                }
                files.insert(name.clone(), skill.files);
                offers.push(skill.skill);
            }
        }
        self.offer(offers).await?;
        let skills = service.skills.list(&Principal::default()).await?;
        let with_files = skills.iter().filter_map(|skill| {
            let (name, files) = files.remove_entry(&skill.name)?;
            files.belong_to(skill).then_some((name, files))
        });
        // Set once: a host starts once.
        let _ = service.files.set(with_files.collect());
        Ok(())
    }

    /// Seeds skills, in their order.
    async fn offer(mut self, offers: Vec<ManagedSkill>) -> Result<(), StoreError> {
        let principal = Principal::default();
        // An empty store is a new store, or was cleared on purpose: the record of deletions does not
        // apply to it.
        let is_new = self.service.skills.list(&principal).await?.is_empty();
        let before = self.taken.clone();
        for offer in offers {
            let name = offer.name.clone();
            let digest = offer.digest();
            let was_deleted = !is_new && self.taken.get(&name) == Some(&digest);
            let outcome = self.service.offer(&principal, offer, was_deleted).await?;
            tracing::debug!(%name, ?outcome, "a skill was offered");
            // For an edited skill the newest text is recorded as seen, so that deleting the skill later does
            // not bring it back.
            if outcome != SkillOutcome::Kept || self.taken.contains_key(&name) {
                self.taken.insert(name, digest);
            }
        }
        if let Some(file) = self.file.filter(|_| self.taken != before) {
            blocking(move || file.write(&self.taken)).await?;
        }
        Ok(())
    }
}

/// Returns the guides of a host as skills. They are trusted like the host's tools, whose author
/// wrote them.
fn starters(guides: &ToolGuides) -> Vec<ManagedSkill> {
    let guides = guides.snapshot();
    let starter = |guide: &Arc<dyn ToolGuide>| {
        Some(ManagedSkill {
            name: StorePath::new(guide.name()).ok()?,
            summary: guide.summary().split_whitespace().collect::<Vec<_>>().join(" "),
            content: guide.document().trim().to_owned(),
            metadata: BTreeMap::new(),
            source: "guide",
            trust: Trust::Host,
        })
    };
    guides.values().filter_map(starter).collect()
}

/// Reads the skills of a folder. Skills that cannot be imported are logged.
async fn read(folder: &SkillFolder) -> Vec<FolderSkill> {
    let path = folder.path().display();
    match folder.read().await {
        Ok((skills, skipped)) => {
            for file in skipped {
                tracing::warn!(folder = %path, file = %file.path, reason = %file.reason, "no skill is taken from a file");
            }
            skills
        }
        Err(error) => {
            tracing::warn!(folder = %path, %error, "no skills are taken from a folder");
            Vec::new()
        }
    }
}
