//! Rules in a file that is edited while the agent runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::support::loggable;
use rockbot_core::{Clock, Digest, SystemClock, Timestamp};

use super::TierRules;

/// Time for which the rules that were read last are used without reading the file again.
const FRESH: Duration = Duration::from_secs(60);

const MAX_BYTES: u64 = 256 << 10;

/// A file of rules, and the rules that hold.
#[derive(Debug)]
pub(super) struct RulesFile {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    cached: Mutex<CachedRules>,
}

#[derive(Debug, Default)]
struct CachedRules {
    rules: Arc<TierRules>,
    looked: Option<Timestamp>,
    /// Digest of the file's content at the last read, so that a bad file is reported once.
    seen: Option<Digest>,
}

impl RulesFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            clock: Arc::new(SystemClock),
            cached: Mutex::default(),
        }
    }

    pub(super) fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the rules that hold, after reading the file if the last read is too old. Concurrent
    /// callers get the rules that held before.
    pub(super) fn rules(&self) -> Arc<TierRules> {
        if self.lock().is_due(self.clock.now()) {
            self.look();
        }
        self.lock().rules.clone()
    }

    fn look(&self) {
        let read = self.read().map_err(|error| error.to_string());
        let digest = Digest::of([format!("{read:?}")]);
        if self.lock().seen.replace(digest) == Some(digest) {
            return;
        }
        let rules = read.and_then(|text| match text {
            Some(text) => TierRules::from_json(&text).map_err(|error| error.to_string()),
            None => Ok(TierRules::default()),
        });
        match rules {
            Ok(rules) => self.lock().rules = Arc::new(rules),
            Err(error) => {
                let path = self.path.display();
                let error = loggable(&error);
                tracing::warn!("`{path}` cannot be used, the rules stay as they were: {error}");
            }
        }
    }

    /// Reads the text of the file, if there is one.
    fn read(&self) -> io::Result<Option<String>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")))
        } else {
            Ok(Some(text))
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedRules> {
        // No code that can panic runs under the lock.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedRules {
    /// Returns `true` if the file is due to be read, and marks it as read, so only the first of
    /// concurrent callers reads it.
    fn is_due(&mut self, now: Timestamp) -> bool {
        // A clock that was set back must not keep the file from being read.
        let is_fresh = self
            .looked
            .is_some_and(|looked| looked <= now && now.since(looked) < FRESH);
        if !is_fresh {
            self.looked = Some(now);
        }
        !is_fresh
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::ModelTier;
    use rockbot_core::testing::ManualClock;

    use super::super::KeywordTierSelector;
    use crate::testing::Log;

    use super::*;

    /// A selector over a file, and the hands that change them.
    struct Edited {
        folder: tempfile::TempDir,
        clock: ManualClock,
        selector: KeywordTierSelector,
    }

    impl Edited {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::default();
            let selector = KeywordTierSelector::from_file(folder.path().join("tier-selector.json"));
            let selector = selector.clock(Arc::new(clock.clone()));
            Self {
                folder,
                clock,
                selector,
            }
        }

        fn write(&self, text: &[u8]) {
            std::fs::write(self.folder.path().join("tier-selector.json"), text).unwrap();
        }

        /// The tier of a short text with one keyword: Low by default.
        fn tier(&self) -> ModelTier {
            self.selector.decide("Analyze this.").tier
        }

        fn tier_after(&self, seconds: u64) -> ModelTier {
            self.clock.advance(Duration::from_secs(seconds));
            self.tier()
        }
    }

    const HIGH: &[u8] = br#"{"lowCeiling":0.05,"balancedCeiling":0.1}"#;

    #[test]
    fn an_edit_counts_within_a_minute() {
        let edited = Edited::new();
        assert_eq!(edited.tier(), ModelTier::Low);
        edited.write(HIGH);
        assert_eq!(edited.tier_after(59), ModelTier::Low);
        assert_eq!(edited.tier_after(1), ModelTier::High);
        edited.write(br#"{"lowCeiling":0.1}"#);
        assert_eq!(edited.tier_after(60), ModelTier::Balanced);
        std::fs::remove_file(edited.folder.path().join("tier-selector.json")).unwrap();
        assert_eq!(edited.tier_after(60), ModelTier::Low);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_the_looks() {
        let edited = Edited::new();
        assert_eq!(edited.tier(), ModelTier::Low);
        edited.write(HIGH);
        edited.clock.set(Timestamp::from_millis(0));
        assert_eq!(edited.tier(), ModelTier::High);
    }

    #[test]
    fn the_last_good_rules_stay_and_one_warning_says_why() {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let edited = Edited::new();
        edited.write(HIGH);
        assert_eq!(edited.tier(), ModelTier::High);
        edited.write(br#"{"lowCeiling":7}"#);
        for _ in 0..3 {
            assert_eq!(edited.tier_after(60), ModelTier::High);
        }
        let warnings = log.lines();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("tier-selector.json") && warnings[0].contains("`lowCeiling` must be"),
            "{warnings:?}"
        );
        for bad in [&[0xff][..], b"", &vec![b' '; 300_000]] {
            edited.write(bad);
            assert_eq!(edited.tier_after(60), ModelTier::High);
        }
        edited.write(b"{}");
        assert_eq!(edited.tier_after(60), ModelTier::Low);
        assert_eq!(log.lines().len(), 4);
    }
}
