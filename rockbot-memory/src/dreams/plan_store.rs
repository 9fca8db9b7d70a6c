//! The folder of dreams: plans, the state that outlives a restart, and the log that a person reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, without_bom};
use rockbot_core::store::StoreError;
use rockbot_store::kit::{blocking, failed, invalid, open_folder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plan::{DreamPlan, PlanState};

/// Maximum number of plans. Beyond it the oldest applied or undone plan is removed, else the
/// oldest waiting plan.
const MAX_PLANS: usize = 1_000;

/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum size of the log, in bytes. A larger log is kept as `dreams.log.1`, and a new log
/// begins.
const MAX_LOG: u64 = 1 << 20;

const STATE: &str = "state.json";
const LOG: &str = "dreams.log";

/// Plans in a folder, or in memory without one.
#[derive(Debug, Default)]
pub(super) struct PlanStore {
    folder: Option<DataFolder>,
    /// Every plan that can be read.
    plans: Mutex<BTreeMap<String, Arc<DreamPlan>>>,
}

impl PlanStore {
    /// Opens the folder and reads its plans and its state. A damaged file is quarantined.
    pub(super) fn open<S: DeserializeOwned + Default>(folder: Option<PathBuf>) -> Result<(Self, S), StoreError> {
        let Some(folder) = folder else {
            return Ok((Self::default(), S::default()));
        };
        let cannot = |error| failed("the plans of dreams cannot be read", error);
        let folder = open_folder(folder, "the plans of dreams", |name| name.ends_with(".json"))?;
        let mut plans = BTreeMap::new();
        for file in folder.list("").map_err(cannot)? {
            if !file.name.ends_with(".json") || file.name == STATE || file.name.contains('/') {
                continue;
            }
            if let Some(plan) = read::<DreamPlan>(&folder, &file.name)? {
                plans.insert(plan.id.clone(), Arc::new(plan));
            }
        }
        let state = read(&folder, STATE)?.unwrap_or_default();
        let store = Self {
            folder: Some(folder),
            plans: Mutex::new(plans),
        };
        Ok((store, state))
    }

    /// Returns all plans, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<DreamPlan>> {
        let mut plans: Vec<_> = self.lock().values().cloned().collect();
        // Ids have seconds only.
        plans.sort_by_key(|plan| plan.created_at);
        plans
    }

    /// Returns the plan `id`.
    pub(super) fn find(&self, id: &str) -> Option<Arc<DreamPlan>> {
        self.lock().get(id).cloned()
    }

    /// Returns an id that no plan has: `base`, or `base-2` and so on.
    pub(super) fn free_id(&self, base: &str) -> String {
        let plans = self.lock();
        let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
        let mut ids = std::iter::once(base.to_owned()).chain(numbered);
        ids.find(|id| !plans.contains_key(id)).unwrap_or_default()
    }

    /// Stores a plan, in place of a plan with the same id, and returns once the plan is synced to
    /// disk.
    pub(super) async fn save(self: &Arc<Self>, plan: DreamPlan) -> Result<Arc<DreamPlan>, StoreError> {
        let this = self.clone();
        let plan = Arc::new(plan);
        blocking(move || {
            this.write(&format!("{}.json", plan.id), &*plan)?;
            this.lock().insert(plan.id.clone(), plan.clone());
            this.make_room();
            Ok(plan)
        })
        .await
    }

    /// Stores the state.
    pub(super) async fn save_state(self: &Arc<Self>, state: impl Serialize + Send + 'static) -> Result<(), StoreError> {
        let this = self.clone();
        blocking(move || this.write(STATE, &state)).await
    }

    /// Appends a line to the log that a person reads. A failure to write the log is not returned.
    pub(super) async fn log(self: &Arc<Self>, line: String) {
        let this = self.clone();
        let written = blocking(move || this.append(&line)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "the log of dreams cannot be written");
        }
    }

    fn append(&self, line: &str) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let cannot = |error| failed("the log of dreams cannot be written", error);
        let is_full = folder.find(LOG).map_err(cannot)?.is_some_and(|file| file.len > MAX_LOG);
        if is_full {
            let text = folder.read(LOG, MAX_BYTES).map_err(cannot)?.unwrap_or_default();
            folder.replace("dreams.log.1", &text).map_err(cannot)?;
            folder.replace(LOG, b"").map_err(cannot)?;
        }
        let mut lines = folder.lines(LOG).map_err(cannot)?;
        lines.append(format!("{line}\n").as_bytes()).map(drop).map_err(cannot)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let json = serde_json::to_vec_pretty(value);
        let json = json.map_err(|error| invalid("a plan cannot be serialized as JSON", error))?;
        let written = folder.replace(name, &json);
        written.map_err(|error| failed("a plan of a dream cannot be written", error))
    }

    /// Removes the oldest plans while there are too many.
    fn make_room(&self) {
        let mut plans = self.lock();
        while plans.len() > MAX_PLANS {
            let is_done = |plan: &&Arc<DreamPlan>| matches!(plan.state, PlanState::Applied | PlanState::Undone);
            let waits = |plan: &&Arc<DreamPlan>| plan.state == PlanState::Proposed;
            // A plan that is being applied or undone stays: a crash would leave its changes half
            // made.
            let oldest = plans.values().find(is_done).or_else(|| plans.values().find(waits));
            let Some(id) = oldest.map(|plan| plan.id.clone()) else {
                return;
            };
            plans.remove(&id);
            let removed = self.folder.as_ref().map(|folder| folder.remove(&format!("{id}.json")));
            if let Some(Err(error)) = removed {
                tracing::warn!(id, %error, "an old plan of a dream cannot be removed");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DreamPlan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a document; `None` if there is no document, or it was damaged and is quarantined now.
fn read<T: DeserializeOwned>(folder: &DataFolder, name: &str) -> Result<Option<T>, StoreError> {
    let cannot = |error| failed("the plans of dreams cannot be read", error);
    let problem = match folder.read(name, MAX_BYTES) {
        Ok(None) => return Ok(None),
        Ok(Some(json)) => match serde_json::from_slice(without_bom(&json)) {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error.to_string(),
        },
        Err(error) if error.is_damage() => error.to_string(),
        Err(error) => return Err(cannot(error)),
    };
    let moved = folder.quarantine(name).map_err(cannot)?;
    tracing::warn!(
        name,
        quarantined_as = moved,
        problem,
        "a file of dreams cannot be read; it was quarantined"
    );
    Ok(None)
}
