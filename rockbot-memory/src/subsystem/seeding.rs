//! What a host offers to its agent's skills when it starts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::context::Trust;
use rockbot_core::store::{StoreError, StorePath};
use rockbot_core::tool::{ToolGuide, ToolGuides};

use crate::blocking::blocking;
use crate::json_file::JsonFile;
use crate::skill::{Offer, SkillOutcome};
use crate::tools::skills::Shelf;

/// Where it is kept what was offered, below the data folder.
const FOLDER: &str = "offered-skills";

/// Offers skills, and remembers what was taken: a skill that was deleted since stays so until it is offered with another
/// text.
#[derive(Debug)]
pub(super) struct Seeding {
    shelf: Arc<Shelf>,
    /// The digests of the texts that were taken, by the names of their skills.
    taken: BTreeMap<StorePath, String>,
    file: Option<JsonFile>,
}

impl Seeding {
    /// To the skills of `shelf`; remembers in the data folder, if there is one.
    pub(super) fn open(shelf: Arc<Shelf>, data_dir: Option<&Path>) -> Result<Self, StoreError> {
        let open = |folder: &Path| JsonFile::open(folder.join(FOLDER), "offered.json", "the skills that were offered");
        let (file, taken) = data_dir.map(open).transpose()?.unzip();
        Ok(Self {
            shelf,
            taken: taken.unwrap_or_default(),
            file,
        })
    }

    /// Offers skills, in their order.
    pub(super) async fn offer(mut self, offers: Vec<Offer>) -> Result<(), StoreError> {
        let principal = Principal::default();
        // Without any skills it is another store than the one from which some were deleted, or begins anew.
        let is_new = self.shelf.skills.list(&principal).await?.is_empty();
        let before = self.taken.clone();
        for offer in offers {
            let (name, digest) = (offer.name.clone(), offer.digest());
            let was_deleted = !is_new && self.taken.get(&name) == Some(&digest);
            match self.shelf.offer(&principal, offer, was_deleted).await? {
                SkillOutcome::Added | SkillOutcome::Updated | SkillOutcome::Unchanged => {
                    drop(self.taken.insert(name, digest))
                }
                SkillOutcome::Kept | SkillOutcome::Deleted => {
                    tracing::debug!(%name, "a skill that was offered is not taken")
                }
            }
        }
        match self.file {
            Some(file) if self.taken != before => blocking(move || file.write(&self.taken)).await,
            _ => Ok(()),
        }
    }
}

/// The guides of a host as skills. Whoever gave the host its tools wrote them.
pub(super) fn starters(guides: &ToolGuides) -> Vec<Offer> {
    let guides = guides.snapshot();
    let starter = |guide: &Arc<dyn ToolGuide>| {
        Some(Offer {
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
