//! A log of decisions and what came of them, for whoever tunes the rules.

mod file;
mod preview;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::chat::{MicroUsd, ModelTier, TierDecision};
use rockbot_core::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};

use file::LogFile;
use preview::preview;

/// How many decisions are kept.
const MAX_ENTRIES: usize = 200;

/// The newest 200 decisions, in memory or in a file such as `tier-routing-log.jsonl`, one JSON line for each.
///
/// Lines of a file are appended; when there are 1 000 of them, the file is rewritten. Only its owner may read it.
/// A host gathers the lines of a second, up to 32, and writes them together: so many may be lost when it is killed. A line
/// holds the first 150 characters of the text with what looks like a key blanked out, unless
/// [`RoutingLog::without_previews`]: whoever judges a decision must see what it was about.
///
/// Writing is short but waits for the disk: from async code, call it where that does no harm.
///
/// ```
/// use rockbot_core::{Clock, SystemClock};
/// use rockbot_core::chat::{ModelTier, TierDecision};
/// use rockbot_host::routing::{RoutingEntry, RoutingLog};
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// let log = RoutingLog::new(folder.path().join("tier-routing-log.jsonl"));
/// let text = "Who was Ada Lovelace?";
/// let decision = TierDecision::new(ModelTier::Low, 0.05).because("it is short");
/// log.append(RoutingEntry::new(SystemClock.now(), "user-message", text, &decision))?;
///
/// assert_eq!(log.entries()?[0].prompt_preview, text);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RoutingLog {
    storage: LogStorage,
    previews: bool,
}

#[derive(Debug)]
enum LogStorage {
    Memory(Mutex<VecDeque<RoutingEntry>>),
    File(LogFile),
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingEntry {
    /// When it was made.
    #[serde(with = "rfc3339")]
    pub timestamp: Timestamp,
    /// How the text begins.
    #[serde(default)]
    pub prompt_preview: String,
    /// The tier.
    #[serde(with = "tier_name")]
    pub tier: ModelTier,
    /// What was routed: `user-message`, `subagent` or `scheduled`.
    #[serde(default)]
    pub context: String,
    /// The score.
    #[serde(default)]
    pub complexity_score: f64,
    /// What spoke for the tier.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// What came of it, where that is known.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub result: Option<RoutingResult>,
}

/// What came of a decision: how its turn ended, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingResult {
    /// How the turn ended: `answered`, `partial`, `failed`, `cancelled` or `superseded`.
    pub status: String,
    /// The tier that the turn went on with, when the selected one was too low.
    #[serde(default, with = "maybe_tier_name", skip_serializing_if = "Option::is_none")]
    pub escalated_to: Option<ModelTier>,
    /// How often the model was asked.
    pub model_calls: u32,
    /// Tokens of the requests.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// What they cost; `None` when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<MicroUsd>,
    /// How long the turn worked, in milliseconds.
    pub latency_ms: u64,
}

impl RoutingEntry {
    /// The decision about `text`, made `at` a moment for `context`.
    pub fn new(at: Timestamp, context: impl Into<String>, text: &str, decision: &TierDecision) -> Self {
        Self {
            timestamp: at,
            prompt_preview: preview(text),
            tier: decision.tier,
            context: context.into(),
            complexity_score: decision.score,
            reasons: decision.reasons.clone(),
            result: None,
        }
    }
}

