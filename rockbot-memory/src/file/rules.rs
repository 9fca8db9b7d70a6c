//! Rules in files: [`FileRulesStore`].
//!
//! `rules.md` has what the agent was told; every `.md` file in the folder `rules/` beside it has rules that people
//! wrote, read in the order of their names. Every line is a rule, with or without a list mark before it; headings and
//! empty lines are not. `timezone` has the name of the time zone in which the person is. The files of other principals lie
//! in `@{principal}/`.
//!
//! The files are read again whenever they changed. What is added goes to the end of `rules.md`; what is removed goes
//! from all files, and everything else in them stays as it is. A file that cannot be read is left where it is, with a
//! warning: it is somebody's text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, FileError, Found, name_of, without_bom};
use rockbot_core::store::{Rule, RulesStore, StoreError, StoreErrorKind};

use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::principal_cache::PrincipalCache;

/// The longest file of rules, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The longest name of a time zone, in bytes, with what an editor puts around it.
const MAX_ZONE_BYTES: u64 = 256;

/// What stands at the top of a new `rules.md`.
const HEADING: &str = "# Active Rules\n\n";

/// A [`RulesStore`] in the files of a data folder, which one process at a time can open.
///
/// A write resolves when the disk has it. A file has at most 1 MiB.
#[derive(Debug)]
pub struct FileRulesStore(Arc<RuleFiles>);

#[derive(Debug)]
struct RuleFiles {
    folder: DataFolder,
    /// What was read of each principal, by file; also makes writers wait for each other.
    texts: PrincipalCache<Mutex<ParsedFiles>>,
}

/// The rules in each file, and as what it was read.
type ParsedFiles = BTreeMap<String, ((Option<SystemTime>, u64), Vec<Rule>)>;

impl FileRulesStore {
    /// Opens the rules in the data folder `folder`, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// Fails when the folder is open already, here or in another process, and when it cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder);
        Ok(Self(Arc::new(RuleFiles {
            folder: folder.map_err(|error| failed("the rules cannot be opened", error))?,
            texts: PrincipalCache::default(),
        })))
    }

    async fn work<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&RuleFiles, &Principal, &mut ParsedFiles) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (files, principal) = (self.0.clone(), principal.clone());
        blocking(move || {
            let texts = files.texts.get_or_default(&principal);
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            work(&files, &principal, &mut texts)
        })
        .await
    }
}

impl RuleFiles {
    /// Reads what changed. The files come in the order of their names, `rules.md` first.
    fn refresh(&self, principal: &Principal, texts: &mut ParsedFiles) -> Result<Vec<String>, StoreError> {
        let found = self.found(principal)?;
        texts.retain(|name, _| found.iter().any(|found| found.name == *name));
        for found in &found {
            let stamp = (found.modified, found.len);
            if texts.get(&found.name).is_none_or(|(known, _)| *known != stamp) {
                match self.text(&found.name) {
                    Ok(text) => drop(texts.insert(found.name.clone(), (stamp, rules(&text).collect()))),
                    Err(error) => {
                        tracing::warn!(%error, "a file of rules cannot be read; its rules do not hold");
                        texts.insert(found.name.clone(), (stamp, Vec::new()));
                    }
                }
            }
        }
        Ok(found.into_iter().map(|found| found.name).collect())
    }

    fn found(&self, principal: &Principal) -> Result<Vec<Found>, StoreError> {
        let name = |name: &str| name_of(principal, name).map_err(|error| failed("the principal has no rules", error));
        let failed = |error| failed("the rules cannot be listed", error);
        let mut found = match self.folder.list(&name("rules")?) {
            Err(error) if error.is_damage() => Vec::new(),
            found => found.map_err(failed)?,
        };
        found.retain(|found| found.name.ends_with(".md"));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        match self.folder.find(&name("rules.md")?) {
            // A link or folder; writing tells.
            Err(error) if error.is_damage() => {}
            own => own.map_err(failed)?.into_iter().for_each(|own| found.insert(0, own)),
        }
        Ok(found)
    }

