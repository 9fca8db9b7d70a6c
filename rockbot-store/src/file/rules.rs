//! Rules in files: [`FileRulesStore`].
//!
//! `rules.md` has the rules that were added through the store; every `.md` file in the folder
//! `rules/` beside it has rules that people wrote, read in the order of their names. Every line
//! is a rule, with or without a list mark; headings and empty lines are not. `timezone` has the
//! name of the user's time zone. The files of other principals than `local` are in
//! `@{principal}/`.
//!
//! A file is read again whenever it changed. Added rules are appended to `rules.md`; a removed
//! rule is removed from all files, and everything else in them stays unchanged. A file that
//! cannot be read is left in place with a warning instead of being quarantined, because a person
//! wrote it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, FileEntry, FileError, name_of, owner_of, without_bom};
use rockbot_core::store::{Rule, RulesStore, StoreError, StoreErrorKind};

use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::principal_cache::PrincipalCache;

/// Maximum size of a file of rules in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum size of the file `timezone` in bytes: a name with the white space that an editor puts
/// around it.
const MAX_ZONE_BYTES: u64 = 256;

/// The heading of a new `rules.md`.
const HEADING: &str = "# Active Rules\n\n";

/// A [`RulesStore`] in the files of a data folder, which one process at a time can open.
///
/// A write resolves when it is synced to disk. A file has at most 1 MiB.
#[derive(Debug)]
pub struct FileRulesStore(Arc<RuleFiles>);

#[derive(Debug)]
struct RuleFiles {
    folder: DataFolder,
    /// The parsed files of each principal. The mutex also serializes writers.
    texts: PrincipalCache<Mutex<ParsedFiles>>,
}

/// The rules of each file, with the file's modification time and size when it was parsed.
type ParsedFiles = BTreeMap<String, ((Option<SystemTime>, u64), Vec<Rule>)>;

impl FileRulesStore {
    /// Opens the rules in the data folder `folder`, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder).map_err(|error| failed("the rules cannot be opened", error))?;
        // The other folders of the data folder belong to other stores.
        folder.remove_drafts(|nested| nested.starts_with('@') || nested == "rules", is_ours);
        Ok(Self(Arc::new(RuleFiles {
            folder,
            texts: PrincipalCache::default(),
        })))
    }

    /// Runs `work` on a blocking thread, with the parsed files of `principal` locked.
    async fn work<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&RuleFiles, &Principal, &mut ParsedFiles) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let files = self.0.clone();
        let principal = principal.clone();
        blocking(move || {
            let texts = files.texts.get_or_default(&principal);
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            work(&files, &principal, &mut texts)
        })
        .await
    }
}

impl RuleFiles {
    /// Parses the files that changed, and returns the names of all files in order, `rules.md` first.
    fn refresh(&self, principal: &Principal, texts: &mut ParsedFiles) -> Result<Vec<String>, StoreError> {
        let found = self.found(principal)?;
        texts.retain(|name, _| found.iter().any(|found| found.name == *name));
        for found in &found {
            let stamp = (found.modified, found.len);
            if texts.get(&found.name).is_none_or(|(known, _)| *known != stamp) {
                match self.text(&found.name) {
                    Ok(text) => drop(texts.insert(found.name.clone(), (stamp, rules(&text).collect()))),
                    Err(error) => {
                        tracing::warn!(%error, "a file of rules cannot be read; its rules have no effect");
                        texts.insert(found.name.clone(), (stamp, Vec::new()));
                    }
                }
            }
        }
        Ok(found.into_iter().map(|found| found.name).collect())
    }

    /// Lists the files of rules of `principal`.
    fn found(&self, principal: &Principal) -> Result<Vec<FileEntry>, StoreError> {
        let name = |name: &str| name_of(principal, name).map_err(|error| failed("the principal has no rules", error));
        let failed = |error| failed("the rules cannot be listed", error);
        let mut found = match self.folder.list(&name("rules")?) {
            Err(error) if error.is_damage() => Vec::new(),
            found => found.map_err(failed)?,
        };
        found.retain(|found| found.name.ends_with(".md"));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        match self.folder.find(&name("rules.md")?) {
            // A symbolic link or a folder. Reading ignores it; the next write reports it.
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

    /// Reads a file that is about to be rewritten. Invalid UTF-8 is an error here: replacing it would
    /// lose text.
    fn own_text(&self, name: &str) -> Result<String, StoreError> {
        let read = self.folder.read(name, MAX_BYTES);
        let bytes = read
            .map_err(|error| failed("the rules cannot be changed", error))?
            .unwrap_or_default();
        String::from_utf8(bytes).map_err(|error| {
            let context = format!("`{name}` is not valid UTF-8: repair it first");
            StoreError::new(StoreErrorKind::Damaged, context).with_cause(error)
        })
    }

    fn time_zone(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        let failed = |error| failed("the time zone cannot be read", error);
        let bytes = match self.folder.read(&zone_file(principal)?, MAX_ZONE_BYTES) {
            Err(error) if error.is_damage() => {
                tracing::warn!(%error, "the time zone cannot be read and is ignored");
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

    /// Replaces a file and drops its parsed rules, so that the next read parses the new text.
    fn write(&self, name: &str, text: &str, texts: &mut ParsedFiles) -> Result<(), StoreError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid(
                "a file of rules has at most 1 MiB: remove some",
                format!("{} bytes", text.len()),
            ));
        }
        // Dropped before the write: after a failed one the file is parsed again, too.
        texts.remove(name);
        let written = self.folder.replace(name, text.as_bytes());
        written.map_err(|error| failed("the rules cannot be written", error))
    }
}

/// Reports whether this store writes a file with this name.
fn is_ours(name: &str) -> bool {
    let own = owner_of(name).map(|(_, name)| name);
    own.is_some_and(|name| {
        let nested = name.strip_prefix("rules/").is_some_and(|name| name.ends_with(".md"));
        nested || matches!(name, "rules.md" | "timezone")
    })
}

fn zone_file(principal: &Principal) -> Result<String, StoreError> {
    name_of(principal, "timezone").map_err(|error| failed("the principal has no time zone", error))
}

/// Iterates over the rules in a text.
fn rules(text: &str) -> impl Iterator<Item = Rule> {
    text.lines().filter_map(rule_of)
}

/// Parses the rule in a line; `None` for a heading or an empty line.
fn rule_of(line: &str) -> Option<Rule> {
    let line = without_mark(line).trim_start();
    if line.starts_with('#') { None } else { Rule::new(line) }
}

/// Strips the byte order mark that some editors put at the beginning.
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
        // Listing a folder costs less than the way to a blocking thread and back, and every turn reads
        // the rules; changed files, which are few and small, are parsed here, too. While a writer holds
        // the lock, the call waits on a blocking thread instead.
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
