//! Packages of scripts: installed by a pod of their own, into a volume that scripts only read.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rockbot_core::Digest;
use rockbot_tools::scripts::{Package, ScriptError};

use super::KubernetesScriptRunner;
use super::pod;
use super::wait::PodEnd;

/// Maximum number of sets that are known. Beyond it, sets are looked for in the volume again.
const MAX_SETS: usize = 1_000;

/// Maximum length of the words of an installer, in characters.
const MAX_WORDS: usize = 2_000;

/// The folders of the sets that are in the volume.
#[derive(Debug, Default)]
pub(super) struct InstalledSets(Mutex<HashSet<String>>);

impl InstalledSets {
    fn contains(&self, folder: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(folder)
    }

    fn add(&self, folder: &str) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= MAX_SETS {
            sets.clear();
        }
        sets.insert(folder.to_owned());
    }
}

impl KubernetesScriptRunner {
    /// Returns the folder of a set of packages in the volume, and installs the set if it is not
    /// known to be there; `None` for no packages.
    pub(super) async fn folder_of(&self, packages: &[Package]) -> Result<Option<String>, ScriptError> {
        if packages.is_empty() {
            return Ok(None);
        }
        if self.settings.package_claim.is_none() {
            let reason =
                "this manager has no volume for packages (`Kubernetes.PackageClaim`): use the standard library";
            return Err(ScriptError::Refused(reason.to_owned()));
        }
        let mut set: Vec<_> = packages.iter().map(Package::to_string).collect();
        set.sort();
        set.dedup();
        let index = self.settings.package_index.clone().unwrap_or_default();
        let source = [self.settings.image.clone(), index];
        let folder = Digest::of(source.iter().chain(&set)).short();
        if !self.installed.contains(&folder) {
            let pod = pod::of_packages(&self.settings, &self.manager, &folder, &set)?;
            match self.run_pod(&pod, pod::INSTALL_LIMIT).await? {
                (PodEnd::Exited(0, _), _) => self.installed.add(&folder),
                (PodEnd::Exited(_, _), words) => return Err(ScriptError::Packages(last(&words))),
                (PodEnd::Evicted(why), _) => return Err(ScriptError::Packages(why)),
                (PodEnd::TimedOut, _) => {
                    let seconds = pod::INSTALL_LIMIT.as_secs();
                    return Err(ScriptError::Packages(format!("it timed out after {seconds} s")));
                }
            }
        }
        Ok(Some(folder))
    }
}

/// Returns the end of the words of an installer.
fn last(words: &str) -> String {
    let surplus = words.chars().count().saturating_sub(MAX_WORDS);
    words.trim().chars().skip(surplus).collect()
}