    fn text(&self, name: &str) -> Result<String, FileError> {
        let bytes = self.folder.read(name, MAX_BYTES)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(without_bom(&bytes)).into_owned())
    }

    fn list(&self, principal: &Principal, texts: &mut ParsedFiles) -> Result<Vec<Rule>, StoreError> {
        let mut rules: Vec<Rule> = Vec::new();
        for name in self.refresh(principal, texts)? {
            for rule in texts.get(&name).into_iter().flat_map(|(_, rules)| rules) {
                if !rules.iter().any(|known| known.is_same_as(rule)) {
                    rules.push(rule.clone());
                }
            }
        }
        Ok(rules)
    }

    fn add(&self, principal: &Principal, texts: &mut ParsedFiles, rule: &Rule) -> Result<bool, StoreError> {
        if self.list(principal, texts)?.iter().any(|known| known.is_same_as(rule)) {
            return Ok(false);
        }
        let name = name_of(principal, "rules.md").map_err(|error| failed("the principal has no rules", error))?;
        let mut text = self.own_text(&name)?;
        if text.is_empty() {
            text.push_str(HEADING);
        } else if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("- {rule}\n"));
        self.write(&name, &text, texts).map(|()| true)
    }

    fn remove(&self, principal: &Principal, texts: &mut ParsedFiles, rule: &Rule) -> Result<bool, StoreError> {
        let mut was_there = false;
        for name in self.refresh(principal, texts)? {
            let has_it = texts
                .get(&name)
                .is_some_and(|(_, rules)| rules.iter().any(|known| known.is_same_as(rule)));
            if has_it {
                let text = self.own_text(&name)?;
                let is_kept = |line: &&str| rule_of(line).is_none_or(|known| !known.is_same_as(rule));
                let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
                self.write(&name, &kept, texts)?;
                was_there = true;
            }
        }
        Ok(was_there)
    }

    /// The text of a file that is about to be written: nothing of it may be lost.
    fn own_text(&self, name: &str) -> Result<String, StoreError> {
        let read = self.folder.read(name, MAX_BYTES);
        let bytes = read
            .map_err(|error| failed("the rules cannot be changed", error))?
            .unwrap_or_default();
        String::from_utf8(bytes).map_err(|error| {
            let context = format!("`{name}` is no UTF-8 text: repair it first");
            StoreError::new(StoreErrorKind::Damaged, context).with_source(error)
        })
    }

    fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        let failed = |error| failed("the time zone cannot be read", error);
        let bytes = match self.folder.read(&zone_file(principal)?, MAX_ZONE_BYTES) {
            Err(error) if error.is_damage() => {
                tracing::warn!(%error, "a time zone cannot be read, and does not count");
                None
            }
            bytes => bytes.map_err(failed)?,
        };
        let text = bytes.map(|bytes| String::from_utf8_lossy(without_bom(&bytes)).trim().to_owned());
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        let written = self.folder.replace(&zone_file(principal)?, name.as_bytes());
        written.map_err(|error| failed("the time zone cannot be written", error))
    }

    fn write(&self, name: &str, text: &str, texts: &mut ParsedFiles) -> Result<(), StoreError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid(
                "a file of rules has at most 1 MiB: remove some",
                format!("{} bytes", text.len()),
            ));
        }
        texts.remove(name);
        let written = self.folder.replace(name, text.as_bytes());
        written.map_err(|error| failed("the rules cannot be written", error))
    }
}

fn zone_file(principal: &Principal) -> Result<String, StoreError> {
    name_of(principal, "timezone").map_err(|error| failed("the principal has no time zone", error))
}

fn rules(text: &str) -> impl Iterator<Item = Rule> {
    text.lines().filter_map(rule_of)
}

/// The rule in a line; none in a heading.
fn rule_of(line: &str) -> Option<Rule> {
    let line = without_mark(line).trim_start();
    if line.starts_with('#') { None } else { Rule::new(line) }
}

/// The line without the mark that some editors put before the first one.
fn without_mark(line: &str) -> &str {
    line.trim_start_matches('\u{feff}')
}

#[async_trait]
impl RulesStore for FileRulesStore {
    async fn add(&self, principal: &Principal, rule: Rule) -> Result<bool, StoreError> {
        self.work(principal, move |files, principal, texts| {
            files.add(principal, texts, &rule)
        })
        .await
    }

    async fn remove(&self, principal: &Principal, rule: &Rule) -> Result<bool, StoreError> {
        let rule = rule.clone();
        self.work(principal, move |files, principal, texts| {
            files.remove(principal, texts, &rule)
        })
        .await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Rule>, StoreError> {
        // Looking at a folder and a file costs less than the way to another thread and back; what changed is read here, too. Rules
        // are few, and lie on a disk of this machine. Writers are waited for there.
        if let Ok(mut texts) = self.0.texts.get_or_default(principal).try_lock() {
            return self.0.list(principal, &mut texts);
        }
        self.work(principal, RuleFiles::list).await
    }

    async fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        self.work(principal, |files, principal, _| files.time_zone(principal))
            .await
    }

    async fn set_time_zone(&self, principal: &Principal, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.work(principal, move |files, principal, _| {
            files.set_time_zone(principal, &name)
        })
        .await
    }
}