impl RoutingLog {
    /// The log in the file `path`, which is made when it is not there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            storage: LogStorage::File(LogFile::new(path.into())),
            previews: true,
        }
    }

    /// A log that ends with the process.
    pub fn in_memory() -> Self {
        Self {
            storage: LogStorage::Memory(Mutex::default()),
            previews: true,
        }
    }

    /// Keeps nothing of the texts. The reasons still name the keywords that were found.
    #[must_use]
    pub fn without_previews(mut self) -> Self {
        self.previews = false;
        self
    }

    /// Writes one decision, and those that wait.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be written.
    pub fn append(&self, entry: RoutingEntry) -> io::Result<()> {
        self.buffer(entry)?;
        self.write()
    }

    /// Writes the decisions that wait.
    pub(super) fn write(&self) -> io::Result<()> {
        match &self.storage {
            LogStorage::File(file) => file.write(),
            LogStorage::Memory(_) => Ok(()),
        }
    }

    /// Takes one decision in, to be written together with others. Returns whether it is the first one that waits: then they
    /// should be written soon.
    pub(super) fn buffer(&self, mut entry: RoutingEntry) -> io::Result<bool> {
        if !self.previews {
            entry.prompt_preview.clear();
        }
        match &self.storage {
            LogStorage::File(file) => file.buffer(&entry),
            LogStorage::Memory(entries) => {
                let mut entries = lock(entries);
                if entries.len() == MAX_ENTRIES {
                    entries.pop_front();
                }
                entries.push_back(entry);
                Ok(false)
            }
        }
    }

    /// The newest decisions, at most 200, the oldest of them first. Lines that cannot be read are left out.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read; one that is not there is empty.
    pub fn entries(&self) -> io::Result<Vec<RoutingEntry>> {
        match &self.storage {
            LogStorage::File(file) => file.entries(),
            LogStorage::Memory(entries) => Ok(lock(entries).iter().cloned().collect()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tier as logs and the original write it.
mod tier_name {
    use rockbot_core::chat::ModelTier;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(tier: &ModelTier, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(tier.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelTier, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let tier = ModelTier::ALL
            .into_iter()
            .find(|tier| tier.name().eq_ignore_ascii_case(&name));
        tier.ok_or_else(|| de::Error::custom(format_args!("`{name}` is no tier")))
    }
}

/// As [`tier_name`], where there may be none.
mod maybe_tier_name {
    use rockbot_core::chat::ModelTier;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(tier: &Option<ModelTier>, serializer: S) -> Result<S::Ok, S::Error> {
        match tier {
            Some(tier) => super::tier_name::serialize(tier, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelTier>, D::Error> {
        #[derive(Deserialize)]
        struct Named(#[serde(with = "super::tier_name")] ModelTier);
        Ok(Option::<Named>::deserialize(deserializer)?.map(|Named(tier)| tier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> RoutingEntry {
        let decision = TierDecision::new(ModelTier::High, 0.5).because("it is hard");
        RoutingEntry::new(Timestamp::from_millis(0), "subagent", text, &decision)
    }

    fn previews(log: &RoutingLog) -> Vec<String> {
        log.entries()
            .unwrap()
            .into_iter()
            .map(|entry| entry.prompt_preview)
            .collect()
    }

    #[test]
    fn a_line_has_the_shape_of_the_original() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        RoutingLog::new(&path).append(entry("two\nlines")).unwrap();
        let expected = r#"{"timestamp":"1970-01-01T00:00:00.000Z","promptPreview":"two\nlines","tier":"High","context":"subagent","complexityScore":0.5,"reasons":["it is hard"]}"#;
        assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn the_newest_two_hundred_are_kept_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut longest = 0;
        for number in 0..300 {
            // Every now and then another process takes over.
            let log = RoutingLog::new(&path);
            for step in 0..10 {
                log.append(entry(&format!("{}", number * 10 + step))).unwrap();
                longest = longest.max(std::fs::read_to_string(&path).unwrap().lines().count());
            }
        }
        assert_eq!(longest, 999);
        let expected: Vec<_> = (2800..3_000).map(|number| number.to_string()).collect();
        assert_eq!(previews(&RoutingLog::new(&path)), expected);
    }

    #[test]
    fn what_is_gathered_is_written_together_and_never_missed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let written = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
        let log = RoutingLog::new(&path);
        let buffer = |count: usize| {
            for number in 0..count {
                log.buffer(entry(&number.to_string())).unwrap();
            }
        };
        assert!(log.buffer(entry("the first")).unwrap());
        assert!(!log.buffer(entry("one more")).unwrap());
        log.write().unwrap();
        assert_eq!(written(), 2);
        buffer(31);
        assert_eq!(written(), 2);
        buffer(1);
        assert_eq!(written(), 34);
        buffer(5);
        log.append(entry("at once")).unwrap();
        assert_eq!(written(), 40);
        buffer(5);
        assert_eq!(previews(&log).len(), 45);
        // Files that are full are rewritten with all of them.
        buffer(1_000);
        assert_eq!(previews(&log).len(), 200);
        buffer(5);
        drop(log);
        assert_eq!(previews(&RoutingLog::new(&path))[195..], ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn memory_keeps_as_many() {
        let log = RoutingLog::in_memory();
        for number in 0..250 {
            log.append(entry(&number.to_string())).unwrap();
        }
        let expected: Vec<_> = (50..250).map(|number| number.to_string()).collect();
        assert_eq!(previews(&log), expected);
    }

    #[test]
    fn what_came_of_a_decision_stands_in_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let log = RoutingLog::new(folder.path().join("log.jsonl"));
        let result = |escalated_to, cost| RoutingResult {
            status: "answered".to_owned(),
            escalated_to,
            model_calls: 2,
            input_tokens: 30,
            output_tokens: 10,
            cost_micro_usd: cost,
            latency_ms: 1_500,
        };
        for result in [result(None, None), result(Some(ModelTier::High), Some(MicroUsd(7)))] {
            let entry = RoutingEntry {
                result: Some(result),
                ..entry("text")
            };
            log.append(entry.clone()).unwrap();
            assert_eq!(log.entries().unwrap().last(), Some(&entry));
        }
        let text = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        let end = r#""status":"answered","escalatedTo":"High","modelCalls":2,"inputTokens":30,"outputTokens":10,"costMicroUsd":7,"latencyMs":1500}"#;
        assert!(text.trim_end().ends_with(end), "{text}");
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let log = RoutingLog::new(&path);
        assert_eq!(previews(&log), Vec::<String>::new());
        std::fs::write(
            &path,
            b"{\xff}\n{}\n{\"timestamp\":\"2026-02-01T00:00:00Z\",\"tier\":\"low\"}\n",
        )
        .unwrap();
        log.append(entry("new")).unwrap();
        assert_eq!(previews(&log), ["", "new"]);
    }

    #[test]
    fn no_key_is_written() {
        let check = |text: &str, expected: &str| assert_eq!(preview(text), expected);
        check("use sk-proj-1234567890 for it", "use [redacted] for it");
        check("Bearer abc.def it is", "Bearer [redacted] it is");
        check("ghp_0123456789abcdefghij is mine", "[redacted] is mine");
        check(
            "an extraordinarily-long-word stays",
            "an extraordinarily-long-word stays",
        );
        check(&"é".repeat(200), &"é".repeat(150));
        check(
            &format!("{} sk-proj-1234567890", "x".repeat(144)),
            &format!("{} [reda", "x".repeat(144)),
        );
        let folder = tempfile::tempdir().unwrap();
        let log = RoutingLog::new(folder.path().join("log.jsonl")).without_previews();
        log.append(entry("secret")).unwrap();
        assert_eq!(previews(&log), [""]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let log = RoutingLog::new(&path);
        for _ in 0..1_100 {
            log.append(entry("x")).unwrap();
        }
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
